"""A step of training, perhaps in parts, and without logits where nothing asks for them. For TensorFlow."""

from __future__ import annotations

from collections.abc import Callable

import keras
import tensorflow as tf
from keras import ops

from keras_transformer.losses import MaskedCrossentropy, token_weights
from keras_transformer.metrics import MaskedAccuracy, Perplexity
from keras_transformer.models.micro_batches import accumulate
from keras_transformer.models.projected_loss import projected_crossentropy
from keras_transformer.models.r_drop import twice
from keras_transformer.models.structures import labels_of, only


def training_step(model, data):
    """One update of a compiled `Transformer`; gives its logs. The loss is a `MaskedCrossentropy`.

    Args:
        model: The model.
        data: What `train_step` gets: inputs, labels and perhaps weights.
    """
    crossentropy = only(model.loss)
    tokens = crossentropy.token_count(labels_of(keras.utils.unpack_x_y_sample_weight(data)[1]))
    logs = {}

    def gradients_of(part):
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(twice(part) if model._r_drop else part)
        with tf.GradientTape() as tape:
            if model._projector:
                loss, update_metrics = _projected_loss(model, x, y, sample_weight)
            else:
                y_pred = model(x, training=True)
                loss = model._compute_loss(x, y, y_pred, sample_weight, training=True)
                update_metrics = lambda: model.compute_metrics(x, y, y_pred, sample_weight)  # noqa: E731
            share = crossentropy.token_count(only(part[1])) / ops.maximum(tokens, 1.0)
            scaled = model.optimizer.scale_loss(loss * ops.cast(share, loss.dtype))
        replicas = tf.distribute.get_strategy().num_replicas_in_sync  # Keras has divided by their number.
        model._loss_tracker.update_state(loss * replicas)
        logs.update(update_metrics())
        return tape.gradient(scaled, model.trainable_weights)

    gradients = accumulate(data, model._parts, gradients_of, model._parallel_parts)
    model.optimizer.apply_gradients(zip(gradients, model.trainable_weights, strict=True))
    return logs


def projector_of(model) -> keras.Model | None:
    """The model up to what is projected to logits, [B,T,D], if a step can do without the logits; else None.

    Loss and metrics must be this package's, and nothing may be overridden that is handed logits.
    """
    loss, metrics = only(model.loss), model._compile_metrics
    figures_are_enough = metrics is None or (
        not metrics._user_weighted_metrics
        and all(type(metric) in (MaskedAccuracy, Perplexity) for metric in keras.tree.flatten(metrics._user_metrics))
    )
    is_plain = type(loss) is MaskedCrossentropy and not model._r_drop and model._compile_loss._user_loss_weights is None
    # In float16 the gradients of rare tokens are too small before the loss is scaled, as it is after this.
    if figures_are_enough and is_plain and model.compute_dtype in ("float32", "bfloat16"):
        return keras.Model(model.input, model._hidden, name="decoder")
    return None


def _projected_loss(model, x, y, sample_weight) -> tuple[tf.Tensor, Callable]:
    """The loss of `compute_loss`, and what updates the metrics and gives the logs."""
    crossentropy, labels = only(model.loss), ops.convert_to_tensor(labels_of(y))
    hidden = model._projector(x, training=True)
    real = ops.not_equal(labels, crossentropy.ignore_class)
    weights = ops.cast(real, "float32")
    if sample_weight is not None:
        weights = weights * token_weights(only(sample_weight), weights)
    if model.output_projection:
        kernel = tf.transpose(model.output_projection.kernel)
    else:
        kernel = tf.convert_to_tensor(model.target_embedding.token_embedding.embeddings)
    total, figures = projected_crossentropy(
        tf.reshape(hidden, [-1, hidden.shape[-1]]),
        kernel,
        tf.reshape(tf.where(real, tf.cast(labels, tf.int32), 0), [-1]),
        tf.reshape(weights, [-1]),
        crossentropy.label_smoothing,
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

    return model._accumulation.weigh(loss, tokens) if model._accumulation else loss, update_metrics
