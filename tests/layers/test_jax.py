"""What runs under TensorFlow runs under JAX, the other backend of `keras.ops`, with equal results.

The test process computes under TensorFlow; one subprocess imports this file again under JAX and reports how far off it
is.
"""

import json
import pathlib

import keras
import numpy as np
import pytest

import keras_transformer.layers as kt
from keras_transformer.losses import MaskedCrossentropy
from keras_transformer.metrics import MaskedAccuracy, Perplexity
from keras_transformer.models import TransformerConfig, transformer
from keras_transformer.schedules import InverseSquareRootSchedule

pytest.importorskip("jax", reason="JAX, the backend to compare with, is not installed.")

IMPORT_AND_REPORT = "import sys; sys.path.insert(0, sys.argv[1]); import test_jax; test_jax.report()"
WIDTH, VOCABULARY = 8, 12
CONFIG = {
    "vocabulary_size": VOCABULARY,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "model_dim": WIDTH,
    "intermediate_dim": 16,
    "num_heads": 2,
    "dropout": 0.0,
}


def cases(rng):
    """Every public layer as `{name: (layer, positional inputs, keyword inputs, options of the call)}`."""

    def vectors(length, width=WIDTH):
        return rng.normal(size=(2, length, width)).astype("float32")

    ids = np.array([[3, 7, 1, 0, 0], [5, 2, 9, 11, 4]], "int32")
    target_mask = ids != 0
    memory_mask = np.array([[True, True, False, False], [True, True, True, True]])
    attention_mask = rng.random((2, 5, 4)) < 0.7
    block = {"num_heads": 2, "intermediate_dim": 16}
    attention = {"num_heads": 2, "key_dim": 3, "value_dim": 5}
    cross_masks = {"value_mask": memory_mask, "attention_mask": attention_mask}
    decoder_masks = {"inputs_mask": target_mask, "memory_mask": memory_mask}
    pair, three = [vectors(5), vectors(4, 6)], [vectors(5), vectors(4, 6), vectors(4, 7)]
    learned = {"positions": "learned", "max_length": 6, "mask_zero": False}
    return {
        "sinusoidal": (kt.PositionalEmbedding(VOCABULARY, WIDTH), [ids], {}, {"start_index": 2}),
        "sinusoidal halves": (kt.PositionalEmbedding(VOCABULARY, 7, sinusoid_layout="halves"), [ids], {}, {}),
        "learned": (kt.PositionalEmbedding(VOCABULARY, WIDTH, **learned), [ids], {}, {}),
        "reverse": (kt.PositionalEmbedding(VOCABULARY, WIDTH), [vectors(5)], {}, {"reverse": True}),
        "self-attention": (
            kt.MultiHeadAttention(**attention),
            [vectors(5)],
            {"query_mask": target_mask},
            {"use_causal_mask": True},
        ),
        "cross-attention": (kt.MultiHeadAttention(**attention), pair, cross_masks, {"use_causal_mask": True}),
        "attention with keys": (kt.MultiHeadAttention(**attention), three, cross_masks, {}),
        "feed-forward": (kt.FeedForward(16), [vectors(5)], {}, {}),
        "gated feed-forward": (kt.FeedForward(16, "silu", gated=True, use_bias=False), [vectors(5)], {}, {}),
        "post-norm": (kt.AddNorm(), [vectors(5), vectors(5)], {}, {}),
        "pre-norm": (kt.AddNorm(normalize_first=True), [vectors(5), vectors(5)], {}, {}),
        "encoder block": (kt.EncoderBlock(**block), [vectors(5)], {"mask": target_mask}, {}),
        "decoder block": (kt.DecoderBlock(**block, normalize_first=True), pair, decoder_masks, {}),
    }


def write_case(path, case, rng):
    layer, inputs, keyword_inputs, options = case
    layer(*inputs, **keyword_inputs, **options)
    layer.set_weights([rng.normal(size=weight.shape) for weight in layer.weights])
    arrays = {f"input_{i}": array for i, array in enumerate(inputs)}
    arrays |= {f"weight_{i}": array for i, array in enumerate(layer.get_weights())}
    outputs = keras.ops.convert_to_numpy(layer(*inputs, **keyword_inputs, **options))
    np.savez(path.with_suffix(".npz"), outputs=outputs, **arrays, **keyword_inputs)
    config = keras.saving.serialize_keras_object(layer)
    description = {"layer": config, "keyword_inputs": list(keyword_inputs), "options": options}
    path.with_suffix(".json").write_text(json.dumps(description))


def numbered(arrays, kind):
    return [arrays[f"{kind}_{i}"] for i in range(sum(name.startswith(f"{kind}_") for name in arrays))]


