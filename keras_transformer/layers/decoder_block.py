"""One layer of the decoder: section 3.1 and the right half of Figure 1 of "Attention Is All You Need"."""

from __future__ import annotations

from typing import NamedTuple

import keras
from keras import ops

from keras_transformer._checks import check_positive, check_sequence_shape, known_integer
from keras_transformer.layers.block import TransformerBlock
from keras_transformer.layers.multi_head_attention import AttentionCache
from keras_transformer.layers.projection import leading


class DecoderCache(NamedTuple):
    """What a `DecoderBlock` keeps from step to step. With beams of W hypotheses, B*W rows decode B sources.

    Attributes:
        target: Keys and values of the positions decoded so far, for B*W rows. Reorder its rows when beams change.
        memory: Keys and values of the encoder's output, for B sources: projected once, neither copied nor reordered.
    """

    target: AttentionCache
    memory: AttentionCache


@keras.saving.register_keras_serializable(package="keras_transformer")
class DecoderBlock(TransformerBlock):
    """Masked self-attention, attention over the encoder's output and a feed-forward network (section 3.1).

    Each is followed by Add & Norm. No output depends on a later position of `inputs`.

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
        inputs: The target side, [B,T,D].
        memory: The encoder's output, [B,S,width of the encoder]. A separate argument: `layer([inputs, memory])` is
            refused.
        inputs_mask: Boolean [B,T], True at real target tokens. Defaults to the Keras mask that `inputs` carries.
        memory_mask: Boolean [B,S], True at real source tokens. Defaults to the Keras mask that `memory` carries.
        training: Whether to apply dropout.
        return_attention_scores: Whether to return the attention weights as well.

    Returns:
        [B,T,D], carrying the mask of `inputs`; with `return_attention_scores=True` always the triple `(outputs,
        self_attention_weights, memory_attention_weights)`, weights [B,H,T,T] and [B,H,T,S].

    Raises:
        ValueError: If an argument is out of range, D is not a multiple of `num_heads` and `key_dim` is not given, or
            the inputs are not [B,T,D] and [B,S,width].

    Example:
        ```python
        import numpy as np
        from keras_transformer.layers import DecoderBlock

        block = DecoderBlock(num_heads=8, intermediate_dim=2048)
        target, memory = np.random.normal(size=(1, 5, 512)), np.random.normal(size=(1, 4, 512))
        print(block(target, memory, memory_mask=np.array([[True, True, True, False]])).shape)
        #> (1, 5, 512)
        ```
    """

    def build(self, inputs_shape, memory_shape=None):
        _check_shapes(inputs_shape, memory_shape)
        self._build_width(inputs_shape, "`inputs`")
        self.self_attention = self._attention("self_attention")
        self.self_attention.build(inputs_shape)
        self.self_attention_norm = self._add_norm("self_attention_norm")
        self.memory_attention = self._attention("memory_attention")
        self.memory_attention.build(inputs_shape, memory_shape)
        self.memory_attention_norm = self._add_norm("memory_attention_norm")
        self._build_feed_forward()

    def call(
        self, inputs, memory=None, inputs_mask=None, memory_mask=None, training=None, return_attention_scores=False
    ):
        _check_shapes(getattr(inputs, "shape", None), getattr(memory, "shape", None))

        def attend_to_self(x):
            return self.self_attention(
                x, query_mask=inputs_mask, use_causal_mask=True, return_attention_scores=True, training=training
            )

        def attend_to_memory(x):
            return self.memory_attention(
                x, memory, value_mask=memory_mask, return_attention_scores=True, training=training
            )

        x, weights = self._forward(inputs, attend_to_self, attend_to_memory, training)
        return (x, *weights) if return_attention_scores else x

    def empty_cache(self, memory, length: int = 0, beam_width: int = 1) -> DecoderCache:
        """Makes the cache that `step` starts from; projects the encoder's output, once.

        Args:
            memory: The encoder's output, [B,S,width of the encoder].
            length: 0 for a cache that grows, else its fixed length, see `MultiHeadAttention.empty_cache`.
            beam_width: Hypotheses for each source, W, an integer or a scalar tensor.

        Returns:
            A `DecoderCache` for B*W rows.
        """
        _checked_width(beam_width)
        if not self.built:
            raise ValueError(f"A DecoderBlock must be built before it has a cache. Received: layer '{self.name}'")
        rows = ops.shape(memory)[0] * beam_width
        return DecoderCache(self.self_attention.empty_cache(rows, length), self.memory_attention.project(memory))

    def step(
        self, inputs, cache: DecoderCache, index=None, memory_mask=None, inputs_mask=None, beam_width: int | None = None
    ):
        """The outputs at the next T positions, as `call` would give them for the whole target. No dropout.

        Args:
            inputs: The next positions, [B*W,T,D], the W hypotheses of a source in a row; T is 1 in token-by-token
                decoding.
            cache: What the step before returned, or `empty_cache`.
            index: Position of the first of `inputs` for a cache of fixed length; None for a cache that grows.
            memory_mask: Boolean [B,S], True at real source tokens. A mask that `memory` carried is not remembered.
            inputs_mask: Boolean [B*W,length of the returned cache], True at real target tokens.
            beam_width: Hypotheses for each source, W, an integer or a scalar tensor. None for what follows from the
                shapes, which takes longer if it has to be found in each step.

        Returns:
            The triple `(outputs, memory_attention_weights, cache)`: [B*W,T,D], weights [B,H,W*T,S], the new cache.
        """
        target, width = cache.target, _checked_width(beam_width)

        def attend_to_self(x):
            nonlocal target
            outputs, weights, target = self.self_attention.step(x, target, index, inputs_mask)
            return outputs, weights

        def attend_to_memory(x):
            # The hypotheses of a source are queries side by side, so that all of them read one copy of its memory.
            if width == 1:
                return self.memory_attention.attend(x, cache.memory, memory_mask)
            is_known = beam_width is not None and x.shape[1] is not None
            sizes = (-1, beam_width * x.shape[1]) if is_known else (ops.shape(cache.memory.key)[0], -1)
            queries = ops.reshape(x, (*sizes, x.shape[-1]))
            outputs, weights = self.memory_attention.attend(queries, cache.memory, memory_mask)
            return ops.reshape(outputs, (*leading(x), x.shape[-1])), weights

        x, (_, weights) = self._forward(inputs, attend_to_self, attend_to_memory)
        return x, weights, DecoderCache(target, cache.memory)

    def _forward(self, x, attend_to_self, attend_to_memory, training=False):
        """The block's order of sub-layers; `call` and `step` differ in how they attend."""
        outputs, self_weights = attend_to_self(self.self_attention_norm.sublayer_inputs(x))
        x = self.self_attention_norm(x, outputs, training=training)
        outputs, memory_weights = attend_to_memory(self.memory_attention_norm.sublayer_inputs(x))
        x = self.memory_attention_norm(x, outputs, training=training)
        return self._apply_feed_forward(x, training), (self_weights, memory_weights)

    def compute_output_spec(
        self, inputs, memory=None, inputs_mask=None, memory_mask=None, training=None, return_attention_scores=False
    ):
        _check_shapes(getattr(inputs, "shape", None), getattr(memory, "shape", None))
        outputs, weights = self.self_attention.compute_output_spec(
            inputs, query_mask=inputs_mask, return_attention_scores=True
        )
        _, memory_weights = self.memory_attention.compute_output_spec(
            inputs, memory, value_mask=memory_mask, return_attention_scores=True
        )
        return (outputs, weights, memory_weights) if return_attention_scores else outputs


def _checked_width(beam_width):
    """The beam width as an integer, or None where it is a tensor, or unknown."""
    width = None if beam_width is None else known_integer("beam_width", beam_width)
    return None if width is None else check_positive("beam_width", width)


def _check_shapes(inputs_shape, memory_shape):
    check_sequence_shape("`inputs` of a DecoderBlock, called as `layer(inputs, memory)`,", inputs_shape)
    check_sequence_shape("`memory` of a DecoderBlock, called as `layer(inputs, memory)`,", memory_shape)
