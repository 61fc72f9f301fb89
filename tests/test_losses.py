"""MaskedCrossentropy against a naive float64 reference: padding, precision, memory, XLA, epochs and replicas."""

import functools
import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.losses import MaskedCrossentropy
from keras_transformer.metrics import MaskedAccuracy
from keras_transformer.models import TransformerConfig, transformer

SMOOTHINGS = (0.0, 0.1, 0.5, 0.9)
V = 7
every_smoothing = pytest.mark.parametrize("smoothing", SMOOTHINGS)


def target_distribution(labels, size, smoothing):
    return (1 - smoothing) * np.eye(size)[labels] + smoothing / size


def softmax(logits):
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def token_losses(labels, logits, smoothing=0.0):
    """Loss of every token in float64, [B,T], padding included."""
    logits = np.asarray(logits, "float64")
    return -(target_distribution(labels, logits.shape[-1], smoothing) * np.log(softmax(logits))).sum(axis=-1)


def reference_loss(labels, logits, smoothing=0.0, weights=1.0):
    real = labels != 0
    return (token_losses(labels, logits, smoothing) * weights)[real].sum() / real.sum()


def reference_gradient(labels, logits, smoothing=0.0, weights=1.0):
    logits = np.asarray(logits, "float64")
    real = labels != 0
    difference = softmax(logits) - target_distribution(labels, logits.shape[-1], smoothing)
    return difference * (real * np.ones(labels.shape) * weights)[..., None] / real.sum()


def loss_and_gradient(loss, labels, logits, sample_weight=None):
    logits = tf.convert_to_tensor(logits)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        value = loss(labels, logits, sample_weight)
    return value, tape.gradient(value, logits)


def obvious_loss(labels, logits, smoothing):
    targets = (1 - smoothing) * tf.one_hot(labels, V) + smoothing / V
    real = tf.cast(labels != 0, "float32")
    return tf.reduce_sum(tf.nn.softmax_cross_entropy_with_logits(targets, logits) * real) / tf.reduce_sum(real)


def padded(sentences, length):
    return np.array([[*sentence, *[0] * (length - len(sentence))] for sentence in sentences], "int32")


def random_sentences(rng, count, vocabulary_size=20, longest=9):
    return [rng.integers(3, vocabulary_size, size=rng.integers(1, longest + 1)).tolist() for _ in range(count)]


def model_data(rng, count):
    """Random pairs of sentences of 1 to 9 tokens: the model's inputs and its targets."""
    target = random_sentences(rng, count)
    inputs = {
        "source_ids": padded(random_sentences(rng, count), 9),
        "target_ids": padded([[2, *sentence[:-1]] for sentence in target], 9),
    }
    return inputs, padded(target, 9)


def tiny_model():
    return transformer(TransformerConfig(20, None, 1, 1, 8, 16, 2, dropout=0.0))


@pytest.fixture
def labels():
    return np.array([[5, 3, 1, 6, 2], [4, 6, 0, 0, 0]], "int32")


@pytest.fixture
def logits(rng):
    return (3 * rng.normal(size=(2, 5, V))).astype("float32")


@every_smoothing
def test_loss_and_gradient_equal_the_formula_in_float64(labels, logits, smoothing):
    """F13: classes are on the last axis, the smoothing mass is e/V on every token, pads have none."""
    loss, gradient = loss_and_gradient(MaskedCrossentropy(smoothing), labels, logits)
    assert loss.shape == ()
    np.testing.assert_allclose(loss, reference_loss(labels, logits, smoothing), rtol=1e-6)
    np.testing.assert_allclose(gradient, reference_gradient(labels, logits, smoothing), atol=1e-6)


@pytest.mark.parametrize("shape", [(1, 1, 2), (3, 1, 5), (1, 8, 3), (4, 6, 50)])
def test_loss_and_gradient_equal_the_formula_for_other_shapes(rng, shape):
    """F13."""
    labels = rng.integers(1, shape[-1], size=shape[:2])
    logits = rng.normal(size=shape).astype("float32")
    loss, gradient = loss_and_gradient(MaskedCrossentropy(0.1), labels, logits)
    np.testing.assert_allclose(loss, reference_loss(labels, logits, 0.1), rtol=1e-6)
    np.testing.assert_allclose(gradient, reference_gradient(labels, logits, 0.1), atol=1e-6)


