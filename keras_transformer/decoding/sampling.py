"""Sampling: tokens drawn at random, by keras-nlp's samplers."""

from __future__ import annotations

import importlib

import tensorflow as tf

from keras_transformer.decoding.constraints import EOS, NEVER, Hypotheses, RowOptions
from keras_transformer.decoding.step import Ensemble
from keras_transformer.decoding.walk import walk


class Sampler:
    """Draws translations; each source gets as many as the largest `n_best`.

    Args:
        ensemble: An `Ensemble`.
        kind: `"random"`, `"top_k"` or `"top_p"`.
        threshold: K or p; None for `"random"`.

    Raises:
        ImportError: If keras-nlp is missing.
    """

    def __init__(self, ensemble: Ensemble, kind: str, threshold=None):
        self._ensemble = ensemble
        samplers = _samplers()
        if kind == "random":
            self._sampler = samplers.RandomSampler(seed=0)
        elif kind == "top_k":
            self._sampler = samplers.TopKSampler(k=min(threshold, ensemble.vocabulary_sizes[1]), seed=0)
        else:
            self._sampler = samplers.TopPSampler(p=threshold, seed=0)

    def seed(self, seed: int) -> None:
        """Begins the stream of random numbers of a seed."""
        self._sampler.seed_generator.state.assign([seed % 2**32, seed >> 32])

    def __call__(self, source_ids, options: RowOptions) -> Hypotheses:
        """As `greedy_search`."""

        def choose(allowed):
            logits = allowed.dense()
            flat = tf.reshape(logits, (-1, logits.shape[-1]))
            stuck = tf.reduce_all(flat == NEVER, axis=-1, keepdims=True)
            flat = tf.where(stuck, tf.where(tf.range(logits.shape[-1]) == EOS, 0.0, NEVER), flat) / options.temperature
            tokens = self._sampler.get_next_token(self._sampler.compute_probabilities(flat))
            shape = tf.shape(logits)[:2]
            return tf.reshape(tf.cast(tokens, tf.int32), shape), tf.reshape(stuck, shape)

        return walk(self._ensemble, source_ids, options, choose, tf.reduce_max(options.n_best))


def _samplers():
    try:
        return importlib.import_module("keras_nlp").samplers
    except ImportError as error:
        raise ImportError(
            f"Sampling needs keras-nlp. `pip install 'keras_transformer[text]'` brings it. Received: {error}"
        ) from error
