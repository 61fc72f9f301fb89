"""Label-smoothed cross-entropy from what is projected to logits, without the logits. For TensorFlow."""

from __future__ import annotations

import tensorflow as tf

from keras_transformer.losses import TokenFigures

# Rows of a chunk, at least so many times D: the wider the model, the more it costs to add a chunk's part to dK.
_ROWS, _ROWS_ON_GPU, _ROWS_PER_WIDTH = 512, 2048, 2


def projected_crossentropy(hidden, kernel, labels, weights, smoothing: float) -> tuple[tf.Tensor, TokenFigures]:
    """The weighted sum of the losses of N tokens whose logits are `hidden @ transpose(kernel)`.

    Logits of some rows at a time are made, used for loss and gradients both, and forgotten: no [N,V] array exists. For
    label y, hidden h and kernel K, softmax p and label smoothing e, the gradients of one token's loss are

        dh = p K - (1 - e) K[y] - e mean(K)        dK = outer(p, h) - (1 - e) outer(onehot(y), h) - e/V outer(1, h)

    of which the chunks make the first terms, with exp(z - max(z)) for p and its sum divided out of the D numbers of h
    and of dh rather than the V of p; the other terms need no logits. `training/benchmarks/loss.py` times steps with
    this and with logits.

    Args:
        hidden: Outputs of the decoder, [N,D], in the compute dtype.
        kernel: [V,D], in its own dtype.
        labels: int32 [N]. One that is no token makes the sum NaN, and the gradients.
        weights: float32 [N].
        smoothing: Label smoothing, e.

    Returns:
        The sum, a float32 scalar, through which gradients flow, and the figures of the tokens, through which none do.
    """
    size = kernel.shape[0]
    known = (labels >= 0) & (labels < size)
    weights = tf.where(known, weights, float("nan"))
    labels = tf.where(known, labels, 0)

    @tf.custom_gradient
    def crossentropy(hidden, kernel):
        mean = tf.cast(tf.reduce_mean(kernel, axis=0), tf.float32)
        figures, hidden_gradient, kernel_gradient = _in_chunks(hidden, kernel, labels, weights)
        label_logit, maximum, log_total = tf.unstack(figures, axis=1)
        wide = tf.cast(hidden, tf.float32)
        # Differences first: logits that share a large offset would lose their digits in a sum with it.
        losses = log_total - (1.0 - smoothing) * (label_logit - maximum)
        losses -= smoothing * (tf.linalg.matvec(wide, mean) - maximum)

        def gradient(upstream, *_):
            weighted = weights[:, None] * wide
            of_labels = tf.cast(tf.gather(kernel, labels), tf.float32)
            for_hidden = hidden_gradient - weights[:, None] * ((1.0 - smoothing) * of_labels + smoothing * mean)
            for_kernel = kernel_gradient - (smoothing / size) * tf.reduce_sum(weighted, axis=0)
            for_kernel = tf.tensor_scatter_nd_sub(for_kernel, labels[:, None], (1.0 - smoothing) * weighted)
            return tf.cast(upstream * for_hidden, hidden.dtype), tf.cast(upstream * for_kernel, kernel.dtype)

        # Not NaN times 0, where a label of padding met an infinite logit.
        total = tf.reduce_sum(tf.where(weights == 0, 0.0, weights * losses))
        return (total, label_logit, maximum, log_total), gradient

    total, *figures = crossentropy(hidden, kernel)
    label_logit, maximum, log_total = map(tf.stop_gradient, figures)
    return total, TokenFigures(tf.where(known, label_logit, float("nan")), maximum, log_total)


def _in_chunks(hidden, kernel, labels, weights):
    """What needs the logits: the figures, [N,3], the first term of dh, [N,D], and that of dK, [V,D], in float32."""
    size, width = kernel.shape
    narrow = tf.cast(kernel, hidden.dtype)
    count = hidden.shape[0] or tf.shape(hidden)[0]
    rows = max(_ROWS_ON_GPU if tf.config.list_physical_devices("GPU") else _ROWS, _ROWS_PER_WIDTH * width)
    chunks = (max if isinstance(count, int) else tf.maximum)(-(-count // rows), 1)
    rows = -(-count // chunks)  # So the last one is hardly shorter: all have one shape, as XLA wants it.
    missing = chunks * rows - count
    hidden = tf.reshape(tf.pad(hidden, [[0, missing], [0, 0]]), [chunks, rows, width])
    labels, weights = (tf.reshape(tf.pad(part, [[0, missing]]), [chunks, rows]) for part in (labels, weights))

    def step(i, kernel_gradient, all_figures, hidden_gradients):
        logits = tf.cast(tf.matmul(hidden[i], narrow, transpose_b=True), tf.float32)
        maximum = tf.reduce_max(logits, axis=-1, keepdims=True)
        exponentials = tf.exp(logits - maximum)
        total = tf.reduce_sum(exponentials, axis=-1, keepdims=True)
        figures = tf.concat([tf.gather(logits, labels[i, :, None], batch_dims=1), maximum, tf.math.log(total)], axis=1)
        exponentials, share = tf.cast(exponentials, narrow.dtype), weights[i, :, None] / total
        of_hidden = share * tf.cast(tf.matmul(exponentials, narrow), tf.float32)
        scaled = tf.cast(share * tf.cast(hidden[i], tf.float32), narrow.dtype)
        kernel_gradient += tf.cast(tf.matmul(exponentials, scaled, transpose_a=True), tf.float32)
        return i + 1, kernel_gradient, all_figures.write(i, figures), hidden_gradients.write(i, of_hidden)

    arrays = [tf.TensorArray(tf.float32, chunks, element_shape=[None, last]) for last in (3, width)]
    _, kernel_gradient, *arrays = tf.while_loop(
        lambda i, *_: i < chunks,
        step,
        (0, tf.zeros([size, width]), *arrays),
        parallel_iterations=1,
        maximum_iterations=chunks,
    )
    figures, hidden_gradient = (tf.reshape(array.stack(), [-1, array.element_shape[-1]])[:count] for array in arrays)
    return figures, hidden_gradient, kernel_gradient
