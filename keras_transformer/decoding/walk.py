"""Greedy search and sampling: every hypothesis goes its own way, token by token."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from keras_transformer.decoding.constraints import BOS, EOS, NEVER, Hypotheses, RowOptions, constrain
from keras_transformer.decoding.loop import run_search
from keras_transformer.decoding.step import EncodedSources, Ensemble
from keras_transformer.decoding.top_k import block_maxima


def greedy_search(
    ensemble: Ensemble, source_ids, options: RowOptions, length: int = 0, return_scores: bool = True
) -> Hypotheses:
    """The likeliest token at each step, of one hypothesis for each source.

    Args:
        ensemble: An `Ensemble`.
        source_ids: int32 [B,S], eos included, padded behind.
        options: `RowOptions`; those of beams do not act.
        length: 0, or the fixed length of caches and results under XLA.
        return_scores: Whether to compute log-probabilities, which are 0 otherwise. They need a sum over the vocabulary
            in each step, a tenth of the time.
    """

    def choose(allowed):
        logits, tokens = allowed.top_k(1)
        return tokens[..., 0], logits[..., 0] == NEVER

    return walk(ensemble, source_ids, options, choose, 1, length, return_scores)


def walk(
    ensemble: Ensemble,
    source_ids,
    options: RowOptions,
    choose: Callable,
    width,
    length: int = 0,
    return_scores: bool = True,
) -> Hypotheses:
    """As `greedy_search`, for `width` hypotheses of each source whose tokens `choose` takes.

    It is a function of `Allowed` that gives the tokens, int32 [B,W], and whether none was allowed, bool [B,W].
    """
    search = _Walk(ensemble, source_ids, options, choose, width, length, return_scores)
    index, state = run_search(search, fixed=length > 0)
    return _results(state.ids if length else state.ids[..., :index], state.log_probability, search.limits, options)


class _State(NamedTuple):
    """The hypotheses, and whether they are finished."""

    ids: Any  # [B,W,L]
    log_probability: Any  # [B,W]
    done: Any  # [B,W]


class _Walk:
    """The `Search` of independent hypotheses, W for each source."""

    def __init__(self, ensemble, source_ids, options, choose, width, length, return_scores):
        self._ensemble, self._choose, self._width = ensemble, choose, width
        self._return_scores = return_scores
        sources = EncodedSources(ensemble, source_ids, width, length)
        limits = options.limits(source_ids, length or ensemble.max_length)
        self.caches, self._longest, self._fixed = sources.caches, length or tf.reduce_max(limits), length > 0
        self._set(limits, options, sources)

    def _set(self, limits, options, sources):
        self.given = (limits, options.of_rows(), sources.tensors)
        self.limits, self._options, self._sources = limits, options, sources

    def with_given(self, given):
        other, (limits, options, tensors) = copy.copy(self), given
        other._set(limits, self._options._replace(**options), self._sources.with_tensors(tensors))
        return other

    def start(self):
        shape = tf.stack([tf.size(self.limits), self._width])
        ids = tf.zeros(tf.concat([shape, [self._longest]], 0), tf.int32)
        return _State(ids, tf.zeros(shape), tf.broadcast_to((self.limits == 0)[:, None], shape))

    def step(self, index, caches, state):
        last = tf.where(index == 0, BOS, tf.gather(state.ids, tf.maximum(index - 1, 0), axis=-1))
        logits, caches = self._sources.step(last, caches, index)
        maxima = block_maxima(logits)
        normalizer = self._normalizer(logits, maxima)
        allowed = constrain(logits, maxima, normalizer, state.ids, index, self._options, self._fixed)
        tokens, stuck = self._choose(allowed)
        tokens = tf.where(state.done, 0, tf.where(stuck, EOS, tokens))
        log_probability = state.log_probability
        if self._return_scores:
            gained = tf.gather(logits, tokens, batch_dims=2) - normalizer[..., 0]
            log_probability += tf.where(state.done, 0.0, gained)
        ids = tf.where(tf.range(self._longest) == index, tokens[..., None], state.ids)
        done = state.done | (tokens == EOS) | (index + 1 >= self.limits)[:, None]
        return index + 1, caches, _State(ids, log_probability, done)

    def _normalizer(self, logits, maxima):
        """That of the ensemble; anything where nothing depends on it."""

        def normalizer():
            return self._ensemble.normalizer(logits, maxima)

        if self._return_scores:
            return normalizer()
        is_needed = tf.reduce_any(self._options.repetition_penalty != 1.0)
        return tf.cond(is_needed, normalizer, lambda: tf.zeros_like(logits[..., :1]))


def _results(ids, log_probability, limits, options):
    """The hypotheses of each source: if there are several, those that ended first, then by score."""
    lengths = tf.math.count_nonzero(ids, axis=-1, dtype=tf.int32)
    truncated = ~tf.reduce_any(ids == EOS, axis=-1) & (limits > 0)[:, None]
    score = tf.where(lengths > 0, log_probability / options.length_divisor(tf.maximum(lengths, 1)), 0.0)
    parts = [ids, lengths, log_probability, score, truncated]
    if ids.shape[1] != 1:
        order = best_first(score, truncated)
        parts = [tf.gather(part, order, batch_dims=1) for part in parts]
    return Hypotheses._make([*parts, tf.fill(tf.shape(limits), tf.shape(ids)[1])])


def best_first(score, truncated):
    """The order in which hypotheses come, int32 [B,W]: those that ended before those that were cut, then by score.

    A score of minus infinity stands for no hypothesis, which comes last.
    """
    by_score = tf.argsort(score, axis=-1, direction="DESCENDING", stable=True)
    group = tf.where(score == NEVER, 2, tf.cast(truncated, tf.int32))
    by_group = tf.argsort(tf.gather(group, by_score, batch_dims=1), axis=-1, stable=True)
    return tf.gather(by_score, by_group, batch_dims=1)
