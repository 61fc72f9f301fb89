"""Beam search."""

from __future__ import annotations

import copy
import functools
from typing import Any, NamedTuple

import tensorflow as tf

from keras_transformer.decoding.constraints import BOS, EOS, NEVER, Hypotheses, RowOptions, constrain
from keras_transformer.decoding.loop import run_search
from keras_transformer.decoding.step import EncodedSources, Ensemble, reorder
from keras_transformer.decoding.top_k import block_maxima, top_k
from keras_transformer.decoding.walk import best_first


def beam_search(
    ensemble: Ensemble, source_ids, options: RowOptions, width=None, groups: int = 1, length: int = 0
) -> Hypotheses:
    """The best hypotheses of each source that a beam finds.

    At every step each row keeps its `beam_size` likeliest unfinished hypotheses; one whose end is among the
    `beam_size` likeliest continuations is finished. A source is done when no unfinished hypothesis can still come
    among its `n_best`: since log-probabilities only fall, one of log-probability P scores at most P divided by the
    length penalty at the limit. A beam of 1 is done at its first end, and so is greedy search. Hypotheses that ended
    come before those that the limit cut.

    The score is log P(Y|X) / lp(Y), where lp is ((5 + |Y|) / 6)^alpha (Wu et al., 2016, formula 14) or |Y|^alpha, and
    |Y| counts the tokens and eos.

    Args:
        ensemble: An `Ensemble`.
        source_ids: int32 [B,S], eos included, padded behind.
        options: `RowOptions`.
        width: The widest beam of a group, W; None for the widest that `options` ask for. XLA needs to know it.
        groups: Beam groups, G, of `beam_size` hypotheses each (Vijayakumar et al., 2016). What two of them find comes
            once.
        length: 0, or the fixed length of caches and results under XLA.
    """
    width = tf.reduce_max(options.beam_size) if width is None else width
    search = _Search(ensemble, source_ids, options, width, groups, length)
    index, state = run_search(search, fixed=length > 0)
    return search.results(state.finished, None if length else index)


class _Finished(NamedTuple):
    """The best finished hypotheses so far, those that ended first; score is minus infinity where there is none."""

    ids: Any  # [N,W,L]
    log_probability: Any  # [N,W]
    score: Any  # [N,W]
    truncated: Any  # [N,W]


class _State(NamedTuple):
    """The beams: N = B*G rows of W hypotheses. `rank` is minus infinity where there is no hypothesis."""

    ids: Any  # [N,W,L]
    rank: Any  # [N,W]: what hypotheses are chosen by.
    log_probability: Any  # [N,W]: the same without a repetition penalty.
    done: Any  # [N]
    finished: _Finished


