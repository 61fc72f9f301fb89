"""Metrics over real target tokens. In a compiled step they share the loss's work: no second softmax."""

from __future__ import annotations

import keras
from keras import ops

from keras_transformer._checks import check_integer
from keras_transformer.losses import TokenFigures, prepare, token_figures, token_weights


class _TokenMetric(keras.metrics.Mean):
    """Mean of one figure for each real token. `ignore_class` is the label of padding."""

    def __init__(self, ignore_class: int = 0, name=None, dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.ignore_class = check_integer("ignore_class", ignore_class)

    def update_state(self, y_true, y_pred, sample_weight=None):
        labels, logits, real = prepare(y_true, y_pred, self.ignore_class)
        return self.update_from(token_figures(labels, logits), real, sample_weight)

    def update_from(self, figures: TokenFigures, real, sample_weight=None):
        """As `update_state`, for a step that has the figures of its tokens and no logits.

        Args:
            figures: The `TokenFigures` of N = B*T tokens.
            real: Which tokens are no padding, boolean [B,T].
            sample_weight: As of `update_state`.
        """
        weights = ops.cast(real, self.dtype)
        if sample_weight is not None:
            weights = ops.multiply(weights, token_weights(sample_weight, weights))
        # Flat: of a [B,T] update Keras takes the mean over T first, and T is the length with padding.
        return super().update_state(self._values(figures), sample_weight=ops.reshape(weights, (-1,)))

    def get_config(self):
        return {"ignore_class": self.ignore_class, "name": self.name, "dtype": self.dtype}


@keras.saving.register_keras_serializable(package="keras_transformer")
class MaskedAccuracy(_TokenMetric):
    """Share of real target tokens whose label has the highest logit.

    A label that shares the highest logit with another token counts as right.

    Args:
        ignore_class: Label of padding.
        name: Name of the metric.
        dtype: Dtype of the result.

    `update_state` takes labels [B,T], logits [B,T,V] and an optional `sample_weight` [B], [B,1] or [B,T].

    Raises:
        ValueError: If the shapes do not fit.

    Example:
        ```python
        import numpy as np
        from keras_transformer.metrics import MaskedAccuracy

        accuracy = MaskedAccuracy()
        accuracy.update_state(np.array([[2, 1, 0]]), np.array([[[0.0, 0.1, 0.7], [0.9, 0.0, 0.3], [0.0, 1.0, 0.0]]]))
        print(float(accuracy.result()))
        #> 0.5
        ```
    """

    def __init__(self, ignore_class: int = 0, name="accuracy", dtype=None):
        super().__init__(ignore_class, name, dtype)

    def _values(self, figures):
        return ops.greater_equal(figures.label_logit, figures.maximum)


@keras.saving.register_keras_serializable(package="keras_transformer")
class Perplexity(_TokenMetric):
    """exp of the mean negative log-probability of the real target tokens, without label smoothing.

    Args:
        ignore_class: Label of padding.
        name: Name of the metric.
        dtype: Dtype of the result.

    `update_state` takes labels [B,T], logits [B,T,V] and an optional `sample_weight` [B], [B,1] or [B,T].
    `result` is `inf` where the exponential is beyond the dtype.

    Raises:
        ValueError: If the shapes do not fit.

    Example:
        ```python
        import numpy as np
        from keras_transformer.metrics import Perplexity

        perplexity = Perplexity()
        perplexity.update_state(np.array([[5, 3, 0, 0]]), np.zeros((1, 4, 7)))
        print(round(float(perplexity.result()), 4))
        #> 7.0
        ```
    """

    def __init__(self, ignore_class: int = 0, name="perplexity", dtype=None):
        super().__init__(ignore_class, name, dtype)

    def _values(self, figures):
        return figures.log_total - (figures.label_logit - figures.maximum)

    def result(self):
        return ops.exp(super().result())
