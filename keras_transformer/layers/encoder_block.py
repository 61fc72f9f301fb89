"""One layer of the encoder: section 3.1 and the left half of Figure 1 of "Attention Is All You Need"."""

from __future__ import annotations

import keras

from keras_transformer.layers.block import TransformerBlock


@keras.saving.register_keras_serializable(package="keras_transformer")
class EncoderBlock(TransformerBlock):
    """Self-attention and a feed-forward network, each followed by Add & Norm (section 3.1).

    Args:
        num_heads: Number of heads, H.
        intermediate_dim: Width of the feed-forward network, F.
        key_dim: Width of queries and keys in each head, K. Defaults to D / H.
        value_dim: Width of values in each head. Defaults to `key_dim`.
        dropout: Share of each sub-layer's output dropped in training (residual dropout).
        attention_dropout: Share of attention weights dropped in training.
        activation_dropout: Share of the feed-forward network's activations dropped in training.
        activation: Any Keras activation.
        gated: Whether the feed-forward network is gated, see `FeedForward`.
        use_bias: Whether the matrices have a bias beside them.
        normalize_first: Pre-norm instead of the paper's post-norm, see `AddNorm`.
        layer_norm_epsilon: Added to the variance in layer normalisation.
        kernel_initializer: Initializer of all matrices.
        bias_initializer: Initializer of all biases.
        **kwargs: `name`, `dtype` and `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: [B,S,D].
        mask: Boolean [B,S], True at real tokens. Defaults to the Keras mask that `inputs` carries.
        training: Whether to apply dropout.
        return_attention_scores: Whether to return the attention weights as well.

    Returns:
        [B,S,D], carrying the mask that `inputs` carries, else `mask`; with `return_attention_scores=True` always the
        pair `(outputs, weights)`, weights [B,H,S,S].

    Raises:
        ValueError: If an argument is out of range, D is not a multiple of `num_heads` and `key_dim` is not given, or
            the input is not [B,S,D].

    Example:
        ```python
        import keras
        from keras_transformer.layers import EncoderBlock, PositionalEmbedding

        ids = keras.Input((None,), dtype="int32")
        x = PositionalEmbedding(input_dim=8000, output_dim=128)(ids)
        x = EncoderBlock(num_heads=4, intermediate_dim=256, dropout=0.1)(x)
        x = keras.layers.GlobalAveragePooling1D()(x)  # Heeds the mask that x carries.
        classifier = keras.Model(ids, keras.layers.Dense(2, activation="softmax")(x))
        ```
    """

    def build(self, input_shape):
        self._build_width(input_shape, "The input of an EncoderBlock")
        self.self_attention = self._attention("self_attention")
        self.self_attention.build(input_shape)
        self.self_attention_norm = self._add_norm("self_attention_norm")
        self._build_feed_forward()

    def call(self, inputs, mask=None, training=None, return_attention_scores=False):
        outputs, weights = self.self_attention(
            self.self_attention_norm.sublayer_inputs(inputs),
            query_mask=mask,
            return_attention_scores=True,
            training=training,
        )
        x = self.self_attention_norm(inputs, outputs, training=training)
        x = self._apply_feed_forward(x, training=training)
        return (x, weights) if return_attention_scores else x

    def compute_output_spec(self, inputs, mask=None, training=None, return_attention_scores=False):
        specs = self.self_attention.compute_output_spec(inputs, query_mask=mask, return_attention_scores=True)
        return specs if return_attention_scores else specs[0]
