import keras
import numpy as np
import pytest

from keras_transformer.layers import DecoderBlock, EncoderBlock
from keras_transformer.losses import MaskedCrossentropy
from keras_transformer.metrics import MaskedAccuracy, Perplexity
from keras_transformer.models import TransformerConfig, transformer
from keras_transformer.schedules import InverseSquareRootSchedule

V = 30
RNG = np.random.default_rng(1)
SOURCE = RNG.integers(3, V, (8, 6)) * (np.arange(6) < RNG.integers(2, 7, (8, 1)))
LABELS = RNG.integers(3, V, (8, 5)) * (np.arange(5) < RNG.integers(2, 6, (8, 1)))
TARGET = np.concatenate([np.full((8, 1), 2), LABELS[:, :-1]], axis=1)
X = {"source_ids": SOURCE, "target_ids": TARGET}
SIZES = {"encoder_layers": 2, "decoder_layers": 2, "model_dim": 16, "intermediate_dim": 32, "num_heads": 2}


def small(dtype=None, **fields):
    return transformer(TransformerConfig(**{"vocabulary_size": V, **SIZES, "dropout": 0.0, **fields}), dtype=dtype)


def compiled(model, **options):
    optimizer = keras.optimizers.Adam(InverseSquareRootSchedule(0.01, 10))
    metrics = [MaskedAccuracy(), Perplexity()]
    model.compile(optimizer, MaskedCrossentropy(label_smoothing=0.1), metrics=metrics, **options)
    return model


def predict(model):
    return np.asarray(model.predict(X, verbose=0), "float32")


def test_model_is_functional_with_the_documented_names():
    model = small()
    assert isinstance(model, keras.Model) and isinstance(model, keras.src.models.Functional)
    assert {name: (tensor.shape, tensor.dtype) for name, tensor in model.input.items()} == {
        "source_ids": ((None, None), "int32"),
        "target_ids": ((None, None), "int32"),
    }
    assert model.output_names == ["logits"] and model.output.shape == (None, None, V)
    assert len(model.encoder_blocks) == len(model.decoder_blocks) == 2
    assert isinstance(model.encoder_blocks[0], EncoderBlock) and isinstance(model.decoder_blocks[0], DecoderBlock)
    assert len(set(map(id, model.layers))) == len(model.layers)


@pytest.mark.parametrize(
    ("fields", "matrices"),
    [
        ({}, 1),
        ({"tie_embeddings": "target"}, 2),
        ({"tie_embeddings": "target", "target_vocabulary_size": V + 5}, 2),
        ({"tie_embeddings": "none"}, 3),
    ],
)
def test_embeddings_are_tied_as_asked(fields, matrices):
    """F08."""
    model = small(**fields)
    tables = [weight for weight in model.weights if {V, V + 5} & set(weight.shape)]
    assert len(tables) == matrices
    size = fields.get("target_vocabulary_size", V)
    assert model.predict(X, verbose=0).shape == (8, 5, size)
    if matrices < 3:
        assert model.output_projection is None
        table = keras.ops.convert_to_numpy(model.target_embedding.token_embedding.embeddings)
        decoded = keras.Model(model.input, model.get_layer("decoder_block_1").output).predict(X, verbose=0)
        np.testing.assert_allclose(predict(model), decoded @ table.T, atol=1e-5)


TRAIN_ON = """
import sys, keras, numpy as np
assert not any(name.startswith("keras_transformer") for name in sys.modules)
import keras_transformer
data = dict(np.load("data.npz"))
x = {"source_ids": data["source"], "target_ids": data["target"]}
model = keras.models.load_model("model.keras")
np.testing.assert_array_equal(model.predict(x, verbose=0), data["logits"])
assert len(model.weights) == int(data["weights"]), len(model.weights)
assert int(model.optimizer.iterations) == 5
assert float(model.optimizer.learning_rate) == float(data["rate"])
model.fit(x, data["labels"], verbose=0)
table = model.source_embedding.token_embedding.embeddings
assert model.target_embedding is model.source_embedding
decoded = keras.Model(model.input, model.get_layer("decoder_block_1").output).predict(x, verbose=0)
np.testing.assert_allclose(model.predict(x, verbose=0), decoded @ np.asarray(table).T, atol=1e-5)
np.savez("trained.npz", *model.get_weights())
"""


