"""Texts on their way into a search and out of it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import numpy as np

_LINE_END = re.compile("(\r?\n)")
# The same as `is_blank` in the syntax of TensorFlow's RE2. Unicode 15 has format characters that 14 has not.
BLANK_PATTERN = r"[\pZ\p{Cc}\p{Cf}\x{13430}-\x{1343f}]*"


def is_blank(text: str) -> bool:
    """Whether a text shows nothing: white space, control and format characters (U+200B, U+FEFF and so on) alone."""
    return all(
        char.isspace() or unicodedata.category(char) in ("Cc", "Cf") or "\U00013430" <= char <= "\U0001343f"
        for char in text
    )


def split_lines(text: str) -> tuple[list[str], list[str]]:
    """The lines of a text, and what stands between them: LF or CRLF, which alone end a line."""
    parts = _LINE_END.split(text)
    return parts[::2], parts[1::2]


def join_lines(lines: Sequence[str], ends: Sequence[str]) -> str:
    """The text of `split_lines`, with other lines."""
    return "".join(part for pair in zip(lines, [*ends, ""], strict=True) for part in pair)


def one_line(text: str) -> str:
    """The translation of a line is one line, whatever a model that has learnt little may say."""
    return " ".join(part for part in re.split("[\r\n]+", text) if part) if "\n" in text or "\r" in text else text


def padded(rows: Sequence[Sequence[int]]) -> np.ndarray:
    """Ids as an array, padded behind: int32 [B,S]."""
    ids = np.zeros((len(rows), max(map(len, rows), default=0)), "int32")
    for array, row in zip(ids, rows, strict=True):
        array[: len(row)] = row
    return ids


def batches_by_length(lengths: Sequence[int], cells: int) -> list[list[int]]:
    """The places of sequences in batches of like lengths, the longest first, each of at most `cells` with padding.

    A sequence longer than that has a batch of its own. Those of length 0 are in none.
    """
    order = sorted((i for i, length in enumerate(lengths) if length), key=lambda i: -lengths[i])
    batches: list[list[int]] = []
    for i in order:
        if not batches or lengths[batches[-1][0]] * (len(batches[-1]) + 1) > cells:
            batches.append([])
        batches[-1].append(i)
    return batches
