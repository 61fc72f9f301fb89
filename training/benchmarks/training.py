"""Training: target tokens a second and memory, beside PyTorch, stock Keras layers and keras-nlp.

    python training/benchmarks/training.py --size tiny --to benchmarks

Writes a table, JSON and a plot. Says as well which share of the machine's fastest matrix product each reaches, and what
label smoothing takes in memory.
"""

import argparse
import statistics
import sys
from pathlib import Path

from harness import Peer, compare, save, table
from training_peers import operations_per_token


def main():
    """Compares all peers of one size and precision."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="tiny", help="preset of the model")
    parser.add_argument("--precision", default="float32", choices=["float32", "mixed_bfloat16"])
    parser.add_argument("--vocabulary", default=8_000, type=int, help="tokens, V")
    parser.add_argument("--rows", default=128, type=int, help="sentences of a batch")
    parser.add_argument("--length", default=32, type=int, help="tokens of each sentence, on both sides")
    parser.add_argument("--steps", default=6, type=int, help="updates that are timed at once")
    parser.add_argument("--rounds", default=5, type=int, help="how often each peer does the work")
    parser.add_argument("--to", default="benchmarks", type=Path, help="folder for the results")
    options = parser.parse_args()
    names = ("size", "vocabulary", "rows", "length", "steps", "precision")
    results = compare(peers({name: getattr(options, name) for name in names}), options.rounds)
    peak = compare([Peer("product", "training_peers:matrix_product")], options.rounds)[0]
    most = peak["operations"] / statistics.median(peak["seconds"])
    each = operations_per_token(options.size, options.vocabulary, options.length)
    for result in results:
        result["share of peak"] = each * result["tokens"] / statistics.median(result["seconds"]) / most
    title = f"Training, {options.size}, {options.precision}"
    save(options.to / f"training_{options.size}_{options.precision}.json", title, results, "tokens")
    print(f"\n{title}\n\n{table(results, 'tokens')}\n")
    print(
        f"Peak is that of products of 2,048 x 2,048 matrices in float32, {most / 1e9:,.0f} GFLOP/s. "
        f"A target token takes {each / 1e6:.1f} MFLOP."
    )
    smoothing_memory(options)


def smoothing_memory(options):
    """Memory of a step with 4,096 tokens and a vocabulary of 32,000, with label smoothing and without."""
    work = {"size": options.size, "vocabulary": 32_000, "rows": 128, "length": 32, "steps": 2}
    pair = [
        Peer(f"label smoothing {smoothing}", "training_peers:ours", {**work, "smoothing": smoothing})
        for smoothing in (0.1, 0.0)
    ]
    results = compare(pair, 1)
    save(options.to / f"smoothing_{options.size}.json", "Memory of label smoothing", results, "tokens", plot=False)
    smoothed, plain = (result["peak_bytes"] for result in results)
    print(
        f"Vocabulary of 32,000, 4,096 tokens: {smoothed / 2**20:,.0f} MiB with label smoothing, {plain / 2**20:,.0f} "
        f"without: {smoothed / plain:.2f} of it"
    )


def peers(work):
    """All models, with and without a compiler."""
    threads = {"threads": [1, None]}
    tensorflow = {"onednn": [False, True], **threads}
    made = [
        Peer("keras_transformer", "training_peers:ours", work, {**tensorflow, "parallel_parts": [1, 2]}),
        Peer("keras_transformer, XLA", "training_peers:ours", {**work, "jit_compile": True}, tensorflow),
        Peer("PyTorch nn.Transformer", "training_peers:pytorch", work, threads),
        Peer("PyTorch nn.Transformer, torch.compile", "training_peers:pytorch", {**work, "compiled": True}, threads),
    ]
    for name, function in (("stock Keras layers", "stock_keras"), ("keras-nlp", "keras_nlp")):
        made.append(Peer(name, f"training_peers:{function}", work, tensorflow))
        made.append(Peer(f"{name}, XLA", f"training_peers:{function}", {**work, "jit_compile": True}, tensorflow))
    return made


if __name__ == "__main__":
    sys.exit(main())
