"""Greedy search and sampling: every hypothesis goes its own way, token by token."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from keras_transformer.decoding.constraints import BOS, EOS, NEVER, Hypotheses, RowOptions, constrain
from keras_transformer.decoding.step import EncodedSources, Ensemble


def greedy_search(ensemble: Ensemble, source_ids, options: RowOptions, scores=True, length=0) -> Hypotheses:
    """The likeliest token at each step, of one hypothesis for each source.

    Args:
        ensemble: An `Ensemble`.
        source_ids: int32 [B,S], eos included, padded behind.
        options: `RowOptions`; those of beams do not act.
        scores: Whether to compute log-probabilities, which takes the sum of a softmax at each step; without, they
            are 0.
        length: 0, or the fixed length of caches and results under XLA.
    """

    def choose(logits):
        return tf.argmax(logits, axis=-1, output_type=tf.int32)

    return walk(ensemble, source_ids, options, choose, 1, scores, length)


def walk(
    ensemble: Ensemble,
    source_ids,
    options: RowOptions,
    choose: Callable,
    width,
    scores: bool = True,
    length: int = 0,
) -> Hypotheses:
    """As `greedy_search`, for `width` hypotheses of each source whose tokens `choose` takes: [B,W,V] -> int32 [B,W]."""
    sources = EncodedSources(ensemble, source_ids, width, length)
    limits = options.limits(source_ids, length or ensemble.max_length)
    rows, longest = tf.shape(source_ids)[0], length or tf.reduce_max(limits)
    finished = tf.broadcast_to((limits == 0)[:, None], (rows, width))

    def step(index, ids, log_probability, finished, caches):
        last = tf.where(index == 0, BOS, tf.gather(ids, tf.maximum(index - 1, 0), axis=-1))
        logits, caches = sources.step(last, caches, index)
        allowed = constrain(logits, lambda: ensemble.normalizer(logits), ids, index, options)
        tokens = choose(allowed)
        stuck = tf.gather(allowed, tokens, batch_dims=2) == NEVER
        tokens = tf.where(finished, 0, tf.where(stuck, EOS, tokens))
        if scores:
            gained = tf.gather(logits, tokens, batch_dims=2) - ensemble.normalizer(logits)[..., 0]
            log_probability += tf.where(finished, 0.0, gained)
        ids = tf.where(tf.range(longest) == index, tokens[..., None], ids)
        finished |= (tokens == EOS) | (index + 1 >= limits)[:, None]
        return index + 1, ids, log_probability, finished, caches

    index, ids, log_probability, _, _ = tf.while_loop(
        lambda index, ids, log_probability, finished, caches: ~tf.reduce_all(finished),
        step,
        (0, tf.zeros((rows, width, longest), tf.int32), tf.zeros((rows, width)), finished, sources.caches),
        shape_invariants=(
            tf.TensorShape([]),
            tf.TensorShape([None, None, length or None]),
            tf.TensorShape([None, None]),
            tf.TensorShape([None, None]),
            sources.cache_shapes(),
        ),
    )
    return _results(ids if length else ids[..., :index], log_probability, limits, options)


def _results(ids, log_probability, limits, options):
    """Orders the hypotheses of each source: ended ones first, then by score."""
    lengths = tf.math.count_nonzero(ids, axis=-1, dtype=tf.int32)
    truncated = ~tf.reduce_any(ids == EOS, axis=-1) & (limits > 0)[:, None]
    score = tf.where(lengths > 0, log_probability / options.length_divisor(tf.maximum(lengths, 1)), 0.0)
    order = best_first(score, truncated)
    parts = (tf.gather(part, order, batch_dims=1) for part in (ids, lengths, log_probability, score, truncated))
    return Hypotheses._make([*parts, tf.fill(tf.shape(limits), tf.shape(ids)[1])])


def best_first(score, truncated):
    """The order in which hypotheses come, int32 [B,W]: those that ended before those that were cut, then by score.

    A score of minus infinity stands for no hypothesis, which comes last.
    """
    by_score = tf.argsort(score, axis=-1, direction="DESCENDING", stable=True)
    group = tf.where(score == NEVER, 2, tf.cast(truncated, tf.int32))
    by_group = tf.argsort(tf.gather(group, by_score, batch_dims=1), axis=-1, stable=True)
    return tf.gather(by_score, by_group, batch_dims=1)
