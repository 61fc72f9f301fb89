"""Gradient accumulation within a step: a batch that memory has no room for, in parts. For TensorFlow."""

from __future__ import annotations

import keras
import tensorflow as tf


def accumulate(batch, count: int, gradients_of):
    """The gradients of a batch, computed part by part.

    One step of `fit` stays one update: schedules, moving averages and the count of updates need know nothing of parts.
    The parts are unrolled in the graph, because under `tf.distribute` no replica may speak to another within a loop.

    Args:
        batch: A nested structure of tensors with B rows each, and of None. Row i belongs to part i modulo `count`, so
            that neighbours, which have about the same lengths, spread over the parts.
        count: Number of parts.
        gradients_of: A function from such a structure of fewer rows to a list of gradients.

    Returns:
        The sums of the gradients.
    """
    sums: list = []
    for number in range(count):
        with tf.control_dependencies(sums):  # One part after the other: side by side they would take memory together.
            part = keras.tree.map_structure(
                lambda rows: rows if rows is None else tf.identity(rows[number::count]),  # noqa: B023
                batch,
            )
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients_of(part)]
        sums = [a + b for a, b in zip(sums, gradients, strict=True)] if sums else gradients
    return sums
