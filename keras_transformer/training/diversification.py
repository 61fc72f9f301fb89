"""Data diversification: the training text once more, in the words of two models that learnt from it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from keras_transformer.decoding import Translator
from keras_transformer.files import writing
from keras_transformer.training.corpora import RecipeCorpora
from keras_transformer.training.recipe import Corpus, Recipe

# What is learnt from should not be shorter than what people write.
SEARCH: dict[str, Any] = {"beam_size": 4, "length_penalty": 1.0}


def diversified_corpora(
    recipe: Recipe,
    folder: Path,
    train: Callable[[Recipe, Path], object],
    data: str | os.PathLike | None = None,
    say: Callable[[str], None] = print,
) -> list[Corpus]:
    """Two corpora more: sources with translations of them, and targets with back-translations.

    One model is trained in each direction, by the recipe itself, and translates its side of the training text with
    `SEARCH`. A model that is finished and a text that is written are not made again, so that the same call goes on
    where a killed one was, but for the text that it was at.

    Source: Nguyen et al. (2020), "Data Diversification: A Simple Strategy For Neural Machine Translation", with
    one round and one model of each direction.

    Args:
        recipe: The recipe whose training text it is.
        folder: Will hold the runs `forward/` and `backward/`, the text (`source.txt`, `target.txt`) and what they made
            of it (`source_translated.txt`, which is in the target language, and `target_translated.txt`).
        train: Trains a recipe in a run folder.
        data: Folder with local copies of public data sets; None to download them.
        say: Says what is done.

    Raises:
        ValueError: If a corpus is not as it should be; the message names it.
    """

    def texts(side):
        return (pair[side] for pair in RecipeCorpora(recipe.data.train, recipe.data, data))

    directions = (("forward", forward_recipe(recipe), 0, "source"), ("backward", backward_recipe(recipe), 1, "target"))
    corpora = []
    for name, teacher, side, text in directions:
        if not (folder / name / "scores.json").exists():
            say(f"Diversification: training the {name} model")
            train(teacher, folder / name)
        plain, translated = folder / f"{text}.txt", folder / f"{text}_translated.txt"
        if not plain.exists():
            _write(plain, texts(side))
        if not translated.exists():
            say(f"Diversification: translating {plain}")
            translator = Translator.from_preset(folder / name)
            _write(translated, map(_learnable, translator.translate(texts(side), **SEARCH)))
        corpora.append(Corpus(source=str(plain), target=str(translated), swap=name == "backward"))
    return corpora


def forward_recipe(recipe: Recipe) -> Recipe:
    """The recipe of the model that translates the sources: the same on the text as it is, and never tested."""
    data: dict[str, Any] = {"diversify": 0.0, "teacher_epochs": None, "test": []}
    training = {"epochs": recipe.data.teacher_epochs or recipe.training.epochs}
    return recipe.model_copy(
        update={
            "data": recipe.data.model_copy(update=data),
            "training": recipe.training.model_copy(update=training),
        }
    )


def backward_recipe(recipe: Recipe) -> Recipe:
    """The recipe of the model that translates the targets: that of `forward_recipe`, the other way round."""
    forward = forward_recipe(recipe)
    exchanged = {
        "source_language": recipe.data.target_language,
        "target_language": recipe.data.source_language,
        "train": _exchanged(recipe.data.train),
        "validation": _exchanged(recipe.data.validation),
    }
    return forward.model_copy(update={"data": forward.data.model_copy(update=exchanged)})


def _exchanged(corpora):
    return [corpus.model_copy(update={"swap": not corpus.swap}) for corpus in corpora]


def _learnable(translation):
    """The text of a translation; blank, which is left out as a pair, where it was cut off and so has no end."""
    # A model that has learnt little may say NUL, which no corpus takes.
    return "" if translation.truncated else translation.text.replace("\0", " ")


def _write(path: Path, lines: Iterable[str]):
    with writing(str(path)) as write:
        for line in lines:
            write(line)
