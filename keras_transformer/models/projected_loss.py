"""Label-smoothed cross-entropy from what is projected to logits, without the logits. For TensorFlow."""

from __future__ import annotations

import tensorflow as tf

from keras_transformer.losses import TokenFigures

# Logits of a chunk, about; its rows are at least so many times D, since its part of dK must be added to the others'.
_CELLS, CELLS_ON_GPU, _ROWS_PER_WIDTH = 2**23, 2**26, 2


def projected_crossentropy(
    hidden, kernel, labels, weights, smoothing: float, training: bool = True
) -> tuple[tf.Tensor, TokenFigures]:
    """The weighted sum of the losses of N tokens whose logits are `hidden @ transpose(kernel)`.

    Logits of some rows at a time are made, used for loss and gradients both, and forgotten: no [N,V] array exists. For
    label y, hidden h and kernel K, softmax p and label smoothing e, the gradients of one token's loss are

        dh = (p - (1 - e) onehot(y)) K - e mean(K)        dK = outer(p - (1 - e) onehot(y), h) - e/V outer(1, h)

    of which the chunks make the first terms, times the sum of exp(z - max(z)), by which the D numbers of h and of dh
    are divided rather than the V of p. The other terms need no logits. `training/benchmarks/loss.py` times steps with
    this and with logits.

    Args:
        hidden: Outputs of the decoder, [N,D], in the compute dtype.
        kernel: [V,D], in its own dtype.
        labels: int32 [N]. One that is no token makes the sum NaN, and the gradients.
        weights: float32 [N].
        smoothing: Label smoothing, e.
        training: Whether gradients are wanted.

    Returns:
        The sum, a float32 scalar, through which gradients flow, and the figures of the tokens, through which none do.
    """
    size = kernel.shape[0]
    known = (labels >= 0) & (labels < size)
    weights = tf.where(known, weights, float("nan"))
    labels = tf.where(known, labels, 0)

    @tf.custom_gradient
    def crossentropy(hidden, kernel):
        # A tape outside of a graph would keep all that it sees made of what it watches.
        hidden, kernel = tf.stop_gradient(hidden), tf.stop_gradient(kernel)
        mean, wide = tf.cast(tf.reduce_mean(kernel, axis=0), tf.float32), tf.cast(hidden, tf.float32)
        figures, *gradients = _in_chunks(hidden, kernel, labels, weights, smoothing if training else None)
        label_logit, maximum, log_total = tf.unstack(figures, axis=1)
        # Differences first: logits that share a large offset would lose their digits in a sum with it.
        losses = log_total - (1.0 - smoothing) * (label_logit - maximum)
        losses -= smoothing * (tf.linalg.matvec(wide, mean) - maximum)

        def gradient(upstream, *_):
            for_kernel, for_hidden = gradients[0], gradients[1] - (smoothing * weights[:, None]) * mean
            return tf.cast(upstream * for_hidden, hidden.dtype), tf.cast(upstream * for_kernel, kernel.dtype)

        # Not NaN times 0, where a label of padding met an infinite logit.
        total = tf.reduce_sum(tf.where(weights == 0, 0.0, weights * losses))
        return (total, label_logit, maximum, log_total), gradient

    total, *figures = crossentropy(hidden, kernel)
    label_logit, maximum, log_total = map(tf.stop_gradient, figures)
    return total, TokenFigures(tf.where(known, label_logit, float("nan")), maximum, log_total)


def _in_chunks(hidden, kernel, labels, weights, smoothing):
    """What needs the logits: the figures, [N,3]; with a smoothing dK, [V,D], and the first term of dh, [N,D], too."""
    size, width = kernel.shape
    narrow = tf.cast(kernel, hidden.dtype)
    count = hidden.shape[0] or tf.shape(hidden)[0]
    cells = CELLS_ON_GPU if tf.config.list_physical_devices("GPU") else _CELLS
    rows = max(cells // size, _ROWS_PER_WIDTH * width)
    chunks = (max if isinstance(count, int) else tf.maximum)(-(-count // rows), 1)
    rows = -(-count // chunks)  # So the last one is hardly shorter: all have one shape, as XLA wants it.
    missing = chunks * rows - count
    uniform = (smoothing or 0.0) / size * tf.reduce_sum(weights[:, None] * tf.cast(hidden, tf.float32), axis=0)
    hidden = tf.reshape(tf.pad(hidden, [[0, missing], [0, 0]]), [chunks, rows, width])
    labels, weights = (tf.reshape(tf.pad(part, [[0, missing]]), [chunks, rows]) for part in (labels, weights))

    def figures_of(i):
        logits = tf.cast(tf.matmul(hidden[i], narrow, transpose_b=True), tf.float32)
        maximum = tf.reduce_max(logits, axis=-1, keepdims=True)
        exponentials = tf.exp(logits - maximum)
        total = tf.reduce_sum(exponentials, axis=-1, keepdims=True)
        label_logit = tf.gather(logits, labels[i, :, None], batch_dims=1)
        return tf.concat([label_logit, maximum, tf.math.log(total)], axis=1), exponentials, total

    def step(i, all_figures, *gradients):
        figures, exponentials, total = figures_of(i)
        if gradients:
            gradients = more_gradients(i, exponentials, total, *gradients)
        return i + 1, all_figures.write(i, figures), *gradients

    def more_gradients(i, exponentials, total, kernel_gradient, hidden_gradients):
        # In float32, before products of few digits: their difference would have none left.
        places = tf.stack([tf.range(rows), labels[i]], axis=1)
        exponentials = tf.tensor_scatter_nd_sub(exponentials, places, (1.0 - smoothing) * total[:, 0])
        exponentials, share = tf.cast(exponentials, narrow.dtype), weights[i, :, None] / total
        of_hidden = share * tf.cast(tf.matmul(exponentials, narrow), tf.float32)
        scaled = tf.cast(share * tf.cast(hidden[i], tf.float32), narrow.dtype)
        kernel_gradient += tf.cast(tf.matmul(exponentials, scaled, transpose_a=True), tf.float32)
        return kernel_gradient, hidden_gradients.write(i, of_hidden)

    def array(columns):
        return tf.TensorArray(tf.float32, chunks, element_shape=[None, columns])

    variables: tuple = (0, array(3))
    if smoothing is not None:
        variables += (tf.zeros([size, 1]) - uniform, array(width))
    results = tf.while_loop(lambda i, *_: i < chunks, step, variables, parallel_iterations=1, maximum_iterations=chunks)
    return [
        tf.reshape(part.stack(), [-1, part.element_shape[-1]])[:count] if isinstance(part, tf.TensorArray) else part
        for part in results[1:]
    ]
