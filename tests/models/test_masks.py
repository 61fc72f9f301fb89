"""Nothing leaks: not a later target token, not padding, on any path through the whole model."""

import itertools

import keras
import numpy as np
import pytest

from keras_transformer.models import TransformerConfig, transformer

V = 30
SOURCE = np.array([[4, 5, 6, 7, 8, 9, 0, 0, 0], [9, 8, 7, 6, 5, 4, 3, 11, 12]])
TARGET = np.array([[2, 3, 4, 5, 6, 7, 8, 9], [2, 13, 14, 15, 0, 0, 0, 0]])
CHANGED = np.concatenate([TARGET[:, :4], [[21, 22, 23, 24], [25, 0, 26, 27]]], axis=1)


def small(dropout=0.0, **fields):
    config = TransformerConfig(
        V, encoder_layers=2, decoder_layers=2, model_dim=16, intermediate_dim=32, num_heads=4, dropout=dropout, **fields
    )
    return transformer(config)


def logits(model, source, target, training=False):
    """As float32, with the same random numbers at every call."""
    for variable in model.non_trainable_variables:
        variable.assign(keras.ops.ones_like(variable))
    return np.asarray(model({"source_ids": source, "target_ids": target}, training=training), "float32")


def assert_causal(call):
    before, after = call(TARGET), call(CHANGED)
    assert np.isfinite(before).all()
    np.testing.assert_allclose(before[:, :4], after[:, :4], atol=1e-6)
    assert np.abs(before[:, 4:] - after[:, 4:]).max() > 1e-2


every_policy = pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16", "mixed_float16"], indirect=True)


@every_policy
@pytest.mark.parametrize("normalize_first", [False, True])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_no_logit_depends_on_a_later_target_token(policy, normalize_first, dropout):
    """F01, with training on and off, source padding in one row and not in the other."""
    model = small(dropout, attention_dropout=dropout, activation_dropout=dropout, normalize_first=normalize_first)
    for training in (False, True):
        assert_causal(lambda target, training=training: logits(model, SOURCE, target, training))


@pytest.mark.parametrize("jit_compile", [False, True])
def test_no_logit_depends_on_a_later_target_token_in_a_compiled_graph(jit_compile):
    """F01."""
    model = small()
    model.compile(jit_compile=jit_compile)
    assert_causal(lambda target: model.predict({"source_ids": SOURCE, "target_ids": target}, verbose=0))


def test_no_logit_depends_on_a_later_target_token_after_save_load_and_export(tmp_path):
    """F01."""
    import tensorflow as tf

    model = small(0.3)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert_causal(lambda target: logits(loaded, SOURCE, target))
    model.export(tmp_path / "exported", verbose=False)
    exported = tf.saved_model.load(tmp_path / "exported")
    source = SOURCE.astype("int32")
    assert_causal(lambda target: exported.serve({"source_ids": source, "target_ids": target.astype("int32")}).numpy())


@every_policy
def test_padding_changes_no_logit_at_a_real_position(policy):
    """F02: source padding, target padding, and source and target of equal length or not."""
    model = small()
    expected = logits(model, SOURCE, TARGET)
    tolerance = 1e-5 if policy == "float32" else 2e-2
    for more_source, more_target in itertools.product((0, 20), (0, 13)):
        source = np.pad(SOURCE, ((0, 0), (0, more_source)))
        target = np.pad(TARGET, ((0, 0), (0, more_target)))
        output = logits(model, source, target)[:, : TARGET.shape[1]]
        np.testing.assert_allclose(output[TARGET != 0], expected[TARGET != 0], atol=tolerance)
    alone = logits(model, SOURCE[:1, :6], TARGET[:1])
    np.testing.assert_allclose(alone[0], expected[0], atol=tolerance)
    equal_lengths = logits(model, SOURCE[:1, :8], TARGET[:1])
    np.testing.assert_allclose(equal_lengths[0], expected[0], atol=tolerance)


def test_source_of_padding_alone_gives_finite_logits():
    assert np.isfinite(logits(small(), np.zeros((2, 3), int), TARGET)).all()


def test_gradient_of_a_position_reaches_no_later_input():
    """F01, by derivative: of the sum of logits at one position, for the embeddings of all positions."""
    import tensorflow as tf

    model = small()
    memory = model.encoder()(SOURCE)
    x = tf.convert_to_tensor(model.target_embedding(TARGET))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x
        for block in model.decoder_blocks:
            y = block(y, memory)
        loss = tf.reduce_sum(y[:, 3] ** 2)
    gradient = np.abs(tape.gradient(loss, x)).sum(-1)
    assert (gradient[:, 4:] == 0).all() and (gradient[:, :4] > 0).all()
