"""One step of decoding from caches, made of the models' own layers: what every search is built on."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import tensorflow as tf

from keras_transformer.layers.decoder_block import DecoderCache
from keras_transformer.models.transformer import Transformer


class Ensemble:
    """One model, or several of one vocabulary that decode together.

    Args:
        models: `Transformer` models.
        max_length: Most positions to decode; None for as many as the models have.

    Raises:
        ValueError: If there is none, or their vocabularies differ.
    """

    def __init__(self, models: Sequence[Transformer], max_length: int | None = None):
        self.models = list(models)
        if not self.models or not all(isinstance(model, Transformer) for model in self.models):
            raise ValueError(f"Decoding needs one Transformer or more. Received: {self.models!r}")
        sizes = {_vocabulary_sizes(model) for model in self.models}
        if len(sizes) > 1:
            raise ValueError(f"The models of an ensemble must have one vocabulary. Received: sizes {sorted(sizes)}")
        self.vocabulary_sizes = sizes.pop()
        self._encoders = [model.encoder() for model in self.models]
        lengths = [length for length in (max_length, *(model.config.max_length for model in self.models)) if length]
        # The most positions to decode; None where there is no end.
        self.max_length: int | None = min(lengths, default=None)

    def normalizer(self, logits, maxima):
        """What to subtract from the logits of a step for log-probabilities: [...,V] -> [...,1].

        Args:
            logits: [...,V].
            maxima: The largest of them, or of each of their blocks, [...,any number].
        """
        most = tf.reduce_max(maxima, axis=-1, keepdims=True)
        if len(self.models) > 1:
            return tf.zeros_like(most)  # They are log-probabilities already.
        # Of two axes: TensorFlow's kernels for CPUs are slower at subtracting what broadcasts along a third one.
        flat = tf.reshape(logits, (-1, logits.shape[-1])) - tf.reshape(most, (-1, 1))
        return tf.reshape(tf.math.log(tf.reduce_sum(tf.exp(flat), axis=-1)), tf.shape(most)) + most

    def encode(self, number: int, source_ids):
        """The keys and values of a model's decoder blocks for sources, int32 [B,S]: an `AttentionCache` for each."""
        memory = self._encoders[number](source_ids)
        return [block.memory_attention.project(memory) for block in self.models[number].decoder_blocks]

    def decode(self, number: int, ids, caches, memories, source_mask, index, width=None, fixed: bool = False):
        """The next T positions of a model.

        Args:
            number: Which model.
            ids: The tokens before those positions, int32 [N,T], the hypotheses of a source in a row.
            caches: An `AttentionCache` for each decoder block, of the positions before.
            memories: What `encode` gave.
            source_mask: True at real source tokens, bool [B,S].
            index: The first of the positions, an int32 scalar tensor.
            width: Hypotheses for each source, N/B, an integer or a scalar tensor.
            fixed: Whether the caches have a fixed length.

        Returns:
            The triple `(hidden, weights, caches)`: the decoder's output, [N,T,D], the attention to the source of each
            block, [B,H,(N/B)*T,S], and the caches with T positions more.
        """
        model, new_caches, weights = self.models[number], [], []
        start = index if fixed else None
        x = model.target_embedding(ids, start_index=index)
        for block, cache, memory in zip(model.decoder_blocks, caches, memories, strict=True):
            x, attention, cache = block.step(
                x, DecoderCache(cache, memory), start, memory_mask=source_mask, beam_width=width
            )
            new_caches.append(cache.target)
            weights.append(attention)
        return (model.decoder_norm(x) if model.decoder_norm else x), weights, new_caches

    def projection(self, number: int, rows) -> Callable:
        """The last linear map of a model, [N,D] -> [N,V], made ready for many steps.

        Args:
            number: Which model.
            rows: N in the first step, an integer or a scalar tensor; it may become smaller.
        """
        model = self.models[number]
        if model.output_projection:
            return model.output_projection
        embeddings = model.target_embedding.token_embedding.embeddings
        kernel = tf.cast(embeddings, model.target_embedding.compute_dtype)
        # Transposed once: a product with a transposed matrix takes twice the time, and is most of a step. But for one
        # row it takes no longer, and what it takes to transpose is a tenth of a translation.
        is_one = tf.equal(rows, 1)
        transposed = tf.transpose(tf.cond(is_one, lambda: tf.zeros_like(kernel[:0]), lambda: kernel))

        def project(hidden):
            return tf.cond(
                is_one,
                lambda: tf.matmul(hidden, kernel, transpose_b=True),
                lambda: tf.ensure_shape(tf.matmul(hidden, transposed), (None, kernel.shape[0])),
            )

        return project


