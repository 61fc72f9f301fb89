"""Checks of arguments and shapes that several layers make."""

from __future__ import annotations

import numbers
import operator


def check_positive(name, value) -> int:
    """Returns `value`, a whole number above zero, as an int; raises ValueError otherwise."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise ValueError(f"`{name}` must be a whole number of at least 1. Received: {name}={value!r}")
    return int(value)


def check_integer(name, value) -> int:
    """Returns `value`, a whole number, as an int; raises ValueError otherwise."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise ValueError(f"`{name}` must be a whole number. Received: {name}={value!r}")
    return int(value)


def check_rate(name, value) -> float:
    """Returns `value`, a share in [0, 1), as a float; raises ValueError otherwise."""
    if not is_number(value) or not 0 <= value < 1:
        raise ValueError(f"`{name}` must be a number of at least 0 and below 1. Received: {name}={value!r}")
    return float(value)


def check_above_zero(name, value) -> float:
    """Returns `value`, a finite number above 0, as a float; raises ValueError otherwise."""
    if not is_number(value) or not 0 < value < float("inf"):
        raise ValueError(f"`{name}` must be a finite number above 0. Received: {name}={value!r}")
    return float(value)


def check_bool(name, value) -> bool:
    """Returns `value`, True or False; raises ValueError otherwise."""
    if not isinstance(value, bool):
        raise ValueError(f"`{name}` must be True or False. Received: {name}={value!r}")
    return value


def check_learned_positions(positions, max_length) -> None:
    """Raises ValueError unless `max_length` is given for learned positions and only for them."""
    if (max_length is None) == (positions == "learned"):
        raise ValueError(
            '`max_length` is needed for positions="learned", and for them only. '
            f"Received: positions={positions!r}, max_length={max_length!r}"
        )


def known_integer(name, value) -> int | None:
    """`value` as an int, or None where it is a tensor whose value a graph learns as it runs.

    Raises ValueError for a float.
    """
    if isinstance(value, float):
        raise ValueError(f"`{name}` must be a whole number. Received: {name}={value!r}")
    try:
        return operator.index(value)  # Not int(), which AutoGraph turns into an operation on tensors.
    except TypeError:
        return None


def is_number(value) -> bool:
    """Whether `value` is a real number, and no bool."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def check_choice(name, value, choices) -> str:
    """Returns `value`, one of `choices`; raises ValueError otherwise."""
    if value not in choices:
        raise ValueError(f"`{name}` must be one of {', '.join(map(repr, choices))}. Received: {name}={value!r}")
    return value


def check_sequence_shape(name, shape) -> None:
    """Raises ValueError unless `shape` is that of one sequence of vectors, [B,T,D], with a known width."""
    shape = None if shape is None else tuple(shape)
    if shape is None or len(shape) != 3 or not isinstance(shape[-1], int):
        raise ValueError(f"{name} must be one tensor of shape [batch, length, width]. Received: shape {shape}")
