import itertools
import json
import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.losses import MaskedCrossentropy
from keras_transformer.models import TransformerConfig, transformer
from keras_transformer.models.r_drop import disagreement, twice

V = 20
SMOOTHING = 0.1
RNG = np.random.default_rng(1)
SOURCE = RNG.integers(3, V, (4, 6)) * (np.arange(6) < RNG.integers(2, 7, (4, 1)))
LABELS = RNG.integers(3, V, (4, 5)) * (np.arange(5) < np.array([[5], [1], [3], [2]]))
X = {"source_ids": SOURCE, "target_ids": np.concatenate([np.full((4, 1), 2), LABELS[:, :-1]], axis=1)}
SIZES = {"encoder_layers": 1, "decoder_layers": 1, "model_dim": 16, "intermediate_dim": 32, "num_heads": 2}


def compiled(dropout=0.3, run_eagerly=True, **options):
    model = transformer(TransformerConfig(V, dropout=dropout, **SIZES))
    model.compile(keras.optimizers.SGD(0.5), MaskedCrossentropy(SMOOTHING), run_eagerly=run_eagerly, **options)
    return model


def step(model, sample_weight=None):
    return float(model.train_on_batch(X, LABELS, sample_weight))


def paper_loss(first, second, labels, alpha, log, sample_weight=1.0):
    """Half of formula (4) of Liang et al. (2021) for each token, from the probabilities of both passes, [B,T,V]."""
    likelihood = 0.0
    for probabilities in (first, second):
        of_label = np.eye(V)[labels] * (1 - SMOOTHING) + SMOOTHING / V
        likelihood = likelihood - (of_label * log(probabilities)).sum(-1)
    forwards = (first * (log(first) - log(second))).sum(-1)
    backwards = (second * (log(second) - log(first))).sum(-1)
    tokens = likelihood + alpha * (forwards + backwards) / 2
    real = labels != 0
    return (tokens * real * sample_weight).sum() / real.sum() / 2


def softmax(logits):
    exponentials = np.exp(np.asarray(logits, "float64"))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def expected_disagreement(logits, weights):
    first, second = softmax(logits[0::2]), softmax(logits[1::2])
    forwards = (first * np.log(first / second)).sum(-1)
    backwards = (second * np.log(second / first)).sum(-1)
    return ((forwards + backwards) / 2 * weights[0::2]).sum()


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 1e-5), ("float16", 1e-2)])
def test_disagreement_is_the_symmetric_divergence_of_both_passes(rng, dtype, tolerance):
    logits = (2 * rng.normal(size=(6, 4, V))).astype(dtype)
    weights = np.repeat([[1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]], 2, axis=0)
    result = disagreement(logits, weights)
    assert result.dtype == ("float64" if dtype == "float64" else "float32")
    np.testing.assert_allclose(result, expected_disagreement(logits, weights), rtol=tolerance)
    other = np.where(weights[..., None] == 0, 7 * rng.normal(size=logits.shape), logits).astype(dtype)
    np.testing.assert_allclose(disagreement(other, weights), result, rtol=1e-6)  # Padding does not matter.


def test_gradient_of_disagreement_is_that_of_finite_differences(rng):
    logits, weights = rng.normal(size=(4, 2, 5)), np.repeat([[1.0, 0.5], [1.0, 0.0]], 2, axis=0)
    variable = tf.Variable(logits)
    with tf.GradientTape() as tape:
        loss = disagreement(variable, weights)
    gradient = tape.gradient(loss, variable).numpy()
    for index in np.ndindex(logits.shape):
        moved = [logits.copy(), logits.copy()]
        moved[0][index] -= 1e-5
        moved[1][index] += 1e-5
        slope = (expected_disagreement(moved[1], weights) - expected_disagreement(moved[0], weights)) / 2e-5
        assert gradient[index] == pytest.approx(slope, abs=1e-7), index


def test_passes_that_agree_have_no_disagreement_however_large_the_logits(rng):
    logits = twice(1e4 * rng.normal(size=(3, 4, V)).astype("float32"))
    assert float(disagreement(logits, np.ones((6, 4)))) == 0
    logits = np.array([[[1e4, 0.0]], [[0.0, 1e4]]], "float32")
    assert float(disagreement(logits, np.ones((2, 1)))) == pytest.approx(1e4)


def test_rows_of_a_batch_come_twice_in_a_row():
    x, y, weight = twice(({"source_ids": SOURCE}, LABELS, None))
    np.testing.assert_array_equal(x["source_ids"][4:6], SOURCE[[2, 2]])
    np.testing.assert_array_equal(y[4:6], LABELS[[2, 2]])
    assert weight is None


@pytest.mark.parametrize("options", [{}, {"run_eagerly": False}, {"run_eagerly": False, "jit_compile": True}])
def test_without_dropout_a_step_is_the_plain_one(options):
    plain, model = compiled(0.0), compiled(0.0, r_drop=5.0, **options)
    model.set_weights(plain.get_weights())
    assert step(model) == pytest.approx(step(plain), rel=1e-6)
    for one, two in zip(model.get_weights(), plain.get_weights(), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-6)


