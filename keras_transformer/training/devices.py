"""What a training computes on."""

from __future__ import annotations

import contextlib
import os

import tensorflow as tf


def strategy_of(distribution: str):
    """The strategy of `tf.distribute` that a recipe names."""
    if distribution == "mirrored":
        return tf.distribute.MirroredStrategy()
    if distribution == "multi_worker":
        return tf.distribute.MultiWorkerMirroredStrategy()
    return tf.distribute.get_strategy()


def parallel_parts_of(training):
    """Parts of a batch that are computed at once. Each gets its share of the cores, where TensorFlow still asks."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    alone = training.distribution == "none" and not tf.config.list_physical_devices("GPU")
    parts = training.parallel_parts or (2 if alone and cores > 1 and not training.jit_compile else 1)
    if parts > 1 and alone:
        with contextlib.suppress(RuntimeError):  # TensorFlow runs already, in a process that used it before.
            tf.config.threading.set_intra_op_parallelism_threads(max(1, cores // parts))
    return parts