@every_smoothing
def test_loss_of_each_token_equals_the_formula_and_is_zero_at_padding(labels, logits, smoothing):
    losses = MaskedCrossentropy(smoothing).call(labels, logits)
    assert losses.shape == labels.shape
    np.testing.assert_allclose(losses, token_losses(labels, logits, smoothing) * (labels != 0), rtol=1e-5)


def test_no_smoothing_is_the_stock_loss_of_the_real_tokens(labels, logits):
    """F13."""
    stock = keras.losses.SparseCategoricalCrossentropy(from_logits=True)(labels[labels != 0], logits[labels != 0])
    np.testing.assert_allclose(MaskedCrossentropy()(labels, logits), stock, rtol=1e-6)


@every_smoothing
def test_gradient_equals_automatic_differentiation(labels, logits, smoothing):
    _, gradient = loss_and_gradient(MaskedCrossentropy(smoothing), labels, logits)
    _, expected = loss_and_gradient(lambda y, z, _: obvious_loss(y, z, smoothing), labels, logits)
    np.testing.assert_allclose(gradient, expected, atol=1e-6)


def test_gradient_equals_finite_differences(labels, logits):
    loss, logits = MaskedCrossentropy(0.1), logits.astype("float64")
    _, gradient = loss_and_gradient(loss, labels, logits)
    expected, step = np.zeros_like(logits), 1e-5
    for index in np.ndindex(logits.shape):
        there = np.zeros_like(logits)
        there[index] = step
        expected[index] = (float(loss(labels, logits + there)) - float(loss(labels, logits - there))) / (2 * step)
    assert gradient.dtype == "float64"
    np.testing.assert_allclose(gradient, expected, atol=1e-9)


def test_gradient_scales_with_what_is_made_of_the_loss(labels, logits):
    """A loss scale, or another term of the loss, reaches the gradient."""
    _, gradient = loss_and_gradient(lambda y, z, _: 512.0 * MaskedCrossentropy(0.1)(y, z) ** 2, labels, logits)
    scale = 512.0 * 2 * reference_loss(labels, logits, 0.1)
    np.testing.assert_allclose(gradient / scale, reference_gradient(labels, logits, 0.1), atol=1e-6)


@every_smoothing
def test_padding_changes_neither_loss_nor_accuracy_nor_gradient(rng, smoothing):
    """F12."""
    sentences = [rng.integers(1, V, size=length).tolist() for length in (9, 3, 6, 1)]
    long_logits = rng.normal(size=(4, 50, V)).astype("float32")
    results = []
    for length in (10, 50):
        labels, logits = padded(sentences, length), long_logits[:, :length]
        accuracy = MaskedAccuracy()
        accuracy.update_state(labels, logits)
        loss, gradient = loss_and_gradient(MaskedCrossentropy(smoothing), labels, logits)
        np.testing.assert_array_equal(gradient[labels == 0], 0)
        results.append((loss, accuracy.result(), gradient[:, :10]))
    for short, long in zip(*results, strict=True):
        np.testing.assert_allclose(short, long, atol=1e-6)


def test_padding_does_not_change_the_gradient_of_any_weight_of_a_model(rng):
    """F12."""
    model, loss = tiny_model(), MaskedCrossentropy(0.1)
    source, target = random_sentences(rng, 4), random_sentences(rng, 4)
    results = []
    for length in (10, 50):
        inputs = {"source_ids": padded(source, length), "target_ids": padded([[2, *s[:-1]] for s in target], length)}
        with tf.GradientTape() as tape:
            value = loss(padded(target, length), model(inputs))
        gradients = tape.gradient(value, model.trainable_variables)
        results.append([value, *(tf.convert_to_tensor(gradient) for gradient in gradients)])
    for short, long in zip(*results, strict=True):
        np.testing.assert_allclose(short, long, atol=1e-6)


