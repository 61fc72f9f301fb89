"""An ensemble whose parts are stored once, however many searches use them."""

from __future__ import annotations

from collections.abc import Sequence

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
        self._functions = [self._make_functions(number) for number in range(len(self.models))]

    def encode(self, number, source_ids):
        return self._functions[number][0](source_ids)

    def decode(self, number, ids, caches, memories, source_mask, index, fixed=False):
        if fixed:  # Of fixed shapes is the caller's own graph.
            return super().decode(number, ids, caches, memories, source_mask, index, fixed)
        return self._functions[number][1](ids, caches, memories, source_mask, index)

    def _make_functions(self, number):
        blocks = self.models[number].decoder_blocks

        def growing(cache):
            return tf.nest.map_structure(
                lambda part: tf.TensorSpec([None, part.shape[1], None, part.shape[3]], part.dtype), cache
            )

        caches = [growing(block.self_attention.empty_cache(1)) for block in blocks]
        memory = tf.zeros([1, 1, self.models[number].config.model_dim])
        memories = [growing(block.memory_attention.project(memory)) for block in blocks]
        mask, index = tf.TensorSpec([None, None], tf.bool), tf.TensorSpec([], tf.int32)
        return (
            tf.function(lambda ids: Ensemble.encode(self, number, ids), input_signature=[IDS], autograph=False),
            tf.function(
                lambda *arguments: Ensemble.decode(self, number, *arguments),
                input_signature=[IDS, caches, memories, mask, index],
                autograph=False,
            ),
        )
