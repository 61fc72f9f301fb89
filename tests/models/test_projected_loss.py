"""The loss without logits: against NumPy in float64, and the steps that use it against steps with logits."""

import os

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.losses import MaskedCrossentropy
from keras_transformer.metrics import MaskedAccuracy, Perplexity
from keras_transformer.models import Transformer, TransformerConfig, projected_loss
from keras_transformer.models.projected_loss import projected_crossentropy
from keras_transformer.models.training_step import needs_no_logits

N, D, V = 11, 6, 9
SIZES = {"encoder_layers": 1, "decoder_layers": 1, "model_dim": 16, "intermediate_dim": 32, "num_heads": 2}


class WithLogits(Transformer):
    """Of another type than `Transformer`: it might override what is handed logits."""


@pytest.fixture
def tokens(rng):
    """Hidden states, kernel, labels and weights of N tokens, of which some are padding."""
    hidden, kernel = rng.normal(size=(N, D)), rng.normal(size=(V, D))
    weights = rng.uniform(0.5, 2, N) * (np.arange(N) % 4 != 3)
    return hidden.astype("float32"), kernel.astype("float32"), rng.integers(0, V, N).astype("int32"), weights


def expected(hidden, kernel, labels, weights, smoothing):
    """Loss, gradients and figures by the definition, in float64."""
    hidden, kernel = hidden.astype("float64"), kernel.astype("float64")
    logits = hidden @ kernel.T
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    wanted = np.eye(len(kernel))[labels] * (1 - smoothing) + smoothing / len(kernel)
    loss = (weights * -(wanted * np.log(probabilities)).sum(axis=1)).sum()
    of_logits = weights[:, None] * (probabilities - wanted)
    figures = (
        logits[np.arange(len(labels)), labels],
        logits.max(axis=1),
        np.log(np.exp(logits).sum(axis=1)) - logits.max(axis=1),
    )
    return loss, of_logits @ kernel, of_logits.T @ hidden, figures


def loss_and_gradients(hidden, kernel, labels, weights, smoothing, upstream=1.0):
    hidden, kernel = tf.convert_to_tensor(hidden), tf.convert_to_tensor(kernel)
    with tf.GradientTape() as tape:
        tape.watch([hidden, kernel])
        loss, figures = projected_crossentropy(hidden, kernel, labels, tf.cast(weights, "float32"), smoothing)
        scaled = upstream * loss
    return loss, *tape.gradient(scaled, [hidden, kernel]), figures


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("rows", [1, 4, 100])
@pytest.mark.parametrize("graph", ["eager", "graph", "xla"])
def test_loss_gradients_and_figures_are_those_of_the_definition(tokens, monkeypatch, smoothing, rows, graph):
    monkeypatch.setattr(projected_loss, "_CELLS", rows * V)
    monkeypatch.setattr(projected_loss, "_ROWS_PER_WIDTH", 0)
    function = loss_and_gradients
    if graph != "eager":
        shapes = [tf.TensorSpec([None, *part.shape[1:]], tf.as_dtype(part.dtype)) for part in tokens]
        shapes[1] = tf.TensorSpec([V, D])
        function = tf.function(
            lambda *parts: loss_and_gradients(*parts, smoothing, 3.0), shapes, jit_compile=graph == "xla"
        )
        loss, of_hidden, of_kernel, figures = function(*map(tf.constant, tokens))
    else:
        loss, of_hidden, of_kernel, figures = function(*tokens, smoothing, 3.0)
    wanted = expected(*tokens, smoothing)
    np.testing.assert_allclose(loss, wanted[0], rtol=1e-5)
    np.testing.assert_allclose(of_hidden, 3 * wanted[1], atol=1e-5)
    np.testing.assert_allclose(of_kernel, 3 * wanted[2], atol=1e-5)
    for figure, value in zip(figures, wanted[3], strict=True):
        np.testing.assert_allclose(figure, value, atol=1e-5)


@pytest.mark.parametrize("label", [-1, V])
def test_label_that_is_no_token_makes_loss_and_gradients_nan(tokens, label):
    hidden, kernel, labels, weights = tokens
    assert weights[3] == 0 and weights[4] != 0
    labels[3] = 0  # Padding has label 0.
    wanted = loss_and_gradients(hidden, kernel, labels, weights, 0.1)[0]
    assert np.isfinite(wanted)
    labels[4] = label
    loss, of_hidden, of_kernel, figures = loss_and_gradients(hidden, kernel, labels, weights, 0.1)
    assert np.isnan(loss) and np.isnan(of_hidden[4]).all() and np.isnan(of_kernel).any()
    assert np.isnan(figures.label_logit[4]) and np.isfinite(figures.label_logit[3])


