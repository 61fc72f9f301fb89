"""Greedy decoding: the likeliest token, one after the other."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import tensorflow as tf

from keras_transformer._checks import check_positive
from keras_transformer.decoding.step import decoder_step
from keras_transformer.models.transformer import Transformer

_PAD, _BOS, _EOS = 0, 2, 3


class GreedyDecoder:
    """Translates texts, taking the likeliest token at each step. Traced once, whatever the lengths.

    A translation has at most 50 tokens more than its source (section 6.1), and no more than the model has positions.

    Args:
        model: A `Transformer`.
        source_tokenizer: A `Tokenizer`.
        target_tokenizer: The target side's own; None where both sides share one.

    Raises:
        ValueError: If a tokenizer has other ids than the model.

    Example:
        ```python
        from keras_transformer.decoding import GreedyDecoder
        from keras_transformer.models import TransformerConfig, transformer
        from keras_transformer.text import Tokenizer

        tokenizer = Tokenizer.train(["我爱水课", "I love easy courses"], vocabulary_size=290, model_type="bpe")
        model = transformer(TransformerConfig.from_preset("tiny", tokenizer.vocabulary_size))  # Not trained.
        translations = GreedyDecoder(model, tokenizer).translate(["我爱水课", ""])
        print(len(translations), repr(translations[1]))
        #> 2 ''
        ```
    """

    def __init__(self, model: Transformer, source_tokenizer, target_tokenizer=None):
        self._model, self._encoder = model, model.encoder()
        self._source, self._target = source_tokenizer, target_tokenizer or source_tokenizer
        sizes = (self._source.vocabulary_size, self._target.vocabulary_size)
        expected = (model.config.vocabulary_size, model.config.target_vocabulary_size or model.config.vocabulary_size)
        if sizes != expected:
            raise ValueError(f"The tokenizers must have as many ids as the model, {expected}. Received: {sizes}")
        ids = tf.TensorSpec((None, None), tf.int32)
        self.decode = tf.function(self._decode, input_signature=[ids])

    def translate(self, texts: Iterable[str], batch_tokens: int = 4096) -> list[str]:
        """The translations of texts, in their order and one line each; blank texts give blank ones.

        Args:
            texts: Texts, one sentence each.
            batch_tokens: Cells of a batch of sources.
        """
        check_positive("batch_tokens", batch_tokens)
        sources = [self._source.encode(text) if text.strip() else [] for text in texts]
        sources = [[*ids, _EOS] if ids else [] for ids in sources]
        translations = [""] * len(sources)
        order = sorted((i for i, ids in enumerate(sources) if ids), key=lambda i: len(sources[i]))
        while order:
            width = len(sources[order[-1]])
            rows = max(1, batch_tokens // width)
            batch, order = order[-rows:], order[:-rows]
            source_ids = np.zeros((len(batch), width), "int32")
            for row, i in enumerate(batch):
                source_ids[row, : len(sources[i])] = sources[i]
            for i, ids in zip(batch, self.decode(source_ids).numpy(), strict=True):
                translations[i] = " ".join(self._target.decode(ids).splitlines())
        return translations

    def _decode(self, source_ids):
        """Target ids without bos, padded behind eos: int32 [B,S] -> [B,T]."""
        model = self._model
        source_mask = source_ids != _PAD
        memory = self._encoder(source_ids)
        caches = [block.empty_cache(memory) for block in model.decoder_blocks]
        growing = [(cache.target.key, cache.target.value) for cache in caches]
        limits = tf.reduce_sum(tf.cast(source_mask, tf.int32), axis=-1) + 50
        if model.config.max_length:
            limits = tf.minimum(limits, model.config.max_length)
        rows = tf.shape(source_ids)[0]

        def step(ids, growing, finished):
            index = tf.shape(ids)[1] - 1
            current = [
                cache._replace(target=cache.target._replace(key=key, value=value))
                for cache, (key, value) in zip(caches, growing, strict=True)
            ]
            logits, current = decoder_step(model, ids[:, -1:], current, index, source_mask)
            logits = tf.cast(logits[:, -1], tf.float32) + _never(logits.shape[-1])
            token = tf.argmax(logits, axis=-1, output_type=tf.int32)
            token = tf.where(finished, _PAD, token)
            finished |= (token == _EOS) | (index + 1 >= limits)
            growing = [(cache.target.key, cache.target.value) for cache in current]
            return tf.concat([ids, token[:, None]], axis=1), growing, finished

        shapes = [
            tuple(tf.TensorShape([None, part.shape[1], None, part.shape[3]]) for part in pair) for pair in growing
        ]
        ids, _, _ = tf.while_loop(
            lambda ids, growing, finished: not tf.reduce_all(finished),
            step,
            (tf.fill((rows, 1), _BOS), growing, tf.zeros((rows,), tf.bool)),
            shape_invariants=(tf.TensorShape([None, None]), shapes, tf.TensorShape([None])),
        )
        return ids[:, 1:]


def _never(vocabulary_size):
    """Added to logits: pad, unk and bos are no tokens of a translation."""
    banned = np.zeros(vocabulary_size, "float32")
    banned[:_EOS] = -np.inf
    return banned
