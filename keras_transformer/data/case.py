"""Pairs in other cases, so that a model knows what to do about HEADLINES."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from keras_transformer._checks import check_rate


def with_case_variants(pairs: Iterable[tuple[str, str]], share: float) -> Iterator[tuple[str, str]]:
    """The pairs, and behind some of them the same pair in UPPER CASE or In Title Case, on both sides.

    Text in capitals is rare in most corpora; a model that never met it copies or repeats it. Which pairs get a variant
    depends on their number alone. A pair whose source has no case, Chinese say, gets none.

    Args:
        pairs: Pairs of texts.
        share: Share of pairs with a variant, from 0 to 1; half of the variants are in upper, half in title case.

    Raises:
        ValueError: If `share` is out of range.

    Example:
        ```python
        from keras_transformer.data import with_case_variants

        print(list(with_case_variants([("J'aime les fruits", "I like fruit")], share=1.0)))
        #> [("J'aime les fruits", 'I like fruit'), ("J'AIME LES FRUITS", 'I LIKE FRUIT')]
        ```
    """
    if share != 1:
        check_rate("share", share)
    due, variants = share, 0
    for source, target in pairs:
        yield source, target
        if due >= 1 - 1e-9:
            change = _title if variants % 2 else str.upper
            if change(source) != source:
                yield change(source), change(target)
                variants += 1
            due -= 1
        due += share


def _title(text):
    # Not str.title, which makes J'Aime of j'aime and Don'T of don't.
    return " ".join(word[:1].upper() + word[1:] for word in text.split(" "))
