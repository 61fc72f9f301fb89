"""Texts in the graph, against the same in Python."""

import unicodedata

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.decoding import texts as in_python
from keras_transformer.export import text_ops

TEXTS = ["", "a", "\n", "a\n", "a\r\nb\n\r\n", "\r", "a\rb\r", "\r\r\n", "\n\n\na", "水\r\n课 \n", "a\u2028b\x0bc\x85d"]


def strings(tensor):
    return [text.decode() for text in np.ravel(tensor)]


def test_lines_and_their_ends_are_those_of_python_and_join_to_the_text():
    lines = text_ops.split_lines(tf.constant(TEXTS))
    found = list(zip(strings(lines.line), strings(lines.end), lines.text.numpy(), lines.is_first.numpy(), strict=True))
    expected = []
    for number, text in enumerate(TEXTS):
        split, ends = in_python.split_lines(text)
        expected += [
            (line, end, number, place == 0) for place, (line, end) in enumerate(zip(split, [*ends, ""], strict=True))
        ]
    assert found == expected
    count = len(found)
    joined, scores, truncated, counts = text_ops.join_lines(
        len(TEXTS),
        lines,
        lines.line[:, None],
        tf.ones([count, 1]),
        tf.zeros([count, 1], tf.bool),
        tf.ones([count], "int32"),
    )
    assert strings(joined) == TEXTS and set(counts.numpy()) == {1} and not truncated.numpy().any()
    np.testing.assert_array_equal(scores[:, 0], [text.count("\n") + 1 for text in TEXTS])


def test_every_character_is_blank_or_not_as_in_python():
    characters = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) != "Cs"]
    found = text_ops.is_blank(tf.constant([character.encode() for character in characters])).numpy()
    assert [c for c, blank in zip(characters, found, strict=True) if blank != in_python.is_blank(c)] == []
    assert text_ops.is_blank(tf.constant(["", " \t\u200b", " a", "\u3000\n"])).numpy().tolist() == [
        True,
        True,
        False,
        True,
    ]


@pytest.mark.parametrize("text", ["a\nb", "\n\na\r\r\nb\n", "a", "\n", ""])
def test_one_line_is_that_of_python(text):
    assert strings(text_ops.one_line(tf.constant([text]))) == [in_python.one_line(text)]


def test_hypotheses_of_a_text_are_made_of_those_of_its_lines_and_the_last_where_one_has_fewer():
    lines = text_ops.split_lines(tf.constant(["a\nb", "c"]))
    joined, scores, truncated, count = text_ops.join_lines(
        2,
        lines,
        tf.constant([["A", "A2", "A3"], ["B", "", ""], ["C", "C2", ""]]),
        tf.constant([[-1.0, -2, -3], [-10, 0, 0], [-5, -6, 0]]),
        tf.constant([[False, False, True], [False] * 3, [True, False, False]]),
        tf.constant([3, 1, 2]),
    )
    assert strings(joined) == ["A\nB", "A2\nB", "A3\nB", "C", "C2", ""]
    np.testing.assert_array_equal(scores, [[-11, -12, -13], [-5, -6, 0]])
    assert truncated.numpy().tolist() == [[False, False, True], [True, False, False]]
    assert count.numpy().tolist() == [3, 2]
