"""One step of decoding from caches, made of the models' own layers: what every search is built on."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from keras_transformer.layers.decoder_block import DecoderCache
from keras_transformer.models.transformer import Transformer


class Ensemble:
    """One model, or several of one vocabulary that decode together.

    Args:
        models: `Transformer` models.

    Raises:
        ValueError: If there is none, or their vocabularies differ.
    """

    def __init__(self, models: Sequence[Transformer]):
        self.models = list(models)
        if not self.models or not all(isinstance(model, Transformer) for model in self.models):
            raise ValueError(f"Decoding needs one Transformer or more. Received: {self.models!r}")
        sizes = {_vocabulary_sizes(model) for model in self.models}
        if len(sizes) > 1:
            raise ValueError(f"The models of an ensemble must have one vocabulary. Received: sizes {sorted(sizes)}")
        self.vocabulary_sizes = sizes.pop()
        self.encoders = [model.encoder() for model in self.models]

    @property
    def max_length(self) -> int | None:
        """The most positions that all models have; None where there is no end."""
        lengths = [model.config.max_length for model in self.models if model.config.max_length]
        return min(lengths, default=None)

    def normalizer(self, logits):
        """What to subtract from the logits of a step for log-probabilities: [...,V] -> [...,1]."""
        if len(self.models) > 1:
            return tf.zeros_like(logits[..., :1])  # They are log-probabilities already.
        return tf.reduce_logsumexp(logits, axis=-1, keepdims=True)


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
        self._models, self._fixed = ensemble.models, length > 0
        self._mask = tf.not_equal(source_ids, 0)
        self.caches, self._memories = [], []
        for model, encoder in zip(ensemble.models, ensemble.encoders, strict=True):
            memory = encoder(source_ids)
            caches = [block.empty_cache(memory, length, width) for block in model.decoder_blocks]
            self.caches.append([cache.target for cache in caches])
            self._memories.append([cache.memory for cache in caches])

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
        results = [self._step(number, tf.reshape(ids, (-1, 1)), caches[number], index) for number in range(len(caches))]
        logits = [tf.cast(logits[:, -1], tf.float32) for logits, _ in results]
        if len(logits) > 1:
            logits = [tf.add_n([tf.nn.log_softmax(one) for one in logits]) / len(logits)]
        return tf.reshape(logits[0], (rows, width, logits[0].shape[-1])), [caches for _, caches in results]

    def _step(self, number, ids, caches, index):
        model, new_caches = self._models[number], []
        x = model.target_embedding(ids, start_index=index)
        for block, cache, memory in zip(model.decoder_blocks, caches, self._memories[number], strict=True):
            position = index if self._fixed else None
            x, _, cache = block.step(x, DecoderCache(cache, memory), position, memory_mask=self._mask)
            new_caches.append(cache.target)
        if model.decoder_norm:
            x = model.decoder_norm(x)
        project = model.output_projection
        return (project(x) if project else model.target_embedding(x, reverse=True)), new_caches

    def cache_shapes(self):
        """Shapes of `caches` for `tf.while_loop`, which must know what grows."""

        def shape(cache):
            length = cache.shape[2] if self._fixed else None
            return tf.TensorShape([None, cache.shape[1], length, cache.shape[3]])

        return tf.nest.map_structure(shape, self.caches)


def reorder(caches, parents):
    """The caches of hypotheses whose parents were others.

    Args:
        caches: As of `EncodedSources`.
        parents: int32 [N,W], the hypothesis among the W of its row that each one continues.
    """
    rows, width = tf.shape(parents)[0], tf.shape(parents)[1]
    flat = tf.reshape(parents + tf.range(rows)[:, None] * width, [-1])
    return tf.nest.map_structure(lambda cache: tf.gather(cache, flat), caches)
