"""Peers that do the same work in turn, each in a process of its own and at its own best setting.

A benchmark names its peers; this module runs them. Another file of this folder has, for each peer, a function that
takes a setting and gives the work to be timed: a function without arguments that returns what it counted.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib
import itertools
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

_SHORT_SECONDS = 1.0


@dataclasses.dataclass(frozen=True)
class Peer:
    """What is compared.

    Attributes:
        name: Name in the tables.
        work: `module:function`, the function that makes the work.
        arguments: Keyword arguments of the function, the same for every setting.
        settings: Values to try for further arguments: each combination is tried, and the fastest one is measured.
    """

    name: str
    work: str
    arguments: dict[str, Any] = dataclasses.field(default_factory=dict)
    settings: dict[str, Sequence] = dataclasses.field(default_factory=dict)

    def combinations(self) -> list[dict[str, Any]]:
        """Every setting to try."""
        values = itertools.product(*self.settings.values())
        return [dict(zip(self.settings, combination, strict=True)) for combination in values]


class Worker:
    """A process that does the work of one peer whenever it is asked to."""

    def __init__(self, peer: Peer, setting: dict[str, Any]):
        command = [sys.executable, __file__, peer.work, json.dumps({**peer.arguments, **setting})]
        from keras_transformer.cli import GLIBC_TUNABLES  # Here, since workers import this module as well.

        # Its messages must not stand among the benchmark's, and are wanted where it fails.
        self._messages = tempfile.TemporaryFile("w+")  # noqa: SIM115 (`close` closes it.)
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._messages}
        # All alike keep memory that they have freed, or the kernel's page faults are what is timed.
        environment = {**os.environ, "GLIBC_TUNABLES": GLIBC_TUNABLES}
        self._process: Any = subprocess.Popen(command, **pipes, text=True, env=environment)
        self._name = peer.name

    def run(self) -> dict[str, Any]:
        """Does the work once: `seconds`, `peak_bytes` of the process so far, and what the work counted."""
        with contextlib.suppress(BrokenPipeError):
            print("run", file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            self._messages.seek(0)
            messages = self._messages.read().strip().splitlines()
            raise RuntimeError(f"{self._name} failed: {messages[-1] if messages else 'without a word'}")
        return json.loads(answer)

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.communicate()
        self._messages.close()


def compare(peers: Sequence[Peer], rounds: int) -> list[dict[str, Any]]:
    """Finds each peer's best setting, then lets all of them work in turn.

    Args:
        peers: The peers.
        rounds: How often each works, after once to warm up.

    Returns:
        For each peer `name`, `setting`, `tried` (least seconds by setting, where there are several), `seconds` of each
        round, `peak_bytes`, and what the work counted, of the last round.
    """
    results, workers = [], []
    try:
        for peer in peers:
            tried, settings = {}, peer.combinations()
            for setting in settings if len(settings) > 1 else ():
                with _worker(peer, setting) as worker:
                    worker.run()
                    seconds = worker.run()["seconds"]
                    # Of short work one run is a coin: settings are a tenth apart, and so are runs of one of them.
                    more = [worker.run()["seconds"] for _ in range(4)] if seconds < _SHORT_SECONDS else []
                    tried[json.dumps(setting)] = min([seconds, *more])
                _say(f"{peer.name}: {_setting(setting)}: {tried[json.dumps(setting)]:.2f} s")
            best = json.loads(min(tried, key=lambda key: tried[key])) if tried else settings[0]
            results.append({"name": peer.name, "setting": best, "tried": tried, "seconds": []})
        for peer, result in zip(peers, results, strict=True):
            workers.append(Worker(peer, result["setting"]))
            workers[-1].run()
        for number in range(rounds):
            for worker, result in zip(workers, results, strict=True):
                answer = worker.run()
                result["seconds"].append(answer.pop("seconds"))
                result.update(answer)
            _say(f"round {number + 1} of {rounds}")
    finally:
        for worker in workers:
            worker.close()
    return results


def table(results: Sequence[dict[str, Any]], unit: str) -> str:
    """A Markdown table: median rate and spread of each peer, the ratio to the first, memory and setting.

    Tokens that were counted beside another unit have a column, and so has a `share of peak`, that of the machine's
    fastest matrix product.

    Args:
        results: What `compare` gave.
        unit: What the work counted, whose number a second is the rate.
    """
    has_share, has_tokens = "share of peak" in results[0], unit != "tokens" and "tokens" in results[0]
    lines = [
        f"| | {unit} a second | least to most |{' tokens a second |' * has_tokens} ratio |"
        f"{' share of peak |' * has_share} peak memory | setting |",
        "|---|---|---|---|---|---|" + "---|" * (has_share + has_tokens),
    ]
    first = statistics.median(results[0]["seconds"]) / results[0][unit]
    for result in results:
        rates = sorted(result[unit] / seconds for seconds in result["seconds"])
        median = result[unit] / statistics.median(result["seconds"])
        share = f" {result['share of peak']:.0%} |" if has_share else ""
        tokens = f" {result['tokens'] / statistics.median(result['seconds']):,.0f} |" if has_tokens else ""
        lines.append(
            f"| {result['name']} | {median:,.0f} | {rates[0]:,.0f} to {rates[-1]:,.0f} |{tokens} {median * first:.2f} |"
            f"{share} {result['peak_bytes'] / 2**20:,.0f} MiB | {_setting(result['setting'])} |"
        )
    return "\n".join(lines)


def save(path: Path, title: str, results: Sequence[dict[str, Any]], unit: str, plot: bool = True) -> None:
    """Writes the figures as JSON, and a plot of the rates beside them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    machine = {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()}
    path.write_text(json.dumps({"title": title, "unit": unit, "machine": machine, "results": results}, indent=1) + "\n")
    if not plot:
        return
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 0.5 + 0.4 * len(results)), layout="constrained")
    axes = figure.subplots()
    for place, result in enumerate(results):
        rates = [result[unit] / seconds for seconds in result["seconds"]]
        axes.barh(place, statistics.median(rates), color="tab:blue" if place == 0 else "tab:gray")
        axes.plot([min(rates), max(rates)], [place, place], color="black")
    axes.set_yticks(range(len(results)), [result["name"] for result in results])
    axes.invert_yaxis()
    axes.set(title=title, xlabel=f"{unit} a second")
    figure.savefig(path.with_suffix(".svg"))