def test_a_short_and_a_long_sentence_weigh_by_their_tokens():
    """F12: 8 real tokens, 7 of them certain to 1 in 2, 1 to 1 in 4."""
    labels = np.array([[1, 1, 1, 1, 1, 1, 1], [2, 0, 0, 0, 0, 0, 0]])
    logits = np.log(np.tile(np.array([0.125, 0.5, 0.25, 0.125], "float32"), (2, 7, 1)))
    np.testing.assert_allclose(MaskedCrossentropy()(labels, logits), (7 * np.log(2) + np.log(4)) / 8, rtol=1e-6)


@every_smoothing
@pytest.mark.parametrize("jit_compile", [False, True])
def test_targets_of_padding_only_have_loss_and_gradient_zero(logits, smoothing, jit_compile):
    """F12."""
    compute = tf.function(lambda y, z: loss_and_gradient(MaskedCrossentropy(smoothing), y, z), jit_compile=jit_compile)
    loss, gradient = compute(tf.zeros((2, 5), "int32"), logits)
    assert float(loss) == 0
    np.testing.assert_array_equal(gradient, np.zeros_like(logits))


@every_smoothing
def test_minus_one_can_mark_padding(labels, logits, smoothing):
    """Label 0 is then a token like any other."""
    ignored = np.where(labels == 0, -1, labels - 1)
    loss, gradient = loss_and_gradient(MaskedCrossentropy(smoothing, ignore_class=-1), ignored, logits[..., 1:])
    np.testing.assert_allclose(
        loss, token_losses(labels - 1, logits[..., 1:], smoothing)[labels != 0].mean(), rtol=1e-6
    )
    np.testing.assert_array_equal(gradient[labels == 0], 0)
    assert np.all(np.abs(gradient[labels != 0]).max(axis=-1) > 0)


@pytest.mark.parametrize("shape", [(2, 5), (2, 1)])
def test_sample_weight_multiplies_the_loss_of_tokens(rng, labels, logits, shape):
    """Tokens are counted without it, so that a weight of 2 everywhere doubles the loss."""
    weights = rng.uniform(0, 3, size=shape).astype("float32")
    loss, gradient = loss_and_gradient(MaskedCrossentropy(0.1), labels, logits, weights)
    np.testing.assert_allclose(loss, reference_loss(labels, logits, 0.1, weights), rtol=1e-6)
    np.testing.assert_allclose(gradient, reference_gradient(labels, logits, 0.1, weights), atol=1e-6)
    doubled = MaskedCrossentropy(0.1)(labels, logits, np.full(shape, 2.0, "float32"))
    np.testing.assert_allclose(doubled, 2 * MaskedCrossentropy(0.1)(labels, logits), rtol=1e-6)


@every_smoothing
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_logits_are_computed_in_float32(labels, logits, smoothing, dtype):
    half = tf.cast(logits, dtype)
    loss, gradient = loss_and_gradient(MaskedCrossentropy(smoothing), labels, half)
    expected, wide = loss_and_gradient(MaskedCrossentropy(smoothing), labels, tf.cast(half, "float32"))
    assert loss.dtype == "float32"
    assert gradient.dtype == dtype
    np.testing.assert_allclose(loss, expected, atol=1e-6)
    np.testing.assert_array_equal(tf.cast(gradient, "float32"), tf.cast(tf.cast(wide, dtype), "float32"))


@every_smoothing
@pytest.mark.parametrize("dtype, size", [("float32", 1e4), ("float32", 1e30), ("bfloat16", 1e4), ("float16", 6e4)])
def test_very_large_logits_stay_finite(labels, smoothing, dtype, size):
    signs = np.random.default_rng(2).choice([-1.0, 1.0], size=(2, 5, V))
    logits = tf.cast(size * signs, dtype)
    loss, gradient = loss_and_gradient(MaskedCrossentropy(smoothing), labels, logits)
    exact = tf.cast(logits, "float64").numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        plain = np.log(softmax(exact))
    shifted = exact - exact.max(axis=-1, keepdims=True)
    counts = np.exp(shifted).sum(axis=-1, keepdims=True)
    losses = -(target_distribution(labels, V, smoothing) * (shifted - np.log(counts))).sum(axis=-1)
    assert np.isneginf(plain).any()  # The naive formula does not survive these.
    np.testing.assert_allclose(loss, losses[labels != 0].mean(), rtol=1e-5)
    assert np.all(np.isfinite(tf.cast(gradient, "float32")))


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint16", "float32"])
def test_labels_of_any_dtype_give_the_same_loss(labels, logits, dtype):
    np.testing.assert_array_equal(
        MaskedCrossentropy(0.1)(labels.astype(dtype), logits), MaskedCrossentropy(0.1)(labels, logits)
    )