def test_saved_model_goes_on_in_a_fresh_process_as_if_it_had_never_stopped(tmp_path, run_python):
    """F08, F09, F10: logits, weights, optimizer, learning rate, ties; built after other models in this process."""
    small(), small(normalize_first=True)
    model = compiled(small())
    model.fit(X, LABELS, epochs=5, verbose=0)
    model.save(tmp_path / "model.keras")
    arrays = {"source": SOURCE, "target": TARGET, "labels": LABELS, "logits": predict(model)}
    np.savez(tmp_path / "data.npz", **arrays, weights=len(model.weights), rate=float(model.optimizer.learning_rate))
    run_python(TRAIN_ON)
    model.fit(X, LABELS, verbose=0)
    trained = np.load(tmp_path / "trained.npz")
    for weight, ours, theirs in zip(model.weights, model.get_weights(), trained.values(), strict=True):
        np.testing.assert_allclose(seen(weight.path, theirs), seen(weight.path, ours), atol=1e-6)


def seen(path, values):
    """Without the biases of keys: no softmax sees them, so their gradients are rounding, of which Adam makes steps."""
    if not path.endswith("key_value/bias"):
        return values
    parts = np.split(values, 3 if path.endswith("query_key_value/bias") else 2)
    return np.concatenate([*parts[:-2], parts[-1]])


@pytest.mark.parametrize("way", [".keras", ".weights.h5", "config"])
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"normalize_first": True, "tie_embeddings": "none", "gated": True, "activation": "silu", "use_bias": False},
        {"tie_embeddings": "target", "target_vocabulary_size": V + 5, "positions": "learned", "max_length": 9},
        {"key_dim": 3, "value_dim": 5, "sinusoid_layout": "halves", "encoder_layers": 1, "decoder_layers": 3},
    ],
    ids=lambda fields: "-".join(fields) or "defaults",
)
def test_every_way_of_saving_restores_the_model_exactly(tmp_path, way, fields):
    model = small(**fields)
    model.set_weights([weight + 0.1 * RNG.normal(size=weight.shape) for weight in model.get_weights()])
    if way == ".keras":
        model.save(tmp_path / "model.keras")
        restored = keras.models.load_model(tmp_path / "model.keras")
    else:
        restored = transformer(TransformerConfig.from_dict(model.config.to_dict()))
        if way == ".weights.h5":
            model.save_weights(tmp_path / "model.weights.h5")
            restored.load_weights(tmp_path / "model.weights.h5")
        else:
            restored.set_weights(model.get_weights())
    assert restored.config == model.config
    np.testing.assert_array_equal(predict(restored), predict(model))


@pytest.mark.parametrize(
    "other",
    [
        {"decoder_layers": 1},
        {"decoder_layers": 3},
        {"encoder_layers": 1},
        {"encoder_layers": 3},
        {"tie_embeddings": "none"},
        {"tie_embeddings": "target"},
        {"normalize_first": True},
        {"activation": "gelu"},
        {"model_dim": 32},
        {"vocabulary_size": V + 1},
    ],
    ids=str,
)
def test_weights_of_another_model_are_refused_with_the_field_that_differs(tmp_path, other):
    """F08, F10."""
    small().save_weights(tmp_path / "model.weights.h5")
    name, value = next(iter(other.items()))
    with pytest.raises(ValueError, match=rf"weights with {name}=.* \(here {value!r}\)"):
        small(**other).load_weights(tmp_path / "model.weights.h5")