class _Search:
    """The `Search` of beams."""

    def __init__(self, ensemble, source_ids, options, width, groups, length):
        self._ensemble, self._groups, self._width = ensemble, groups, width
        sources = EncodedSources(ensemble, source_ids, groups * width, length)
        limits = options.limits(source_ids, length or ensemble.max_length)
        self.caches, self._longest, self._fixed = sources.caches, length or tf.reduce_max(limits), length > 0
        self._set(limits, options, sources)

    def _set(self, limits, options, sources):
        self.given, self._sources = (limits, options.of_rows(), sources.tensors), sources
        self._shared, self._batch = options, tf.size(limits)
        # From here on each group of a source is a row.
        self._limits, self._options = tf.repeat(limits, self._groups), options.repeat(self._groups)
        self._rows = tf.size(self._limits)
        self._slots = tf.range(self._width) < self._options.beam_size[:, None]

    def with_given(self, given):
        other, (limits, options, tensors) = copy.copy(self), given
        other._set(limits, self._shared._replace(**options), self._sources.with_tensors(tensors))
        return other

    def start(self):
        ids = tf.zeros((self._rows, self._width, self._longest), tf.int32)
        log_probability = tf.zeros((self._rows, self._width))
        done = self._limits == 0
        first = tf.range(self._width) == 0
        rank = tf.where(first & ~done[:, None], 0.0, NEVER)
        # A blank source has one result, of nothing.
        score = tf.where(first & done[:, None], 0.0, NEVER)
        finished = _Finished(ids, log_probability, score, tf.zeros_like(score, tf.bool))
        return _State(ids, rank, log_probability, done, finished)

    def step(self, index, caches, state):
        last = tf.where(index == 0, BOS, tf.gather(state.ids, tf.maximum(index - 1, 0), axis=-1))
        logits, caches = self._sources.step(tf.reshape(last, (self._batch, -1)), caches, index)
        logits = tf.reshape(logits, (self._rows, self._width, logits.shape[-1]))
        maxima = block_maxima(logits)
        normalizer = self._ensemble.normalizer(logits, maxima)
        allowed = constrain(logits, maxima, normalizer, state.ids, index, self._options, self._fixed)
        parents, tokens, rank, ended = self._continue(logits, allowed, normalizer[..., 0], state.rank)
        at_end, length = tf.range(self._longest) == index, index + 1

        new = _Finished(
            tf.where(at_end, EOS, state.ids),
            state.log_probability + logits[..., EOS] - normalizer[..., 0],
            ended / self._options.length_divisor(length),
            tf.zeros_like(ended, tf.bool),
        )
        finished = _merge(state.finished, new)
        normalized = tf.gather(state.log_probability - normalizer[..., 0], parents, batch_dims=1)
        log_probability = normalized + _gather_tokens(logits, parents, tokens)
        ids = tf.where(at_end, tokens[..., None], tf.gather(state.ids, parents, batch_dims=1))
        at_limit = length >= self._limits

        def cut():
            score = tf.where(at_limit[:, None], rank / self._options.length_divisor(length), NEVER)
            return _merge(finished, _Finished(ids, log_probability, score, tf.ones_like(rank, tf.bool)))

        finished = tf.cond(tf.reduce_any(at_limit), cut, lambda: finished)
        done = state.done | at_limit | self._is_done(finished, rank)
        rank = tf.where(done[:, None], NEVER, rank)
        caches = reorder(caches, self._of_source(parents))
        return length, caches, _State(ids, rank, log_probability, done, finished)

    def _continue(self, logits, allowed, normalizer, rank):
        """The `beam_size` likeliest continuations: `(parents, tokens, rank, ended)`, each [N,W].

        `ended` is the rank of each hypothesis with eos behind it, minus infinity where that is not among them.
        """
        rank = rank - normalizer
        top, new_rank, parents, tokens, stuck = self._choose(allowed, rank)
        eos = rank + tf.where(stuck, logits[..., EOS], allowed.end())
        better = tf.math.count_nonzero(top[:, None] > eos[..., None], axis=-1, dtype=tf.int32)
        better += tf.math.count_nonzero(eos[:, None] > eos[..., None], axis=-1, dtype=tf.int32)
        ended = tf.where(better < self._options.beam_size[:, None], eos, NEVER)
        return parents, tf.where(new_rank == NEVER, 0, tokens), new_rank, ended

    def _choose(self, allowed, rank):
        """The `beam_size` likeliest continuations of each row that do not end, see `_top`."""
        if self._groups == 1:
            return _top(allowed.top_k, allowed.logits, rank, self._slots)
        split, vocabulary_size = (self._batch, self._groups, self._width), allowed.logits.shape[-1]
        logits = tf.reshape(allowed.dense(), (*split, vocabulary_size))
        rank, slots = tf.reshape(rank, split), tf.reshape(self._slots, split)
        said, results = tf.zeros((self._batch, vocabulary_size)), []
        for group in range(self._groups):
            cost = self._options.diversity_penalty * said[:, None]
            find = functools.partial(top_k, logits[:, group] - cost)
            results.append(_top(find, logits[:, group], rank[:, group], slots[:, group]))
            top, _, _, tokens, _ = results[-1]
            said += tf.reduce_sum(tf.one_hot(tf.where(top == NEVER, -1, tokens), vocabulary_size), axis=1)
        return tuple(tf.reshape(tf.stack(parts, axis=1), (self._rows, -1)) for parts in zip(*results, strict=True))

    def _is_done(self, finished, rank):
        """Whether no live hypothesis can come among the `n_best` any more, or one asked not to wait for that."""
        options = self._options
        wanted = tf.minimum(options.n_best, options.beam_size)
        worst = tf.gather(finished.score, wanted - 1, batch_dims=1)
        bound = tf.reduce_max(rank, axis=-1, keepdims=True) / options.length_divisor(self._limits[:, None])
        full = tf.math.count_nonzero(finished.score > NEVER, axis=-1, dtype=tf.int32) >= options.beam_size
        return (worst >= bound[:, 0]) | (full & (options.early_stopping | (options.beam_size == 1)))

    def _of_source(self, parents):
        """Parents among the W of their row as those among the G*W of their source."""
        first = tf.range(self._groups)[:, None] * self._width
        return tf.reshape(tf.reshape(parents, (self._batch, self._groups, -1)) + first, (self._batch, -1))

    def results(self, finished, length):
        """The `Hypotheses`, cut to `length` tokens and the most that were asked for, or whole under XLA."""
        finished = finished._replace(ids=finished.ids[..., :length], score=tf.where(self._slots, finished.score, NEVER))
        first = (self._batch, self._groups * self._width)
        finished = _Finished(*(tf.reshape(part, (*first, *tf.unstack(tf.shape(part)[2:]))) for part in finished))
        finished = _best(finished, self._groups * self._width)
        if self._groups > 1:
            finished = finished._replace(score=tf.where(_comes_again(finished.ids), NEVER, finished.score))
            finished = _best(finished, self._groups * self._width)
        wanted = tf.reduce_max(self._shared.n_best) if length is not None else self._groups * self._width
        finished = tf.nest.map_structure(lambda part: part[:, :wanted], finished)
        valid = (finished.score > NEVER) & (tf.range(wanted) < self._shared.n_best[:, None])
        ids, log_probability = tf.where(valid[..., None], finished.ids, 0), tf.where(valid, finished.log_probability, 0)
        lengths = tf.math.count_nonzero(ids, axis=-1, dtype=tf.int32)
        return Hypotheses(
            ids,
            lengths,
            log_probability,
            log_probability / self._shared.length_divisor(tf.maximum(lengths, 1)),
            valid & finished.truncated,
            tf.math.count_nonzero(valid, axis=-1, dtype=tf.int32),
        )