def peak_bytes() -> int:
    """The most memory that this process has had at a time."""
    status = Path("/proc/self/status")
    if status.exists():  # What getrusage says a process has from the one that started it, too.
        return 1024 * int(next(line for line in status.read_text().splitlines() if line.startswith("VmHWM")).split()[1])
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@contextlib.contextmanager
def _worker(peer, setting) -> Iterator[Worker]:
    worker = Worker(peer, setting)
    try:
        yield worker
    finally:
        worker.close()


def _setting(setting):
    return ", ".join(f"{name} {value}" for name, value in setting.items()) or "as it is"


def _say(line):
    print(line, file=sys.stderr, flush=True)


def _serve():
    """The other end of `Worker`: makes the work, and does it for every line that comes."""
    parser = argparse.ArgumentParser(description=_serve.__doc__)
    parser.add_argument("work")
    parser.add_argument("arguments", type=json.loads)
    options = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Libraries write to standard output.
    module, function = options.work.split(":")
    work = getattr(importlib.import_module(module), function)(**options.arguments)
    for _ in sys.stdin:
        started = time.perf_counter()
        counted = work()
        seconds = time.perf_counter() - started
        print(json.dumps({"seconds": seconds, "peak_bytes": peak_bytes(), **counted}), file=answers, flush=True)


if __name__ == "__main__":
    _serve()
