"""What the encoder's and the decoder's blocks have in common: their arguments and how they make their parts."""

from __future__ import annotations

import keras

from keras_transformer._checks import (
    check_above_zero,
    check_bool,
    check_positive,
    check_rate,
    check_sequence_shape,
)
from keras_transformer.layers.add_norm import AddNorm
from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.layers.multi_head_attention import MultiHeadAttention


class TransformerBlock(keras.layers.Layer):
    """Base class of `EncoderBlock` and `DecoderBlock`, which document its arguments."""

    def __init__(
        self,
        num_heads: int,
        intermediate_dim: int,
        key_dim: int | None = None,
        value_dim: int | None = None,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        activation="relu",
        gated: bool = False,
        use_bias: bool = True,
        normalize_first: bool = False,
        layer_norm_epsilon: float = 1e-6,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads = check_positive("num_heads", num_heads)
        self.intermediate_dim = check_positive("intermediate_dim", intermediate_dim)
        self.key_dim = None if key_dim is None else check_positive("key_dim", key_dim)
        self.value_dim = None if value_dim is None else check_positive("value_dim", value_dim)
        self.dropout = check_rate("dropout", dropout)
        self.attention_dropout = check_rate("attention_dropout", attention_dropout)
        self.activation_dropout = check_rate("activation_dropout", activation_dropout)
        self.activation = keras.activations.get(activation)
        self.gated = check_bool("gated", gated)
        self.use_bias = check_bool("use_bias", use_bias)
        self.normalize_first = check_bool("normalize_first", normalize_first)
        self.layer_norm_epsilon = check_above_zero("layer_norm_epsilon", layer_norm_epsilon)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.supports_masking = True

    def _build_width(self, shape, name):
        check_sequence_shape(name, shape)
        self._width = shape[-1]
        if self.key_dim is None and self._width % self.num_heads:
            raise ValueError(
                f"Without `key_dim`, the width of the input must be a multiple of `num_heads`. "
                f"Received: width {self._width}, num_heads={self.num_heads}"
            )

    def _attention(self, name):
        return MultiHeadAttention(
            self.num_heads,
            self.key_dim or self._width // self.num_heads,
            self.value_dim,
            dropout=self.attention_dropout,
            use_bias=self.use_bias,
            # Clones: an initializer instance draws the same numbers every time it is called.
            kernel_initializer=self.kernel_initializer.clone(),
            bias_initializer=self.bias_initializer.clone(),
            dtype=self.dtype_policy,
            name=name,
        )

    def _add_norm(self, name):
        add_norm = AddNorm(
            self.dropout, self.normalize_first, self.layer_norm_epsilon, dtype=self.dtype_policy, name=name
        )
        shape = (None, None, self._width)
        add_norm.build(shape, shape)
        return add_norm

    def _build_feed_forward(self):
        self.feed_forward = FeedForward(
            self.intermediate_dim,
            self.activation,
            gated=self.gated,
            dropout=self.activation_dropout,
            use_bias=self.use_bias,
            kernel_initializer=self.kernel_initializer.clone(),
            bias_initializer=self.bias_initializer.clone(),
            dtype=self.dtype_policy,
            name="feed_forward",
        )
        self.feed_forward.build((None, None, self._width))
        self.feed_forward_norm = self._add_norm("feed_forward_norm")

    def _apply_feed_forward(self, x, training=None):
        outputs = self.feed_forward(self.feed_forward_norm.sublayer_inputs(x), training=training)
        return self.feed_forward_norm(x, outputs, training=training)

    def compute_output_shape(self, inputs_shape, *other_shapes):
        return inputs_shape

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "intermediate_dim": self.intermediate_dim,
            "key_dim": self.key_dim,
            "value_dim": self.value_dim,
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "activation_dropout": self.activation_dropout,
            "activation": keras.activations.serialize(self.activation),
            "gated": self.gated,
            "use_bias": self.use_bias,
            "normalize_first": self.normalize_first,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
        }