def test_logits_that_share_a_large_offset_keep_their_digits(tokens):
    hidden, kernel, labels, weights = tokens
    hidden, kernel = np.pad(hidden, [(0, 0), (0, 1)], constant_values=1), np.pad(kernel, [(0, 0), (0, 1)])
    plain = loss_and_gradients(hidden, kernel, labels, weights, 0.1)[0]
    kernel[:, -1] = 1000.0
    np.testing.assert_allclose(loss_and_gradients(hidden, kernel, labels, weights, 0.1)[0], plain, rtol=1e-3)


def test_no_tokens_have_loss_zero():
    loss, of_hidden, of_kernel, _ = loss_and_gradients(
        np.zeros((0, D), "float32"), np.ones((V, D), "float32"), np.zeros(0, "int32"), np.zeros(0), 0.1
    )
    assert float(loss) == 0.0 and of_hidden.shape == (0, D) and not np.any(of_kernel)


SOURCE = np.random.default_rng(1).integers(3, 20, (8, 6))
LABELS = np.random.default_rng(2).integers(3, 20, (8, 5)) * (np.arange(5) < np.array([[5], [1], [3], [2]] * 2))
X = {"source_ids": SOURCE, "target_ids": np.concatenate([np.full((8, 1), 2), LABELS[:, :-1]], axis=1)}


def compiled(cls, config=None, dtype=None, metrics=(), frozen=False, **options):
    keras.utils.set_random_seed(1)
    model = cls(TransformerConfig(20, dropout=0.3, **SIZES, **(config or {})), dtype=dtype)
    model.target_embedding.trainable = not frozen
    options = {"optimizer": keras.optimizers.SGD(0.5), "loss": MaskedCrossentropy(0.1), **options}
    model.compile(metrics=[MaskedAccuracy(), Perplexity(), *metrics], **options)
    return model


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weights": None},
        {"weights": np.linspace(0, 2, 8)},
        {"run_eagerly": True},
        {"jit_compile": True},
        {"config": {"tie_embeddings": "none"}},
        {"config": {"tie_embeddings": "target", "target_vocabulary_size": 23}},
        {"config": {"normalize_first": True}},
        {"frozen": True},
        {"dtype": "mixed_bfloat16"},
        {"micro_batches": 2, "parallel_parts": 2},
        {"optimizer": "accumulating"},
    ],
    ids=lambda options: " ".join(options),
)
def test_step_without_logits_is_the_step_with_logits(options):
    weights, results = options.pop("weights", np.linspace(0, 2, 40).reshape(8, 5)), []
    for cls in (Transformer, WithLogits):
        if options.get("optimizer"):
            options = {"optimizer": keras.optimizers.SGD(0.5, gradient_accumulation_steps=2)}
        model = compiled(cls, **options)
        assert model._needs_no_logits() == (cls is Transformer)
        logs = [model.train_on_batch(X, LABELS, weights, return_dict=True) for _ in range(2)]
        logs.append(model.test_on_batch(X, LABELS, weights, return_dict=True))
        results.append((logs, model.get_weights()))
    (logs, ours), (wanted_logs, wanted) = results
    tolerance = 3e-2 if "dtype" in options else 1e-5
    for one, two in zip(logs, wanted_logs, strict=True):
        assert set(one) == {"loss", "accuracy", "perplexity"}
        assert one == pytest.approx(two, rel=tolerance)
    for one, two in zip(ours, wanted, strict=True):
        np.testing.assert_allclose(one, two, atol=tolerance)


def test_gradients_in_bfloat16_are_exact_to_its_digits_where_the_model_is_sure(rng):
    """Where p is almost onehot(y), their products are almost alike, and their difference has no digits left."""
    kernel = np.array(rng.normal(size=(64, 32)), "float32")
    labels = np.arange(64, dtype="int32")
    hidden = tf.cast(0.4 * kernel[labels], "bfloat16")
    rounded = [np.array(tf.cast(part, "bfloat16"), "float32") for part in (hidden, kernel)]
    exact = expected(*rounded, labels, np.ones(64), 0.0)
    assert 0.95 < np.exp(exact[3][0] - exact[3][1] - exact[3][2]).mean() < 1
    _, *gradients, _ = loss_and_gradients(hidden, kernel, labels, np.ones(64), 0.0)
    for gradient, wanted in zip(gradients, exact[1:3], strict=True):
        error = np.linalg.norm(np.array(gradient, "float64") - wanted) / np.linalg.norm(wanted)
        assert error < 0.02


@pytest.mark.parametrize(
    "options",
    [
        {"metrics": [keras.metrics.SparseCategoricalAccuracy()]},
        {"metrics": [Perplexity(ignore_class=3, name="other")]},
        {"weighted_metrics": [Perplexity(name="weighted")]},
        {"loss": MaskedCrossentropy(ignore_class=-1)},
        {"r_drop": 1.0},
        {"dtype": "mixed_float16"},
        {"loss_weights": [2.0]},
    ],
    ids=lambda options: " ".join(options),
)
def test_step_with_anything_that_wants_logits_makes_them(options):
    model = compiled(Transformer, **options)
    assert not needs_no_logits(model)
    assert np.isfinite(model.train_on_batch(X, LABELS, return_dict=True)["loss"])


