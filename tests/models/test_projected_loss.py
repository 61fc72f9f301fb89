"""The loss without logits: against NumPy in float64, and the steps that use it against steps with logits."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.losses import MaskedCrossentropy
from keras_transformer.metrics import MaskedAccuracy, Perplexity
from keras_transformer.models import Transformer, TransformerConfig, projected_loss
from keras_transformer.models.projected_loss import projected_crossentropy

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
    wanted = np.eye(V)[labels] * (1 - smoothing) + smoothing / V
    loss = (weights * -(wanted * np.log(probabilities)).sum(axis=1)).sum()
    of_logits = weights[:, None] * (probabilities - wanted)
    figures = logits[np.arange(N), labels], logits.max(axis=1), np.log(np.exp(logits).sum(axis=1)) - logits.max(axis=1)
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
    monkeypatch.setattr(projected_loss, "_ROWS", rows)
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
def test_label_that_is_no_token_makes_loss_and_gradients_nan_and_in_padding_does_nothing(tokens, label):
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
        assert bool(model._projector) == (cls is Transformer)
        logs = [model.train_on_batch(X, LABELS, weights, return_dict=True) for _ in range(2)]
        results.append((logs, model.get_weights()))
    (logs, ours), (wanted_logs, wanted) = results
    tolerance = 3e-2 if "dtype" in options else 1e-5
    for one, two in zip(logs, wanted_logs, strict=True):
        assert set(one) == {"loss", "accuracy", "perplexity"}
        assert one == pytest.approx(two, rel=tolerance)
    for one, two in zip(ours, wanted, strict=True):
        np.testing.assert_allclose(one, two, atol=tolerance)


@pytest.mark.parametrize(
    "options",
    [
        {"metrics": [keras.metrics.SparseCategoricalAccuracy()]},
        {"weighted_metrics": [Perplexity(name="weighted")]},
        {"r_drop": 1.0},
        {"dtype": "mixed_float16"},
        {"loss_weights": [2.0]},
    ],
    ids=str,
)
def test_step_with_anything_that_needs_logits_makes_them(options):
    model = compiled(Transformer, **options)
    assert model._projector is None
    assert np.isfinite(model.train_on_batch(X, LABELS, return_dict=True)["loss"])


MEMORY_CODE = """
import resource
import keras, numpy as np, tensorflow as tf
from keras_transformer.losses import MaskedCrossentropy
from keras_transformer.models import TransformerConfig, transformer

V, ids = 32_000, np.ones((32, 64), "int32")
sizes = {"encoder_layers": 1, "decoder_layers": 1, "model_dim": 16, "intermediate_dim": 16, "num_heads": 1}
model = transformer(TransformerConfig(V, **sizes))
model.compile("sgd", MaskedCrossentropy(0.1))
step = lambda ids: model.train_on_batch({"source_ids": ids, "target_ids": ids}, ids)
step(ids[:1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
step(ids)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / (ids.size * V * 4))
"""


def test_memory_of_a_step_is_less_than_its_logits_would_take(run_python):
    assert float(run_python(MEMORY_CODE).split()[-1]) < 0.8
