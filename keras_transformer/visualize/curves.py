"""Positions, learning rates, and the history of a run."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from pathlib import Path

import keras
import numpy as np
from matplotlib.figure import Figure

from keras_transformer._checks import check_positive
from keras_transformer.visualize.canvas import figure

# The panels of `training_curves`: a title and the columns of history.csv that are drawn in it.
_PANELS = (
    ("loss", ("loss", "val_loss")),
    ("perplexity", ("perplexity", "val_perplexity")),
    ("accuracy", ("accuracy", "val_accuracy")),
    ("score on the validation set", ("val_bleu", "val_chrf")),
)
_MOST_POINTS = 2000


def positional_encoding(layer, length: int = 50) -> Figure:
    """What a `PositionalEmbedding` adds at each position: a row for each position, a column for each dimension.

    Args:
        layer: A `PositionalEmbedding`; one with learned positions must have been built.
        length: Positions to draw, T.

    Returns:
        A matplotlib figure of T x D values (section 3.5 of the paper for sinusoids).

    Raises:
        ValueError: If `length` is no positive number, or more than the layer has learned.
    """
    values = np.asarray(
        keras.ops.convert_to_numpy(layer.position_encoding(check_positive("length", length))), "float32"
    )
    picture = figure(8, 4)
    axes = picture.subplots()
    most = max(float(np.abs(values).max()), 1e-9)
    image = axes.imshow(values, vmin=-most, vmax=most, cmap="RdBu", aspect="auto", interpolation="nearest")
    axes.set(xlabel="dimension", ylabel="position", title=layer.name)
    picture.colorbar(image, ax=axes)
    return picture


def learning_rate(schedules, updates: int) -> Figure:
    """Learning rates over a training.

    Args:
        schedules: A `keras.optimizers.schedules.LearningRateSchedule`, or a dict of several by their names.
        updates: Weight updates to draw.

    Returns:
        A matplotlib figure with one line for each schedule. Point x is the rate of the x-th update, from 1; of more
        than 2,000 updates it shows 2,000.

    Raises:
        ValueError: If `updates` is no positive number, or there is no schedule.

    Example:
        ```python
        from keras_transformer.schedules import NoamSchedule
        from keras_transformer.visualize import learning_rate

        widths = {f"D = {width}": NoamSchedule(width) for width in (256, 512)}
        learning_rate(widths, updates=20_000).savefig("rates.png")
        ```
    """
    check_positive("updates", updates)
    named = schedules if isinstance(schedules, Mapping) else {getattr(schedules, "name", "") or "rate": schedules}
    if not named or not all(isinstance(one, keras.optimizers.schedules.LearningRateSchedule) for one in named.values()):
        raise ValueError(f"`schedules` must be a Keras schedule, or a dict of such. Received: {schedules!r}")
    steps = np.unique(np.linspace(1, updates, min(updates, _MOST_POINTS)).astype("int32"))
    picture = figure(7, 4)
    axes = picture.subplots()
    for name, schedule in named.items():
        axes.plot(steps, [float(schedule(step - 1)) for step in steps], label=name)
    axes.set(xlabel="update", ylabel="learning rate")
    axes.set_ylim(bottom=0)
    if len(named) > 1:
        axes.legend()
    return picture


def training_curves(folder: str | os.PathLike) -> Figure:
    """Losses, perplexities, accuracies and scores of a run, epoch by epoch.

    Args:
        folder: A run folder, or a CSV file as `keras.callbacks.CSVLogger` writes it.

    Returns:
        A matplotlib figure with a panel for each of these that the run has.

    Raises:
        ValueError: If there is no history, nothing in it that is known, or a cell of that is no number.
    """
    path, rows = _history(folder)
    panels = [(title, [name for name in names if rows and name in rows[0]]) for title, names in _PANELS]
    panels = [(title, names) for title, names in panels if names]
    if not panels or "epoch" not in rows[0]:
        raise ValueError(f"Expected columns such as epoch, loss and val_loss. Received: {path}")
    picture = figure(4.5 * len(panels), 3.5)
    for axes, (title, names) in zip(picture.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        for name in names:
            points = [(row["epoch"] + 1, row[name]) for row in rows if row[name] is not None]
            axes.plot(*zip(*points, strict=True), label=name) if points else None
        axes.set(xlabel="epoch", title=title)
        axes.legend()
        if title == "perplexity":
            axes.set_yscale("log")
    return picture


def _history(folder):
    """The file, and its rows with numbers, None where a cell is empty."""
    if not isinstance(folder, (str, os.PathLike)):
        raise ValueError(f"Expected a run folder or a CSV file. Received: {folder!r}")
    path = Path(folder)
    path = path / "history.csv" if path.is_dir() else path
    if not path.is_file():
        raise ValueError(f"There is no history of a training. Expected a run folder or a CSV file. Received: {folder}")
    known = {"epoch", *(name for _, names in _PANELS for name in names)}
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = [{name: row[name] for name in row if name in known} for row in csv.DictReader(file)]
        return path, [{name: float(cell) if cell else None for name, cell in row.items()} for row in rows]
    except (ValueError, csv.Error) as error:  # No UTF-8 is a ValueError, too.
        raise ValueError(f"A history has numbers in its columns. Received: {path}: {error}") from error
