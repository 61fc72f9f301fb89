import numpy as np
import pytest
import scipy.special

from keras_transformer.layers import FeedForward

X = np.random.default_rng(1).normal(size=(2, 5, 6)).astype("float32")
ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": scipy.special.expit,
    "silu": lambda x: x * scipy.special.expit(x),
    "gelu": lambda x: x * 0.5 * (1 + scipy.special.erf(x / np.sqrt(2))),
    "linear": lambda x: x,
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("gated", [False, True])
def test_output_is_the_papers_formula(activation, gated):
    layer = FeedForward(8, activation, gated=gated, bias_initializer="normal")
    output = layer(X)
    w1, b1, w2, b2 = (np.asarray(weight, "float64") for weight in layer.get_weights())
    hidden = X @ w1 + b1
    expected = ACTIVATIONS[activation](hidden[..., :8])
    if gated:
        assert w1.shape == (6, 16)
        expected = expected * hidden[..., 8:]
    np.testing.assert_allclose(output, expected @ w2 + b2, atol=2e-3 if activation == "gelu" else 1e-5)


def test_dropout_acts_inside_in_training_only():
    layer = FeedForward(64, dropout=0.5)
    expected = layer(X)
    np.testing.assert_array_equal(layer(X, training=False), expected)
    assert np.abs(np.asarray(layer(X, training=True)) - np.asarray(expected)).max() > 1e-3


def test_user_errors_say_what_was_expected_and_received():
    for name, value in (("intermediate_dim", 0), ("dropout", -0.1), ("gated", 1), ("use_bias", None)):
        with pytest.raises(ValueError, match=f"`{name}`.*Received"):
            FeedForward(**{"intermediate_dim": 8, name: value})
    with pytest.raises(ValueError, match=r"\[batch, length, width\].*Received"):
        FeedForward(8)(X[0])
