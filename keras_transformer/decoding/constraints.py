"""What a search may not say, or had better not: changes to the logits of a step, each row by its own options."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from keras_transformer.decoding.top_k import NEVER, block_maxima, top_k

BOS, EOS = 2, 3
MORE_TOKENS = 50  # By default a translation may have so many more than its source.


class Hypotheses(NamedTuple):
    """What a search found, the best first; T is the longest length, and a row's entries past its count are 0.

    Attributes:
        ids: int32 [B,N,T], without bos, eos included, padded behind.
        length: Tokens, eos included, int32 [B,N].
        log_probability: Sum of the tokens' log-probabilities, float32 [B,N]; 0 where the search computed none.
        score: The same, divided by the length penalty, float32 [B,N].
        truncated: Whether it ended at the limit, without eos, bool [B,N].
        count: How many there are, int32 [B].
    """

    ids: Any
    length: Any
    log_probability: Any
    score: Any
    truncated: Any
    count: Any


class RowOptions(NamedTuple):
    """The options of a search as tensors, one entry for each source: strangers may share a batch.

    Attributes:
        beam_size: Hypotheses kept, int32 [B].
        n_best: Results wanted, int32 [B], at most `beam_size`.
        length_penalty: Alpha, float32 [B].
        max_length: Most tokens of a translation, its end counted, int32 [B]; 0 for as many as the source has and 50.
        min_length: Fewest tokens, int32 [B].
        no_repeat_ngram_size: N of the n-grams that do not come twice, int32 [B]; 0 for none.
        repetition_penalty: What log-probabilities of tokens that came before are multiplied with, float32 [B].
        prefix_ids: How the translation begins, int32 [B,P], padded behind.
        banned: True at tokens that never come, bool [V].
        gnmt: Whether the length penalty is GNMT's, bool [].
        early_stopping: Whether a source is done when it has `beam_size` finished hypotheses, bool [].
        diversity_penalty: What a token costs for each beam group before that chose it in the same step, float32 [].
        temperature: What logits are divided by before a token is drawn, float32 [].
    """

    beam_size: Any
    n_best: Any
    length_penalty: Any
    max_length: Any
    min_length: Any
    no_repeat_ngram_size: Any
    repetition_penalty: Any
    prefix_ids: Any
    banned: Any
    gnmt: Any
    early_stopping: Any
    diversity_penalty: Any
    temperature: Any

    def limits(self, source_ids, positions: int | None):
        """The most tokens of each translation, int32 [B]: 0 for a blank source.

        Args:
            source_ids: int32 [B,S].
            positions: How many the model has at most, or None.
        """
        tokens = tf.math.count_nonzero(source_ids, axis=-1, dtype=tf.int32)
        prefix = tf.math.count_nonzero(self.prefix_ids, axis=-1, dtype=tf.int32)
        return tf.where(tokens > 0, self.limits_of(tokens, prefix, positions), 0)

    def limits_of(self, tokens, prefix, positions: int | None):
        """The same by the numbers of tokens of sources and prefixes, int32 [B]."""
        limits = tf.where(self.max_length > 0, self.max_length, tokens + prefix + MORE_TOKENS)
        return tf.minimum(limits, positions) if positions else limits

    def repeat(self, times: int) -> RowOptions:
        """The options for `times` rows where there was one."""
        return self._of_rows(lambda part: tf.repeat(part, times, axis=0))

    def take(self, rows) -> RowOptions:
        """The options of some of the rows, by their numbers, int32 [n]."""
        return self._of_rows(lambda part: tf.gather(part, rows))

    def of_rows(self) -> dict[str, Any]:
        """The options that each row has its own of, by name."""
        return {name: part for name, part in self._asdict().items() if name not in ("banned", *_OF_ALL_ROWS)}

    def packed(self) -> PackedOptions:
        """The same in fewer tensors."""
        whole, real = ([getattr(self, name) for name in names] for names in (_WHOLE, _REAL))
        of_all = [getattr(self, name) for name in _OF_ALL_ROWS]
        of_all = [tf.cast(part, tf.float32) if isinstance(part, tf.Tensor) else np.float32(part) for part in of_all]
        return PackedOptions(_stacked(whole), _stacked(real), _stacked(of_all), self.prefix_ids, self.banned)

    def _of_rows(self, function):
        return self._replace(**{name: function(part) for name, part in self.of_rows().items()})

    def length_divisor(self, length):
        """What a log-probability is divided by: for lengths that broadcast against [B,1], as float32."""
        length = tf.cast(length, tf.float32)
        base = tf.where(self.gnmt, (5.0 + length) / 6.0, length)
        return base ** self.length_penalty[:, None]


_WHOLE = ("beam_size", "n_best", "max_length", "min_length", "no_repeat_ngram_size")
_REAL = ("length_penalty", "repetition_penalty")
_OF_ALL_ROWS = ("gnmt", "early_stopping", "diversity_penalty", "temperature")


class PackedOptions(NamedTuple):
    """`RowOptions` as five tensors: TensorFlow takes its time for each argument of a compiled function.

    Attributes:
        whole: The integers of rows, int32 [5,B].
        real: The others of rows, float32 [2,B].
        of_all: What holds for all rows, float32 [4].
        prefix_ids: As of `RowOptions`.
        banned: As of `RowOptions`.
    """

    whole: Any
    real: Any
    of_all: Any
    prefix_ids: Any
    banned: Any

    def unpacked(self) -> RowOptions:
        """The `RowOptions`."""
        parts = [*tf.unstack(self.whole, 5), *tf.unstack(self.real, 2), *tf.unstack(self.of_all, 4)]
        named = dict(zip(_WHOLE + _REAL + _OF_ALL_ROWS, parts, strict=True))
        flags = {name: named[name] != 0 for name in ("gnmt", "early_stopping")}
        return RowOptions(prefix_ids=self.prefix_ids, banned=self.banned, **named | flags)


def _stacked(parts):
    """One tensor; one array where there are arrays alone, which takes less time."""
    return tf.stack(parts) if any(isinstance(part, tf.Tensor) for part in parts) else np.stack(parts)


class Allowed(NamedTuple):
    """What may come next.

    Attributes:
        logits: float32 [B,W,V], at minus infinity for what is forbidden, but for `banned`.
        maxima: Their `block_maxima`.
        banned: True at tokens that never come, whatever their logits say, bool [V].
        fixed: Whether no size may depend on a tensor, as under XLA.
    """

    logits: Any
    maxima: Any
    banned: Any
    fixed: bool

    def dense(self):
        """The logits with all that is forbidden at minus infinity: for some hypothesis that may be every token."""
        return tf.where(self.banned, NEVER, self.logits)

    def end(self):
        """Those of eos, [B,W]."""
        return tf.where(self.banned[EOS], NEVER, self.logits[..., EOS])

    def top_k(self, k):
        """The k likeliest tokens: `(logits, tokens)`, each [B,W,k]; minus infinity where there are fewer."""
        if self.fixed:
            return top_k(self.dense(), k)
        return top_k(self.logits, k, self.banned, self.maxima)


def constrain(logits, maxima, normalizer, ids, index, options: RowOptions, fixed: bool = False) -> Allowed:
    """What may come next.

    Args:
        logits: float32 [B,W,V].
        maxima: Their `block_maxima`.
        normalizer: float32 [B,W,1], see `Ensemble.normalizer`.
        ids: The tokens so far, int32 [B,W,L], padded behind.
        index: How many there are, an int32 scalar tensor.
        options: `RowOptions`.
        fixed: Whether no size may depend on a tensor, as under XLA.
    """
    prefix = options.prefix_ids
    is_changed = (
        # Under XLA the prefixes are as long as the caches, whatever is in them.
        (tf.reduce_any(prefix[:, index] != 0) if fixed else index < tf.shape(prefix)[1])
        | (index + 1 < tf.reduce_max(options.min_length))
        | tf.reduce_any(options.repetition_penalty != 1.0)
        | tf.reduce_any(options.no_repeat_ngram_size > 0)
    )

    def change():
        changed = tf.cond(
            tf.reduce_any(options.repetition_penalty != 1.0),
            lambda: _penalize_repetition(logits, normalizer, ids, options.repetition_penalty),
            lambda: logits,
        )
        again = _marked(_after_same(ids, index, options.no_repeat_ngram_size), logits.shape[-1])
        early = (index + 1 < options.min_length)[:, None] & (tf.range(logits.shape[-1]) == EOS)
        changed = tf.where(again | (options.banned | early)[:, None], NEVER, changed)
        changed = _force_prefix(changed, logits, prefix, index)
        # A prefix may have tokens that are banned elsewhere.
        return changed, block_maxima(changed), tf.zeros_like(options.banned)

    # Most searches change nothing: what is banned for all of them costs no pass over the logits then.
    changed, its_maxima, banned = tf.cond(is_changed, change, lambda: (logits, maxima, options.banned))
    return Allowed(changed, its_maxima, banned, fixed)


def _penalize_repetition(logits, normalizer, ids, penalty):
    scaled = (logits - normalizer) * penalty[:, None, None] + normalizer
    return tf.where(_marked(ids, logits.shape[-1]), scaled, logits)


def _force_prefix(changed, logits, prefix_ids, index):
    """Within the prefix its token alone, whatever else is forbidden, by the model's own logit."""

    def force():
        token = prefix_ids[:, index]
        forced = tf.one_hot(token, logits.shape[-1], on_value=True, off_value=False)[:, None]
        return tf.where((token == 0)[:, None, None], changed, tf.where(forced, logits, NEVER))

    return tf.cond(index < tf.shape(prefix_ids)[1], force, lambda: changed)