@pytest.mark.parametrize(
    "labels_shape, logits_shape",
    [
        ((2, 5, V), (2, 5, V)),  # One-hot labels.
        ((2, 5, 1), (2, 5, V)),
        ((2, 4), (2, 5, V)),
        ((3, 5), (2, 5, V)),
        ((2,), (2, 5, V)),
        ((2, 5), (2, 5)),
    ],
)
def test_shapes_that_do_not_fit_raise(labels_shape, logits_shape):
    with pytest.raises(ValueError, match="Received: "):
        MaskedCrossentropy()(np.ones(labels_shape, "int32"), np.ones(logits_shape, "float32"))


@pytest.mark.parametrize("shape", [(5,), (5, 1)])
def test_weight_of_a_sentence_weighs_all_its_tokens(rng, shape):
    """As many sentences as tokens in each: the weights must not fall on positions."""
    labels, logits, weights = rng.integers(1, V, (5, 5)), rng.normal(size=(5, 5, V)), rng.random(5)
    expected = reference_loss(labels, logits, weights=weights[:, None])
    np.testing.assert_allclose(MaskedCrossentropy()(labels, logits, weights.reshape(shape)), expected, rtol=1e-6)


@pytest.mark.parametrize("shape", [(4,), (5, 5, 1), (4, 5), (5, 4)])
def test_sample_weight_of_another_shape_raises(rng, shape):
    with pytest.raises(ValueError, match="Received: "):
        MaskedCrossentropy()(np.ones((5, 5), "int32"), rng.normal(size=(5, 5, V)), np.ones(shape, "float32"))


@pytest.mark.parametrize("smoothing", [-0.1, 1, 1.5, float("nan"), "0.1", None, True])
def test_smoothing_out_of_range_raises(smoothing):
    with pytest.raises(ValueError, match="label_smoothing.*Received: "):
        MaskedCrossentropy(label_smoothing=smoothing)


@pytest.mark.parametrize("label", [-1, -100, V, 2**31 - 1])
@pytest.mark.parametrize("jit_compile", [False, True])
def test_label_that_is_no_token_makes_the_loss_nan_and_no_crash(rng, label, jit_compile):
    labels, logits = np.array([[3, label], [2, 1]]), rng.normal(size=(2, 2, V)).astype("float32")
    loss = tf.function(MaskedCrossentropy(0.1), jit_compile=jit_compile)
    assert np.isnan(loss(tf.constant(labels), tf.constant(logits)))
    ignoring = tf.function(MaskedCrossentropy(0.1, ignore_class=label), jit_compile=jit_compile)
    assert np.isfinite(ignoring(tf.constant(labels), tf.constant(logits)))


def test_config_round_trip(labels, logits):
    """F09, F13."""
    loss = MaskedCrossentropy(0.2, ignore_class=-1, name="crossentropy")
    config = json.loads(json.dumps(loss.get_config()))
    for clone in (
        MaskedCrossentropy.from_config(config),
        keras.losses.deserialize(json.loads(json.dumps(keras.losses.serialize(loss)))),
    ):
        assert isinstance(clone, MaskedCrossentropy)
        assert clone.get_config() == loss.get_config()
        assert (clone.label_smoothing, clone.ignore_class, clone.name) == (0.2, -1, "crossentropy")
        np.testing.assert_array_equal(clone(labels, logits), loss(labels, logits))


MEMORY_CODE = """
import resource, sys
import keras, tensorflow as tf
from keras_transformer.losses import MaskedCrossentropy

stock = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)
loss = {"plain": stock, "smoothed": MaskedCrossentropy(0.1)}[sys.argv[1]]

@tf.function
def step(labels, logits):
    with tf.GradientTape() as tape:
        tape.watch(logits)
        value = loss(labels, logits)
    return value, tape.gradient(value, logits)

labels, logits = tf.ones((4, 1024), "int32"), tf.fill((4, 1024, 32000), 0.5)
with open("/proc/self/statm") as file:  # What is resident now: the peak before may have been higher.
    before = int(file.read().split()[1]) * resource.getpagesize()
step(labels, logits)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before)
"""


