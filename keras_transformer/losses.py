"""The training loss: cross-entropy over real tokens, with label smoothing (section 5.4 of the paper)."""

from __future__ import annotations

from typing import Any, NamedTuple

import keras
from keras import ops

from keras_transformer._checks import check_integer, check_rate


@keras.saving.register_keras_serializable(package="keras_transformer")
class MaskedCrossentropy(keras.losses.Loss):
    """Mean cross-entropy over the real target tokens of the global batch, from integer labels and logits.

    With label smoothing e (Szegedy et al., 2016; section 5.4) the target distribution is `1 - e` on the label plus
    `e / V` on every token, so that one token with logits z and label y has, in closed form, the loss

        logsumexp(z) - (1 - e) z[y] - e mean(z)

    No [B,T,V] one-hot is made. Arithmetic is in float32 at least. The mean is over the real tokens of all replicas
    under `tf.distribute`: however sentences fall on replicas, the gradient is that of one device with the whole batch.
    A model of `transformer` takes it over all accumulated batches as well.
    Padding never changes the loss; a batch without any real token has loss 0. A label that is neither a token nor
    `ignore_class` makes the loss NaN, on every backend and device.

    Args:
        label_smoothing: e, at least 0 and below 1.
        ignore_class: Label of padding.
        name: Name of the loss.

    Call arguments:
        y_true: Integer labels, [B,T].
        y_pred: Logits, [B,T,V].
        sample_weight: Optional, one for each sentence, [B] or [B,1], or for each token, [B,T]: multiplies the losses of
            the tokens. Real tokens are counted without it.

    Returns:
        A scalar. The method `call` gives the losses token by token, [B,T].

    Raises:
        ValueError: If an argument is out of range or the shapes do not fit.

    Example:
        ```python
        import numpy as np
        from keras_transformer.losses import MaskedCrossentropy

        labels = np.array([[5, 3, 0, 0]])
        logits = np.zeros((1, 4, 7), "float32")
        print(round(float(MaskedCrossentropy(label_smoothing=0.1)(labels, logits)), 4))  # log(7)
        #> 1.9459
        ```
    """

    def __init__(self, label_smoothing: float = 0.0, ignore_class: int = 0, name="masked_crossentropy"):
        super().__init__(name=name, reduction="mean")
        self.label_smoothing = check_rate("label_smoothing", label_smoothing)
        self.ignore_class = check_integer("ignore_class", ignore_class)

    def __call__(self, y_true, y_pred, sample_weight=None):
        losses = self.call(y_true, y_pred)
        if sample_weight is not None:
            losses = ops.multiply(losses, token_weights(sample_weight, losses))
        return ops.divide(ops.sum(losses), ops.maximum(ops.cast(self.token_count(y_true), losses.dtype), 1.0))

    def call(self, y_true, y_pred):
        labels, logits, real = prepare(y_true, y_pred, self.ignore_class)
        losses = ops.reshape(_smoothed_crossentropy(labels, logits, self.label_smoothing), ops.shape(real))
        return ops.where(real, losses, 0.0)

    def token_count(self, y_true):
        """Number of real tokens in the labels [B,T] of all replicas, a float32 scalar."""
        real = ops.not_equal(ops.convert_to_tensor(y_true), self.ignore_class)
        return _sum_over_replicas(ops.sum(ops.cast(real, "float32")))

    def get_config(self):
        return {"label_smoothing": self.label_smoothing, "ignore_class": self.ignore_class, "name": self.name}


def prepare(y_true, y_pred, ignore_class):
    """Labels and logits as the loss and the metrics read them: a row for each of the N = B*T tokens.

    Args:
        y_true: Integer labels, [B,T].
        y_pred: Logits, [B,T,V].
        ignore_class: Label of padding.

    Returns:
        The triple `(labels, logits, real)`: int32 [N] with 0 at padding, float32 (or wider) [N,V], boolean [B,T].

    Raises:
        ValueError: If the shapes do not fit.
    """
    labels, logits = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
    check_shapes(labels.shape, logits.shape)
    real = ops.not_equal(labels, ignore_class)
    labels = ops.where(real, ops.cast(labels, "int32"), 0)  # An ignored label such as -1 is no index.
    logits = ops.cast(logits, keras.backend.result_type(logits.dtype, "float32"))
    return ops.reshape(labels, (-1,)), ops.reshape(logits, (-1, logits.shape[-1])), real


def check_shapes(labels, logits) -> None:
    """Raises ValueError unless the shapes, of which sizes may be unknown, are those of labels and their logits."""
    differ = any(a != b and None not in (a, b) for a, b in zip(labels, logits, strict=False))
    if (len(labels), len(logits)) != (2, 3) or differ:
        raise ValueError(
            "Expected integer labels [batch, length] and logits [batch, length, vocabulary]. "
            f"Received: labels of shape {tuple(labels)} and logits of shape {tuple(logits)}"
        )


