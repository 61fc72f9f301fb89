"""Several batches computed side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import tensorflow as tf


def in_flight(function: Callable, batches: Iterable, workers: int | None = None) -> Iterator:
    """What a function gives for each batch, in the order of the batches, several of which are computed at a time.

    The operations of a step are too small to be divided among cores: on two of them, two batches side by side take
    two thirds of the time of one after the other.

    Args:
        function: Of a batch; called in threads.
        batches: The batches.
        workers: How many at a time; None for as many as there are cores, or one where a GPU computes.
    """
    batches = list(batches)
    if workers is None:
        workers = 1 if tf.config.list_physical_devices("GPU") else _cores()
    if workers == 1 or len(batches) < 2:
        yield from map(function, batches)
        return
    executor = ThreadPoolExecutor(min(workers, len(batches)))
    try:
        try:
            results = executor.map(function, batches)
        except RuntimeError:  # Once the main thread has ended, Python begins nothing more in a pool.
            results = map(function, batches)
        yield from results
    finally:  # Also where the caller stops early, or is interrupted.
        executor.shutdown(cancel_futures=True)


def _cores():
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
