"""R-Drop: two passes with other dropout shall agree (Liang et al., 2021)."""

from __future__ import annotations

import keras
from keras import ops

from keras_transformer.losses import log_normalizer


def twice(data):
    """Every row of a batch twice in a row: row i becomes rows 2i and 2i + 1."""
    return keras.tree.map_structure(lambda array: array if array is None else ops.repeat(array, 2, axis=0), data)


def disagreement(logits, weights):
    """The symmetric divergence between the two passes over each sentence, formula (3) of the paper.

    The exponentials are those that the loss takes as well, so that a compiled step takes them once.

    Args:
        logits: [2B,T,V], the passes over a sentence at rows 2i and 2i + 1.
        weights: [2B,T], what each token counts in both passes: 1 at real target tokens, 0 at padding.

    Returns:
        (KL(p, q) + KL(q, p)) / 2, the weighted sum over the tokens of one pass, a scalar.
    """
    logits = ops.cast(logits, keras.backend.result_type(logits.dtype, "float32"))
    weights = ops.cast(weights[0::2], logits.dtype)
    divergences = _divergences(ops.reshape(logits, (-1, logits.shape[-1])), ops.shape(logits)[1])
    return ops.sum(ops.reshape(divergences, ops.shape(weights)) * weights)


def _divergences(logits, length):
    """(KL(p, q) + KL(q, p)) / 2 of each token: [2BT,V], T -> [BT].

    With d = log p - log q, the gradient for the logits of p is (p (d - KL(p, q)) + p - q) / 2 and that for those of q
    (q (-d - KL(q, p)) + q - p) / 2. Automatic differentiation of two log-softmaxes makes more buffers of [BT,V].
    """
    vocabulary_size = logits.shape[-1]

    def passes(rows):
        """Both passes' rows: [2BT,W] -> twice [B,T,W]."""
        pair = ops.reshape(rows, (-1, 2, length, rows.shape[-1]))
        return pair[:, 0], pair[:, 1]

    @ops.custom_gradient
    def divergences(logits):
        maximum, exponentials, total = log_normalizer(logits)
        (z_p, z_q), (e_p, e_q), (t_p, t_q) = passes(logits), passes(exponentials), passes(total)
        m_p, m_q = passes(maximum)
        difference = (z_p - m_p) - (z_q - m_q) - ops.log(t_p / t_q)
        forwards = ops.sum(e_p * difference, -1, keepdims=True) / t_p
        backwards = -ops.sum(e_q * difference, -1, keepdims=True) / t_q

        def gradient(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            half = ops.reshape(upstream, ops.shape(forwards)) / 2
            p, q = e_p * (half / t_p), e_q * (half / t_q)
            of_p = p * (difference + (1 - forwards)) - q
            of_q = q * ((1 - backwards) - difference) - p
            return ops.reshape(ops.stack([of_p, of_q], axis=1), (-1, vocabulary_size))

        return ops.reshape((forwards + backwards) / 2, (-1,)), gradient

    return divergences(logits)
