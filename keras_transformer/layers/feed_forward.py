"""Position-wise feed-forward network: section 3.3 of "Attention Is All You Need"."""

from __future__ import annotations

import keras
from keras import ops

from keras_transformer._checks import check_bool, check_positive, check_rate, check_sequence_shape
from keras_transformer.layers.projection import leading, positions, projection


@keras.saving.register_keras_serializable(package="keras_transformer")
class FeedForward(keras.layers.Layer):
    """Two linear maps with an activation between, the same at every position (section 3.3, formula 2).

        FFN(x) = activation(x W1 + b1) W2 + b2

    With `gated=True` a second map multiplies the activated one (GLU family, Shazeer 2020): `"sigmoid"` gives GLU,
    `"relu"` ReGLU, `"gelu"` GEGLU, `"silu"` SwiGLU, `"linear"` the bilinear form.

        FFN(x) = (activation(x W1 + b1) * (x V + c)) W2 + b2

    Args:
        intermediate_dim: Width between the two maps, F.
        activation: Any Keras activation.
        gated: Whether to gate. W1 and V are then one matrix, [D,2F], W1 first.
        dropout: Share of the activations dropped in training.
        use_bias: Whether the maps add a bias.
        kernel_initializer: Initializer of the matrices.
        bias_initializer: Initializer of the biases.
        **kwargs: `name`, `dtype` and `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: [B,T,D].
        training: Whether to apply dropout.

    Returns:
        [B,T,D]. A Keras mask passes through: each position depends on itself alone.

    Raises:
        ValueError: If an argument is out of range or the input is not [B,T,D].

    Example:
        ```python
        import numpy as np
        from keras_transformer.layers import FeedForward

        feed_forward = FeedForward(intermediate_dim=2048)
        print(feed_forward(np.random.normal(size=(1, 4, 512))).shape)
        #> (1, 4, 512)
        ```
    """

    def __init__(
        self,
        intermediate_dim: int,
        activation="relu",
        gated: bool = False,
        dropout: float = 0.0,
        use_bias: bool = True,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.intermediate_dim = check_positive("intermediate_dim", intermediate_dim)
        self.activation = keras.activations.get(activation)
        self.gated = check_bool("gated", gated)
        self.dropout = check_rate("dropout", dropout)
        self.use_bias = check_bool("use_bias", use_bias)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.supports_masking = True
        self._dropout = keras.layers.Dropout(dropout, dtype=self.dtype_policy)

    def build(self, input_shape):
        check_sequence_shape("The input of a FeedForward layer", input_shape)
        width = input_shape[-1]
        self.intermediate_projection = projection(self, "intermediate", width, self.intermediate_dim * (1 + self.gated))
        self.output_projection = projection(self, "output", self.intermediate_dim, width)

    def call(self, inputs, training=None):
        x = self.intermediate_projection(positions(inputs))
        if self.gated:
            x, gate = ops.split(x, 2, axis=-1)
            x = ops.multiply(self.activation(x), gate)
        else:
            x = self.activation(x)
        x = self.output_projection(self._dropout(x, training=training))
        return ops.reshape(x, (*leading(inputs), inputs.shape[-1]))

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            "intermediate_dim": self.intermediate_dim,
            "activation": keras.activations.serialize(self.activation),
            "gated": self.gated,
            "dropout": self.dropout,
            "use_bias": self.use_bias,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
        }
