"""A given translation run through the model: its log-probability, and what its tokens attend to."""

from __future__ import annotations

import tensorflow as tf

from keras_transformer.decoding.constraints import BOS
from keras_transformer.decoding.step import Ensemble
from keras_transformer.layers.decoder_block import DecoderCache
from keras_transformer.models.transformer import Transformer


def token_log_probabilities(ensemble: Ensemble, source_ids, target_ids):
    """The log-probability of each token of given translations; that of an ensemble is the mean of its models'.

    Args:
        ensemble: An `Ensemble`.
        source_ids: int32 [B,S], eos included, padded behind.
        target_ids: int32 [B,T], eos included, padded behind.

    Returns:
        float32 [B,T], 0 at padding.
    """
    inputs = {"source_ids": source_ids, "target_ids": _shifted_right(target_ids)}
    results = []
    for model in ensemble.models:
        logits = tf.cast(model(inputs), tf.float32)
        results.append(tf.gather(logits, target_ids, batch_dims=2) - tf.reduce_logsumexp(logits, axis=-1))
    return tf.where(target_ids == 0, 0.0, tf.add_n(results) / len(results))


def memory_attention_weights(model: Transformer, encoder, source_ids, target_ids):
    """How each token of a given translation attends to the source as it is chosen.

    Args:
        model: A `Transformer` with N decoder blocks of H heads.
        encoder: Its `encoder()`.
        source_ids: int32 [B,S], eos included, padded behind.
        target_ids: int32 [B,T], eos included, padded behind.

    Returns:
        float32 [B,N,H,T,S].
    """
    mask, memory = source_ids != 0, encoder(source_ids)
    x, layers = model.target_embedding(_shifted_right(target_ids)), []
    for block in model.decoder_blocks:
        x, weights, _ = block.step(x, DecoderCache(*block.empty_cache(memory)), memory_mask=mask)
        layers.append(tf.cast(weights, tf.float32))
    return tf.stack(layers, axis=1)


def _shifted_right(target_ids):
    shifted = tf.pad(target_ids[:, :-1], [[0, 0], [1, 0]], constant_values=BOS)
    return tf.where(target_ids == 0, 0, shifted)
