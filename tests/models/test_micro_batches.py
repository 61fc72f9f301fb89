import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.losses import MaskedCrossentropy
from keras_transformer.metrics import MaskedAccuracy, Perplexity
from keras_transformer.models import TransformerConfig, transformer
from keras_transformer.models.micro_batches import accumulate
from keras_transformer.schedules import InverseSquareRootSchedule
from tests.models.test_r_drop import paper_loss, softmax

V = 20
RNG = np.random.default_rng(1)
SOURCE = RNG.integers(3, V, (8, 6)) * (np.arange(6) < RNG.integers(2, 7, (8, 1)))
LABELS = RNG.integers(3, V, (8, 5)) * (np.arange(5) < np.array([[5], [1], [3], [2], [0], [5], [1], [4]]))
X = {"source_ids": SOURCE, "target_ids": np.concatenate([np.full((8, 1), 2), LABELS[:, :-1]], axis=1)}
SIZES = {"encoder_layers": 1, "decoder_layers": 1, "model_dim": 16, "intermediate_dim": 32, "num_heads": 2}


def compiled(optimizer=None, dropout=0.0, dtype=None, run_eagerly=True, **options):
    keras.utils.set_random_seed(1)
    model = transformer(TransformerConfig(V, dropout=dropout, **SIZES), dtype=dtype)
    optimizer = optimizer or keras.optimizers.SGD(0.5)
    metrics = [MaskedAccuracy(), Perplexity()]
    model.compile(optimizer, MaskedCrossentropy(0.1), metrics=metrics, run_eagerly=run_eagerly, **options)
    return model


def assert_same_step(model, whole, sample_weight=None, tolerance=1e-6, rows=8):
    """One step each; with the same update and the same reports."""
    before, batch = whole.get_weights(), ({name: ids[:rows] for name, ids in X.items()}, LABELS[:rows])
    logs, expected = (one.train_on_batch(*batch, sample_weight, return_dict=True) for one in (model, whole))
    assert set(expected) == {"loss", "accuracy", "perplexity"}
    assert {name: float(value) for name, value in logs.items()} == pytest.approx(
        {name: float(value) for name, value in expected.items()}, rel=10 * tolerance
    )
    assert int(model.optimizer.iterations) == int(whole.optimizer.iterations) == 1
    assert max(np.abs(a - b).max() for a, b in zip(before, whole.get_weights(), strict=True)) > 0.01
    for one, two in zip(model.get_weights(), whole.get_weights(), strict=True):
        np.testing.assert_allclose(one, two, atol=tolerance)


@pytest.mark.parametrize("count", [2, 3, 8])
def test_step_in_parts_is_the_step_of_the_whole_batch(count):
    """F14: 3 does not divide the rows, 8 makes a part without a token."""
    assert_same_step(compiled(micro_batches=count), compiled())


@pytest.mark.parametrize(("micro_batches", "parallel_parts"), [(1, 2), (2, 2)])
def test_parts_that_are_computed_at_once_make_the_step_of_the_whole_batch(micro_batches, parallel_parts):
    options = {"micro_batches": micro_batches, "parallel_parts": parallel_parts}
    assert_same_step(compiled(run_eagerly=False, **options), compiled())


def test_a_part_waits_for_those_that_are_not_computed_with_it():
    """Of four parts, two at once: the third and the fourth begin when the sums of the first two are there."""

    @tf.function
    def sums(rows):
        return accumulate(rows, 4, lambda part: [tf.square(part)], at_once=2)

    graph = sums.get_concrete_function(tf.TensorSpec([8])).graph
    parts = [operation for operation in graph.get_operations() if operation.type == "StridedSlice"]
    awaited = [{wait.name for size in part.inputs for wait in size.op.control_inputs} for part in parts]
    assert awaited == [set(), set(), {"add"}, {"add"}]


def test_batch_of_fewer_rows_than_parts_makes_its_step():
    assert_same_step(compiled(run_eagerly=False, micro_batches=3, r_drop=1.0), compiled(), rows=2)


@pytest.mark.parametrize(
    "options",
    [
        {"run_eagerly": False, "jit_compile": True},
        {"r_drop": 2.0},
        {"dtype": "mixed_bfloat16"},
    ],
    ids=str,
)
def test_step_in_parts_is_that_of_the_whole_batch_in_every_mode(options):
    whole = compiled(**{**options, "jit_compile": None, "run_eagerly": True})
    assert_same_step(compiled(micro_batches=2, **options), whole, tolerance=2e-3 if "dtype" in options else 1e-6)


@pytest.mark.parametrize("weights", [np.linspace(0, 2, 8), np.linspace(0, 2, 40).reshape(8, 5)], ids=["rows", "tokens"])
def test_sample_weights_go_with_their_rows(weights):
    assert_same_step(compiled(micro_batches=3, r_drop=1.0), compiled(), weights)


def test_two_passes_of_r_drop_stay_in_one_part():
    """The loss by hand, from the logits that the parts saw."""
    model, seen = compiled(dropout=0.3, micro_batches=3, r_drop=4.0), []
    compute_loss = model.compute_loss
    model.compute_loss = lambda x, y, y_pred, *args, **kwargs: (
        seen.append((x["source_ids"], y, y_pred)) or compute_loss(x, y, y_pred, *args, **kwargs)
    )
    loss = model.train_on_batch(X, LABELS, return_dict=True)["loss"]
    assert len(seen) == 3
    for number, (source, labels, _) in enumerate(seen):
        np.testing.assert_array_equal(source, np.repeat(SOURCE[number::3], 2, axis=0))
        np.testing.assert_array_equal(labels, np.repeat(LABELS[number::3], 2, axis=0))
    losses = [
        paper_loss(softmax(y_pred[0::2]), softmax(y_pred[1::2]), np.asarray(y[0::2]), 4.0, np.log)
        for _, y, y_pred in seen
    ]
    tokens = [(LABELS[number::3] != 0).sum() for number in range(3)]
    assert float(loss) == pytest.approx(np.average(losses, weights=tokens), rel=1e-5)


