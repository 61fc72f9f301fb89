import numpy as np
import pytest

from keras_transformer.demo.engines import Look
from keras_transformer.demo.markup import look_as_html, word_weights
from keras_transformer.demo.words import words

CASES = [
    (["▁I", "▁lo", "ve", "▁easy", ".", "</s>"], [("I", 0, 1), ("love", 1, 3), ("easy.", 3, 5)]),
    (["▁我", "爱", "水课", "</s>"], [("我", 0, 1), ("爱", 1, 2), ("水课", 2, 3)]),
    (["▁", "<0xE6>", "<0x88>", "<0x91>", "爱", "</s>"], [("我", 0, 4), ("爱", 4, 5)]),
    (["▁AB", "爱", "C", "▁d", "</s>"], [("AB", 0, 1), ("爱", 1, 2), ("C", 2, 3), ("d", 3, 4)]),
    (["▁<0x", "41", ">", "</s>"], [("<0x41>", 0, 3)]),
    (["</s>"], []),
]


@pytest.mark.parametrize(("pieces", "expected"), CASES, ids=str)
def test_pieces_make_the_words_that_a_reader_sees(pieces, expected):
    assert [(word.text, word.start, word.end) for word in words(pieces)] == expected


def test_bytes_that_spell_no_character_are_shown_as_such():
    assert [word.text for word in words(["▁a", "<0xE6>", "▁b"])] == ["a\ufffd", "b"]


def test_weights_of_words_add_source_tokens_and_average_target_tokens(rng):
    attention = rng.random((4, 5)).astype("float32")
    sources, targets = words(["▁a", "b", "▁c", "d", "</s>"]), words(["▁x", "▁y", "z", "</s>"])
    expected = [
        [attention[0, :2].sum(), attention[0, 2:4].sum()],
        [attention[1:3, :2].sum() / 2, attention[1:3, 2:4].sum() / 2],
    ]
    np.testing.assert_allclose(word_weights(attention, sources, targets), expected, rtol=1e-6)


def test_text_is_no_markup_on_the_page():
    attention = {"mean": np.full((2, 2), 0.5, "float32")}
    look = Look(["▁<img/src=x>", "</s>"], ['▁"&', "</s>"], attention, np.array([0.5, 1.0]), 0.7)
    shown = look_as_html(look)
    assert "<img" not in shown and "&lt;img/src=x&gt;" in shown and "&quot;&amp;" in shown


def test_confidence_of_a_word_is_that_of_its_weakest_token():
    attention = {"mean": np.full((3, 2), 0.5, "float32")}
    look = Look(["▁a", "</s>"], ["▁x", "y", "</s>"], attention, np.array([0.9, 0.25, 1.0]), 0.7)
    assert 'title="25 %" style="border-bottom-color: hsl(30 80% 45%)"' in look_as_html(look)


def test_without_probabilities_of_tokens_no_word_has_a_confidence():
    look = Look(["▁a", "</s>"], ["▁x", "</s>"], {"mean": np.full((2, 2), 0.5, "float32")}, None, 0.7)
    assert "border-bottom-color" not in look_as_html(look) and "Confidence 70 % a token" in look_as_html(look)


def test_a_translation_without_words_has_an_empty_map():
    look = Look(["</s>"], ["</s>"], {"mean": np.ones((1, 1), "float32")}, np.ones(1), 1.0)
    assert "kt-target" not in look_as_html(look)
