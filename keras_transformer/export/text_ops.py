"""Texts in a graph: their lines, which of them are blank, and texts made of lines again. See `decoding.texts`."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from keras_transformer.decoding.texts import BLANK_PATTERN


class Lines(NamedTuple):
    """The lines of B texts, L in all; LF or CRLF ends one.

    Attributes:
        line: string [L].
        end: What stands behind it, string [L]: "" behind the last line of a text.
        text: The number of its text, int32 [L].
        is_first: Whether it is the first line of its text, bool [L].
    """

    line: Any
    end: Any
    text: Any
    is_first: Any


def split_lines(texts) -> Lines:
    """The lines of texts, string [B]."""
    parts = tf.strings.split(texts, "\n")
    line, text = parts.flat_values, tf.cast(parts.value_rowids(), tf.int32)
    number = tf.range(tf.shape(line)[0])
    is_last = number == tf.gather(tf.cast(parts.row_splits[1:], tf.int32), text) - 1
    with_carriage_return = ~is_last & tf.strings.regex_full_match(line, r"(?s).*\r")
    return Lines(
        tf.where(with_carriage_return, tf.strings.regex_replace(line, r"\r\z", ""), line),
        tf.where(is_last, "", tf.where(with_carriage_return, "\r\n", "\n")),
        text,
        number == tf.gather(tf.cast(parts.row_splits[:-1], tf.int32), text),
    )


def is_blank(lines):
    """Whether a line shows nothing: string [L] -> bool [L]."""
    return tf.strings.regex_full_match(lines, BLANK_PATTERN)


def has_line_break(texts):
    """Whether LF stands in a text: string [B] -> bool [B]."""
    return tf.strings.regex_full_match(texts, r"(?s).*\n.*")


def one_line(texts):
    """The translation of a line is one line, whatever a model that has learnt little may say."""
    return tf.strings.regex_replace(tf.strings.regex_replace(texts, r"\A[\r\n]+|[\r\n]+\z", ""), r"[\r\n]+", " ")


def join_lines(texts, lines: Lines, translations, scores, truncated, count):
    """The hypotheses of texts: the k-th is made of the k-th of each line, or the last, where a line has fewer.

    Args:
        texts: How many texts there are, B, an int32 scalar tensor.
        lines: Their `Lines`.
        translations: string [L,N].
        scores: float32 [L,N].
        truncated: bool [L,N].
        count: Hypotheses of each line, at least 1, int32 [L].

    Returns:
        The same four for the texts: the scores are sums over the lines.
    """
    count_of_text = tf.math.unsorted_segment_max(count, lines.text, texts)
    numbers = tf.range(tf.shape(translations)[1])
    numbers_of_line = tf.minimum(numbers, count[:, None] - 1)
    valid = numbers < count_of_text[:, None]

    def of_lines(part):
        return tf.gather(part, numbers_of_line, batch_dims=1)

    joined = tf.strings.unsorted_segment_join(
        tf.strings.join([of_lines(translations), tf.broadcast_to(lines.end[:, None], tf.shape(translations))]),
        lines.text,
        texts,
    )
    some_truncated = tf.math.unsorted_segment_max(tf.cast(of_lines(truncated), tf.int32), lines.text, texts) > 0
    return (
        tf.where(valid, joined, ""),
        tf.where(valid, tf.math.unsorted_segment_sum(of_lines(scores), lines.text, texts), 0.0),
        valid & some_truncated,
        count_of_text,
    )
