"""Translation: sentences a second and the latency of one, beside CTranslate2 and Hugging Face's Marian on PyTorch.

    python training/benchmarks/decoding.py runs/multi30k-en-de --source test_2016_flickr.en.gz --to benchmarks

All have the weights of one trained model. Writes tables, JSON and plots.
"""

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from harness import Peer, compare, save, table

LATENCY_SENTENCES = 100


def main():
    """Compares all peers, greedy and with a beam of 4, then one sentence after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="folder of a run or a preset")
    parser.add_argument("--source", required=True, help="file to translate, plain or gzip")
    parser.add_argument("--to", default="benchmarks", type=Path, help="folder for the results")
    parser.add_argument("--rounds", default=5, type=int, help="how often each peer does the work")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        exported = _export(options.run, folder)
        for beam_size in (1, 4):
            results = compare(peers(options.run, exported, options.source, beam_size), options.rounds)
            title = f"Translation, {'greedy' if beam_size == 1 else f'beam of {beam_size}'}"
            save(options.to / f"decoding_beam_{beam_size}.json", title, results, "sentences")
            print(f"\n{title}\n\n{table(results, 'sentences')}\n", flush=True)
        few = _first_lines(options.source, folder)
        results = compare(peers(options.run, exported, few, 1, one_by_one=True), options.rounds)
        save(options.to / "decoding_latency.json", "One sentence after the other, greedy", results, "sentences")
        print(f"\nLatency of one sentence, greedy\n\n{latencies(results)}")


def peers(run, exported, source, beam_size, one_by_one=False):
    """All engines, with the settings to try."""
    work = {"source": str(source), "beam_size": beam_size, "one_by_one": one_by_one}
    ours, theirs, threads = {}, {}, {"threads": [1, 2]}
    if not one_by_one:
        ours = {"batch_tokens": [2048, 4096, 8192]}
        theirs = {"batch_size": [32, 64, 128]}
    served = {"rows": [125, 250]} if ours else {}
    workers = {"workers": [1, 2], **threads} if theirs else {"workers": [1], **threads}
    return [
        Peer("keras_transformer, Python", "decoding_peers:python", {"run": run, **work}, {**threads, **ours}),
        Peer("keras_transformer, SavedModel", "decoding_peers:saved_model", {"folder": exported, **work}, served),
        *(
            Peer(
                f"CTranslate2, {compute_type}",
                "decoding_peers:ctranslate2",
                {"run": run, "compute_type": compute_type, **work},
                {**workers, **theirs},
            )
            for compute_type in ("float32", "int8")
        ),
        Peer("Marian of Hugging Face, PyTorch", "decoding_peers:marian", {"run": run, **work}, {**threads, **theirs}),
    ]


def latencies(results):
    """A Markdown table: median and 99th percentile of one sentence, in milliseconds, and the ratio of medians."""
    lines = ["| | median ms | p99 ms | ratio |", "|---|---|---|---|"]
    first = statistics.median(results[0]["latencies"])
    for result in results:
        median, p99 = statistics.median(result["latencies"]), statistics.quantiles(result["latencies"], n=100)[-1]
        lines.append(f"| {result['name']} | {1000 * median:.1f} | {1000 * p99:.1f} | {first / median:.2f} |")
    return "\n".join(lines)


def _export(run, folder):
    from keras_transformer.decoding import Translator

    return str(Translator.from_preset(run).export(Path(folder) / "model", warmup=False))


def _first_lines(source, folder):
    from keras_transformer.data.lines import read_lines

    path = Path(folder) / "few.txt"
    path.write_bytes(b"\n".join(list(read_lines(source))[:LATENCY_SENTENCES]) + b"\n")
    return path


if __name__ == "__main__":
    sys.exit(main())
