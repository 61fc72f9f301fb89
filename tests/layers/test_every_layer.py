"""One harness for all layers: build, config, .keras, precision, XLA, a training step, foreign and nested models."""

import itertools
import json

import keras
import numpy as np
import pytest

from keras_transformer import layers

B, T, S, D = 2, 5, 3, 8


def vectors(length):
    return np.random.default_rng(length).normal(size=(B, length, D)).astype("float32")


IDS = np.array([[4, 5, 6, 7, 8], [9, 3, 4, 0, 0]], dtype="int32")
HIDDEN, MEMORY = vectors(T), vectors(S)
BLOCK = {"num_heads": 2, "intermediate_dim": 16, "dropout": 0.1, "attention_dropout": 0.1, "activation_dropout": 0.1}

# Name of the case: (class, arguments of the constructor, tensors of the call).
CASES = {
    "positional_embedding": (layers.PositionalEmbedding, {"input_dim": 11, "output_dim": D}, [IDS]),
    "learned_positions": (
        layers.PositionalEmbedding,
        {"input_dim": 11, "output_dim": D, "positions": "learned", "max_length": 6, "scale": False},
        [IDS],
    ),
    "self_attention": (layers.MultiHeadAttention, {"num_heads": 2, "key_dim": 4, "dropout": 0.1}, [HIDDEN]),
    "attention_to_another_sequence": (
        layers.MultiHeadAttention,
        {"num_heads": 2, "key_dim": 3, "value_dim": 5, "use_bias": False},
        [HIDDEN, MEMORY],
    ),
    "attention_with_keys": (layers.MultiHeadAttention, {"num_heads": 2, "key_dim": 3}, [HIDDEN, MEMORY, MEMORY + 1]),
    "feed_forward": (layers.FeedForward, {"intermediate_dim": 16, "dropout": 0.1}, [HIDDEN]),
    "gated_feed_forward": (
        layers.FeedForward,
        {"intermediate_dim": 16, "activation": "silu", "gated": True, "kernel_initializer": "he_normal"},
        [HIDDEN],
    ),
    "add_norm": (layers.AddNorm, {"dropout": 0.1}, [HIDDEN, HIDDEN[::-1].copy()]),
    "pre_add_norm": (layers.AddNorm, {"normalize_first": True, "epsilon": 1e-5}, [HIDDEN, HIDDEN[::-1].copy()]),
    "encoder_block": (layers.EncoderBlock, BLOCK, [HIDDEN]),
    "pre_norm_encoder_block": (layers.EncoderBlock, {**BLOCK, "normalize_first": True, "gated": True}, [HIDDEN]),
    "decoder_block": (layers.DecoderBlock, BLOCK, [HIDDEN, MEMORY]),
    "pre_norm_decoder_block": (
        layers.DecoderBlock,
        {**BLOCK, "normalize_first": True, "key_dim": 3, "value_dim": 2},
        [HIDDEN, MEMORY],
    ),
}
POLICIES = ("float32", "mixed_bfloat16", "mixed_float16")

every_case = pytest.mark.parametrize("case", CASES)
every_policy = pytest.mark.parametrize("policy", POLICIES, indirect=True)


def make(case):
    layer_class, arguments, tensors = CASES[case]
    return layer_class(**arguments), tensors


def foreign_model(case):
    """A functional model of Keras layers with ours in the middle."""
    layer, tensors = make(case)
    inputs = [keras.Input((None, *tensor.shape[2:]), dtype=tensor.dtype.name) for tensor in tensors]
    outputs = layer(inputs[0], layer.sublayer_inputs(inputs[1])) if "add_norm" in case else layer(*inputs)
    pooled = keras.layers.GlobalAveragePooling1D()(outputs)
    return keras.Model(inputs, keras.layers.Dense(3, name="head")(pooled)), tensors


def test_every_public_layer_has_a_case():
    public = {c for c in vars(layers).values() if isinstance(c, type) and issubclass(c, keras.layers.Layer)}
    assert public == {layer_class for layer_class, _, _ in CASES.values()}


@every_case
def test_build_alone_creates_all_weights(case):
    """F10: from shapes, before any call, and a call adds none."""
    layer, tensors = make(case)
    layer.build(*[tensor.shape for tensor in tensors])
    built = [(weight.name, weight.shape) for weight in layer.weights]
    layer(*tensors)
    called, _ = make(case)
    called(*tensors)
    assert built == [(weight.name, weight.shape) for weight in called.weights]
    assert len(layer.weights) == len(built) > 0


@every_case
def test_config_round_trip_through_json_gives_an_equal_layer(case):
    """F09."""
    layer, tensors = make(case)
    config = layer.get_config()
    clone = type(layer).from_config(json.loads(json.dumps(config)))
    assert clone.get_config() == config
    expected = layer(*tensors)
    clone(*tensors)
    clone.set_weights(layer.get_weights())
    np.testing.assert_array_equal(clone(*tensors), expected)


@every_case
@every_policy
def test_output_spec_is_that_of_the_output(case, policy):
    layer, tensors = make(case)
    symbolic = [keras.KerasTensor(tensor.shape, tensor.dtype.name) for tensor in tensors]
    spec, output = layer(*symbolic), layer(*tensors)
    assert spec.shape == output.shape
    assert spec.dtype == keras.backend.standardize_dtype(output.dtype) == keras.config.dtype_policy().compute_dtype


