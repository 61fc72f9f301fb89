import numpy as np
import pytest

from keras_transformer.layers import AddNorm
from tests import reference

X = np.random.default_rng(1).normal(size=(2, 5, 6)).astype("float32")
Y = np.random.default_rng(2).normal(size=(2, 5, 6)).astype("float32")


def built(**arguments):
    layer = AddNorm(**arguments)
    layer.build(X.shape, Y.shape)
    layer.set_weights([np.linspace(0.5, 2, 6), np.linspace(-1, 1, 6)])
    return layer


def normalized(x, epsilon=1e-6):
    return reference.layer_norm(x.astype("float64"), np.linspace(0.5, 2, 6), np.linspace(-1, 1, 6), epsilon)


def test_post_norm_normalises_the_sum():
    layer = built(epsilon=0.1)
    np.testing.assert_allclose(layer(X, Y), normalized(X + Y, 0.1), atol=1e-5)
    np.testing.assert_array_equal(layer.sublayer_inputs(X), X)


def test_pre_norm_normalises_what_the_sublayer_reads():
    layer = built(normalize_first=True)
    np.testing.assert_allclose(layer.sublayer_inputs(X), normalized(X), atol=1e-5)
    np.testing.assert_allclose(layer(X, Y), X + Y, atol=1e-6)


def test_dropout_acts_on_the_sublayer_only():
    layer = built(dropout=0.5, normalize_first=True)
    added = np.asarray(layer(X, Y, training=True)) - X
    dropped = np.abs(added) < 1e-6
    assert 0.2 < dropped.mean() < 0.8
    np.testing.assert_allclose(added[~dropped], 2 * Y[~dropped], atol=1e-5)
    np.testing.assert_allclose(layer(X, Y), X + Y, atol=1e-6)


def test_user_errors_say_what_was_expected_and_received():
    for name, value in (("dropout", 1), ("epsilon", 0), ("normalize_first", "yes")):
        with pytest.raises(ValueError, match=f"`{name}`.*Received"):
            AddNorm(**{name: value})
    with pytest.raises(ValueError, match="two tensors of one shape.*Received"):
        AddNorm()(X, Y[..., :3])
    with pytest.raises(ValueError, match="two tensors of one shape.*Received"):
        AddNorm()(X)
