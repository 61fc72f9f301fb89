"""Sentence pairs in the manner of a language course, composed by a small grammar, for trials without a download."""

from __future__ import annotations

import functools

from keras_transformer._checks import check_choice
from keras_transformer.data.phrasebook.chinese import GRAMMAR as _CHINESE
from keras_transformer.data.phrasebook.french import GRAMMAR as _FRENCH
from keras_transformer.data.phrasebook.grammar import divide

__all__ = ["phrasebook"]

_GRAMMARS = {"zh": _CHINESE, "fr": _FRENCH}
_SPLITS = ("train", "validation")


def phrasebook(source_language: str, split: str) -> list[tuple[str, str]]:
    """Sentences of a language course with their English: about 20,000 from Chinese, 12,000 from French.

    Every call gives the same pairs in the same order, mixed. A source sentence stands once, in one split: what it
    means is a function of it. Validation holds new combinations of words that all occur in training. Many words
    need their neighbours to be translated: 水 is water in 喝水, but 水果 is fruit and 水课 an easy course.

    Args:
        source_language: `"zh"` or `"fr"`: simplified Chinese or French. The target is English.
        split: `"train"` or `"validation"`, which has 500 pairs.

    Returns:
        Pairs of a source sentence and its translation. Some end in a full stop, on both sides; questions end in a
        question mark.

    Raises:
        ValueError: If `source_language` or `split` is none of the above.

    Example:
        ```python
        from keras_transformer.data.phrasebook import phrasebook

        print(dict(phrasebook("zh", "validation"))["我爱水课"])
        #> I love easy courses
        print(dict(phrasebook("fr", "validation"))["Jane visite l'Afrique en septembre"])
        #> Jane visits Africa in September
        ```
    """
    check_choice("source_language", source_language, tuple(_GRAMMARS))
    check_choice("split", split, _SPLITS)
    return list(_divided(source_language)[_SPLITS.index(split)])


@functools.cache
def _divided(source_language):
    return divide(_GRAMMARS[source_language])
