"""Scores of a model on sentence pairs, by greedy decoding."""

from __future__ import annotations

from collections.abc import Sequence

from keras_transformer.decoding import GreedyDecoder
from keras_transformer.evaluate import Score, lowercased_tokenized_bleu, score_translations

# Scripts without spaces between words: Moses' tokenizer finds no words there.
_WITHOUT_SPACES = ("zh", "ja", "cmn", "jpn", "th")


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
    if target_language.lower().replace("_", "-").split("-")[0] not in _WITHOUT_SPACES:
        scores["lowercased_tokenized_bleu"] = lowercased_tokenized_bleu(
            hypotheses=translations, references=references, target_language=target_language
        )
    return scores


def scores_as_dict(scores: dict[str, Score]) -> dict[str, dict]:
    """The same, ready for JSON."""
    return {
        key: {"name": score.name, "value": score.value, "signature": score.signature} for key, score in scores.items()
    }