def _after_same(ids, index, size):
    """The tokens that came after the last `size` - 1 tokens wherever these stood before, [B,W,L]; elsewhere padding."""
    position = tf.range(tf.shape(ids)[-1])

    def compare(back, same):
        there = tf.roll(ids, back + 1, axis=-1)
        last = tf.gather(ids, tf.maximum(index - 1 - back, 0), axis=-1)[..., None]
        equal = (position > back) & (there == last)
        return back + 1, same & (equal | (back >= size - 1)[:, None, None])

    same = tf.broadcast_to((position < index) & (size > 0)[:, None, None], tf.shape(ids))
    steps = tf.minimum(tf.reduce_max(size) - 1, tf.shape(ids)[-1])  # Nothing goes back further.
    _, same = tf.while_loop(lambda back, _: back < steps, compare, (0, same))
    return tf.where(same, ids, 0)


def _marked(tokens, vocabulary_size):
    """True at the tokens of a row: [B,W,L] -> bool [B,W,V]. Marks padding, too, which is banned anyway."""
    shape = tf.shape(tokens)
    rows = tf.range(shape[0] * shape[1])[:, None] + tf.zeros((1, shape[2]), tf.int32)
    indices = tf.stack([tf.reshape(rows, [-1]), tf.reshape(tokens, [-1])], axis=-1)
    counts = tf.scatter_nd(indices, tf.ones(tf.shape(indices)[:1], tf.int32), (shape[0] * shape[1], vocabulary_size))
    return tf.reshape(counts > 0, (shape[0], shape[1], vocabulary_size))
