"""What a served model takes, and the checks of it in the graph."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from keras_transformer._checks import check_positive

_MOST, _MOST_CELLS = 10_000, 2**30


@dataclasses.dataclass(frozen=True)
class ServingLimits:
    """The most that a request may ask for: what keeps a server's memory bounded.

    Attributes:
        max_beam_size: Widest beam.
        max_source_length: Tokens of a source line, eos counted. Of a longer one the rest is left out, and its
            translation marked as truncated; `score` and `attention` refuse it.
        max_length: Tokens of a translation, eos counted.
        cells: Hypotheses times positions (of source and target) that are computed at a time, for the sake of memory:
            keys and values take up to 8 times the depth times the width in bytes for each, in float32. With
            `xla_buckets` a quarter of it, since their batches are filled up.
        rows: Lines that are computed at a time, those of like lengths together. On a CPU some 128 are fastest: two
            callers with 500 texts each had 7 % more sentences a second than with 64, and 4 % more than with 250
            (`tiny`, greedy). A GPU wants all that its memory holds, 10,000. Without effect with `xla_buckets`.

    Raises:
        ValueError: If one is not a whole number of at least 1, or above 10,000, which `cells` may be up to 2^30.
    """

    max_beam_size: int = 16
    max_source_length: int = 1024
    max_length: int = 1024
    cells: int = 65_536
    rows: int = 128

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value, most = getattr(self, field.name), _MOST_CELLS if field.name == "cells" else _MOST
            if check_positive(field.name, value) > most:
                raise ValueError(f"`{field.name}` must be at most {most}. Received: {field.name}={value}")


def refuse(wrong, message, values):
    """An operation that ends in INVALID_ARGUMENT, with the message and some of the values, where one is wrong.

    Args:
        wrong: bool [B].
        message: What was expected.
        values: [B].
    """
    return tf.debugging.Assert(
        ~tf.reduce_any(wrong), [f"{message} Received:", tf.boolean_mask(values, wrong)], summarize=3
    )


def of_rank(name, values, rank: int):
    """The values, whose rank is checked as the graph runs: a server feeds what the client sent, of whatever shape.

    What TensorFlow knows of a placeholder's shape it believes, and would take the check out of the graph, so the rank
    is read from the values as bytes.
    """
    dimensions = "[batch]" if rank == 1 else "[batch, length]"
    found = tf.rank(tf.io.parse_tensor(tf.io.serialize_tensor(values), values.dtype))
    check = tf.debugging.Assert(
        tf.equal(found, rank), [f"`{name}` must be of shape {dimensions}. Received: rank", found]
    )
    with tf.control_dependencies([check]):
        return tf.ensure_shape(tf.identity(values), [None] * rank)


def one_per_text(text, **options):
    """The options, each of which must have as many entries as there are texts."""
    checked = {}
    for name, values in options.items():
        values = of_rank(name, values, 1)
        count, expected = tf.shape(values)[0], tf.shape(text)[0]
        check = tf.debugging.Assert(
            tf.equal(count, expected), [f"`{name}` must have one entry for each text. Received:", count, expected]
        )
        with tf.control_dependencies([check]):
            checked[name] = tf.identity(values)
    return checked


def checked_options(limits: ServingLimits, beam_size, n_best, length_penalty, max_length, target_prefix):
    """The options of a request, each [B], once all are within their limits; else INVALID_ARGUMENT names one."""
    beams, length = limits.max_beam_size, limits.max_length
    checks = [
        refuse(
            (beam_size < 1) | (beam_size > beams), f"`beam_size` must be at least 1 and at most {beams}.", beam_size
        ),
        refuse(
            (n_best < 1) | (n_best > beam_size),
            "`n_best` must be at least 1 and at most the `beam_size`.",
            n_best,
        ),
        refuse(
            ~((length_penalty >= 0) & (length_penalty <= 10)),  # NaN is neither.
            "`length_penalty` must be a number from 0 to 10.",
            length_penalty,
        ),
        refuse(
            (max_length < 1) | (max_length > length),
            f"`max_length` must be at least 1 and at most {length}.",
            max_length,
        ),
        refuse(
            tf.strings.regex_full_match(target_prefix, r"(?s).*[\r\n].*"),
            "`target_prefix` must be text of one line.",
            target_prefix,
        ),
    ]
    with tf.control_dependencies(checks):
        return tuple(tf.identity(part) for part in (beam_size, n_best, length_penalty, max_length, target_prefix))
