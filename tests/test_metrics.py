"""MaskedAccuracy and Perplexity against float64, over batches and epochs; what they cost in a compiled step."""

import collections
import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from keras_transformer.losses import MaskedCrossentropy
from keras_transformer.metrics import MaskedAccuracy, Perplexity
from keras_transformer.models import TransformerConfig, transformer

V = 7
every_metric = pytest.mark.parametrize("metric_class", [MaskedAccuracy, Perplexity])


def reference(metric_class, batches, ignore_class=0):
    """The metric of all tokens of (labels, logits, weights) triples at once, in float64."""
    figures, weights = [], []
    for labels, logits, weight in batches:
        real = labels != ignore_class
        logits = np.asarray(logits, "float64")[real]
        probabilities = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
        of_labels = probabilities[np.arange(len(logits)), labels[real]]
        right = logits.argmax(axis=-1) == labels[real]
        figures.append(right if metric_class is MaskedAccuracy else -np.log(of_labels))
        weights.append(np.broadcast_to(weight, labels.shape)[real])
    mean = np.average(np.concatenate(figures), weights=np.concatenate(weights))
    return mean if metric_class is MaskedAccuracy else np.exp(mean)


def random_batch(rng, lengths, width, weights_shape=None):
    labels = rng.integers(1, V, size=(len(lengths), width)) * (np.arange(width) < np.array(lengths)[:, None])
    logits = 2 * rng.normal(size=(len(lengths), width, V)) + 2 * np.eye(V)[labels]
    weights = rng.uniform(0, 3, size=weights_shape).astype("float32") if weights_shape else 1.0
    return labels.astype("int32"), logits.astype("float32"), weights


def after(metric, batches):
    for labels, logits, weights in batches:
        metric.update_state(labels, logits, sample_weight=None if np.isscalar(weights) else weights)
    return metric.result()


@every_metric
def test_result_is_the_mean_over_the_tokens_of_all_batches(rng, metric_class):
    """F12: batches of unequal numbers of tokens, all padded to one length."""
    batches = [random_batch(rng, lengths, 9) for lengths in ([9, 7, 8], [1, 1, 2], [3, 9, 1])]
    np.testing.assert_allclose(after(metric_class(), batches), reference(metric_class, batches), rtol=1e-6)


@every_metric
def test_result_does_not_depend_on_the_lengths_that_batches_are_padded_to(rng, metric_class):
    """F12."""
    batches = [random_batch(rng, *batch) for batch in (([9, 7, 8], 9), ([1, 2], 2), ([3, 1, 1, 2], 30), ([5], 5))]
    np.testing.assert_allclose(after(metric_class(), batches), reference(metric_class, batches), rtol=1e-6)


@every_metric
@pytest.mark.parametrize("shape", [(3, 9), (3, 1)])
def test_sample_weight_weighs_tokens(rng, metric_class, shape):
    batches = [random_batch(rng, lengths, 9, shape) for lengths in ([9, 7, 8], [1, 1, 2])]
    np.testing.assert_allclose(after(metric_class(), batches), reference(metric_class, batches), rtol=1e-5)


@every_metric
def test_reset_state_forgets_what_was_before(rng, metric_class):
    metric = metric_class()
    after(metric, [random_batch(rng, [4, 2], 5)])
    metric.reset_state()
    batches = [random_batch(rng, [5, 1], 5)]
    np.testing.assert_allclose(after(metric, batches), reference(metric_class, batches), rtol=1e-6)


@every_metric
def test_padding_only_changes_nothing_and_is_finite(rng, metric_class):
    metric, nothing = metric_class(), random_batch(rng, [0, 0], 5)
    assert float(after(metric, [nothing])) == {MaskedAccuracy: 0, Perplexity: 1}[metric_class]
    batches = [random_batch(rng, [5, 1], 5)]
    np.testing.assert_allclose(after(metric, [*batches, nothing]), reference(metric_class, batches), rtol=1e-6)


@every_metric
def test_minus_one_can_mark_padding(rng, metric_class):
    labels, logits, _ = random_batch(rng, [5, 2], 5)
    batches = [(np.where(labels == 0, -1, labels - 1), logits[..., 1:], 1.0)]
    result = after(metric_class(ignore_class=-1), batches)
    np.testing.assert_allclose(result, reference(metric_class, batches, ignore_class=-1), rtol=1e-6)


@every_metric
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_logits_are_computed_in_float32(rng, metric_class, dtype):
    labels, logits, _ = random_batch(rng, [5, 2], 5)
    half = tf.cast(logits, dtype)
    expected = reference(metric_class, [(labels, tf.cast(half, "float64").numpy(), 1.0)])
    # A label level with another token counts as right, where argmax may name the other.
    assert len(np.unique(tf.cast(half, "float64").numpy()[labels != 0].max(axis=-1))) == np.sum(labels != 0)
    np.testing.assert_allclose(after(metric_class(), [(labels, half, 1.0)]), expected, rtol=1e-6)


def test_accuracy_counts_a_label_level_with_another_token_as_right():
    accuracy = MaskedAccuracy()
    accuracy.update_state(np.array([[1, 2, 3, 1]]), np.array([[[0, 1, 1, 0]] * 4], "float32"))
    assert float(accuracy.result()) == 0.75


def test_perplexity_of_equal_logits_is_the_vocabulary_size():
    perplexity = Perplexity()
    perplexity.update_state(np.array([[5, 3, 0, 0]]), np.full((1, 4, 7), 3, "float32"))
    np.testing.assert_allclose(perplexity.result(), 7, rtol=1e-6)