def test_weights_load_whatever_the_dropout(tmp_path):
    model = small()
    model.save_weights(tmp_path / "model.weights.h5")
    other = small(dropout=0.5, attention_dropout=0.5, activation_dropout=0.5)
    other.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_array_equal(predict(other), predict(model))


def test_weights_of_a_foreign_model_are_refused(tmp_path):
    keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)]).save_weights(tmp_path / "model.weights.h5")
    with pytest.raises(ValueError, match="not the weights of a Transformer"):
        small().load_weights(tmp_path / "model.weights.h5")


LOAD_WITHOUT_IMPORT = """
import keras
try:
    keras.models.load_model("model.keras")
except TypeError as error:
    print(error)
"""


def test_loading_without_the_import_says_what_to_import(tmp_path, run_python):
    """F09."""
    small().save(tmp_path / "model.keras")
    message = run_python(LOAD_WITHOUT_IMPORT)
    assert "make sure they are all imported" in message and "'module': 'keras_transformer." in message


@pytest.mark.parametrize("reload_under", ["float32", "mixed_bfloat16"])
def test_precision_policy_survives_a_reload_under_another_policy(tmp_path, reload_under):
    """F11: every sub-layer's policy, and float32 on request."""
    model = small(dtype="mixed_float16")
    policies = [layer.dtype_policy.name for layer in model._flatten_layers() if layer.weights]
    assert set(policies) == {"mixed_float16"}
    assert {weight.dtype for weight in model.weights} == {"float32"}
    model.save(tmp_path / "model.keras")
    before = keras.config.dtype_policy()
    try:
        keras.config.set_dtype_policy(reload_under)
        loaded = keras.models.load_model(tmp_path / "model.keras")
    finally:
        keras.config.set_dtype_policy(before)
    assert [layer.dtype_policy.name for layer in loaded._flatten_layers() if layer.weights] == policies
    np.testing.assert_array_equal(predict(loaded), predict(model))
    full = transformer(loaded.config, dtype="float32")
    full.set_weights(loaded.get_weights())
    assert full.predict(X, verbose=0).dtype == np.float32
    np.testing.assert_allclose(predict(full), predict(model), atol=2e-2)


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16", "mixed_float16"], indirect=True)
def test_fit_learns_a_handful_of_pairs_by_heart(policy):
    model = compiled(small())
    history = model.fit(X, LABELS, epochs=60, batch_size=4, verbose=0).history
    assert history["accuracy"][-1] > 0.95 and history["perplexity"][-1] < 2
    assert model.count_params() < 20_000


def test_reported_loss_appears_once_and_heeds_tokens_not_rows():
    """F12."""
    model = compiled(small())
    assert [metric.name for metric in model.metrics].count("loss") == 1
    by_batch = [model.evaluate(X, LABELS, batch_size=size, verbose=0, return_dict=True) for size in (1, 3, 8)]
    for result in by_batch[1:]:
        assert result == pytest.approx(by_batch[0], rel=1e-5)
    expected = MaskedCrossentropy(label_smoothing=0.1)(LABELS, predict(model))
    assert by_batch[0]["loss"] == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.parametrize("wrap", [lambda item: [item], lambda item: {"logits": item}], ids=["list", "dict"])
