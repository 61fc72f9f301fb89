"""Masks of attention: True where a query may attend to a key."""

from __future__ import annotations

import keras
from keras import ops

# What a masked score becomes: exp() of it is zero beside any other score. Minus infinity would make a row in which all
# is masked NaN.
MASKED_SCORE = -1e38


def merge_masks(padding, attention_mask, causal, query_length, key_length, start=0):
    """One boolean mask that broadcasts to [B,H,T,S] out of all that were given, or None.

    `start` is the position of the first query among the keys.
    """
    # `expand_dims`, since LiteRT has no slices of booleans.
    masks = [ops.expand_dims(ops.cast(mask, "bool"), (1, 2)) for mask in padding if mask is not None]
    if attention_mask is not None:
        attention_mask = ops.cast(attention_mask, "bool")
        masks.append(ops.expand_dims(attention_mask, 1) if len(attention_mask.shape) == 3 else attention_mask)
    if causal:
        queries = ops.arange(query_length, dtype="int32") + ops.cast(start, "int32")
        masks.append(ops.expand_dims(ops.arange(key_length, dtype="int32") <= queries[:, None], (0, 1)))
    allowed = None
    for mask in masks:
        allowed = mask if allowed is None else ops.logical_and(allowed, mask)
    return allowed


def check_mask(mask, name, shapes):
    """Raises ValueError unless the mask is None, or boolean and of one of the shapes as far as they are known.

    An axis of length 1 stands for any but the last, that of the keys.
    """
    if mask is None:
        return
    shape = tuple(getattr(mask, "shape", ()))
    fits = any(
        len(shape) == len(expected)
        and all(a == b or None in (a, b) or a == 1 for a, b in zip(shape[:-1], expected[:-1], strict=True))
        and (shape[-1] == expected[-1] or None in (shape[-1], expected[-1]))
        for expected in shapes
    )
    dtype = keras.backend.standardize_dtype(mask.dtype) if shape else type(mask).__name__
    if not fits or keras.backend.is_float_dtype(dtype):
        expected = " or ".join(str(list(expected)) for expected in shapes)
        raise ValueError(f"The {name} must be boolean, of shape {expected}. Received: {dtype} of shape {shape}")
