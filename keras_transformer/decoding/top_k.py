"""The largest of many logits, found sooner than by `tf.math.top_k`."""

from __future__ import annotations

import tensorflow as tf

_SHORTEST, _LONGEST = 8, 40


def top_k(values, k):
    """What `tf.math.top_k` gives: of equal values the one that stands first is the larger.

    The k largest values lie in the k blocks with the largest maxima, and only these are sorted. On one core of a CPU
    this takes a sixth of the time for 256 hypotheses and 8,000 tokens, and a seventh for 32,000;
    `training/benchmarks/top_k.py` measures it.

    Args:
        values: [...,V], V known.
        k: How many, an integer or a scalar tensor, at most V.

    Returns:
        The pair `(values, indices)`, each [...,k], indices int32.
    """
    size, axes = values.shape[-1], values.shape.rank - 1
    block = max((length for length in range(_SHORTEST, _LONGEST + 1) if size % length == 0), default=size)
    if block == size:
        return tf.math.top_k(values, k)
    count, shape = size // block, tf.shape(values)[:-1]
    blocks = tf.reshape(values, tf.concat([shape, [count, block]], 0))
    most = tf.minimum(k, count) if tf.is_tensor(k) else min(k, count)  # XLA needs the number itself.
    _, chosen = tf.math.top_k(tf.reduce_max(blocks, axis=-1), most)
    chosen = tf.sort(chosen, axis=-1)  # So that what stands first still stands first.
    candidates = tf.reshape(tf.gather(blocks, chosen, batch_dims=axes), tf.concat([shape, [most * block]], 0))
    top, places = tf.math.top_k(candidates, k)
    return top, tf.gather(chosen, places // block, batch_dims=axes) * block + places % block