def _top(find, logits, rank, slots):
    """The likeliest continuations of the hypotheses of a row that do not end, as many as it has slots.

    `find` gives the likeliest tokens of each hypothesis, as many as it is asked for, and what they are chosen by.

    Returns `(top, rank, parents, tokens, stuck)`, each [N,W]: `top` is what they were chosen by, `rank` the same
    without the cost, and `stuck` are the hypotheses that have no continuation but eos. One token more than W of each
    hypothesis is all that can be needed, since eos is one.
    """
    width, vocabulary_size = slots.shape[1], logits.shape[-1]
    width = tf.shape(slots)[1] if width is None else width  # XLA needs the number itself.
    count = tf.minimum(width + 1, vocabulary_size) if tf.is_tensor(width) else min(width + 1, vocabulary_size)
    values, tokens = find(count)
    values = tf.where(tokens == EOS, NEVER, values)
    stuck = tf.reduce_max(values, axis=-1) == NEVER
    flat = (tf.shape(values)[0], -1)
    top, chosen = tf.math.top_k(tf.reshape(rank[..., None] + values, flat), width)
    parents, tokens = chosen // count, tf.gather(tf.reshape(tokens, flat), chosen, batch_dims=1)
    top = tf.where(slots, top, NEVER)
    rank = tf.gather(rank, parents, batch_dims=1) + _gather_tokens(logits, parents, tokens)
    return top, tf.where(top == NEVER, NEVER, rank), parents, tokens, stuck


def _gather_tokens(values, parents, tokens):
    """`values[n, parents[n, w], tokens[n, w]]`: [N,W,V] -> [N,W]."""
    flat = tf.reshape(values, (tf.shape(values)[0], -1))
    return tf.gather(flat, parents * values.shape[-1] + tokens, batch_dims=1)


def _comes_again(ids):
    """Whether a hypothesis equals one that stands before it: [B,N,L] -> bool [B,N]."""
    equal = tf.reduce_all(ids[:, :, None] == ids[:, None], axis=-1)
    number = tf.range(tf.shape(ids)[1])
    return tf.reduce_any(equal & (number < number[:, None]), axis=-1)


def _merge(finished, new):
    """The best of both, as many as each has."""
    both = _Finished(*(tf.concat(parts, axis=1) for parts in zip(finished, new, strict=True)))
    return _best(both, tf.shape(finished.score)[1])


def _best(finished, count):
    order = best_first(finished.score, finished.truncated)[:, :count]
    return _Finished(*(tf.gather(part, order, batch_dims=1) for part in finished))
