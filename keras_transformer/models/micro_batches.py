"""A step in parts: one after the other for want of memory, or at once, one to a core. For TensorFlow."""

from __future__ import annotations

import keras
import tensorflow as tf


def accumulate(batch, count: int, gradients_of, at_once: int = 1):
    """The gradients of a batch, computed part by part.

    One step of `fit` stays one update: schedules, moving averages and the count of updates need know nothing of parts.
    The parts are unrolled in the graph, because under `tf.distribute` no replica may speak to another within a loop.

    Args:
        batch: A nested structure of tensors with B rows each, and of None. Row i belongs to part i modulo `count`, so
            that neighbours, which have about the same lengths, spread over the parts.
        count: Number of parts.
        gradients_of: A function from such a structure of fewer rows to a list of gradients.
        at_once: How many parts may be computed at the same time.

    Returns:
        The sums of the gradients; None where there is none.
    """
    sums: list = []
    for number in range(count):
        if number % at_once == 0:
            before = [one for one in sums if one is not None]  # All at once would take the memory of all.
        with tf.control_dependencies(before):
            part = keras.tree.map_structure(
                lambda rows: rows if rows is None else tf.identity(rows[number::count]),  # noqa: B023
                batch,
            )
        gradients = [None if one is None else tf.convert_to_tensor(one) for one in gradients_of(part)]
        sums = [None if a is None else a + b for a, b in zip(sums, gradients, strict=True)] if sums else gradients
    return sums