def test_smoothing_needs_at_most_one_more_buffer_of_logits_than_the_stock_loss_without(run_python):
    """F13: peak memory of forward and backward pass, vocabulary 32,000, 4,096 tokens."""
    logits_size = 4096 * 32000 * 4
    # With oneDNN, which TensorFlow turns on by itself on some processors, 17 MB were taken beside the one and 50 beside
    # the other, less than a tenth of a buffer; without it 2 beside each.
    run = functools.partial(run_python, MEMORY_CODE, TF_ENABLE_ONEDNN_OPTS="0")
    plain, smoothed = (int(run(kind).split()[-1]) for kind in ("plain", "smoothed"))
    assert plain >= logits_size  # The gradient alone: the peak was not before the step.
    assert smoothed - plain <= 1.05 * logits_size


def test_graph_of_loss_and_gradient_holds_no_one_hot(labels):
    """F13."""
    step = tf.function(lambda y, z: loss_and_gradient(MaskedCrossentropy(0.1), y, z))
    specs = tf.TensorSpec((None, None), "int32"), tf.TensorSpec((None, None, V), "float32")
    graph = step.get_concrete_function(*specs).graph.as_graph_def()
    nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
    operations = {node.op for node in nodes}
    assert "Exp" in operations
    assert "OneHot" not in operations


@every_smoothing
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_xla_gives_equal_loss_and_gradient(labels, logits, smoothing, dtype):
    """F17."""
    loss, logits = MaskedCrossentropy(smoothing), tf.cast(logits, dtype)
    plain, compiled = (
        tf.function(lambda y, z: loss_and_gradient(loss, y, z), jit_compile=jit)(labels, logits)
        for jit in (False, True)
    )
    np.testing.assert_allclose(plain[0], compiled[0], rtol=1e-6)
    tolerance = 1e-6 if dtype == "float32" else 1e-3  # One unit in the last place of bfloat16.
    np.testing.assert_allclose(tf.cast(plain[1], "float32"), tf.cast(compiled[1], "float32"), atol=tolerance)


def test_fit_gives_equal_losses_with_and_without_xla(rng):
    """F17."""
    inputs, target = model_data(rng, 8)
    model, histories = tiny_model(), []
    start = model.get_weights()
    for jit_compile in (False, True, "auto"):
        model.set_weights(start)
        model.compile(keras.optimizers.SGD(0.5), MaskedCrossentropy(0.1), jit_compile=jit_compile)
        history = model.fit(inputs, target, batch_size=8, epochs=5, shuffle=False, verbose=0).history
        histories.append(history["loss"])
    plain, compiled, automatic = histories
    assert plain[-1] < plain[0] - 0.01
    np.testing.assert_allclose(plain, compiled, atol=1e-4)
    np.testing.assert_allclose(plain, automatic, atol=1e-4)


@pytest.fixture(scope="module")
def trained_on():
    """A model, sentences of unequal length for it, and the loss of each of their tokens by the reference."""
    keras.utils.set_random_seed(3)
    model = tiny_model()
    model.compile(keras.optimizers.SGD(0.0), MaskedCrossentropy(0.1))
    inputs, target = model_data(np.random.default_rng(3), 22)
    return model, inputs, target, token_losses(target, model(inputs).numpy(), 0.1)


def test_evaluate_reports_the_mean_over_tokens_whatever_the_batch_size(trained_on):
    """F12."""
    model, inputs, target, losses = trained_on
    reported = [model.evaluate(inputs, target, batch_size=size, verbose=0) for size in (1, 5, 64)]
    np.testing.assert_allclose(reported, losses[target != 0].mean(), atol=1e-5)


def test_evaluate_reports_the_mean_over_tokens_where_batches_are_padded_unequally(trained_on):
    """F12."""
    model, inputs, target, losses = trained_on
    dataset = tf.data.Dataset.from_tensor_slices((inputs, target)).map(
        lambda x, y: (tf.nest.map_structure(lambda ids: ids[ids != 0], x), y[y != 0])
    )
    reported = model.evaluate(dataset.padded_batch(4), verbose=0)
    np.testing.assert_allclose(reported, losses[target != 0].mean(), atol=1e-5)


