"""What a search may not say, or had better not: changes to the logits of a step, each row by its own options."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from keras_transformer.decoding.top_k import NEVER, block_maxima, top_k

BOS, EOS = 2, 3


class Hypotheses(NamedTuple):
    """What a search found, the best first; T is the longest length, and a row's entries past its count are 0.

    Attributes:
        ids: int32 [B,N,T], without bos, eos included, padded behind.
        length: Tokens, eos included, int32 [B,N].
        log_probability: Sum of the tokens' log-probabilities, float32 [B,N].
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
        limits = tf.where(self.max_length > 0, self.max_length, tokens + prefix + 50)
        return tf.minimum(limits, positions) if positions else limits

    def repeat(self, times: int) -> RowOptions:
        """The options for `times` rows where there was one."""
        return self._of_rows(lambda part: tf.repeat(part, times, axis=0))

    def take(self, rows) -> RowOptions:
        """The options of some of the rows, by their numbers, int32 [n]."""
        return self._of_rows(lambda part: tf.gather(part, rows))

    def of_rows(self) -> dict[str, Any]:
        """The options that each row has its own of, by name."""
        return {name: part for name, part in self._asdict().items() if name not in _OF_ALL_ROWS}

    def _of_rows(self, function):
        return self._replace(**{name: function(part) for name, part in self.of_rows().items()})

    def length_divisor(self, length):
        """What a log-probability is divided by: for lengths that broadcast against [B,1], as float32."""
        length = tf.cast(length, tf.float32)
        base = tf.where(self.gnmt, (5.0 + length) / 6.0, length)
        return base ** self.length_penalty[:, None]


_OF_ALL_ROWS = ("banned", "gnmt", "early_stopping", "diversity_penalty", "temperature")


class Allowed(NamedTuple):
    """What may come next.

    Attributes:
        logits: float32 [B,W,V], at minus infinity for some of what is forbidden.
        maxima: Their `block_maxima`.
        banned: True at tokens that never come, whatever their logits say, bool [B,V].
        fixed: Whether no size may depend on a tensor, as under XLA.
    """

    logits: Any
    maxima: Any
    banned: Any
    fixed: bool

    def dense(self):
        """The logits with all that is forbidden at minus infinity: for some hypothesis that may be every token."""
        return tf.where(self.banned[:, None], NEVER, self.logits)

    def end(self):
        """Those of eos, [B,W]."""
        return tf.where(self.banned[:, None, EOS], NEVER, self.logits[..., EOS])

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
        normalizer: A function without arguments that gives [B,W,1], see `Ensemble.normalizer`.
        ids: The tokens so far, int32 [B,W,L], padded behind.
        index: How many there are, an int32 scalar tensor.
        options: `RowOptions`.
        fixed: Whether no size may depend on a tensor, as under XLA.
    """
    vocabulary_size, prefix = logits.shape[-1], options.prefix_ids
    early = (index + 1 < options.min_length)[:, None] & (tf.range(vocabulary_size) == EOS)
    banned = options.banned | early
    within = index < tf.shape(prefix)[1]
    is_changed = tf.reduce_any(options.repetition_penalty != 1.0) | tf.reduce_any(options.no_repeat_ngram_size > 0)

    def change():
        changed = tf.cond(
            tf.reduce_any(options.repetition_penalty != 1.0),
            lambda: _penalize_repetition(logits, normalizer(), ids, options.repetition_penalty),
            lambda: logits,
        )
        again = _marked(_after_same(ids, index, options.no_repeat_ngram_size), vocabulary_size)
        changed = tf.where(again, NEVER, changed)
        changed, still_banned = _force_prefix(changed, logits, banned, prefix, index)
        return changed, block_maxima(changed), still_banned

    changed, its_maxima, still_banned = tf.cond(within | is_changed, change, lambda: (logits, maxima, banned))
    return Allowed(changed, its_maxima, still_banned, fixed)


def _penalize_repetition(logits, normalizer, ids, penalty):
    scaled = (logits - normalizer) * penalty[:, None, None] + normalizer
    return tf.where(_marked(ids, logits.shape[-1]), scaled, logits)


def _force_prefix(changed, logits, banned, prefix_ids, index):
    """Within the prefix its token alone, whatever else is forbidden, by the model's own logit: `(logits, banned)`."""

    def force():
        token = prefix_ids[:, index]
        forced = tf.one_hot(token, logits.shape[-1], on_value=True, off_value=False)[:, None]
        free = (token == 0)[:, None]
        return tf.where(free[:, None], changed, tf.where(forced, logits, NEVER)), banned & free

    return tf.cond(index < tf.shape(prefix_ids)[1], force, lambda: (changed, banned))


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
