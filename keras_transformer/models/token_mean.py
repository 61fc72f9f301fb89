"""The loss that `fit` and `evaluate` report, weighted by tokens."""

from __future__ import annotations

import threading

import keras


@keras.saving.register_keras_serializable(package="keras_transformer")
class TokenMean(keras.metrics.Mean):
    """Mean over batches, each weighted by its number of real tokens.

    Keras weighs the batches of an epoch by their rows, so that the loss of an epoch would depend on how sentences fell
    into batches.
    """

    def __init__(self, name="loss", dtype=None):
        super().__init__(name=name, dtype=dtype)
        # Under MirroredStrategy each replica is a thread, and they take turns within a step.
        self._next = threading.local()

    def weigh(self, tokens):
        """Gives the next value its weight; called in the same step, before `update_state`."""
        self._next.tokens = tokens

    def update_state(self, values, sample_weight=None):
        tokens, self._next.tokens = getattr(self._next, "tokens", None), None
        return super().update_state(values, sample_weight=sample_weight if tokens is None else tokens)
