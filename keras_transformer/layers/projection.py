"""The linear map that every other layer is made of."""

from __future__ import annotations

import keras
from keras import ops


def projection(layer, name, input_width, units):
    """A built `keras.layers.Dense` with the bias, initializers and dtype policy of `layer`, [...,input_width] ->
    [...,units].
    """
    dense = keras.layers.Dense(
        units,
        use_bias=layer.use_bias,
        # A clone each: an initializer instance draws the same numbers every time it is called.
        kernel_initializer=layer.kernel_initializer.clone(),
        bias_initializer=layer.bias_initializer.clone(),
        dtype=layer.dtype_policy,
        name=name,
    )
    dense.build((None, None, input_width))
    return dense


def positions(x):
    """[B,T,D] -> [B*T,D], as a `Dense` layer is best called: of three axes it is a dozen operations more, which in a
    step of decoding take longer than the product.
    """
    return ops.reshape(x, (-1, x.shape[-1]))


def leading(sequence):
    """The sizes B and T of [B,T,any width], to reshape to: constants where T is known, as in a step of decoding."""
    return (-1, sequence.shape[1]) if sequence.shape[1] else tuple(ops.shape(sequence)[:2])
