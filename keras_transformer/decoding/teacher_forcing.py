"""A given translation run through the model: its log-probability, and what its tokens attend to."""

from __future__ import annotations

import tensorflow as tf

from keras_transformer.decoding.constraints import BOS
from keras_transformer.decoding.step import EncodedSources, Ensemble


def token_log_probabilities(ensemble: Ensemble, source_ids, target_ids):
    """The log-probability of each token of given translations; that of an ensemble is the mean of its models'.

    Args:
        ensemble: An `Ensemble`.
        source_ids: int32 [B,S], eos included, padded behind.
        target_ids: int32 [B,T], eos included, padded behind.

    Returns:
        float32 [B,T], 0 at padding.
    """
    results = [
        tf.gather(logits, target_ids, batch_dims=2) - tf.reduce_logsumexp(logits, axis=-1)
        for logits, _ in EncodedSources(ensemble, source_ids).force(_shifted_right(target_ids))
    ]
    return tf.where(target_ids == 0, 0.0, tf.add_n(results) / len(results))


def memory_attention_weights(ensemble: Ensemble, source_ids, target_ids):
    """How each token of a given translation attends to the source as it is chosen.

    Args:
        ensemble: An `Ensemble`, of whose first model this is; it has N decoder blocks of H heads.
        source_ids: int32 [B,S], eos included, padded behind.
        target_ids: int32 [B,T], eos included, padded behind.

    Returns:
        float32 [B,N,H,T,S].
    """
    _, weights = EncodedSources(ensemble, source_ids).force(_shifted_right(target_ids))[0]
    return tf.stack([tf.cast(layer, tf.float32) for layer in weights], axis=1)


def _shifted_right(target_ids):
    shifted = tf.pad(target_ids[:, :-1], [[0, 0], [1, 0]], constant_values=BOS)
    return tf.where(target_ids == 0, 0, shifted)
