"""Gradient accumulation whose mean is over tokens."""

from __future__ import annotations

import keras
from keras import ops


class TokenAccumulation:
    """Makes Keras' gradient accumulation weigh batches by their real tokens.

    Keras averages the gradients of `gradient_accumulation_steps` batches, so that a token in a batch of few would count
    for more than one in a batch of many. Here, with c_i tokens in batch i, the gradient of batch i counts
    c_i / (c_1 + ... + c_n): the update is that of one batch with all the sentences. For one replica: Keras itself
    cannot accumulate gradients on several.

    Args:
        optimizer: A built optimizer with `gradient_accumulation_steps`. The tokens counted so far become one of its
            variables, saved with it.
    """

    def __init__(self, optimizer):
        self._optimizer = optimizer
        earlier = [variable for variable in optimizer.variables if variable.name == "accumulated_tokens"]
        self._tokens = (  # A model may be compiled anew with the same optimizer.
            earlier[0]
            if earlier
            else optimizer.add_variable((), name="accumulated_tokens", aggregation="only_first_replica")
        )

    def weigh(self, loss, tokens):
        """The loss of a batch, with its value as it is and its gradient weighted; called once for each batch.

        Args:
            loss: Mean over the tokens of the batch, a scalar.
            tokens: Number of the tokens, a float32 scalar.
        """
        steps = self._optimizer.gradient_accumulation_steps
        is_first = ops.equal(self._optimizer._iterations % steps, 0)
        before = ops.where(is_first, 0.0, ops.convert_to_tensor(self._tokens))
        total = before + tokens
        # What is accumulated is a mean already, over the tokens before; it becomes its part of the mean over all. So
        # the sum needs no knowledge of the batches to come.
        for gradient in self._optimizer._accumulated_gradients:
            gradient.assign(gradient * (before / ops.maximum(total, 1.0)))
        self._tokens.assign(total)
        weight = ops.cast(steps * tokens / ops.maximum(total, 1.0), loss.dtype)  # Keras divides by steps.
        value = ops.stop_gradient(loss)
        return value + (loss - value) * weight


def accumulation_of(optimizer) -> TokenAccumulation | None:
    """A `TokenAccumulation` for an optimizer that accumulates gradients, else None; None on other backends, too."""
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)  # Of a LossScaleOptimizer.
    if keras.backend.backend() != "tensorflow" or not getattr(optimizer, "gradient_accumulation_steps", None):
        return None
    return TokenAccumulation(optimizer)
