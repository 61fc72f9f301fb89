"""Token embeddings with positions: sections 3.4 and 3.5 of "Attention Is All You Need"."""

from __future__ import annotations

import keras
import numpy as np
from keras import ops

from keras_transformer._checks import (
    check_bool,
    check_choice,
    check_learned_positions,
    check_positive,
    known_integer,
)

POSITIONS = ("sinusoidal", "learned")
SINUSOID_LAYOUTS = ("interleaved", "halves")


@keras.saving.register_keras_serializable(package="keras_transformer")
class PositionalEmbedding(keras.layers.Layer):
    """Embeds token ids, scales by sqrt(D) and adds their positions (sections 3.4 and 3.5).

        PE(pos, 2i) = sin(pos / 10000^(2i/D)),  PE(pos, 2i+1) = cos(pos / 10000^(2i/D))

    Called with `reverse=True` it is the output projection that shares the embedding matrix (section 3.4).

    Args:
        input_dim: Vocabulary size, V.
        output_dim: Model width, D.
        positions: `"sinusoidal"`, for sequences of any length, or `"learned"`.
        max_length: Number of learned positions. Needed for, and only for, `positions="learned"`.
        sinusoid_layout: Order of the columns: `"interleaved"`, sine and cosine in turn, as the paper prints them, or
            `"halves"`, all sines before all cosines. The frequencies are the same.
        scale: Whether to multiply embeddings by sqrt(D).
        mask_zero: Whether id 0 is padding: the output carries the Keras mask `ids != 0`.
        embeddings_initializer: Initializer of the embedding matrix and the learned positions. Defaults to a normal
            distribution of standard deviation D^-0.5, so that scaled embeddings have unit variance.
        **kwargs: `name`, `dtype` and `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: Token ids, [B,T]; with `reverse=True` hidden states, [B,T,D].
        reverse: Whether to project back to the vocabulary.
        start_index: Position of the first token, an integer or a scalar tensor, for step-by-step decoding.

    Returns:
        [B,T,D], or logits [B,T,V] with `reverse=True`, in the compute dtype. The angles of the sinusoids are computed
        in float32 under any dtype policy.

    Raises:
        ValueError: If an argument is out of range, the input's rank does not fit, or a position is past the end of the
            learned ones (`tf.errors.InvalidArgumentError` where TensorFlow first knows the length as a graph runs; what
            XLA compiles knows no errors: there such a position is NaN).

    Example:
        ```python
        import numpy as np
        from keras_transformer.layers import PositionalEmbedding

        embedding = PositionalEmbedding(input_dim=8000, output_dim=512)
        x = embedding(np.array([[11, 12, 13, 14]]))  # 我 爱 水 课
        print(x.shape, embedding(x, reverse=True).shape)
        #> (1, 4, 512) (1, 4, 8000)
        ```
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        positions: str = "sinusoidal",
        max_length: int | None = None,
        sinusoid_layout: str = "interleaved",
        scale: bool = True,
        mask_zero: bool = True,
        embeddings_initializer=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.input_dim = check_positive("input_dim", input_dim)
        self.output_dim = check_positive("output_dim", output_dim)
        self.positions = check_choice("positions", positions, POSITIONS)
        check_learned_positions(positions, max_length)
        self.max_length = None if max_length is None else check_positive("max_length", max_length)
        self.sinusoid_layout = check_choice("sinusoid_layout", sinusoid_layout, SINUSOID_LAYOUTS)
        self.scale = check_bool("scale", scale)
        self.mask_zero = check_bool("mask_zero", mask_zero)
        if embeddings_initializer is None:
            embeddings_initializer = keras.initializers.RandomNormal(stddev=output_dim**-0.5)
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)
        self.supports_masking = True
        self.token_embedding = keras.layers.ReversibleEmbedding(
            self.input_dim,
            self.output_dim,
            embeddings_initializer=self.embeddings_initializer.clone(),
            # Without it the projection back would run in float32 under a mixed policy.
            reverse_dtype=self.compute_dtype,
            dtype=self.dtype_policy,
            name="token_embedding",
        )
        self.token_embedding.supports_masking = True  # The mask is this layer's to make; keeps Keras from warning.

    def build(self, input_shape=None):
        self.token_embedding.build()
        if self.positions == "learned":
            self.position_embeddings = self.add_weight(
                name="position_embeddings",
                shape=(self.max_length, self.output_dim),
                initializer=self.embeddings_initializer.clone(),
            )

    def call(self, inputs, reverse=False, start_index=0):
        _check_rank(inputs, reverse)
        if reverse:
            return self.token_embedding(inputs, reverse=True)
        x = self.token_embedding(inputs)
        if self.scale:
            x = ops.multiply(x, ops.cast(self.output_dim**0.5, x.dtype))
        return ops.add(x, self.position_encoding(ops.shape(inputs)[1], start_index))

    def position_encoding(self, length, start_index=0):
        """What is added at positions `start_index` to `start_index + length - 1`.

        Args:
            length: Number of positions, T, an integer or a scalar tensor.
            start_index: The first position, an integer or a scalar tensor.

        Returns:
            [T,D] in the compute dtype.
        """
        positions = ops.arange(length, dtype="int32") + ops.cast(start_index, "int32")
        if self.positions == "learned":
            return ops.cast(self._learned_positions(positions, start_index, length), self.compute_dtype)
        pairs = (self.output_dim + 1) // 2  # An odd width has a last sine without its cosine.
        frequencies = 10000.0 ** (-2.0 * np.arange(pairs) / self.output_dim)
        angles = ops.cast(positions, "float32")[:, None] * ops.convert_to_tensor(frequencies, dtype="float32")
        if self.sinusoid_layout == "interleaved":
            encoding = ops.reshape(ops.stack([ops.sin(angles), ops.cos(angles)], axis=-1), (-1, 2 * pairs))
        else:
            encoding = ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=-1)
        return ops.cast(encoding[:, : self.output_dim], self.compute_dtype)

    def _learned_positions(self, positions, start_index, length):
        _check_learned(start_index, length, self.max_length)
        there = ops.logical_and(positions >= 0, positions < self.max_length)
        rows = ops.take(self.position_embeddings, ops.where(there, positions, 0), axis=0)
        # XLA drops checks, and would clamp the position.
        return ops.where(there[:, None], rows, float("nan"))

    def compute_mask(self, inputs, previous_mask=None):
        if len(inputs.shape) == 3:  # In reverse: each position depends on itself alone.
            return previous_mask
        return ops.not_equal(inputs, 0) if self.mask_zero else None

    def compute_output_spec(self, inputs, reverse=False, start_index=0):
        _check_rank(inputs, reverse)
        if self.positions == "learned" and not reverse and inputs.shape[1] is not None:
            _check_learned(start_index, inputs.shape[1], self.max_length)
        width = self.input_dim if reverse else self.output_dim
        return keras.KerasTensor((*inputs.shape[:2], width), dtype=self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "input_dim": self.input_dim,
            "output_dim": self.output_dim,
            "positions": self.positions,
            "max_length": self.max_length,
            "sinusoid_layout": self.sinusoid_layout,
            "scale": self.scale,
            "mask_zero": self.mask_zero,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
        }


def _check_rank(inputs, reverse):
    if len(inputs.shape) != (3 if reverse else 2):
        expected = "hidden states [B,T,D] with reverse=True" if reverse else "token ids [B,T]"
        raise ValueError(f"A PositionalEmbedding takes {expected}. Received: shape {tuple(inputs.shape)}")


def _check_learned(start_index, length, max_length):
    """Raises where positions lie outside of the learned ones: at once if that is known, else as the graph runs."""
    message = f"Positions must lie within the {max_length} learned ones (`max_length`)."
    start, count = known_integer("start_index", start_index), known_integer("length", length)
    if start is not None and count is not None:
        if start < 0 or start + count > max_length:
            raise ValueError(f"{message} Received: positions {start} to {start + count - 1}")
    elif keras.backend.backend() == "tensorflow":
        import tensorflow as tf  # keras.ops has no check that a graph makes as it runs.

        end = ops.cast(start_index, "int32") + ops.cast(length, "int32")
        tf.debugging.assert_non_negative(start_index, message=f"{message} Received a start in x:")
        tf.debugging.assert_less_equal(end, max_length, message=f"{message} Received an end in x:")