def _vocabulary_sizes(model):
    config = model.config
    return config.vocabulary_size, config.target_vocabulary_size or config.vocabulary_size


class EncodedSources:
    """A batch of sources, encoded once, and the step that decodes them token by token.

    The keys and values of the encoder's output are projected once too, and are the same for every hypothesis: neither
    copied nor reordered.

    Args:
        ensemble: An `Ensemble`.
        source_ids: [B,S], padded behind. A row of nothing but padding is a blank source.
        width: Hypotheses for each source, W, an integer or a scalar tensor.
        length: 0 for caches that grow with each step; else their fixed length, as XLA needs it.

    Attributes:
        caches: What the first `step` starts from: for each model and decoder block the keys and values of the
            hypotheses' positions so far.
    """

    def __init__(self, ensemble: Ensemble, source_ids, width=1, length: int = 0):
        self._ensemble, self._width, self._fixed = ensemble, width, length > 0
        self._mask = tf.not_equal(source_ids, 0)
        rows = tf.shape(source_ids)[0] * width
        self._projections = [ensemble.projection(number, rows) for number in range(len(ensemble.models))]
        self._memories = [ensemble.encode(number, source_ids) for number in range(len(ensemble.models))]
        self.caches = [
            [block.self_attention.empty_cache(rows, length) for block in model.decoder_blocks]
            for model in ensemble.models
        ]

    @property
    def tensors(self):
        """What the steps read of the sources, each with B rows."""
        return self._mask, self._memories

    def with_tensors(self, tensors) -> EncodedSources:
        """The same for other sources, by their `tensors`."""
        other = copy.copy(self)
        other._mask, other._memories = tensors
        return other

    def step(self, ids, caches, index):
        """The logits at position `index`.

        Args:
            ids: The tokens before that position, int32 [B,W]: bos at position 0.
            caches: What the step before returned, or `caches`.
            index: The position, an int32 scalar tensor.

        Returns:
            The pair `(logits, caches)`: float32 [B,W,V] and the caches with one position more. The logits of an
            ensemble are the mean of its models' log-probabilities.
        """
        rows, width = tf.shape(ids)[0], tf.shape(ids)[1]
        results = self._decode(tf.reshape(ids, (-1, 1)), caches, index)
        logits = [self._logits(number, hidden[:, -1]) for number, (hidden, _, _) in enumerate(results)]
        if len(logits) > 1:
            logits = [tf.add_n([tf.nn.log_softmax(one) for one in logits]) / len(logits)]
        return tf.reshape(logits[0], (rows, width, logits[0].shape[-1])), [caches for _, _, caches in results]

    def force(self, ids):
        """All positions of given targets at once.

        Args:
            ids: The tokens before each position, int32 [B,T]: bos at position 0.

        Returns:
            A pair `(logits, weights)` for each model: float32 [B,T,V], and what the positions attend to in each
            decoder block, a list of [B,H,T,S].
        """
        results = self._decode(ids, self.caches, tf.constant(0))
        return [(self._logits(number, hidden), weights) for number, (hidden, weights, _) in enumerate(results)]

    def _logits(self, number, hidden):
        """[...,D] -> float32 [...,V]."""
        flat = tf.cast(self._projections[number](tf.reshape(hidden, (-1, hidden.shape[-1]))), tf.float32)
        return tf.reshape(flat, tf.concat([tf.shape(hidden)[:-1], tf.shape(flat)[1:]], 0))

    def _decode(self, ids, caches, index):
        return [
            self._ensemble.decode(number, ids, caches[number], memories, self._mask, index, self._width, self._fixed)
            for number, memories in enumerate(self._memories)
        ]


def reorder(caches, parents):
    """The caches of hypotheses whose parents were others.

    Args:
        caches: As of `EncodedSources`.
        parents: int32 [N,W], the hypothesis among the W of its row that each one continues.
    """
    rows, width = tf.shape(parents)[0], tf.shape(parents)[1]
    flat = tf.reshape(parents + tf.range(rows)[:, None] * width, [-1])
    return tf.nest.map_structure(lambda cache: tf.gather(cache, flat), caches)