def test_rates_and_averages_advance_once_a_batch():
    """F14: the parts of a batch are no updates of their own."""
    schedule, momentum = InverseSquareRootSchedule(0.1, 3), 0.7
    optimizer = keras.optimizers.Adam(schedule, use_ema=True, ema_momentum=momentum)
    model = compiled(optimizer, run_eagerly=False, micro_batches=2)
    rates, weights, averages = [], [], []

    def on_train_batch_end(batch, logs):
        rates.append(float(optimizer.learning_rate))
        weights.append([np.array(weight) for weight in model.trainable_weights])
        averages.append([np.array(average) for average in optimizer._model_variables_moving_average])

    recorder = keras.callbacks.LambdaCallback(on_train_batch_end=on_train_batch_end)
    model.fit(X, LABELS, batch_size=4, epochs=3, callbacks=[recorder], shuffle=False, verbose=0)
    assert int(optimizer.iterations) == 6
    np.testing.assert_allclose(rates, [float(schedule(update)) for update in range(1, 7)], rtol=1e-6)
    expected = weights[0]
    for now, averaged in zip(weights, averages, strict=True):
        expected = [momentum * old + (1 - momentum) * new for old, new in zip(expected, now, strict=True)]
        for one, two in zip(averaged, expected, strict=True):
            np.testing.assert_allclose(one, two, atol=1e-6)


def test_loss_is_scaled_and_an_overflow_costs_one_step():
    def optimizer():
        return keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.5), initial_scale=64.0)

    model, whole = compiled(optimizer(), dtype="mixed_float16", micro_batches=3), compiled(dtype="float32")
    assert_same_step(model, whole, tolerance=5e-3)
    before = model.get_weights()
    model.optimizer.dynamic_scale.assign(2.0**40)
    model.train_on_batch(X, LABELS)
    assert float(model.optimizer.dynamic_scale) == 2.0**39 and int(model.optimizer.iterations) == 1
    for one, two in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(one, two)


def test_parts_take_every_nth_row_and_their_gradients_add_up(rng):
    rows, parts = rng.normal(size=(7, 2)), []

    def gradients_of(part):
        (x, none), y = part
        assert none is None
        parts.append(x.numpy())
        return [tf.reduce_sum(x, axis=0), tf.reduce_sum(y)]

    sums = accumulate(((tf.constant(rows), None), tf.constant(rows[:, 0])), 3, gradients_of)
    for number, part in enumerate(parts):
        np.testing.assert_array_equal(part, rows[number::3])
    np.testing.assert_allclose(sums[0], rows.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(sums[1], rows[:, 0].sum(), rtol=1e-12)


@pytest.mark.parametrize("count", [0, -1, 2.0, True, "2"])
def test_number_of_parts_must_be_positive(count):
    for name in ("micro_batches", "parallel_parts"):
        with pytest.raises(ValueError, match=f"`{name}` must be a whole number of at least 1. Received:"):
            compiled(**{name: count})


def test_optimizer_that_accumulates_gradients_itself_is_refused():
    optimizer = keras.optimizers.SGD(0.5, gradient_accumulation_steps=2)
    for one in (optimizer, keras.optimizers.LossScaleOptimizer(optimizer)):
        with pytest.raises(ValueError, match="without `gradient_accumulation_steps`. Received: micro_batches=2"):
            compiled(one, micro_batches=2)


REPLICAS = """
import contextlib, json, sys
import keras, numpy as np, tensorflow as tf
from keras_transformer.losses import MaskedCrossentropy
from keras_transformer.models import TransformerConfig, transformer

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
rng = np.random.default_rng(1)
labels = rng.integers(3, 20, size=(4, 9)) * (np.arange(9) < np.array([[9], [8], [1], [2]]))
inputs = {"source_ids": rng.integers(3, 20, size=(4, 6)), "target_ids": np.roll(labels, 1, axis=1)}

def run(scope, **options):
    keras.utils.set_random_seed(1)
    with scope:
        model = transformer(TransformerConfig(20, None, 1, 1, 8, 16, 2, dropout=0.0))
        model.compile(keras.optimizers.SGD(0.5), MaskedCrossentropy(0.1), **options)
    start, tokens = model.get_weights(), []
    counter = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: tokens.append(model.trained_tokens))
    history = model.fit(inputs, labels, batch_size=4, shuffle=False, callbacks=[counter], verbose=0).history
    moves = [(end - begin).tolist() for begin, end in zip(start, model.get_weights())]
    count = int(keras.ops.convert_to_numpy(model.optimizer.iterations))
    return {"loss": history["loss"][0], "moves": moves, "tokens": tokens, "count": count}

print(json.dumps([run(contextlib.nullcontext()), run(strategy.scope(), micro_batches=2, r_drop=3.0)]))
"""


def test_two_replicas_in_parts_make_the_step_of_one_device(run_python):
    """F14."""
    one, two = json.loads(run_python(REPLICAS).splitlines()[-1])
    assert two["loss"] == pytest.approx(one["loss"], rel=1e-5)
    assert one["tokens"] == two["tokens"] == [20] and one["count"] == two["count"] == 1
    assert max(np.abs(move).max() for move in one["moves"]) > 0.01
    for expected, move in zip(one["moves"], two["moves"], strict=True):
        np.testing.assert_allclose(move, expected, atol=1e-5)
