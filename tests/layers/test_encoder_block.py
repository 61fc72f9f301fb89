import keras
import numpy as np
import pytest

from keras_transformer.layers import EncoderBlock, PositionalEmbedding
from tests import reference

X = np.random.default_rng(1).normal(size=(2, 5, 8)).astype("float32")
MASK = np.array([[True] * 5, [True, True, True, False, False]])


@pytest.mark.parametrize("normalize_first", [False, True])
def test_output_is_the_composition_of_figure_1(normalize_first):
    block = EncoderBlock(2, 16, normalize_first=normalize_first, bias_initializer="normal")
    output, weights = block(X, mask=MASK, return_attention_scores=True)
    first, second = (
        lambda x, norm=norm: reference.layer_norm(x, *(np.asarray(w, "float64") for w in norm.get_weights()), 1e-6)
        for norm in (block.self_attention_norm, block.feed_forward_norm)
    )
    allowed = MASK[:, None, :]
    if normalize_first:
        attended, expected_weights = reference.multi_head_attention(block.self_attention, first(X), allowed=allowed)
        x = X + attended
        expected = x + np.asarray(block.feed_forward(second(x)))
    else:
        attended, expected_weights = reference.multi_head_attention(block.self_attention, X, allowed=allowed)
        x = first(X + attended)
        expected = second(x + np.asarray(block.feed_forward(x)))
    np.testing.assert_allclose(output, expected, atol=1e-5)
    np.testing.assert_allclose(weights, expected_weights, atol=1e-6)


def test_carried_and_explicit_masks_agree():
    """F04."""
    ids = np.array([[4, 5, 6, 7, 8], [9, 3, 4, 0, 0]])
    embedding, block = PositionalEmbedding(11, 8), EncoderBlock(2, 16)
    x = embedding(ids)
    output = block(x)
    explicit = block(np.asarray(x), mask=ids != 0)
    np.testing.assert_array_equal(output, explicit)
    np.testing.assert_array_equal(output._keras_mask, explicit._keras_mask)
    assert np.abs(np.asarray(output) - np.asarray(block(np.asarray(x)))).max() > 1e-3
    inputs = keras.Input((None,), dtype="int32")
    model = keras.Model(inputs, block(embedding(inputs)))
    np.testing.assert_allclose(model.predict(ids, verbose=0), output, atol=1e-6)


def test_padding_changes_no_real_position():
    block = EncoderBlock(2, 16)
    padded = np.concatenate([X, np.full((2, 20, 8), 7.0, "float32")], axis=1)
    output = block(padded, mask=np.pad(MASK, ((0, 0), (0, 20))))
    np.testing.assert_allclose(np.asarray(output)[:, :5][MASK], np.asarray(block(X, mask=MASK))[MASK], atol=1e-5)


def test_width_that_no_head_count_divides_needs_key_dim():
    """F06."""
    with pytest.raises(ValueError, match=r"multiple of `num_heads`.*Received: width 30, num_heads=4"):
        EncoderBlock(4, 16)(np.zeros((1, 2, 30), "float32"))
    assert EncoderBlock(4, 16, key_dim=7)(np.zeros((1, 2, 30), "float32")).shape == (1, 2, 30)


def test_user_errors_say_what_was_expected_and_received():
    for name, value in (
        ("num_heads", 0),
        ("intermediate_dim", -1),
        ("key_dim", 0),
        ("value_dim", "8"),
        ("dropout", 1.0),
        ("attention_dropout", 2),
        ("activation_dropout", -0.5),
        ("layer_norm_epsilon", 0.0),
        ("normalize_first", 1),
        ("gated", "swiglu"),
        ("use_bias", None),
    ):
        with pytest.raises(ValueError, match=f"`{name}`.*Received"):
            EncoderBlock(**{"num_heads": 2, "intermediate_dim": 16, name: value})
    with pytest.raises(ValueError, match=r"\[batch, length, width\].*Received"):
        EncoderBlock(2, 16)(X[0])


CLASSIFIER = """
import keras, numpy as np, keras_transformer
model = keras.models.load_model("classifier.keras")
data = np.load("data.npz")
np.testing.assert_array_equal(model.predict(data["ids"], verbose=0), data["expected"])
print("equal")
"""


def test_text_classifier_from_our_layers_trains_saves_and_reloads(tmp_path, run_python):
    """F05, F10: a foreign model, which learns whether 3 stands anywhere in the text."""
    rng = np.random.default_rng(1)
    ids = rng.integers(4, 20, (256, 12)) * (np.arange(12) < rng.integers(4, 13, (256, 1)))
    labels = rng.integers(0, 2, 256)
    ids[labels == 1, rng.integers(0, 4, 256)[labels == 1]] = 3
    inputs = keras.Input((None,), dtype="int32")
    x = PositionalEmbedding(20, 16)(inputs)
    x = EncoderBlock(num_heads=2, intermediate_dim=32)(x)
    x = keras.layers.GlobalAveragePooling1D()(x)
    model = keras.Model(inputs, keras.layers.Dense(2, activation="softmax")(x))
    model.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])
    history = model.fit(ids, labels, epochs=8, batch_size=32, verbose=0)
    assert history.history["accuracy"][-1] > 0.95
    short, padded = np.array([[5, 3, 7]]), np.array([[5, 3, 7, 0, 0]])
    np.testing.assert_allclose(model.predict(short, verbose=0), model.predict(padded, verbose=0), atol=1e-6)
    model.save(tmp_path / "classifier.keras")
    np.savez(tmp_path / "data.npz", ids=ids, expected=model.predict(ids, verbose=0))
    assert run_python(CLASSIFIER) == "equal\n"