@pytest.mark.parametrize(
    ("case", "policy", "jit_compile"),
    [
        *((case, policy, False) for case in CASES for policy in POLICIES),
        *((case, "float32", True) for case in CASES),
        *((case, policy, True) for case in ("encoder_block", "decoder_block") for policy in POLICIES[1:]),
    ],
    indirect=["policy"],
)
def test_training_step_moves_every_weight_and_stays_finite(case, policy, jit_compile):
    model, tensors = foreign_model(case)
    # Keras' own first guess at a loss scale, 2^15, overflows float16 and skips the step.
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1), initial_scale=1.0)
    model.compile(optimizer, "mse", jit_compile=jit_compile)
    before = model.get_weights()
    loss = model.train_on_batch(tensors, np.arange(6, dtype="float32").reshape(B, 3))
    assert np.isfinite(loss)
    for weight, old in zip(model.weights, before, strict=True):
        value = keras.ops.convert_to_numpy(weight)
        assert np.isfinite(value).all(), weight.path
        # A bias of keys shifts all scores of a query alike: softmax does not see it.
        assert (value != old).any() or weight.path.endswith("key/bias"), weight.path


@every_case
@every_policy
def test_result_in_half_precision_is_that_in_float32_within_rounding(case, policy):
    layer, tensors = make(case)
    output = layer(*tensors)
    reference = type(layer).from_config({**layer.get_config(), "dtype": "float32"})
    reference(*tensors)
    reference.set_weights(layer.get_weights())
    np.testing.assert_allclose(np.asarray(output, "float32"), reference(*tensors), atol=0.06)


@every_case
def test_xla_gives_the_same_result(case):
    layer, tensors = make(case)
    expected = layer(*tensors)
    model = keras.Model([(inputs := [keras.Input(t.shape[1:], dtype=t.dtype.name) for t in tensors])], layer(*inputs))
    model.compile(jit_compile=True)
    np.testing.assert_allclose(model.predict([tensors], verbose=0), expected, atol=1e-5)


LOAD_ALL = """
import sys, pathlib, keras, numpy as np, keras_transformer
for path in pathlib.Path(".").glob("*.keras"):
    data = np.load(path.with_suffix(".npz"))
    model = keras.models.load_model(path)
    output = model.predict([data[k] for k in sorted(data) if k != "output"], verbose=0)
    np.testing.assert_array_equal(np.asarray(output, "float32"), data["output"], err_msg=path.stem)
    ours = next(layer for layer in model.layers if type(layer).__module__.startswith("keras_transformer"))
    policies = [layer.dtype_policy.name for layer in ours._flatten_layers()]
    assert policies == pathlib.Path(path.stem + ".policies").read_text().split(), (path, policies)
    print(path.stem)
"""


def test_models_load_in_a_fresh_process_with_equal_outputs_and_policies(tmp_path, run_python):
    """F09, F10, F11: the process that loads has another global policy and has built nothing before."""
    names = []
    for policy, case in itertools.product(POLICIES, CASES):
        keras.config.set_dtype_policy(policy)
        model, tensors = foreign_model(case)
        keras.config.set_dtype_policy("float32")
        output = np.asarray(model.predict(tensors, verbose=0), "float32")
        names.append(f"{case}-{policy}")
        model.save(tmp_path / f"{names[-1]}.keras")
        np.savez(tmp_path / f"{names[-1]}.npz", output=output, **{f"input_{i}": t for i, t in enumerate(tensors)})
        ours = next(layer for layer in model.layers if isinstance(layer, CASES[case][0]))
        policies = [layer.dtype_policy.name for layer in ours._flatten_layers()]
        assert policy in policies
        (tmp_path / f"{names[-1]}.policies").write_text(" ".join(policies))
    assert sorted(run_python(LOAD_ALL).split()) == sorted(names)


@every_case
def test_model_inside_a_model_gives_the_same_result(case):
    inner, tensors = foreign_model(case)
    inputs = [keras.Input(t.shape[1:], dtype=t.dtype.name) for t in tensors]
    outer = keras.Model(inputs, inner(inputs))
    np.testing.assert_allclose(outer.predict(tensors, verbose=0), inner.predict(tensors, verbose=0), atol=1e-6)


@pytest.mark.parametrize("case", ["self_attention", "feed_forward", "encoder_block"])
def test_time_distributed_layer_gives_each_step_its_own_result(case):
    layer, (tensor,) = make(case)
    inputs = keras.Input((3, *tensor.shape[1:]))
    model = keras.Model(inputs, keras.layers.TimeDistributed(layer)(inputs))
    steps = np.stack([tensor, 2 * tensor, -tensor], axis=1)
    output = model.predict(steps, verbose=0)
    for i in range(3):
        np.testing.assert_allclose(output[:, i], layer(steps[:, i]), atol=1e-5)


@every_case
def test_layer_keeps_a_dtype_of_its_own(case):
    """F11: one layer in float32 in a model of another precision."""
    layer_class, arguments, tensors = CASES[case]
    layer = layer_class(**arguments, dtype="mixed_float16")
    layer(*tensors)
    assert {sub.dtype_policy.name for sub in layer._flatten_layers()} == {"mixed_float16"}
    assert {weight.dtype for weight in layer.weights} <= {"float32"}