@pytest.mark.parametrize("shape", [(22, 9), (22, 1)])
def test_evaluate_with_sample_weight_does_not_depend_on_the_batch_size(rng, trained_on, shape):
    """F12."""
    model, inputs, target, losses = trained_on
    weights = rng.uniform(0, 3, size=shape).astype("float32")
    reported = [model.evaluate(inputs, target, sample_weight=weights, batch_size=size, verbose=0) for size in (1, 64)]
    np.testing.assert_allclose(reported, (losses * weights)[target != 0].sum() / np.sum(target != 0), atol=1e-5)


@pytest.mark.parametrize("batch_size", [1, 5, 64])
def test_fit_reports_the_mean_over_tokens_whatever_the_batch_size(trained_on, batch_size):
    """F12."""
    model, inputs, target, losses = trained_on
    history = model.fit(inputs, target, batch_size=4, shuffle=False, verbose=0).history
    np.testing.assert_allclose(history["loss"], [losses[target != 0].mean()], atol=1e-5)


def test_compiled_model_keeps_its_loss_in_a_keras_file(rng, tmp_path):
    """F09, F12, F13."""
    inputs, target = model_data(rng, 6)
    target, model = target - 1, tiny_model()
    model.compile("sgd", MaskedCrossentropy(0.3, ignore_class=-1))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert isinstance(loaded.loss, MaskedCrossentropy)
    assert loaded.loss.get_config() == model.loss.get_config()
    expected = token_losses(target, model(inputs).numpy(), 0.3)[target != -1].mean()
    for one in (model, loaded):
        logs = one.evaluate(inputs, target, batch_size=1, verbose=0, return_dict=True)
        assert list(logs) == ["loss"]
        np.testing.assert_allclose(logs["loss"], expected, atol=1e-5)


REPLICAS_CODE = """
import contextlib, json
import keras, numpy as np, tensorflow as tf
from keras_transformer.losses import MaskedCrossentropy
from keras_transformer.models import TransformerConfig, transformer

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
assert strategy.num_replicas_in_sync == 2

rng = np.random.default_rng(1)
target = rng.integers(3, 20, size=(4, 9)) * (np.arange(9) < np.array([[9], [8], [1], [2]]))
inputs = {"source_ids": rng.integers(3, 20, size=(4, 6)), "target_ids": np.roll(target, 1, axis=1)}
first_three = {name: ids[:3] for name, ids in inputs.items()}
weights = np.array([[1.0], [2.0], [3.0]])

def run(scope):
    keras.utils.set_random_seed(1)
    with scope:
        model = transformer(TransformerConfig(20, None, 1, 1, 8, 16, 2, dropout=0.0))
        model.compile(keras.optimizers.SGD(0.5), MaskedCrossentropy(0.1))
    start = model.get_weights()
    fitted = model.fit(inputs, target, batch_size=4, shuffle=False, verbose=0)
    # The last batch, of one sentence, leaves the second replica without any.
    evaluated = model.evaluate(first_three, target[:3], batch_size=2, sample_weight=weights, verbose=0)
    moves = [(end - begin).tolist() for begin, end in zip(start, model.get_weights())]
    return {"loss": fitted.history["loss"][0], "evaluated": evaluated, "moves": moves}

print(json.dumps([run(contextlib.nullcontext()), run(strategy.scope())]))
"""


def test_two_replicas_make_the_step_of_one_device(run_python):
    """F12: 17 real tokens on one replica, 3 on the other."""
    one, two = json.loads(run_python(REPLICAS_CODE).splitlines()[-1])
    np.testing.assert_allclose(two["loss"], one["loss"], rtol=1e-5)
    np.testing.assert_allclose(two["evaluated"], one["evaluated"], rtol=1e-5)
    assert max(np.abs(move).max() for move in one["moves"]) > 0.01
    for expected, move in zip(one["moves"], two["moves"], strict=True):
        np.testing.assert_allclose(move, expected, atol=1e-5)
