import keras
import numpy as np
import pytest

from keras_transformer.layers import PositionalEmbedding
from tests import reference

IDS = np.array([[4, 5, 6, 7], [9, 3, 0, 0]], dtype="int32")


@pytest.mark.parametrize("width", [1, 2, 5, 29, 30])
@pytest.mark.parametrize("layout", ["interleaved", "halves"])
def test_sinusoids_are_the_papers_for_any_width(width, layout):
    """F06."""
    layer = PositionalEmbedding(11, width, sinusoid_layout=layout)
    expected = reference.sinusoids(50, width)
    if layout == "halves":
        expected = np.concatenate([expected[:, 0::2], expected[:, 1::2]], axis=1)
    np.testing.assert_allclose(layer.position_encoding(50), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float32", 1e-3), ("mixed_float16", 2e-3), ("mixed_bfloat16", 1e-2), ("bfloat16", 1e-2)]
)
def test_sinusoids_keep_their_precision_at_far_positions(dtype, tolerance):
    """F07."""
    layer = PositionalEmbedding(11, 64, dtype=dtype)
    encoding = np.asarray(layer.position_encoding(4097), "float64")
    np.testing.assert_allclose(encoding, reference.sinusoids(4097, 64), atol=tolerance)
    assert (encoding[1:] != encoding[:-1]).any(axis=1).all()


def test_output_is_the_scaled_embedding_plus_positions():
    layer = PositionalEmbedding(11, 6)
    table = layer.get_weights()[0] if layer.built else (layer.build(), layer.get_weights()[0])[1]
    expected = table[IDS] * np.sqrt(6) + reference.sinusoids(4, 6)
    np.testing.assert_allclose(layer(IDS), expected, atol=1e-5)
    unscaled = PositionalEmbedding(11, 6, scale=False)
    unscaled.build()
    unscaled.set_weights([table])
    np.testing.assert_allclose(unscaled(IDS), table[IDS] + reference.sinusoids(4, 6), atol=1e-5)


def test_initial_embeddings_have_unit_variance_once_scaled():
    layer = PositionalEmbedding(2000, 64)
    layer.build()
    assert abs(np.std(layer.get_weights()[0]) * 8 - 1) < 0.02


@pytest.mark.parametrize("options", [{}, {"positions": "learned", "max_length": 4}])
@pytest.mark.parametrize("as_tensor", [False, True])
def test_start_index_continues_a_sequence(options, as_tensor):
    layer = PositionalEmbedding(11, 6, **options)
    expected = layer(IDS)
    for i in range(4):
        start = keras.ops.convert_to_tensor(i) if as_tensor else i
        np.testing.assert_allclose(layer(IDS[:, i : i + 1], start_index=start)[:, 0], expected[:, i], atol=1e-6)


def test_learned_positions_end_where_they_end():
    layer = PositionalEmbedding(11, 6, positions="learned", max_length=4)
    assert layer(IDS).shape == (2, 4, 6)
    for length, start in ((5, 0), (1, 4), (2, 3), (1, -1)):
        with pytest.raises(ValueError, match=r"within the 4 learned ones \(`max_length`\).*Received"):
            layer(np.ones((1, length), int), start_index=start)
    with pytest.raises(ValueError, match="within the 4 learned ones"):
        layer(keras.Input((5,), dtype="int32"))
    with pytest.raises(ValueError, match="`start_index` must be a whole number"):
        layer(IDS, start_index=0.5)


def test_learned_positions_end_in_a_graph_of_any_length_too():
    import tensorflow as tf

    layer = PositionalEmbedding(11, 6, positions="learned", max_length=4)
    layer.build()
    embed = tf.function(layer, input_signature=[tf.TensorSpec((None, None), "int32")])
    np.testing.assert_array_equal(embed(IDS), layer(IDS))
    with pytest.raises(tf.errors.InvalidArgumentError, match="within the 4 learned ones"):
        embed(np.ones((1, 5), "int32"))


def test_learned_positions_past_the_end_are_nan_where_xla_drops_the_check():
    import tensorflow as tf

    layer = PositionalEmbedding(11, 6, positions="learned", max_length=4)
    layer.build()
    embed = tf.function(layer, input_signature=[tf.TensorSpec((None, None), "int32")], jit_compile=True)
    output = embed(np.ones((1, 6), "int32"))
    assert np.isfinite(output[:, :4]).all() and np.isnan(output[:, 4:]).all()


def test_reverse_projects_with_the_embedding_matrix():
    layer = PositionalEmbedding(11, 6)
    hidden = np.random.default_rng(1).normal(size=(2, 4, 6)).astype("float32")
    logits = layer(hidden, reverse=True)
    np.testing.assert_allclose(logits, hidden @ layer.get_weights()[0].T, atol=1e-5)
    assert len(layer.weights) == 1


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"], indirect=True)
def test_reverse_computes_in_the_compute_dtype(policy):
    layer = PositionalEmbedding(11, 6)
    logits = layer(layer(IDS), reverse=True)
    assert logits.dtype == keras.config.dtype_policy().compute_dtype


def test_mask_marks_padding_and_survives_the_projection_back():
    layer = PositionalEmbedding(11, 6)
    x = layer(IDS)
    np.testing.assert_array_equal(x._keras_mask, IDS != 0)
    np.testing.assert_array_equal(layer(x, reverse=True)._keras_mask, IDS != 0)
    assert getattr(PositionalEmbedding(11, 6, mask_zero=False)(IDS), "_keras_mask", None) is None


def test_user_errors_say_what_was_expected_and_received():
    for name, value in (
        ("input_dim", 0),
        ("output_dim", 2.5),
        ("positions", "rotary"),
        ("max_length", 5),
        ("sinusoid_layout", "thirds"),
        ("scale", "no"),
        ("mask_zero", None),
    ):
        with pytest.raises(ValueError, match=f"`{name}`.*Received"):
            PositionalEmbedding(**{"input_dim": 11, "output_dim": 6, name: value})
    with pytest.raises(ValueError, match="`max_length` is needed.*Received"):
        PositionalEmbedding(11, 6, positions="learned")
    layer = PositionalEmbedding(11, 6)
    with pytest.raises(ValueError, match=r"token ids \[B,T\].*Received"):
        layer(IDS[0])
    with pytest.raises(ValueError, match=r"hidden states \[B,T,D\].*Received"):
        layer(IDS, reverse=True)
