"""What a grammar is, and how its sentences are chosen and divided into training and validation."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

Pair = tuple[str, str]

_VALIDATION = 500
_TIMES_IN_TRAINING = 3  # A word of a validation sentence stands in training at least so often.


class Grammar(NamedTuple):
    """Sentences of one language with their English.

    Args:
        families: What composes sentences of one kind, without a final full stop, and the most that are taken of it.
        full_stop: That of the language.
        held_out: Pairs that validation holds in any case.
    """

    families: tuple[tuple[Callable[[], Iterable[Pair]], int], ...]
    full_stop: str
    held_out: tuple[Pair, ...]


def divide(grammar: Grammar) -> tuple[list[Pair], list[Pair]]:
    """The pairs of `grammar` for training and for validation."""
    pairs = sorted(_chosen(grammar), key=lambda pair: _rank("order", pair))
    times = Counter(word for pair in pairs for word in tokens(pair))
    training, validation = [], list(grammar.held_out)
    for pair in pairs:
        own = tokens(pair)
        if len(validation) < _VALIDATION and all(times[word] > _TIMES_IN_TRAINING for word in own):
            times.subtract(own)
            validation.append(pair)
        else:
            training.append(pair)
    return training, sorted(validation, key=lambda pair: _rank("validation", pair))


def tokens(pair: Pair) -> set[str]:
    """The words and marks of both sides; each Chinese character is one."""
    return set(re.findall(r"[一-鿿]|[^\W一-鿿]+|[^\w\s]", " ".join(pair)))


def turn(items: Sequence, number: int, parts: int) -> Sequence:
    """One of `parts` parts of the items, another for every number: where all combinations would be too many."""
    return items[number % parts :: parts]


def words(text: str) -> dict[str, str]:
    """The table written as "word=translation, word=translation"."""
    return dict(entry.strip().split("=") for entry in text.split(","))


def _chosen(grammar) -> Iterator[Pair]:
    """Of each family the allowed number. A third of the statements get a full stop.

    A sentence never stands with and without its full stop: what is held out would otherwise be almost known.
    """
    taken = {source for source, _ in grammar.held_out}
    for family, most in grammar.families:
        new = {source: target for source, target in family() if source not in taken}
        taken.update(new)
        for source, target in sorted(new.items(), key=lambda pair: _rank("choice", pair))[:most]:
            stop = not target.endswith("?") and _rank("stop", (source, target)) % 3 == 0
            yield (source + grammar.full_stop, target + ".") if stop else (source, target)


def _rank(purpose, pair) -> int:
    """A number that looks random and is the same everywhere, unlike `hash`."""
    return int.from_bytes(hashlib.blake2b(f"{purpose} {pair[0]}".encode(), digest_size=8).digest(), "big")
