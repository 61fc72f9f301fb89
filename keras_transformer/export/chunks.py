"""A request of any size, computed in parts of bounded size."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf


def in_chunks(run: Callable, width, length, cells: int, outputs, most_rows: int | None = None):
    """What `run` gives for all rows, some of them at a time: those of like cost together, the costliest first.

    So memory is bounded whatever a request holds, and the short sentences of a request do not wait in a batch for
    the long ones.

    Args:
        run: A function of `(rows, width)`: the numbers of some rows, int32 [n], and the width that they have in common,
            a scalar; it gives a tensor for each of `outputs`, with n rows, perhaps narrower.
        width: Sequences that each row stands for, its beam say, int32 [N].
        length: Length of each row, at least 1, int32 [N].
        cells: What rows, width and the longest length multiply to at most. One row alone may have more.
        outputs: Tensors with N rows, which hold what stands beside narrower results.
        most_rows: Most rows at a time; None for no such limit.
    """
    by_length = tf.argsort(length, direction="DESCENDING", stable=True)
    order = tf.gather(by_length, tf.argsort(tf.gather(width, by_length), direction="DESCENDING", stable=True))
    width, length, rows_in_all = tf.gather(width, order), tf.gather(length, order), tf.shape(order)[0]

    def step(start, outputs):
        size = tf.maximum(cells // (width[start] * length[start]), 1)
        size = tf.minimum(size, most_rows) if most_rows else size
        end = tf.minimum(start + size, tf.math.count_nonzero(width >= width[start], dtype=tf.int32))
        rows = order[start:end]
        results = run(rows, width[start])
        merged = [
            tf.tensor_scatter_nd_update(whole, rows[:, None], _widened(part, whole))
            for whole, part in zip(outputs, results, strict=True)
        ]
        return end, merged

    _, outputs = tf.while_loop(
        lambda start, _: start < rows_in_all,
        step,
        (0, list(outputs)),
        shape_invariants=(tf.TensorShape([]), [tf.TensorShape([None] * output.shape.rank) for output in outputs]),
        parallel_iterations=1,
    )
    return outputs


def _widened(part, whole):
    """A part with the trailing sizes of the whole: False, 0 or "" behind."""
    missing = tf.shape(whole)[1:] - tf.shape(part)[1:]
    padding = tf.concat([[[0, 0]], tf.stack([tf.zeros_like(missing), missing], axis=1)], axis=0)
    if part.dtype == tf.bool:
        return tf.cast(tf.pad(tf.cast(part, tf.uint8), padding), tf.bool)
    return tf.pad(part, padding, constant_values="" if part.dtype == tf.string else 0)
