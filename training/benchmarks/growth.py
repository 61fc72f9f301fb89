"""How time and memory of a search and of a training step grow with each size, and the exponents of that.

    python training/benchmarks/growth.py --to benchmarks

Every size grows by itself, the others stay as `SIZES` has them. Translations are as long as `target`, whatever the
model would say. Writes a table, JSON and a plot.
"""

import argparse
import json
import os
import statistics
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from harness import Peer, compare, peak_bytes

SIZES = {"batch": 16, "source": 32, "target": 32, "beam": 4, "vocabulary": 8_000, "depth": 4}
GROWING = {
    "batch": [4, 16, 64],
    "source": [16, 64, 256],
    "target": [16, 64, 256],
    "beam": [1, 4, 16],
    "vocabulary": [2_000, 8_000, 32_000],
    "depth": [1, 4, 16],
}


def search(batch, source, target, beam, vocabulary, depth):
    """A beam search of random sentences by a random model of the preset `tiny`."""
    import numpy as np

    from keras_transformer.decoding import SearchOptions
    from keras_transformer.decoding.searches import Searches
    from keras_transformer.decoding.step import Ensemble

    searches = Searches(Ensemble([_model(vocabulary, depth)]))

    def run(batch, source, target):
        options = SearchOptions(beam_size=beam, min_length=target, max_length=target)
        ids = np.random.default_rng(1).integers(4, vocabulary, (batch, source)).astype("int32")
        searches.begin(options)(ids, options.rows(range(batch), [[]] * batch, vocabulary))

    return _measured(run, batch, source, target)


def update(batch, source, target, beam, vocabulary, depth):
    """A training step; beams play no part in it."""
    import numpy as np

    from keras_transformer.losses import MaskedCrossentropy

    model = _model(vocabulary, depth)
    model.compile("adam", MaskedCrossentropy(0.1))

    def run(batch, source, target):
        rng = np.random.default_rng(1)
        ids = [rng.integers(4, vocabulary, (batch, length)).astype("int32") for length in (source, target, target)]
        model.train_on_batch({"source_ids": ids[0], "target_ids": ids[1]}, ids[2])

    return _measured(run, batch, source, target)


def main():
    """Measures every point, prints the table and the exponents."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", default=3, type=int, help="how often each point is measured")
    parser.add_argument("--to", default="benchmarks", type=Path, help="folder for the results")
    options = parser.parse_args()
    figures = {
        work: {size: _measure(work, size, options.rounds) for size in GROWING if (work, size) != ("update", "beam")}
        for work in ("search", "update")
    }
    options.to.mkdir(parents=True, exist_ok=True)
    (options.to / "growth.json").write_text(json.dumps(figures, indent=1) + "\n")
    _plot(figures, options.to / "growth.svg")
    print(table(figures))


def table(figures):
    """A Markdown table of what was measured, and the exponents."""
    lines = [
        "| | size | values | milliseconds | exponent of time | MiB | exponent of memory |",
        "|---|---|---|---|---|---|---|",
    ]
    for work, sizes in figures.items():
        for size, points in sizes.items():
            milliseconds = ", ".join(f"{1000 * seconds:.0f}" for seconds in points["seconds"])
            memory = ", ".join(f"{value / 2**20:.0f}" for value in points["bytes"])
            lines.append(
                f"| {work} | {size} | {', '.join(map(str, points['values']))} | {milliseconds} "
                f"| {exponent(points['values'], points['seconds']):.2f} | {memory} "
                f"| {exponent(points['values'], points['bytes']):.2f} |"
            )
    return "\n".join(lines)


def exponent(values, results):
    """The slope of a straight line through the logarithms, by least squares."""
    import numpy as np

    return float(np.polyfit(np.log(values), np.log(np.maximum(results, 1e-9)), 1)[0])


def _measure(work, size, rounds):
    peers = [Peer(f"{work}, {size} {value}", f"growth:{work}", {**SIZES, size: value}) for value in GROWING[size]]
    results = compare(peers, rounds)
    return {
        "values": GROWING[size],
        "seconds": [statistics.median(result["seconds"]) for result in results],
        "bytes": [result["bytes"] for result in results],
    }


def _measured(run, batch, source, target):
    """What runs, and says how much memory it took beyond that of the smallest case, which comes first."""
    run(1, 2, 2)
    before = peak_bytes()

    def work():
        run(batch, source, target)
        return {"bytes": peak_bytes() - before}

    return work


def _model(vocabulary, depth):
    from keras_transformer.models import TransformerConfig, transformer

    sizes = {"encoder_layers": depth, "decoder_layers": depth}
    return transformer(TransformerConfig.from_preset("tiny", vocabulary, **sizes))


def _plot(figures, path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3 * len(GROWING), 6), layout="constrained")
    axes = figure.subplots(2, len(GROWING), squeeze=False)
    for row, (work, sizes) in enumerate(figures.items()):
        for column, size in enumerate(GROWING):
            if size in sizes:
                axes[row, column].loglog(sizes[size]["values"], sizes[size]["seconds"], marker="o")
                axes[row, column].set(title=f"{work}: {size}", xlabel=size, ylabel="seconds")
            else:
                axes[row, column].axis("off")
    figure.savefig(path)


if __name__ == "__main__":
    sys.exit(main())
