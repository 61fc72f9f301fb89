"""Steps of training and evaluation, perhaps in parts, and without logits where nothing wants them. For TensorFlow."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable

import keras
import tensorflow as tf
from keras import ops

from keras_transformer.losses import MaskedCrossentropy, check_shapes, token_weights
from keras_transformer.metrics import MaskedAccuracy, Perplexity
from keras_transformer.models.micro_batches import accumulate
from keras_transformer.models.projected_loss import projected_crossentropy
from keras_transformer.models.r_drop import twice
from keras_transformer.models.structures import labels_of, only

# What is handed logits: of a model on which one of these was put, all see them.
_OVERRIDES = ("call", "compute_loss", "compute_metrics", "get_metrics_result")
# By model the one that ends before its logits. As an attribute it would be saved, too.
_hidden_models: weakref.WeakKeyDictionary[keras.Model, keras.Model] = weakref.WeakKeyDictionary()


def training_step(model, data):
    """One update of a compiled `Transformer` with a `MaskedCrossentropy`; gives its logs.

    Args:
        model: The model.
        data: What `train_step` gets: inputs, labels and perhaps weights.
    """
    crossentropy, weights = only(model.loss), model.trainable_weights
    tokens = crossentropy.token_count(labels_of(keras.utils.unpack_x_y_sample_weight(data)[1]))
    logs = {}

    def gradients_of(part):
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(twice(part) if model._r_drop else part)
        with tf.GradientTape() as tape:
            loss, update_metrics = _loss(model, x, y, sample_weight, training=True)
            share = crossentropy.token_count(only(part[1])) / ops.maximum(tokens, 1.0)
            scaled = model.optimizer.scale_loss(loss * ops.cast(share, loss.dtype))
        _track(model, loss)
        logs.update(update_metrics())
        return tape.gradient(scaled, weights)

    gradients = accumulate(data, model._parts, gradients_of, model._parallel_parts)
    if weights:
        model.optimizer.apply_gradients(zip(gradients, weights, strict=True))
    else:
        warnings.warn("The model does not have any trainable weights.", stacklevel=2)
    return logs


def evaluation_step(model, data):
    """The logs of `test_step`, without logits: for models that `needs_no_logits` says it of."""
    x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
    loss, update_metrics = _loss(model, x, y, sample_weight, training=False)
    _track(model, loss)
    return update_metrics()


def needs_no_logits(model) -> bool:
    """Whether steps of this `Transformer`, as it is compiled now, can do without logits.

    Loss and metrics must be this package's, with one label of padding, the last layer must do nothing but project, and
    nothing may be overridden that is handed logits.
    """
    loss, metrics, project = only(model.loss), model._compile_metrics, _projection(model)
    if type(loss) is not MaskedCrossentropy or model._r_drop or model._compile_loss._user_loss_weights is not None:
        return False
    if metrics is not None:
        each = keras.tree.flatten(metrics._user_metrics or [])
        if metrics._user_weighted_metrics or any(type(one) not in (MaskedAccuracy, Perplexity) for one in each):
            return False
        if any(one.ignore_class != loss.ignore_class for one in each):
            return False
    # In float16 the gradients of rare tokens are too small before the loss is scaled, as it is after this.
    is_plain = project.compute_dtype in ("float32", "bfloat16") and project.compute_dtype == model.compute_dtype
    is_plain = is_plain and not project.quantization_mode and project.activity_regularizer is None
    return is_plain and not vars(model).keys() & set(_OVERRIDES)


def _projection(model):
    """The layer that projects to logits."""
    return model.output_projection or model.target_embedding.token_embedding


def _loss(model, x, y, sample_weight, training) -> tuple[tf.Tensor, Callable]:
    """The loss of `compute_loss`, and what updates the metrics and gives the logs."""
    if model._needs_no_logits():
        return _loss_without_logits(model, x, y, sample_weight, training)
    y_pred = model(x, training=training)
    loss = model._compute_loss(x, y, y_pred, sample_weight, training=training)
    return loss, lambda: model.compute_metrics(x, y, y_pred, sample_weight)


def _loss_without_logits(model, x, y, sample_weight, training):
    crossentropy, labels = only(model.loss), ops.convert_to_tensor(labels_of(y))
    hidden = _hidden_model(model)(x, training=training)
    check_shapes(labels.shape, (*hidden.shape[:2], model.output.shape[-1]))
    real = ops.not_equal(labels, crossentropy.ignore_class)
    weights = ops.cast(real, "float32")
    if sample_weight is not None:
        weights = weights * token_weights(only(sample_weight), weights)
    project = _projection(model)
    total, figures = projected_crossentropy(
        tf.reshape(hidden, [-1, hidden.shape[-1]]),
        tf.transpose(project.kernel) if model.output_projection else tf.convert_to_tensor(project.embeddings),
        tf.reshape(tf.where(real, tf.cast(labels, tf.int32), 0), [-1]),
        tf.reshape(weights, [-1]),
        crossentropy.label_smoothing,
        training,
    )
    tokens = crossentropy.token_count(labels)
    model._loss_tracker.weigh(tokens)
    loss = total / ops.maximum(tokens, 1.0)
    for extra in model.losses:
        loss += model._aggregate_additional_loss(extra)

    def update_metrics():
        if model._compile_metrics is not None:
            if not model._compile_metrics.built:
                model._compile_metrics.build(labels, model.output)
            for metric in model._compile_metrics.metrics:
                metric.update_from(figures, real)
        return model.get_metrics_result()

    return model._accumulation.weigh(loss, tokens) if training and model._accumulation else loss, update_metrics


def _hidden_model(model):
    """The model up to what is projected to logits, [B,T,D]."""
    if model not in _hidden_models:
        _hidden_models[model] = keras.Model(model.input, model._hidden, name="hidden")
    return _hidden_models[model]


def _track(model, loss):
    """Counts a loss for the mean that is reported."""
    replicas = tf.distribute.get_strategy().num_replicas_in_sync  # Keras has divided by their number.
    model._loss_tracker.update_state(loss * replicas)