@pytest.mark.parametrize("name", ["call", "compute_loss", "compute_metrics"])
def test_what_is_put_on_a_model_in_place_of_a_method_is_called(name):
    model, calls = compiled(Transformer, run_eagerly=True), []
    method = getattr(model, name)
    setattr(model, name, lambda *args, **kwargs: calls.append(name) or method(*args, **kwargs))
    model.train_on_batch(X, LABELS)
    model.test_on_batch(X, LABELS)
    assert calls == [name] * 2


def test_projection_that_does_more_than_to_project_is_left_to_its_layer():
    model = compiled(Transformer, config={"tie_embeddings": "none"})
    assert needs_no_logits(model)
    model.output_projection.quantize("int8")
    assert not needs_no_logits(model)


def test_losses_that_layers_add_count():
    results = []
    for cls in (Transformer, WithLogits):
        model = compiled(cls)
        model.target_embedding.token_embedding.embeddings.regularizer = keras.regularizers.L2(0.1)
        results.append([model.train_on_batch(X, LABELS)[0], *model.get_weights()])
    assert float(results[0][0]) > 1 + float(compiled(Transformer).train_on_batch(X, LABELS)[0])
    for one, two in zip(*results, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-5)


@pytest.mark.parametrize("cls", [Transformer, WithLogits])
def test_weights_without_a_gradient_are_left_alone_and_none_at_all_is_a_warning(cls):
    model = compiled(cls)
    model.spare = keras.layers.Dense(3)
    model.spare.build((None, 2))
    model.compile(keras.optimizers.SGD(0.5), MaskedCrossentropy())
    before = model.spare.get_weights()
    with pytest.warns(UserWarning, match="Gradients do not exist"):
        model.train_on_batch(X, LABELS)
    np.testing.assert_array_equal(model.spare.get_weights()[0], before[0])
    model.trainable = False
    model.compile(keras.optimizers.SGD(0.5), MaskedCrossentropy())
    with pytest.warns(UserWarning, match="does not have any trainable weights"):
        assert np.isfinite(model.train_on_batch(X, LABELS)).all()


@pytest.mark.parametrize("labels", [LABELS[..., None], LABELS[:, :-1]], ids=["[B,T,1]", "[B,T-1]"])
def test_labels_of_another_shape_are_refused_in_training_as_in_evaluation(labels):
    model = compiled(Transformer, run_eagerly=True)
    for step in (model.train_on_batch, model.test_on_batch):
        with pytest.raises(ValueError, match=r"Expected integer labels \[batch, length\].*Received: labels of shape"):
            step(X, labels)


def test_weights_of_a_model_that_has_made_a_step_are_saved_with_nothing_more(tmp_path):
    names = []
    for steps in (0, 1):
        model = compiled(Transformer)
        for _ in range(steps):
            model.train_on_batch(X, LABELS)
        model.save_weights(tmp_path / f"{steps}.weights.h5")
        with h5py.File(tmp_path / f"{steps}.weights.h5") as file:
            names.append([])
            file.visit(names[-1].append)
    assert names[0] == names[1] and not any("hidden" in name for name in names[1])


MEMORY_CODE = """
import os, sys
import keras, numpy as np, tensorflow as tf
from keras_transformer.losses import MaskedCrossentropy
from keras_transformer.models import Transformer, TransformerConfig

class WithLogits(Transformer):
    pass

V, ids = 32_000, np.ones((32, 64), "int32")
sizes = {"encoder_layers": 1, "decoder_layers": 1, "model_dim": 16, "intermediate_dim": 16, "num_heads": 1}
model = {"without": Transformer, "with": WithLogits}[sys.argv[2]](TransformerConfig(V, **sizes))
model.compile("sgd", MaskedCrossentropy(0.1))
step = lambda ids: getattr(model, sys.argv[1])({"source_ids": ids, "target_ids": ids}, ids)
step(ids[:1])

def status(name):  # Not getrusage, which begins with the peak of the process that started this one.
    with open("/proc/self/status") as file:
        return 1024 * int(next(line for line in file if line.startswith(name)).split()[1])

before = status("VmRSS")
step(ids)
print((status("VmHWM") - before) / (ids.size * V * 4))
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the memory of a process is read from /proc")
@pytest.mark.parametrize("step", ["train_on_batch", "test_on_batch"])
def test_memory_of_a_step_is_less_than_its_logits_would_take(run_python, step):
    without, with_logits = (float(run_python(MEMORY_CODE, step, kind).split()[-1]) for kind in ("without", "with"))
    assert without < 0.8
    assert with_logits > 1  # So that the measure is one.
