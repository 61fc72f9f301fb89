"""Scores of a model on sentence pairs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from keras_transformer.data.public import PUBLIC_DATASETS
from keras_transformer.decoding import Translator
from keras_transformer.evaluate import Score, has_spaces, lowercased_tokenized_bleu, same_language, score_translations
from keras_transformer.training.corpora import RecipeCorpora
from keras_transformer.training.recipe import Corpus, Data, Recipe, load_recipe


def score_model(
    translator: Translator, pairs: Sequence[tuple[str, str]], target_language: str, **options
) -> dict[str, Score]:
    """BLEU, chrF and TER of translations; where words have spaces, the tokenised lower-cased BLEU of papers too.

    All of them ignore the case where the model writes lower case.

    Args:
        translator: A `Translator`.
        pairs: Pairs of texts, source and reference.
        target_language: Code of the target language.
        **options: Those of `Translator.translate`; greedy search if there is no `beam_size`.

    Raises:
        ValueError: If there are no pairs or the language is unknown, or as `Translator.translate`.
    """
    sources, references = ([pair[side] for pair in pairs] for side in (0, 1))
    translations = [
        one.text for one in translator.translate(sources, **{"beam_size": 1, "return_scores": False, **options})
    ]
    sides: dict = {"hypotheses": translations, "references": references, "target_language": target_language}
    scores = score_translations(**sides, lowercase=translator.lowers_case)
    if has_spaces(target_language):
        scores["lowercased_tokenized_bleu"] = lowercased_tokenized_bleu(**sides)
    return scores


def scores_as_dict(scores: dict[str, Score]) -> dict[str, dict]:
    """The same, ready for JSON."""
    return {
        key: {"name": score.name, "value": score.value, "signature": score.signature} for key, score in scores.items()
    }


def evaluate_model(folder, data=None, source=None, reference=None, test_set=None, target_language=None, **options):
    """The scores of a trained model, by name: see `score_model`, and `evaluation_pairs` for what it is scored on.

    Args:
        folder: The folder of a run or a preset.
        data: Folder with local copies of public data sets.
        source: As of `evaluation_pairs`.
        reference: As well.
        test_set: As well.
        target_language: As well.
        **options: Those of `Translator.translate`.

    Raises:
        ValueError: As `evaluation_pairs`, or if there is no finished model or options are wrong.
    """
    translator = Translator.from_preset(folder)
    pairs, language = evaluation_pairs(folder, data, source, reference, test_set, target_language)
    return score_model(translator, pairs, language, **options)


def evaluation_pairs(
    folder, data=None, source=None, reference=None, test_set=None, target_language=None
) -> tuple[list[tuple[str, str]], str]:
    """Sentence pairs, and their target language: a pair of files, a public test set, or else that of the recipe.

    Args:
        folder: The folder of a run or a preset.
        data: Folder with local copies of public data sets.
        source: File of source sentences.
        reference: File of their translations.
        test_set: Name and split of a public data set, `"multi30k/test_2016_flickr"`.
        target_language: Code of the target language; that of the run's recipe if None.

    Raises:
        ValueError: If there is no test set, or arguments do not go together.
    """
    if (source is None) != (reference is None) or (source and test_set):
        raise ValueError(
            "Source and reference files go together, and without a test set. "
            f"Received: {source=!s}, {reference=!s}, {test_set=!s}"
        )
    recipe = run_recipe(folder)
    language = target_language or (recipe.data.target_language if recipe else None)
    if language is None:
        raise ValueError(f"A folder without a recipe needs the target language. Received: {folder}")
    if source:
        corpora = [Corpus(source=str(source), target=str(reference))]
    elif test_set:
        corpora = [_public(test_set, language)]
    else:
        corpora = recipe.data.test if recipe else []
    if not corpora:
        raise ValueError(f"The recipe has no test set: name a source and a reference file. Received: {folder}")
    fields = {"source_language": "und", "target_language": language, "train": corpora, "validation": corpora}
    section = recipe.data if recipe else Data.model_validate(fields)
    pairs = RecipeCorpora(corpora, section.model_copy(update={"drop_duplicates": False}), data)
    return list(pairs), language


def run_recipe(folder) -> Recipe | None:
    """The recipe of a run's folder; None for a folder without one, a preset."""
    path = Path(folder) / "recipe.yaml"
    return load_recipe(path) if path.exists() else None


def _public(test_set, target_language):
    """The corpus of a public set in the direction of the target language."""
    name, _, split = test_set.partition("/")
    dataset = PUBLIC_DATASETS.get(name)
    if dataset is None:
        raise ValueError(f"The public sets are {', '.join(PUBLIC_DATASETS)}. Received: {test_set}")
    if split not in dataset.splits:
        raise ValueError(f"The splits of {name} are {', '.join(dataset.splits)}. Received: {test_set}")
    return Corpus(dataset=name, split=split, swap=same_language(dataset.languages[0], target_language))
