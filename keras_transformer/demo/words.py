"""Words made of a tokenizer's pieces, for people to look at."""

from __future__ import annotations

import dataclasses
import itertools
import re
import unicodedata
from collections.abc import Iterable, Sequence

_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_SPACE = "▁"


@dataclasses.dataclass(frozen=True)
class Word:
    """Pieces that stand together.

    Attributes:
        text: What they read as; `""` for spaces alone.
        start: Number of the first piece.
        end: Number after that of the last.
        spaced: Whether a space stands before it.
    """

    text: str
    start: int
    end: int
    spaced: bool


def words(pieces: Sequence[str]) -> list[Word]:
    """The words of a text from its pieces, without the end of the sentence.

    A word starts where a space does, and at each piece of a script that is written without spaces: Chinese, Japanese.
    """
    pieces = [piece for piece in pieces if piece != "</s>"]
    starts = [i for i in range(len(pieces)) if not i or _starts(pieces[i - 1], pieces[i])]
    found = []
    for start, end in itertools.pairwise([*starts, len(pieces)]):
        text = _text(pieces[start:end])
        found.append(Word(text.strip(_SPACE).replace(_SPACE, " "), start, end, text.startswith(_SPACE)))
    return found


def _starts(before, piece):
    if _BYTE.fullmatch(piece):
        return not _BYTE.fullmatch(before) and _is_wide(before[-1:])
    return piece.startswith(_SPACE) or _is_wide(piece[:1]) or _is_wide(before[-1:])


def _is_wide(text):
    return bool(text) and unicodedata.east_asian_width(text) in "WF"


def _text(pieces: Iterable[str]) -> str:
    """The pieces together, runs of bytes as the characters that they spell."""
    content = b""
    for piece in pieces:
        byte = _BYTE.fullmatch(piece)
        content += bytes([int(byte[1], 16)]) if byte else piece.encode("utf-8")
    return content.decode("utf-8", "replace")
