"""Scores of a model on sentence pairs, by greedy decoding."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from keras_transformer.checkpoints import load_preset
from keras_transformer.decoding import GreedyDecoder
from keras_transformer.evaluate import Score, has_spaces, lowercased_tokenized_bleu, score_translations
from keras_transformer.training.corpora import RecipeCorpora
from keras_transformer.training.recipe import Corpus, load_recipe


def score_model(decoder: GreedyDecoder, pairs: Sequence[tuple[str, str]], target_language: str) -> dict[str, Score]:
    """BLEU, chrF and TER of greedy translations; where words have spaces, the tokenised lower-cased BLEU of papers too.

    Args:
        decoder: A `GreedyDecoder`.
        pairs: Pairs of texts, source and reference.
        target_language: Code of the target language.

    Raises:
        ValueError: If there are no pairs or the language is unknown.
    """
    sources, references = ([pair[side] for pair in pairs] for side in (0, 1))
    translations = decoder.translate(sources)
    scores = score_translations(hypotheses=translations, references=references, target_language=target_language)
    if has_spaces(target_language):
        scores["lowercased_tokenized_bleu"] = lowercased_tokenized_bleu(
            hypotheses=translations, references=references, target_language=target_language
        )
    return scores


def scores_as_dict(scores: dict[str, Score]) -> dict[str, dict]:
    """The same, ready for JSON."""
    return {
        key: {"name": score.name, "value": score.value, "signature": score.signature} for key, score in scores.items()
    }


def evaluate_run(folder, source=None, reference=None, data=None):
    """The scores of a trained run on a pair of files, or else on the test set of its recipe.

    Args:
        folder: The run folder.
        source: File of source sentences.
        reference: File of their translations.
        data: Folder with local copies of public data sets.

    Raises:
        ValueError: If the run is not finished or there is no test set.
    """
    model, *tokenizers = load_preset(folder)
    recipe = load_recipe(Path(folder) / "recipe.yaml")
    corpora = [Corpus(source=str(source), target=str(reference))] if source else recipe.data.test
    if not corpora:
        raise ValueError(f"The recipe has no test set: name a source and a reference file. Received: {folder}")
    pairs = list(RecipeCorpora(corpora, recipe.data.model_copy(update={"drop_duplicates": False}), data))
    return score_model(GreedyDecoder(model, *tokenizers), pairs, recipe.data.target_language)
