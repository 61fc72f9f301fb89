"""How fast a model translates on this machine."""

from __future__ import annotations

import dataclasses
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from keras_transformer._checks import check_positive

# Sentences that are translated one by one for the latency.
_ONE_BY_ONE = 100


@dataclasses.dataclass(frozen=True)
class Speed:
    """What `measure` found.

    Attributes:
        beam_size: Hypotheses kept at each step.
        sentences: Texts that were translated in each round.
        sentences_per_second: Median over the rounds, all texts at once.
        tokens_per_second: Target tokens, eos included, in the same time.
        median_latency: Seconds for one text by itself, median.
        p99_latency: The 99th percentile of these.
        peak_bytes: Most memory that the process ever had, or None where the system does not say.
    """

    beam_size: int
    sentences: int
    sentences_per_second: float
    tokens_per_second: float
    median_latency: float
    p99_latency: float
    peak_bytes: int | None

    def as_dict(self) -> dict[str, float]:
        """The same, ready for JSON."""
        return dataclasses.asdict(self)

    def __str__(self):
        memory = "" if self.peak_bytes is None else f"; at most {self.peak_bytes / 2**20:,.0f} MiB"
        return (
            f"beam size {self.beam_size}: {self.sentences_per_second:,.1f} sentences/s, "
            f"{self.tokens_per_second:,.0f} tokens/s; one sentence {1000 * self.median_latency:.1f} ms "
            f"(p99 {1000 * self.p99_latency:.1f} ms){memory}"
        )


def measure(translator, texts: Sequence[str], beam_size: int = 4, rounds: int = 3) -> Speed:
    """Translates texts all at once, several times, and some of them one by one.

    Everything is done once before it is timed: TensorFlow traces its graphs then. Nobody asks for scores.

    Args:
        translator: A `keras_transformer.decoding.Translator`.
        texts: Texts to translate.
        beam_size: Hypotheses kept at each step; 1 is greedy search.
        rounds: How often all are translated.

    Raises:
        ValueError: If there are no texts, or a number is not positive.
    """
    texts = list(texts)
    if not texts:
        raise ValueError("There must be texts to translate. Received: none")
    check_positive("rounds", rounds)
    translations = translator.translate(texts, beam_size=beam_size, return_scores=False)
    seconds = [_time(translator, texts, beam_size) for _ in range(rounds)]
    some = texts[:_ONE_BY_ONE]
    _time(translator, some[0], beam_size)
    latencies = [_time(translator, text, beam_size) for text in some]
    tokens = sum(len(one.token_ids) for one in translations)
    median = statistics.median(seconds)
    return Speed(
        beam_size,
        len(texts),
        len(texts) / median,
        tokens / median,
        statistics.median(latencies),
        float(np.percentile(latencies, 99)),
        _peak_bytes(),
    )


def _time(translator, texts, beam_size):
    start = time.perf_counter()
    translator.translate(texts, beam_size=beam_size, return_scores=False)
    return time.perf_counter() - start


def _peak_bytes():
    status = Path("/proc/self/status")
    if status.exists():  # What `getrusage` says a process has from the one that started it, too.
        return 1024 * int(next(line for line in status.read_text().splitlines() if line.startswith("VmHWM")).split()[1])
    try:
        import resource
    except ImportError:  # Windows.
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
