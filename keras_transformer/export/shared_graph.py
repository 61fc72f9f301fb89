"""An ensemble whose parts are stored once, however many searches use them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from keras_transformer.decoding.searches import IDS
from keras_transformer.decoding.step import Ensemble
from keras_transformer.models.transformer import Transformer


class SharedGraphEnsemble(Ensemble):
    """An `Ensemble` whose encoders and decoders are functions of TensorFlow.

    A graph calls them by name, where each search would hold a copy of the operations of all layers: the graph on disk
    is a third as large, and loads as much faster.

    Args:
        models: As of `Ensemble`.
        max_length: As of `Ensemble`.
    """

    def __init__(self, models: Sequence[Transformer], max_length: int | None = None):
        super().__init__(models, max_length)
        self._encode = [self._encoder(number) for number in range(len(self.models))]
        self._decode: dict[tuple, Any] = {}

    def encode(self, number, source_ids):
        return self._encode[number](source_ids)

    def decode(self, number, ids, caches, memories, source_mask, index, width=None, fixed=False):
        if fixed:  # Of fixed shapes is the caller's own graph.
            return super().decode(number, ids, caches, memories, source_mask, index, width, fixed)
        # One position of one hypothesis has a graph of its own: with shapes that are known it has fewer operations.
        known = 1 if ids.shape[1] == 1 and not tf.is_tensor(width) and width == 1 else None
        if (number, known) not in self._decode:
            self._decode[number, known] = self._decoder(number, known)
        return self._decode[number, known](ids, caches, memories, source_mask, index, tf.convert_to_tensor(width))

    def _encoder(self, number):
        return tf.function(
            lambda ids: super(SharedGraphEnsemble, self).encode(number, ids), input_signature=[IDS], autograph=False
        )

    def _decoder(self, number, known):
        model = self.models[number]

        def growing(cache):
            return tf.nest.map_structure(
                lambda part: tf.TensorSpec([None, part.shape[1], None, part.shape[3]], part.dtype), cache
            )

        memory = tf.zeros([1, 1, model.config.model_dim])
        signature = [
            tf.TensorSpec([None, known], tf.int32),
            [growing(block.self_attention.empty_cache(1)) for block in model.decoder_blocks],
            [growing(block.memory_attention.project(memory)) for block in model.decoder_blocks],
            tf.TensorSpec([None, None], tf.bool),
            tf.TensorSpec([], tf.int32),
            tf.TensorSpec([], tf.int32),
        ]

        def decode(ids, caches, memories, source_mask, index, any_width):
            width = known or any_width
            return super(SharedGraphEnsemble, self).decode(number, ids, caches, memories, source_mask, index, width)

        return tf.function(decode, input_signature=signature, autograph=False)