@pytest.mark.parametrize("sample_weight", [None, np.array([1.0, 3.0, 0.0, 0.5])])
def test_loss_and_update_are_those_of_half_the_papers_formula(sample_weight):
    model = compiled(r_drop=4.0)
    before = model.get_weights()
    seeds = [variable for variable in model.variables if "seed_generator_state" in variable.path]
    states = [np.asarray(seed) for seed in seeds]
    with tf.GradientTape() as tape:
        logits = model({name: np.repeat(ids, 2, axis=0) for name, ids in X.items()}, training=True)
        passes = tf.nn.softmax(logits[0::2]), tf.nn.softmax(logits[1::2])
        loss = _as_tensors(passes, 1.0 if sample_weight is None else sample_weight[:, None])
    assert np.abs(passes[0] - passes[1]).max() > 0.01
    arrays = [softmax(logits[start::2]) for start in (0, 1)]
    by_hand = paper_loss(*arrays, LABELS, 4.0, np.log, 1.0 if sample_weight is None else sample_weight[:, None])
    assert float(loss) == pytest.approx(by_hand, rel=1e-5)
    gradients = tape.gradient(loss, model.trainable_weights)

    for seed, state in zip(seeds, states, strict=True):
        seed.assign(state)  # The same dropout again.
    assert step(model, sample_weight) == pytest.approx(by_hand, rel=1e-5)
    for weight, start, gradient in zip(model.trainable_weights, before, gradients, strict=True):
        np.testing.assert_allclose(weight, start - 0.5 * tf.convert_to_tensor(gradient), atol=1e-6)


def _as_tensors(passes, sample_weight):
    """The paper's formula once more, in TensorFlow for its gradient."""
    first, second = passes
    real = (LABELS != 0) * np.broadcast_to(sample_weight, LABELS.shape)
    target = (np.eye(V)[LABELS] * (1 - SMOOTHING) + SMOOTHING / V).astype("float32")
    tokens = -tf.reduce_sum(target * (tf.math.log(first) + tf.math.log(second)), -1)
    for p, q in ((first, second), (second, first)):
        tokens += 4.0 / 2 * tf.reduce_sum(p * tf.math.log(p / q), -1)
    return tf.reduce_sum(tokens * real.astype("float32")) / (2 * (LABELS != 0).sum())


def test_evaluation_takes_one_pass_and_reports_the_plain_loss():
    model = compiled(r_drop=5.0, run_eagerly=False)
    rows, call = [], model.call
    model.call = lambda inputs, **options: rows.append(inputs["source_ids"].shape[0]) or call(inputs, **options)
    loss = model.evaluate(X, LABELS, batch_size=4, verbose=0)
    assert set(rows) == {4}
    expected = MaskedCrossentropy(SMOOTHING)(LABELS, model.predict(X, verbose=0))
    assert loss == pytest.approx(float(expected), rel=1e-5)


def test_loss_of_an_epoch_heeds_tokens_and_padding_does_not_matter():
    """F12: the divergence is zero without dropout; what is left is the mean over all tokens."""
    padded = {name: np.pad(ids, ((0, 0), (0, 3))) for name, ids in X.items()}
    losses = []
    for x, labels, size in ((X, LABELS, 4), (X, LABELS, 1), (padded, np.pad(LABELS, ((0, 0), (0, 3))), 3)):
        keras.utils.set_random_seed(1)
        model = compiled(0.0, r_drop=2.0)
        model.optimizer.learning_rate = 0.0
        losses.append(model.fit(x, labels, batch_size=size, verbose=0).history["loss"][0])
    assert losses == pytest.approx(losses[:1] * 3, rel=1e-5)


def test_saved_model_keeps_the_weight_of_the_divergence(tmp_path):
    compiled(r_drop=3.0, micro_batches=2, parallel_parts=3).save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    config = loaded.get_compile_config()
    assert (config["r_drop"], config["micro_batches"], config["parallel_parts"]) == (3.0, 2, 3)
    loaded.compile("sgd", MaskedCrossentropy())  # Anew, without.
    config = loaded.get_compile_config()
    assert (config["r_drop"], config["micro_batches"], config["parallel_parts"]) == (None, 1, 1)


@pytest.mark.parametrize("value", [0, -1.0, float("inf"), float("nan"), True, "5"])
def test_weight_of_the_divergence_must_be_above_zero(value):
    with pytest.raises(ValueError, match="`r_drop` must be a finite number above 0. Received: r_drop="):
        compiled(r_drop=value)


def test_other_losses_are_refused():
    model = transformer(TransformerConfig(V, **SIZES))
    for options in ({"r_drop": 1.0}, {"micro_batches": 2}, {"parallel_parts": 2}):
        with pytest.raises(ValueError, match="need a MaskedCrossentropy as the loss. Received: loss="):
            model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), **options)


def test_missing_labels_are_named():
    for options in ({"r_drop": 1.0}, {"micro_batches": 2}):
        with pytest.raises(ValueError, match="needs labels.*Received: y=None"):
            compiled(**options).train_on_batch(X)


def losses_by_weight():
    """The loss of the same step under three weights of the divergence, and what `evaluate` says before it."""
    losses = []
    for alpha in (1.0, 2.0, 3.0):
        keras.utils.set_random_seed(1)
        model = compiled(0.3, run_eagerly=False, r_drop=alpha)
        losses.append(step(model))
    return losses


REPORT = """
import json, sys; sys.path.insert(0, sys.argv[1])
import keras, test_r_drop
try:
    test_r_drop.compiled(micro_batches=2)
except ValueError as error:
    refused = str(error)
print(json.dumps([keras.backend.backend(), test_r_drop.losses_by_weight(), refused]))
"""


def test_jax_counts_the_divergence_and_refuses_micro_batches(run_python):
    pytest.importorskip("jax", reason="JAX, the other backend, is not installed.")
    output = run_python(REPORT, pathlib.Path(__file__).parent, KERAS_BACKEND="jax", JAX_PLATFORMS="cpu")
    backend, losses, refused = json.loads(output.splitlines()[-1])
    assert backend == "jax" and "micro_batches=2 on jax" in refused
    steps = [second - first for first, second in itertools.pairwise(losses)]
    assert steps[0] > 0.01 and steps[1] == pytest.approx(steps[0], rel=1e-3)
