"""R-Drop: two passes with other dropout shall agree (Liang et al., 2021)."""

from __future__ import annotations

import keras
from keras import ops


def twice(data):
    """Every row of a batch twice in a row: row i becomes rows 2i and 2i + 1."""
    return keras.tree.map_structure(lambda array: array if array is None else ops.repeat(array, 2, axis=0), data)


def disagreement(logits, weights):
    """The symmetric divergence between the two passes over each sentence, formula (3) of the paper.

    Args:
        logits: [2B,T,V], the passes over a sentence at rows 2i and 2i + 1.
        weights: [2B,T], what each token counts in both passes: 1 at real target tokens, 0 at padding.

    Returns:
        (KL(p, q) + KL(q, p)) / 2, the weighted sum over the tokens of one pass, a scalar.
    """
    logits = ops.cast(logits, keras.backend.result_type(logits.dtype, "float32"))
    log_p = ops.log_softmax(logits, axis=-1)
    difference = log_p[0::2] - log_p[1::2]
    # KL(p, q) + KL(q, p) is the sum of (p - q)(log p - log q).
    probability_difference = ops.exp(log_p[0::2]) - ops.exp(log_p[1::2])
    divergence = ops.sum(probability_difference * difference, axis=-1) / 2
    return ops.sum(divergence * ops.cast(weights[0::2], divergence.dtype))
