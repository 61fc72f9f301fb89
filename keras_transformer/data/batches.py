"""Batches of similar lengths, with about equally many tokens in each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf

from keras_transformer._checks import check_integer, check_positive
from keras_transformer.data.subwords import SubwordSampling
from keras_transformer.data.tokenized import TokenizedCorpus

_BOS = 2


class TokenBatches:
    """Cuts a `TokenizedCorpus` into batches by number of tokens (section 5.1) and feeds them to `model.fit`.

    Pairs of about the same lengths come together, so that batches hold little padding. With a `seed` every pass over
    the corpus has an order of its own, which depends on the seed and the number of the pass alone: a training that
    goes on at batch k meets the batches that it would have met.

    Args:
        corpus: A `TokenizedCorpus`.
        batch_tokens: Cells of a batch, padding counted, that neither side exceeds: pairs times longest sentence. With
            `subword_sampling` it counts the usual pieces, and a batch may come out larger.
        seed: Seed of the order, an integer; None for one pass in order of length, for validation.
        fixed_lengths: None for batches as long as their longest sentence. Or lengths, for XLA, which compiles anew
            for each new shape: a batch is padded to the least of them that fits, and has the same number of rows as
            every other of its length, rows without tokens if need be.
        subword_sampling: A `SubwordSampling`, which cuts words into other pieces at every pass; for training only. A
            sentence that would outgrow its fixed length keeps its usual pieces.

    Attributes:
        steps_per_epoch: Number of batches in the first pass; others have about as many.

    Raises:
        ValueError: If an argument is out of range, or a pair does not fit in a batch.

    Example:
        ```python
        from keras_transformer.data import TokenBatches, TokenizedCorpus
        from keras_transformer.text import Tokenizer

        pairs = [("我爱水课", "I love easy courses"), ("喝水", "drink water")]
        tokenizer = Tokenizer.train([text for pair in pairs for text in pair], vocabulary_size=290, model_type="bpe")
        batches = TokenBatches(TokenizedCorpus.from_pairs(pairs, tokenizer), batch_tokens=100, seed=1)
        inputs, labels = next(iter(batches.dataset()))
        print(sorted(inputs), labels.shape[0])
        #> ['source_ids', 'target_ids'] 2
        # model.fit(batches.dataset(), steps_per_epoch=batches.steps_per_epoch, epochs=10)
        ```
    """

    def __init__(
        self,
        corpus: TokenizedCorpus,
        batch_tokens: int = 4096,
        seed: int | None = None,
        fixed_lengths: Sequence[int] | None = None,
        subword_sampling: SubwordSampling | None = None,
    ):
        self.corpus = corpus
        self.batch_tokens = check_positive("batch_tokens", batch_tokens)
        self.seed = None if seed is None else check_integer("seed", seed)
        self.fixed_lengths = None if fixed_lengths is None else _check_lengths(fixed_lengths, batch_tokens)
        self.subword_sampling = subword_sampling
        self._longest = corpus.lengths.max(axis=-1)
        limit = batch_tokens if self.fixed_lengths is None else self.fixed_lengths[-1]
        if self._longest.max() > limit:
            raise ValueError(
                f"A pair must fit in a batch, which has room for {limit} tokens a sentence: give a lower `max_length` "
                f"to the corpus. Received: a pair of {self._longest.max()} tokens, {batch_tokens=}, {fixed_lengths=}"
            )
        self.steps_per_epoch = len(self.plan(0))

    def plan(self, epoch: int) -> list[np.ndarray]:
        """The batches of a pass over the corpus, in order: the indices of their pairs."""
        if self.seed is None:
            return self._cut(np.lexsort((self.corpus.lengths[:, 0], self.corpus.lengths[:, 1])), self.batch_tokens)
        rng = np.random.default_rng((self.seed % 2**64, epoch))
        order = rng.permutation(len(self.corpus))
        if self.fixed_lengths is None:
            source, target = self.corpus.lengths[order].T
            # Noise of up to two tokens, and a first batch of any size: pairs meet other pairs in every pass.
            order = order[np.lexsort((source + rng.uniform(0, 2, len(order)), target))]
            batches = self._cut(order, rng.uniform(0.2, 1) * self.batch_tokens)
        else:
            batches = self._cut(order, self.batch_tokens)
        return [batches[i] for i in rng.permutation(len(batches))]

    def _cut(self, order, first_batch_tokens):
        if self.fixed_lengths is not None:
            return self._cut_fixed(order, self.fixed_lengths)
        batches, start, width, room = [], 0, 0, first_batch_tokens
        for end, length in enumerate(self._longest[order].tolist()):
            width = max(width, length)
            if end > start and width * (end + 1 - start) > room:
                batches.append(order[start:end])
                start, width, room = end, length, self.batch_tokens
        return [*batches, order[start:]]

    def _cut_fixed(self, order, lengths):
        classes = np.searchsorted(lengths, self._longest[order])
        groups = ((self._rows(length), order[classes == i]) for i, length in enumerate(lengths))
        return [group[i : i + rows] for rows, group in groups for i in range(0, len(group), rows)]

    def _rows(self, length):
        """Rows of a batch of a fixed length: a multiple of 8, which suits devices, where there is room for 8."""
        rows = self.batch_tokens // length
        return rows - rows % 8 if rows > 8 else rows

    def dataset(self, first_batch: int = 0) -> tf.data.Dataset:
        """A `tf.data.Dataset` of `({"source_ids": [B,S], "target_ids": [B,T]}, labels)`, int32; labels are [B,T].

        Endless with a `seed`: give `fit` its `steps_per_epoch`. One pass without.

        Args:
            first_batch: Batches to leave out at the start, to go on with a training.
        """
        return self._dataset(first_batch, [0], 1, endless=self.seed is not None)

    def distributed(
        self,
        strategy: tf.distribute.Strategy,
        first_batch: int = 0,
        before: tuple[TokenBatches, int] | None = None,
    ):
        """The same for `fit` in the scope of a `tf.distribute` strategy, over all of whose devices a batch is spread.

        Replica r of R gets rows r, r + R, r + 2R and so on, so that each step sees the batch that one device would see.
        Endless always: give `fit` its `steps_per_epoch`, or `validation_steps`.

        Args:
            strategy: The strategy.
            first_batch: Batches to leave out at the start, those of `before` first.
            before: Other `TokenBatches`, and how many of theirs come before those of this one.

        Raises:
            ValueError: If a number is not an integer from 0 on.
        """
        if strategy.num_replicas_in_sync == 1:
            return self._dataset(first_batch, [0], 1, endless=True, before=before)

        def of_pipeline(context):
            here = context.num_replicas_in_sync // context.num_input_pipelines
            replicas = range(context.input_pipeline_id * here, (context.input_pipeline_id + 1) * here)
            return self._dataset(first_batch, replicas, context.num_replicas_in_sync, endless=True, before=before)

        return strategy.distribute_datasets_from_function(of_pipeline)

    def _dataset(self, first_batch, replicas, num_replicas, endless, before=None):
        if check_integer("first_batch", first_batch) < 0:
            raise ValueError(f"`first_batch` must be at least 0. Received: first_batch={first_batch}")
        others, count = before or (self, 0)
        if check_integer("before", count) < 0:
            raise ValueError(f"`before` must have at least 0 batches. Received: {count}")

        def generate():
            of_others = itertools.islice(others._stream(first_batch, endless=True), max(count - first_batch, 0))
            own = self._stream(max(first_batch - count, 0), endless)
            for batches, stream in ((others, of_others), (self, own)):
                for key, indices in stream:
                    for replica in replicas:
                        yield batches._batch(key, indices, replica, num_replicas)

        ids = tf.TensorSpec((None, None), tf.int32)
        dataset = tf.data.Dataset.from_generator(
            generate, output_signature=({"source_ids": ids, "target_ids": ids}, ids)
        )
        size = tf.data.INFINITE_CARDINALITY if endless else max(self.steps_per_epoch - first_batch, 0)
        options = tf.data.Options()
        # There is nothing to tune; and the thread that would do it sleeps twice as long each time, 10 ms at first, and
        # who is done with the data waits for it to wake: as long again as `fit` or a validation took.
        options.autotune.enabled = False
        return dataset.apply(tf.data.experimental.assert_cardinality(size)).prefetch(8).with_options(options)

    def _stream(self, first_batch, endless) -> Iterator[tuple[tuple[int, int], np.ndarray]]:
        """Batches from `first_batch` on, each behind the number of its pass and its own within it."""
        for epoch in itertools.count():
            plan = self.plan(epoch)
            for number in range(min(first_batch, len(plan)), len(plan)):
                yield (epoch, number), plan[number]
            first_batch = max(first_batch - len(plan), 0)
            if not endless:
                return

    def _batch(self, key, indices, replica, num_replicas):
        lengths = self.corpus.lengths[indices]
        mine = slice(replica, None, num_replicas)
        length = self.fixed_lengths and self.fixed_lengths[np.searchsorted(self.fixed_lengths, lengths.max())]
        if self.subword_sampling is None:
            sides = [self.corpus.padded(side, indices[mine], lengths[:, side].max()) for side in (0, 1)]
        else:
            seeds = np.random.SeedSequence([part % 2**64 for part in (self.seed or 0, *key)])
            pairs = [self.corpus[i] for i in indices[mine]]
            sides = self.subword_sampling.resample(pairs, seeds.generate_state(len(indices))[mine], length)
        if length:
            rows = -(-self._rows(length) // num_replicas)
            sides = [_fill(side, rows, length) for side in sides]
        elif not len(indices[mine]):  # A batch of fewer pairs than replicas.
            sides = [_fill(side, 1, 1) for side in sides]
        source, labels = sides
        target = np.pad(labels[:, :-1], ((0, 0), (1, 0)), constant_values=_BOS) * (labels != 0)
        return {"source_ids": source, "target_ids": target}, labels


def _check_lengths(lengths, batch_tokens):
    lengths = sorted(check_positive("fixed_lengths", length) for length in lengths)
    if not lengths or lengths[-1] > batch_tokens:
        raise ValueError(
            "`fixed_lengths` must be at least one length, and none above `batch_tokens`. "
            f"Received: fixed_lengths={lengths}, {batch_tokens=}"
        )
    return lengths


def _fill(rows, count, width):
    return np.pad(rows, ((0, count - rows.shape[0]), (0, max(0, width - rows.shape[1]))))
