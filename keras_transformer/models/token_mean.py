"""The loss that `fit` and `evaluate` report, weighted by tokens."""

from __future__ import annotations

import keras


class TokenMean(keras.metrics.Mean):
    """Mean over batches, each weighted by its number of real tokens.

    Keras weighs the batches of an epoch by their rows, so that the loss of an epoch would depend on how sentences fell
    into batches.
    """

    def __init__(self, name="loss", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self._tokens = None

    def weigh(self, tokens):
        """Gives the next value its weight; called in the same step, before `update_state`."""
        self._tokens = tokens

    def update_state(self, values, sample_weight=None):
        tokens, self._tokens = self._tokens, None
        return super().update_state(values, sample_weight=sample_weight if tokens is None else tokens)
