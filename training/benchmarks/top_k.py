"""Time of the largest logits of a beam search's step, by `keras_transformer.decoding.top_k` and by TensorFlow.

Run it with `.venv/bin/python training/benchmarks/top_k.py`. On one thread, in turn; prints medians and ranges.
"""

import os
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

from keras_transformer.decoding.top_k import top_k

ROUNDS, K = 31, 5


def main():
    """Prints a line for each batch and vocabulary."""
    tf.config.threading.set_intra_op_parallelism_threads(1)
    rng = np.random.default_rng(1)
    for rows, width, size in ((64, 4, 8_000), (16, 4, 8_000), (1, 4, 8_000), (64, 4, 32_000), (1, 4, 32_000)):
        values = tf.constant(rng.normal(size=(rows, width, size)).astype("float32"))
        ways = {
            "TensorFlow": tf.function(lambda values: tf.math.top_k(values, K)),
            "ours": tf.function(lambda values: top_k(values, K)),
        }
        for function in ways.values():
            function(values)
        times = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, function in ways.items():
                started = time.perf_counter()
                function(values)
                times[name].append(1e3 * (time.perf_counter() - started))
        medians = {name: statistics.median(figures) for name, figures in times.items()}
        parts = (
            f"{name} {medians[name]:.2f} ms ({min(figures):.2f} to {max(figures):.2f})"
            for name, figures in times.items()
        )
        ratio = medians["TensorFlow"] / medians["ours"]
        print(
            f"{rows} x {width} hypotheses, {size:,} tokens: {', '.join(parts)}; {ratio:.1f} times as fast", flush=True
        )


if __name__ == "__main__":
    main()
