"""Tokens per second of a training step with glibc's allocator as it is, and as `keras-transformer train` sets it.

Run it with `.venv/bin/python training/benchmarks/memory.py`. Each measurement is a process of its own, in turn, since
glibc reads the settings when a process starts. On Linux with glibc only.
"""

import os
import resource
import statistics
import subprocess
import sys
import time

from keras_transformer.cli import GLIBC_TUNABLES

ROUNDS, STEPS = 3, 10


def measure():
    """Trains `tiny` on a batch of 4,080 tokens and prints tokens per second and page faults a step."""
    import keras
    import numpy as np

    from keras_transformer.losses import MaskedCrossentropy
    from keras_transformer.models import TransformerConfig, transformer

    model = transformer(TransformerConfig.from_preset("tiny", vocabulary_size=8_000))
    model.compile(keras.optimizers.Adam(1e-3), MaskedCrossentropy(0.1))
    ids = np.random.default_rng(1).integers(4, 8_000, (2, 170, 24))
    batch = {"source_ids": ids[0], "target_ids": ids[1]}, ids[1]
    for _ in range(3):
        model.train_on_batch(*batch)
    faults, started = resource.getrusage(resource.RUSAGE_SELF).ru_minflt, time.perf_counter()
    for _ in range(STEPS):
        model.train_on_batch(*batch)
    seconds = time.perf_counter() - started
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
    print(STEPS * ids[1].size / seconds, faults / STEPS)


def main():
    """Prints medians and ranges for both."""
    settings = {"as it is": {}, "memory kept": {"GLIBC_TUNABLES": GLIBC_TUNABLES}}
    results = {name: [] for name in settings}
    inherited = {key: value for key, value in os.environ.items() if key != "GLIBC_TUNABLES"}
    for _ in range(ROUNDS):
        for name, setting in settings.items():
            command = [sys.executable, __file__, "measure"]
            environment = {**inherited, "TF_CPP_MIN_LOG_LEVEL": "3", **setting}
            output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
            results[name].append([float(figure) for figure in output.split()[-2:]])
    base = statistics.median(rate for rate, _ in results["as it is"])
    for name, figures in results.items():
        rates, faults = zip(*figures, strict=True)
        median = statistics.median(rates)
        print(
            f"{name:<12} {median:>7,.0f} tokens/s ({min(rates):,.0f} to {max(rates):,.0f}), {median / base:.2f} times "
            f"the first, {statistics.median(faults):>9,.0f} page faults a step"
        )


if __name__ == "__main__":
    measure() if sys.argv[1:] == ["measure"] else main()
