import keras
import numpy as np
import pytest

from keras_transformer.layers import PositionalEmbedding
from keras_transformer.schedules import InverseSquareRootSchedule, NoamSchedule
from keras_transformer.visualize import learning_rate, positional_encoding, training_curves


def test_encoding_shows_the_sines_and_cosines_of_the_paper():
    drawn = positional_encoding(PositionalEmbedding(10, 8), length=30).axes[0].images[0].get_array()
    angles = np.arange(30)[:, None] / 10_000 ** (np.arange(0, 8, 2) / 8)
    expected = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(30, 8)
    np.testing.assert_allclose(drawn, expected, atol=1e-6)


def test_learned_positions_are_shown_as_they_are():
    layer = PositionalEmbedding(10, 8, positions="learned", max_length=6)
    layer.build()
    drawn = positional_encoding(layer, length=6).axes[0].images[0].get_array()
    assert any(weight.shape == (6, 8) and np.allclose(weight, drawn) for weight in layer.get_weights())
    with pytest.raises(ValueError, match="within the 6 learned ones"):
        positional_encoding(layer, length=7)


def test_rates_are_those_of_the_schedule_from_the_first_update():
    """Section 5.3: D^-0.5 min(s^-0.5, s w^-1.5)."""
    schedules = {"noam": NoamSchedule(512, warmup_steps=40), "other": InverseSquareRootSchedule(1e-3, 10)}
    axes = learning_rate(schedules, updates=100).axes[0]
    steps = np.arange(1, 101)
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), steps)
    np.testing.assert_allclose(
        axes.lines[0].get_ydata(), 512**-0.5 * np.minimum(steps**-0.5, steps * 40.0**-1.5), rtol=1e-5
    )
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["noam", "other"]


def test_long_trainings_are_shown_from_end_to_end():
    steps = (
        learning_rate(keras.optimizers.schedules.CosineDecay(0.1, 10), updates=1_000_000).axes[0].lines[0].get_xdata()
    )
    assert (steps[0], steps[-1], len(steps)) == (1, 1_000_000, 2_000)


@pytest.mark.parametrize("schedules", [0.1, {}, {"a": 0.1}, None])
def test_what_is_no_schedule_is_refused(schedules):
    with pytest.raises(ValueError, match="`schedules` must be a Keras schedule"):
        learning_rate(schedules, updates=10)


HISTORY = "epoch,loss,perplexity,val_bleu,val_loss\n0,5.0,148.4,,4.5\n1,4.0,54.6,11.5,3.9\n2,3.5,33.1,17.25,3.6\n"


def test_curves_are_the_columns_of_the_history(tmp_path):
    (tmp_path / "history.csv").write_text(HISTORY, encoding="utf-8")
    for folder in (tmp_path, tmp_path / "history.csv"):
        axes = training_curves(folder).axes
        assert [one.get_title() for one in axes] == ["loss", "perplexity", "score on the validation set"]
        lines = {line.get_label(): line for one in axes for line in one.lines}
        assert set(lines) == {"loss", "val_loss", "perplexity", "val_bleu"}
        assert lines["val_loss"].get_xydata().tolist() == [[1, 4.5], [2, 3.9], [3, 3.6]]
        assert lines["val_bleu"].get_xydata().tolist() == [[2, 11.5], [3, 17.25]]


@pytest.mark.parametrize("text", ["", "epoch,loss\n", "epoch,other\n0,1\n", "loss\n1\n"])
def test_files_without_a_history_are_refused(tmp_path, text):
    path = tmp_path / "other.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="Received: .*other.csv"):
        training_curves(path)


@pytest.mark.parametrize("content", [b"epoch,loss\n0,abc\n", b"epoch,loss\nx,1\n", b"\xff\xfe\x00epoch"])
def test_histories_of_something_else_than_numbers_are_refused(tmp_path, content):
    (tmp_path / "history.csv").write_bytes(content)
    with pytest.raises(ValueError, match="A history has numbers in its columns. Received: .*history.csv"):
        training_curves(tmp_path)


def test_history_may_begin_with_a_byte_order_mark(tmp_path):
    (tmp_path / "history.csv").write_text("\ufeff" + HISTORY, encoding="utf-8")
    assert len(training_curves(tmp_path).axes) == 3


@pytest.mark.parametrize("folder", [None, 5])
def test_what_is_no_path_is_refused(folder):
    with pytest.raises(ValueError, match="Expected a run folder or a CSV file. Received: "):
        training_curves(folder)


def test_folder_without_a_history_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no history of a training.* Received: "):
        training_curves(tmp_path)
