"""Residual connection and layer normalisation: sections 3.1 and 5.4 of "Attention Is All You Need"."""

from __future__ import annotations

import keras
from keras import ops

from keras_transformer._checks import check_above_zero, check_bool, check_rate


@keras.saving.register_keras_serializable(package="keras_transformer")
class AddNorm(keras.layers.Layer):
    """Joins a sub-layer's output to its input: the box "Add & Norm" of Figure 1.

    Post-norm, as in the paper: `LayerNorm(x + Dropout(Sublayer(x)))`. Pre-norm (Xiong et al., 2020), with
    `normalize_first=True`: `x + Dropout(Sublayer(LayerNorm(x)))`. Written so that one line serves both:

        x = add_norm(x, sublayer(add_norm.sublayer_inputs(x)))

    Args:
        dropout: Share of the sub-layer's output dropped in training (section 5.4, residual dropout).
        normalize_first: Whether to normalise what the sub-layer reads (pre-norm) instead of the sum.
        epsilon: Added to the variance.
        **kwargs: `name`, `dtype` and `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: What the sub-layer stands beside, [B,T,D].
        sublayer_outputs: The sub-layer's output, [B,T,D].
        before_sublayer: What `sublayer_inputs` says, which is the readable way to ask for it.
        training: Whether to apply dropout.

    Returns:
        [B,T,D]. The Keras mask of `inputs` passes through.

    Raises:
        ValueError: If an argument is out of range or the two shapes differ.

    Example:
        ```python
        import numpy as np
        from keras_transformer.layers import AddNorm, FeedForward

        x = np.random.normal(size=(1, 4, 512))
        print(AddNorm(dropout=0.1)(x, FeedForward(2048)(x)).shape)
        #> (1, 4, 512)
        ```
    """

    def __init__(self, dropout: float = 0.0, normalize_first: bool = False, epsilon: float = 1e-6, **kwargs):
        super().__init__(**kwargs)
        self.dropout = check_rate("dropout", dropout)
        self.normalize_first = check_bool("normalize_first", normalize_first)
        self.epsilon = check_above_zero("epsilon", epsilon)
        self.supports_masking = True
        self._dropout = keras.layers.Dropout(dropout, dtype=self.dtype_policy)
        self.layer_norm = _LayerNormalization(epsilon=epsilon, dtype=self.dtype_policy, name="layer_norm")

    def build(self, inputs_shape, sublayer_outputs_shape=None):
        self.layer_norm.build(inputs_shape)

    def sublayer_inputs(self, inputs):
        """What the sub-layer reads: `inputs`, normalised if `normalize_first`. [B,T,D] -> [B,T,D]."""
        # A call of this layer, not of layer_norm: a functional model that is saved keeps the two calls one layer.
        return self(inputs, before_sublayer=True) if self.normalize_first else inputs

    def call(self, inputs, sublayer_outputs=None, before_sublayer=False, training=None):
        if before_sublayer:
            return self.layer_norm(inputs)
        _check_shapes(inputs, sublayer_outputs)
        x = ops.add(inputs, self._dropout(sublayer_outputs, training=training))
        return x if self.normalize_first else self.layer_norm(x)

    def compute_output_spec(self, inputs, sublayer_outputs=None, before_sublayer=False, training=None):
        if not before_sublayer:
            _check_shapes(inputs, sublayer_outputs)
        return keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "dropout": self.dropout,
            "normalize_first": self.normalize_first,
            "epsilon": self.epsilon,
        }


class _LayerNormalization(keras.layers.LayerNormalization):
    """Keras' layer of the last axis, in fewer operations: each counts in a step of decoding."""

    def call(self, inputs):
        x = ops.cast(inputs, keras.backend.result_type(inputs.dtype, "float32"))
        centred = ops.subtract(x, ops.mean(x, axis=-1, keepdims=True))
        variance = ops.mean(ops.square(centred), axis=-1, keepdims=True)
        scaled = ops.multiply(centred, ops.rsqrt(ops.add(variance, self.epsilon)))
        gamma, beta = (ops.cast(weight, x.dtype) for weight in (self.gamma, self.beta))
        return ops.cast(ops.add(ops.multiply(scaled, gamma), beta), self.compute_dtype)


def _check_shapes(inputs, sublayer_outputs):
    shapes = [tuple(getattr(tensor, "shape", ())) for tensor in (inputs, sublayer_outputs)]
    differing = [pair for pair in zip(*shapes, strict=False) if None not in pair and pair[0] != pair[1]]
    if not shapes[0] or len(shapes[0]) != len(shapes[1]) or differing:
        raise ValueError(
            "AddNorm is called with two tensors of one shape, `layer(inputs, sublayer_outputs)`. "
            f"Received: shapes {shapes[0]} and {shapes[1]}"
        )
