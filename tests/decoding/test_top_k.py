import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.decoding.top_k import top_k


@pytest.mark.parametrize("size", [7, 80, 97, 250, 800])
@pytest.mark.parametrize("k", [1, 3, 7])
@pytest.mark.parametrize("jit_compile", [False, True])
def test_values_and_indices_are_those_of_tensorflow_with_many_ties(rng, size, k, jit_compile):
    """Rounded, so that most values are equal to others, and with minus infinity, as what is forbidden has."""
    values = np.round(rng.normal(size=(5, 3, size)) * 2).astype("float32") + 0.0  # XLA puts -0 below 0.
    values[rng.random(values.shape) < 0.3] = -np.inf
    values[0, 0] = -np.inf
    function = tf.function(lambda values: top_k(values, k), jit_compile=jit_compile)
    for found, expected in zip(function(tf.constant(values)), tf.math.top_k(values, k), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_number_may_be_a_tensor_and_exceed_the_blocks(rng):
    """Of 800 values there are 20 blocks."""
    values = tf.constant(rng.normal(size=(2, 3, 800)).astype("float32"))
    function = tf.function(top_k, input_signature=[tf.TensorSpec([None, None, 800]), tf.TensorSpec([], tf.int32)])
    for k in (1, 20, 21, 800):
        for found, expected in zip(function(values, k), tf.math.top_k(values, k), strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("size", [97, 800])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.999])
def test_banned_values_count_as_minus_infinity(rng, size, share):
    """With many ties, and with fewer left than are wanted: the indices of minus infinity may be any."""
    values = np.round(rng.normal(size=(5, 3, size)) * 2).astype("float32") + 0.0
    banned = rng.random(size) < share
    values[:, :, :2] = values.max() + 1  # The largest of all.
    banned[:2] = share > 0
    function = tf.function(
        top_k,
        input_signature=[
            tf.TensorSpec(shape, dtype)
            for shape, dtype in (([None, None, size], tf.float32), ([], tf.int32), ([size], tf.bool))
        ],
    )
    for k in (1, 5, 40):
        found, indices = function(values, k, banned)
        expected, places = tf.math.top_k(tf.where(banned, -np.inf, values), k)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(
            np.where(np.isfinite(expected), indices, 0), np.where(np.isfinite(expected), places, 0)
        )
