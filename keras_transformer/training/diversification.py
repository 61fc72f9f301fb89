"""Data diversification: the training text once more, in the words of a model that learnt from it both ways."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from keras_transformer.checkpoints import save_tokenizers
from keras_transformer.decoding import Translator
from keras_transformer.files import writing
from keras_transformer.text import Tokenizer
from keras_transformer.training.corpora import RecipeCorpora
from keras_transformer.training.recipe import Corpus, Recipe

# What is learnt from should not be shorter than what people write.
SEARCH: dict[str, Any] = {"beam_size": 4, "length_penalty": 1.0}


def diversified_corpora(
    recipe: Recipe,
    tokenizer: Tokenizer,
    folder: Path,
    train: Callable[[Recipe, Path], object],
    data: str | os.PathLike | None = None,
    say: Callable[[str], None] = print,
) -> list[Corpus]:
    """Two corpora more: sources with translations of them, and targets with back-translations.

    One model, the teacher, is trained in both directions at once, by the recipe itself: which one is meant it sees by
    the language of the source. It translates both sides of the training text with `SEARCH`. A teacher that is finished
    and a text that is written are not made again, so that the same call goes on where a killed one was, but for the
    text that it was at.

    Source: Nguyen et al. (2020), "Data Diversification: A Simple Strategy For Neural Machine Translation", with one
    round and one model; Ding et al. (2021), "Improving Neural Machine Translation by Bidirectional Training".

    Args:
        recipe: The recipe whose training text it is.
        tokenizer: The one of both languages, which the teacher has too.
        folder: Will hold the run `teacher/`, the text (`source.txt`, `target.txt`) and what it made of it
            (`source_translated.txt`, which is in the target language, and `target_translated.txt`).
        train: Trains a recipe in a run folder.
        data: Folder with local copies of public data sets; None to download them.
        say: Says what is done.

    Raises:
        ValueError: If a corpus is not as it should be; the message names it.
    """

    def texts(side):
        return (pair[side] for pair in RecipeCorpora(recipe.data.train, recipe.data, data))

    teacher = folder / "teacher"
    if not (teacher / "scores.json").exists():
        say("Diversification: training a model of both directions")
        teacher.mkdir(parents=True, exist_ok=True)
        save_tokenizers(teacher, tokenizer)
        train(teacher_recipe(recipe), teacher)
    corpora, translator = [], None
    for side, name in enumerate(("source", "target")):
        plain, translated = folder / f"{name}.txt", folder / f"{name}_translated.txt"
        if not plain.exists():
            _write(plain, texts(side))
        if not translated.exists():
            say(f"Diversification: translating {plain}")
            translator = translator or Translator.from_preset(teacher)
            _write(translated, map(_learnable, translator.translate(texts(side), **SEARCH)))
        corpora.append(Corpus(source=str(plain), target=str(translated), swap=name == "target"))
    return corpora


def teacher_recipe(recipe: Recipe) -> Recipe:
    """The recipe of the model that translates: the same on the text and on the text the other way round, untested."""
    train = [corpus.model_copy(update={"swap": not corpus.swap}) for corpus in recipe.data.train]
    data: dict[str, Any] = {
        "diversify": 0.0,
        "teacher_epochs": None,
        "train": [*recipe.data.train, *train],
        "test": [],
    }
    training = {"epochs": recipe.data.teacher_epochs or recipe.training.epochs}
    return recipe.model_copy(
        update={
            "data": recipe.data.model_copy(update=data),
            "training": recipe.training.model_copy(update=training),
        }
    )


def _learnable(translation):
    """The text of a translation; blank, which is left out as a pair, where it was cut off and so has no end."""
    # A model that has learnt little may say NUL, which no corpus takes.
    return "" if translation.truncated else translation.text.replace("\0", " ")


def _write(path: Path, lines: Iterable[str]):
    with writing(str(path)) as write:
        for line in lines:
            write(line)