def token_weights(sample_weight, like):
    """Sample weights as they broadcast to the tokens.

    Args:
        sample_weight: [B], [B,1] or [B,T].
        like: A tensor [B,T], whose dtype the result has.

    Returns:
        [B,1] or [B,T].

    Raises:
        ValueError: If the shape is another.
    """
    weights = ops.cast(ops.convert_to_tensor(sample_weight), like.dtype)
    shape = tuple(weights.shape)
    if len(shape) == 1:
        weights = ops.expand_dims(weights, -1)
    fits = len(weights.shape) == 2 and all(
        size == expected or None in (size, expected) or (axis == 1 and size == 1)
        for axis, (size, expected) in enumerate(zip(weights.shape, like.shape, strict=True))
    )
    if not fits:
        raise ValueError(
            "`sample_weight` must be one weight for each sentence, [batch] or [batch, 1], or for each token, "
            f"[batch, length]. Received: shape {shape} beside labels of shape {tuple(like.shape)}"
        )
    return weights


class TokenFigures(NamedTuple):
    """What losses and metrics need of the logits of N tokens, each [N].

    Attributes:
        label_logit: The logit of the label, NaN where the label is no token.
        maximum: The highest logit.
        log_total: log of the sum of exp(logit - maximum).
    """

    label_logit: Any
    maximum: Any
    log_total: Any


def token_figures(labels, logits) -> TokenFigures:
    """The figures of tokens with labels [N] and logits [N,V]."""
    maximum, _, total = log_normalizer(logits)
    return TokenFigures(logits_of(labels, logits), ops.squeeze(maximum, -1), ops.squeeze(ops.log(total), -1))


def log_normalizer(logits):
    """The pieces of a stable logsumexp over the last axis.

    The loss and the metrics call this one function, so that in a compiled step equal operations on equal inputs are
    merged and the metrics cost no second softmax.

    Args:
        logits: [N,V].

    Returns:
        The triple `(maximum, exponentials, total)`: [N,1], exp(logits - maximum) [N,V], their sum [N,1].
    """
    maximum = ops.stop_gradient(ops.max(logits, axis=-1, keepdims=True))
    exponentials = ops.exp(ops.subtract(logits, maximum))
    return maximum, exponentials, ops.sum(exponentials, axis=-1, keepdims=True)


def logits_of(labels, logits):
    """The logit of each label, NaN where a label is none: int [N] and [N,V] -> [N]."""
    known = ops.logical_and(labels >= 0, labels < logits.shape[-1])
    indices = ops.expand_dims(ops.where(known, labels, 0), -1)
    return ops.where(known, ops.squeeze(ops.take_along_axis(logits, indices, axis=-1), -1), float("nan"))


def _smoothed_crossentropy(labels, logits, smoothing):
    """Loss of N tokens, labels [N] and logits [N,V] -> [N], with a gradient of one product and one scatter.

    The gradient is softmax(z) - e/V everywhere, less (1 - e) at the label. Automatic differentiation would add three
    [N,V] buffers, one for each term, where this overwrites the label's column in one.
    """
    vocabulary_size = logits.shape[-1]

    @ops.custom_gradient
    def crossentropy(logits):
        maximum, exponentials, total = log_normalizer(logits)
        maximum = ops.squeeze(maximum, -1)
        # Differences first: logits that share a large offset would lose their digits in a sum with it.
        losses = ops.squeeze(ops.log(total), -1) - (1.0 - smoothing) * (logits_of(labels, logits) - maximum)
        if smoothing:
            losses = losses - smoothing * (ops.mean(logits, axis=-1) - maximum)

        def gradient(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            gradients = ops.multiply(exponentials, ops.expand_dims(upstream, -1) / total)
            if smoothing:
                gradients = ops.subtract(gradients, ops.expand_dims(upstream * (smoothing / vocabulary_size), -1))
            at_labels = logits_of(labels, gradients) - (1.0 - smoothing) * upstream
            columns = ops.clip(labels, 0, vocabulary_size - 1)
            indices = ops.stack([ops.arange(ops.shape(labels)[0], dtype="int32"), columns], axis=-1)
            return ops.scatter_update(gradients, indices, at_labels)

        return losses, gradient

    return crossentropy(logits)


def _sum_over_replicas(value):
    """The sum of a scalar over the replicas of a `tf.distribute` strategy; the scalar itself without one."""
    if keras.backend.backend() != "tensorflow":
        return value
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return value
    return context.all_reduce(tf.distribute.ReduceOp.SUM, value)