def compare_case(path):
    """Rebuilds one layer, alone and in a model that is saved and loaded; returns the largest difference of each."""
    arrays, description = dict(np.load(path.with_suffix(".npz"))), json.loads(path.with_suffix(".json").read_text())
    layer = keras.saving.deserialize_keras_object(description["layer"])
    inputs, options = numbered(arrays, "input"), description["options"]
    keyword_inputs = {name: arrays[name] for name in description["keyword_inputs"]}
    layer(*inputs, **keyword_inputs, **options)
    layer.set_weights(numbered(arrays, "weight"))
    outputs = keras.ops.convert_to_numpy(layer(*inputs, **keyword_inputs, **options))

    tensors = [keras.Input(array.shape[1:], dtype=array.dtype) for array in inputs]
    keyword_tensors = {name: keras.Input(array.shape[1:], dtype="bool") for name, array in keyword_inputs.items()}
    model = keras.Model([*tensors, *keyword_tensors.values()], layer(*tensors, **keyword_tensors, **options))
    model.save(path.with_suffix(".keras"))
    reloaded = keras.saving.load_model(path.with_suffix(".keras"))([*inputs, *keyword_inputs.values()])
    return difference(outputs, arrays["outputs"]), difference(reloaded, outputs)


def difference(actual, expected):
    """The largest one, as JSON takes it; NaN where anything is."""
    return float(np.max(np.abs(np.asarray(actual) - expected)))


def train(weights, batches):
    """A model's logits with these weights, the means of two steps of `fit`, and what `evaluate` gives after them."""
    model = transformer(TransformerConfig(**CONFIG))
    model.set_weights(weights)
    inputs = {name: batches[name] for name in ("source_ids", "target_ids")}
    logits = keras.ops.convert_to_numpy(model(inputs))
    optimizer = keras.optimizers.Adam(InverseSquareRootSchedule(1e-2, warmup_steps=2))
    metrics = [MaskedAccuracy(), Perplexity()]
    # Without it JAX would train operation by operation, slowly and without tracing the step.
    model.compile(optimizer, MaskedCrossentropy(0.1), metrics=metrics, jit_compile=keras.backend.backend() == "jax")
    history = model.fit(inputs, batches["labels"], batch_size=2, shuffle=False, verbose=0).history
    evaluated = model.evaluate(inputs, batches["labels"], batch_size=3, verbose=0, return_dict=True)
    return logits, {name: values[0] for name, values in history.items()}, evaluated


def write_model(path, rng):
    def ids(length):
        return rng.integers(1, VOCABULARY, (4, length)) * (np.arange(length) < rng.integers(1, length + 1, (4, 1)))

    # Of moderate size: large logits would give perplexities in which rounding shows.
    weights = [0.3 * rng.normal(size=weight.shape) for weight in transformer(TransformerConfig(**CONFIG)).weights]
    batches = {"source_ids": ids(6), "target_ids": ids(5), "labels": ids(5)}
    logits, history, evaluated = train(weights, batches)
    arrays = {f"weight_{i}": array for i, array in enumerate(weights)}
    np.savez(path, logits=logits, **arrays, **batches)
    return history, evaluated


def report():
    """Under JAX: prints what the test reads, as JSON."""
    layers = {path.stem: compare_case(path) for path in pathlib.Path().glob("*.json")}
    arrays = dict(np.load("model.npz"))
    logits, history, evaluated = train(numbered(arrays, "weight"), arrays)
    results = {
        "backend": keras.backend.backend(),
        "layers": layers,
        "logits": difference(logits, arrays["logits"]),
        "history": history,
        "evaluated": evaluated,
    }
    print(json.dumps(results))


def test_every_layer_and_the_model_give_under_jax_what_they_give_under_tensorflow(run_python, tmp_path, rng):
    layers = cases(rng)
    assert {type(layer).__name__ for layer, *_ in layers.values()} == {
        name for name in kt.__all__ if issubclass(getattr(kt, name), keras.layers.Layer)
    }
    for name, case in layers.items():
        write_case(tmp_path / name, case, rng)
    history, evaluated = write_model(tmp_path / "model.npz", rng)

    output = run_python(IMPORT_AND_REPORT, pathlib.Path(__file__).parent, KERAS_BACKEND="jax", JAX_PLATFORMS="cpu")
    results = json.loads(output.splitlines()[-1])

    assert results["backend"] == "jax"
    assert set(results["layers"]) == set(layers)
    for name, (computed, reloaded) in results["layers"].items():
        assert computed <= 1e-4, name
        assert reloaded <= 1e-6, name
    assert results["logits"] <= 1e-4
    assert results["history"] == pytest.approx(history, rel=1e-4)
    assert results["evaluated"] == pytest.approx(evaluated, rel=1e-4)