def test_reported_loss_heeds_tokens_in_every_form_that_compile_takes(wrap):
    """F12."""
    model = small()
    model.compile("sgd", wrap(MaskedCrossentropy()))
    losses = [model.evaluate(X, LABELS, batch_size=size, verbose=0) for size in (1, 8)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert losses[0] == pytest.approx(float(MaskedCrossentropy()(LABELS, predict(model))), rel=1e-5)


@pytest.mark.parametrize(("dtype", "jit_compile"), [("float32", False), ("float32", True), ("mixed_float16", False)])
def test_accumulated_batches_make_the_update_of_one_batch_with_all_sentences(dtype, jit_compile):
    """Two updates of four batches with few and many tokens each; the second window begins in the second epoch."""
    labels = np.where(np.arange(8)[:, None] // 2 == 1, LABELS * (np.arange(5) < 1), LABELS)
    assert len({int((labels[i : i + 2] != 0).sum()) for i in range(0, 8, 2)}) > 1

    def train(batch_size, **accumulation):
        keras.utils.set_random_seed(3)
        model = small(dtype=dtype)
        optimizer = keras.optimizers.SGD(0.1, **accumulation)
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=8.0)
        model.compile(optimizer, MaskedCrossentropy(0.1), jit_compile=jit_compile)
        history = model.fit(X, labels, batch_size=batch_size, epochs=2, shuffle=False, verbose=0).history
        return model.get_weights(), history["loss"]

    (whole, losses), (accumulated, accumulated_losses) = train(8), train(2, gradient_accumulation_steps=4)
    tolerance = 1e-6 if dtype == "float32" else 1e-3
    assert accumulated_losses == pytest.approx(losses, abs=10 * tolerance)
    for one, other in zip(accumulated, whole, strict=True):
        np.testing.assert_allclose(one, other, atol=tolerance)


def test_training_that_stops_between_accumulated_batches_goes_on_from_there(tmp_path):
    """The batches that are accumulated and the tokens in them are saved with the optimizer."""

    def batch(i):
        return {name: ids[2 * i : 2 * i + 2] for name, ids in X.items()}, LABELS[2 * i : 2 * i + 2]

    model = small()
    optimizer = keras.optimizers.SGD(0.1, gradient_accumulation_steps=4)
    for _ in range(2):  # Compiled anew, the optimizer is the same.
        model.compile(optimizer, MaskedCrossentropy())
    model.train_on_batch(*batch(0)), model.train_on_batch(*batch(1))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    for i in (2, 3):
        model.train_on_batch(*batch(i)), loaded.train_on_batch(*batch(i))
    for one, other in zip(loaded.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-7)


def test_other_losses_are_reported_as_keras_reports_them():
    model = small()
    stock = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", stock)
    x, labels = {name: np.full((8, 5), 7) for name in X}, RNG.integers(3, V, (8, 5))
    expected = float(stock(labels, model.predict(x, verbose=0)))
    assert model.evaluate(x, labels, batch_size=3, verbose=0) == pytest.approx(expected, rel=1e-5)


def test_batches_of_new_lengths_trace_training_a_handful_of_times():
    """F40."""
    import tensorflow as tf

    def batches():
        for length in range(2, 22):
            x = {name: np.full((2, length), 5, "int32") for name in ("source_ids", "target_ids")}
            yield x, np.full((2, length), 5, "int32")

    ids = tf.TensorSpec((None, None), "int32")
    dataset = tf.data.Dataset.from_generator(batches, output_signature=({"source_ids": ids, "target_ids": ids}, ids))
    model, traces = compiled(small()), []
    call = model.call
    model.call = lambda *args, **kwargs: traces.append(1) or call(*args, **kwargs)
    model.fit(dataset, verbose=0)
    assert 1 <= len(traces) <= 2


ENCODER_IN_A_MODEL = """
import keras, numpy as np, keras_transformer
model = keras.models.load_model("model.keras")
short, padded = np.array([[5, 6, 7]]), np.array([[5, 6, 7, 0, 0]])
np.testing.assert_allclose(model.predict(short, verbose=0), np.load("expected.npy"), atol=1e-6)
np.testing.assert_allclose(model.predict(padded, verbose=0), np.load("expected.npy"), atol=1e-6)
print("equal")
"""


def test_encoder_inside_another_model_hands_its_mask_on(tmp_path, run_python):
    """F05: before and after save and load in a fresh process."""
    encoder = small().encoder()
    inputs = keras.Input((None,), dtype="int32")
    pooled = keras.layers.GlobalAveragePooling1D()(encoder(inputs))
    model = keras.Model(inputs, keras.layers.Dense(3)(pooled))
    short, padded = np.array([[5, 6, 7]]), np.array([[5, 6, 7, 0, 0]])
    expected = model.predict(short, verbose=0)
    np.testing.assert_allclose(model.predict(padded, verbose=0), expected, atol=1e-6)
    model.save(tmp_path / "model.keras")
    np.save(tmp_path / "expected.npy", expected)
    assert run_python(ENCODER_IN_A_MODEL) == "equal\n"


def test_encoder_shares_the_models_weights():
    model = small()
    encoder = model.encoder()
    before = encoder.predict(SOURCE, verbose=0)
    compiled(model).fit(X, LABELS, verbose=0)
    assert np.abs(encoder.predict(SOURCE, verbose=0) - before).max() > 1e-4


def test_learned_positions_refuse_a_longer_batch():
    """At once where Keras knows the length of all batches, as the graph runs where it does not."""
    import tensorflow as tf

    model = compiled(small(positions="learned", max_length=5))
    with pytest.raises(ValueError, match="within the 5 learned ones"):
        model.predict(X, verbose=0)
    ids = tf.TensorSpec((None, None), "int32")
    signature = ({"source_ids": ids, "target_ids": ids}, ids)
    dataset = tf.data.Dataset.from_generator(lambda: iter([(X, LABELS)]), output_signature=signature)
    with pytest.raises(tf.errors.InvalidArgumentError, match="within the 5 learned ones"):
        model.fit(dataset, verbose=0)


def test_frozen_layers_stay_frozen_and_the_optimizer_goes_on(tmp_path):
    model = small()
    model.source_embedding.trainable = model.encoder_blocks[0].trainable = False
    compiled(model).fit(X, LABELS, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert [w.name for w in loaded.trainable_weights] == [w.name for w in model.trainable_weights]
    assert not loaded.encoder_blocks[0].trainable and loaded.encoder_blocks[1].trainable
    assert int(loaded.optimizer.iterations) == 1
    for one, other in zip(model.optimizer.variables, loaded.optimizer.variables, strict=True):
        np.testing.assert_array_equal(one, other)


def test_clone_and_models_of_inner_outputs_save_and_load(tmp_path):
    model = small()
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    np.testing.assert_array_equal(predict(clone), predict(model))
    hidden = model.get_layer("decoder_block_0").output
    inner = keras.Model(model.input, {"hidden": hidden, "logits": model.output})
    inner.save(tmp_path / "inner.keras")
    loaded = keras.models.load_model(tmp_path / "inner.keras")
    for name, expected in inner.predict(X, verbose=0).items():
        np.testing.assert_array_equal(loaded.predict(X, verbose=0)[name], expected)


def test_encoders_of_two_models_join_in_one():
    inputs = keras.Input((None,), dtype="int32")
    encoders = [small().encoder(name) for name in ("first", "second")]
    joined = keras.layers.Add()([encoder(inputs) for encoder in encoders])
    assert keras.Model(inputs, joined).predict(SOURCE, verbose=0).shape == (8, 6, 16)


def test_default_of_xla_is_that_of_the_backend_that_loads(tmp_path):
    assert compiled(small()).get_compile_config()["jit_compile"] is None
    assert compiled(small(), jit_compile=True).get_compile_config()["jit_compile"] is True
    compiled(small()).save(tmp_path / "model.keras")
    assert keras.models.load_model(tmp_path / "model.keras").jit_compile is False


def test_misspelt_arguments_and_missing_labels_are_refused():
    config = TransformerConfig(V, **SIZES)
    with pytest.raises(TypeError, match="dtpye"):
        transformer(config, dtpye="mixed_bfloat16")
    with pytest.raises(ValueError, match="needs labels.*Received: y=None"):
        compiled(small()).fit(X, verbose=0)


def test_anything_but_a_config_is_refused():
    with pytest.raises(ValueError, match="`config` must be a TransformerConfig. Received: 'base'"):
        transformer("base")