def test_perplexity_is_exp_of_the_unsmoothed_loss(rng):
    labels, logits, _ = random_batch(rng, [5, 2], 5)
    perplexity = after(Perplexity(), [(labels, logits, 1.0)])
    np.testing.assert_allclose(np.log(perplexity), MaskedCrossentropy()(labels, logits), rtol=1e-6)


@every_metric
@pytest.mark.parametrize(
    "labels_shape, logits_shape",
    [((2, 5, V), (2, 5, V)), ((2, 5, 1), (2, 5, V)), ((2, 4), (2, 5, V)), ((3, 5), (2, 5, V)), ((2, 5), (2, 5))],
)
def test_shapes_that_do_not_fit_raise(metric_class, labels_shape, logits_shape):
    with pytest.raises(ValueError, match="Received: "):
        metric_class().update_state(np.ones(labels_shape, "int32"), np.ones(logits_shape, "float32"))


@every_metric
def test_weight_of_a_sentence_weighs_all_its_tokens(rng, metric_class):
    labels, logits, weights = rng.integers(1, V, (5, 5)), rng.normal(size=(5, 5, V)), rng.random(5)
    results = []
    for shaped in (weights, weights[:, None], np.repeat(weights[:, None], 5, axis=1)):
        metric = metric_class()
        metric.update_state(labels, logits, shaped)
        results.append(float(metric.result()))
    assert results[0] == results[1] == pytest.approx(results[2])


@every_metric
@pytest.mark.parametrize("shape", [(4,), (5, 5, 1), (4, 5), (5, 4)])
def test_sample_weight_of_another_shape_raises(rng, metric_class, shape):
    with pytest.raises(ValueError, match="Received: "):
        metric_class().update_state(np.ones((5, 5), "int32"), rng.normal(size=(5, 5, V)), np.ones(shape, "float32"))


@every_metric
def test_config_round_trip(rng, metric_class):
    """F09."""
    metric, batches = metric_class(ignore_class=3, name="other", dtype="float64"), [random_batch(rng, [5, 5], 5)]
    config = json.loads(json.dumps(metric.get_config()))
    for clone in (
        metric_class.from_config(config),
        keras.metrics.deserialize(json.loads(json.dumps(keras.metrics.serialize(metric)))),
    ):
        assert isinstance(clone, metric_class)
        assert clone.get_config() == metric.get_config()
        assert (clone.ignore_class, clone.name, clone.dtype) == (3, "other", "float64")
        np.testing.assert_array_equal(
            after(clone, batches), after(metric_class(ignore_class=3, dtype="float64"), batches)
        )


def executed_operations(function, *arguments):
    """Counts of the operations in the graphs that TensorFlow ran, after its optimisations."""
    context.enable_run_metadata()
    try:
        function(*arguments)
        graphs = context.export_run_metadata().partition_graphs
    finally:
        context.disable_run_metadata()
    return collections.Counter(node.op for graph in graphs for node in graph.node)


def training_step(metrics):
    loss = MaskedCrossentropy(0.1)

    def step(labels, logits):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            value = loss(labels, logits)
        for metric in metrics:
            metric.update_state(labels, logits)
        return value, tape.gradient(value, logits)

    return step


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_metrics_cost_no_second_softmax(rng, dtype):
    labels, logits, _ = random_batch(rng, [5, 2], 5)
    metrics, counts = [MaskedAccuracy(), Perplexity()], []
    signature = [tf.TensorSpec((None, None), "int32"), tf.TensorSpec((None, None, V), dtype)]
    for watched in ([], metrics):
        step = tf.function(training_step(watched), input_signature=signature)
        counts.append(executed_operations(step, tf.constant(labels), tf.cast(logits, dtype)))
    for operation in ("Exp", "Max", "Log"):
        assert [count[operation] for count in counts] == [1, 1]
    assert [float(metric.count) > 0 for metric in metrics] == [True, True]  # They were in the step.


def trimmed(inputs, labels, batch_size):
    """Batches that are each padded to their own longest sentence."""
    dataset = tf.data.Dataset.from_tensor_slices((inputs, labels)).map(
        lambda x, y: (tf.nest.map_structure(lambda ids: ids[ids != 0], x), y[y != 0])
    )
    return dataset.padded_batch(batch_size)


def test_evaluate_reports_metrics_that_do_not_depend_on_the_batches(rng):
    """F12."""
    real = np.arange(9) < rng.integers(1, 10, size=(22, 1))
    labels = rng.integers(3, 20, size=(22, 9)) * real
    inputs = {"source_ids": rng.integers(3, 20, size=(22, 6)), "target_ids": rng.integers(3, 20, size=(22, 9)) * real}
    model = transformer(TransformerConfig(20, None, 1, 1, 8, 16, 2, dropout=0.0))
    model.compile(loss=MaskedCrossentropy(0.1), metrics=[MaskedAccuracy(), Perplexity()])
    whole = [(labels, model(inputs).numpy(), 1.0)]
    expected = {"accuracy": reference(MaskedAccuracy, whole), "perplexity": reference(Perplexity, whole)}
    reports = [
        model.evaluate(inputs, labels, batch_size=1, verbose=0, return_dict=True),
        model.evaluate(inputs, labels, batch_size=64, verbose=0, return_dict=True),
        model.evaluate(trimmed(inputs, labels, 4), verbose=0, return_dict=True),
    ]
    for report in reports:
        assert set(report) == {"loss", "accuracy", "perplexity"}
        np.testing.assert_allclose([report[name] for name in expected], list(expected.values()), rtol=1e-5)
