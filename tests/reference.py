"""The paper's formulas in NumPy, float64, written to be read rather than to be fast."""

import numpy as np


def softmax(scores):
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def attention(query, key, value, allowed=None):
    """Formula 1, [...,T,K], [...,S,K], [...,S,V], boolean [...,T,S] -> output and weights."""
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    if allowed is not None:
        scores = np.where(allowed, scores, -np.inf)
    weights = softmax(scores)
    return weights @ value, weights


def multi_head_attention(layer, query, value=None, key=None, allowed=None):
    """Section 3.2.2, one head after the other, with the weights of a `MultiHeadAttention` layer in float64."""

    def project(dense, x):
        kernel, *bias = (np.asarray(weight, "float64") for weight in dense.get_weights())
        return x @ kernel + (bias[0] if bias else 0)

    heads, width = layer.num_heads, layer.key_dim
    if value is None:
        q, k, v = np.split(project(layer.query_key_value_projection, query), [heads * width, 2 * heads * width], -1)
    elif key is None:
        q = project(layer.query_projection, query)
        k, v = np.split(project(layer.key_value_projection, value), [heads * width], -1)
    else:
        q = project(layer.query_projection, query)
        k, v = project(layer.key_projection, key), project(layer.value_projection, value)
    outputs, weights = [], []
    for head in range(heads):
        parts = (x[..., head * x.shape[-1] // heads : (head + 1) * x.shape[-1] // heads] for x in (q, k, v))
        output, weight = attention(*parts, allowed)
        outputs.append(output)
        weights.append(weight)
    return project(layer.output_projection, np.concatenate(outputs, -1)), np.stack(weights, 1)


def layer_norm(x, gamma, beta, epsilon):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon) * gamma + beta


def sinusoids(length, width):
    """Section 3.5, column by column, as the paper prints them."""
    encoding = np.zeros((length, width))
    for column in range(width):
        angle = np.arange(length) / 10000 ** (2 * (column // 2) / width)
        encoding[:, column] = np.sin(angle) if column % 2 == 0 else np.cos(angle)
    return encoding
