"""Data diversification: the training text once more, in the words of two models that learnt from it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from keras_transformer.decoding import Translator
from keras_transformer.files import writing
from keras_transformer.training.corpora import RecipeCorpora
from keras_transformer.training.recipe import Corpus, Recipe

# What is learnt from should not be shorter than what people write.
SEARCH = {"beam_size": 4, "length_penalty": 1.0}


def diversified_corpora(
    recipe: Recipe,
    folder: Path,
    train: Callable[[Recipe, Path], object],
    data: str | os.PathLike | None = None,
) -> list[Corpus]:
    """Two corpora more: sources with translations of them, and targets with back-translations.

    One model is trained in each direction, by the recipe itself, and translates its side of the training text with
    `SEARCH`. What is in the folder already is not made again, so that the same call goes on where a killed one was.

    Source: Nguyen et al. (2020), "Data Diversification: A Simple Strategy For Neural Machine Translation", with
    one round and one model of each direction.

    Args:
        recipe: The recipe whose training text it is.
        folder: Will hold the runs `forward/` and `backward/`, the text (`source.txt`, `target.txt`) and what they made
            of it (`source_translated.txt`, which is in the target language, and `target_translated.txt`).
        train: Trains a recipe in a run folder.
        data: Folder with local copies of public data sets; None to download them.

    Raises:
        ValueError: If a corpus is not as it should be; the message names it.
    """
    source, target, translation, back_translation = (
        folder / f"{name}.txt" for name in ("source", "target", "source_translated", "target_translated")
    )
    if not back_translation.exists():  # The last one that is written.
        teachers = {"forward": forward_recipe(recipe), "backward": backward_recipe(recipe)}
        for name, teacher in teachers.items():
            train(teacher, folder / name)
        for side, path in enumerate((source, target)):
            _write(path, (pair[side] for pair in RecipeCorpora(recipe.data.train, recipe.data, data)))
        for name, side, path in (("forward", 0, translation), ("backward", 1, back_translation)):
            texts = (pair[side] for pair in RecipeCorpora(recipe.data.train, recipe.data, data))
            translations = Translator.from_preset(folder / name).translate(texts, **SEARCH)
            # A model that has learnt little may say NUL, which no corpus takes.
            _write(path, (one.text.replace("\0", " ") for one in translations))
    return [
        Corpus(source=str(source), target=str(translation)),
        Corpus(source=str(back_translation), target=str(target)),
    ]


def forward_recipe(recipe: Recipe) -> Recipe:
    """The recipe of the model that translates the sources: the same on the text as it is, and never tested."""
    training = recipe.training.model_copy(update={"init_from": None, "keep_optimizer": False})
    data = recipe.data.model_copy(update={"diversify": False, "test": []})
    return recipe.model_copy(update={"data": data, "training": training})


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


def _write(path: Path, lines: Iterable[str]):
    with writing(str(path)) as write:
        for line in lines:
            write(line)
