import warnings

import numpy as np
import pytest

from keras_transformer.decoding import Attention
from keras_transformer.visualize import alignment, attention_map

SOURCE, TARGET = ("▁I", "▁love", "▁$5$", "</s>"), ("我", "爱", "</s>")


@pytest.fixture
def attention(rng):
    weights = rng.random((2, 3, 3, 4))
    return Attention(SOURCE, TARGET, (weights / weights.sum(-1, keepdims=True)).astype("float32"))


def maps(picture):
    return [axes for axes in picture.axes if axes.images]


@pytest.mark.parametrize(
    ("layer", "head", "expected"),
    [
        ("mean", "mean", lambda w: [w.mean((0, 1))]),
        (1, "mean", lambda w: [w[1].mean(0)]),
        (-2, 2, lambda w: [w[0, 2]]),
        (0, "each", lambda w: list(w[0])),
        ("mean", "each", lambda w: list(w.mean(0))),
        ("each", "each", lambda w: list(w.reshape(6, 3, 4))),
    ],
)
def test_maps_show_the_weights_that_are_asked_for(attention, layer, head, expected):
    drawn = maps(attention_map(attention, layer=layer, head=head))
    for axes, weights in zip(drawn, expected(attention.weights), strict=True):
        np.testing.assert_allclose(axes.images[0].get_array(), weights, rtol=1e-6)


def test_rows_are_target_tokens_and_columns_source_tokens(attention):
    picture = attention_map(attention)
    picture.canvas.draw()
    (axes,) = maps(picture)
    assert tuple(label.get_text() for label in axes.get_xticklabels()) == SOURCE
    assert tuple(label.get_text() for label in axes.get_yticklabels()) == TARGET
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # The first target token is above.


def test_titles_say_which_layer_and_head(attention):
    titles = [axes.get_title() for axes in maps(attention_map(attention, layer=-1, head="each"))]
    assert titles == ["layer 1, head 0", "layer 1, head 1", "layer 1, head 2"]
    assert maps(attention_map(attention))[0].get_title() == "mean of 2 layers, mean of 3 heads"


def test_colours_of_all_maps_compare(attention):
    assert {axes.images[0].get_clim() for axes in maps(attention_map(attention, "each", "each"))} == {(0.0, 1.0)}


def test_lines_join_the_tokens_whose_weight_reaches_the_threshold():
    weights = np.zeros((1, 1, 3, 4), "float32")
    weights[0, 0] = [[0.9, 0.1, 0, 0], [0, 0.55, 0.45, 0], [0, 0, 0.04, 0.96]]
    axes = alignment(Attention(SOURCE, TARGET, weights), threshold=0.4).axes[0]
    (lines,) = axes.collections
    places = {text.get_text(): text.get_position()[0] for text in axes.texts[:4]}
    targets = [text.get_position()[0] for text in axes.texts[4:]]
    expected = [("▁I", 0, 0.9), ("▁love", 1, 0.55), ("▁$5$", 1, 0.45), ("</s>", 2, 0.96)]
    assert [text.get_text() for text in axes.texts] == [*SOURCE, *TARGET]
    for segment, colour, (source, target, weight) in zip(
        lines.get_segments(), lines.get_colors(), expected, strict=True
    ):
        assert segment[:, 0] == pytest.approx([places[source], targets[target]])
        assert colour[3] == pytest.approx(weight)


def test_no_lines_are_drawn_where_no_weight_reaches_the_threshold(attention):
    assert alignment(attention, threshold=0.999).axes[0].collections[0].get_segments() == []


def test_pictures_need_no_display_and_tokens_are_no_formulas(attention, tmp_path, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # A machine without Chinese fonts draws boxes and says so.
        for number, picture in enumerate((attention_map(attention), alignment(attention))):
            picture.savefig(tmp_path / f"{number}.png")
            assert (tmp_path / f"{number}.png").stat().st_size > 5_000


@pytest.mark.parametrize("value", [2, -3, "all", 1.0, True, None])
def test_layers_that_do_not_exist_are_refused(attention, value):
    for draw in (attention_map, alignment):
        with pytest.raises(ValueError, match='`layer` must be a number from -2 to 1, "mean" or "each". Received:'):
            draw(attention, layer=value)


@pytest.mark.parametrize("value", ["a text", None, [1]])
def test_what_is_no_attention_is_refused(value):
    for draw in (attention_map, alignment):
        with pytest.raises(ValueError, match="`attention` must be what `Translator.attention` gives .* Received: "):
            draw(value)


def test_lines_of_each_head_are_refused(attention):
    with pytest.raises(ValueError, match='`head` must be a number or "mean". Received: "each"'):
        alignment(attention, head="each")


def test_weights_that_do_not_fit_the_tokens_are_refused(attention):
    with pytest.raises(ValueError, match=r"Received: weights of shape \(2, 3, 3, 4\) beside 2 target and 4 source"):
        attention_map(Attention(SOURCE, TARGET[:2], attention.weights))
    with pytest.raises(ValueError, match=r"weights of shape \(2, 3, 0, 4\) beside 0 target and 4 source"):
        attention_map(Attention(SOURCE, [], attention.weights[:, :, :0]))
