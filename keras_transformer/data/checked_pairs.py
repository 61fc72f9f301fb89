"""The checks that every sentence pair passes, wherever it comes from."""

from __future__ import annotations

import abc
import hashlib
from collections.abc import Iterator

from keras_transformer._checks import check_bool, check_choice, check_positive
from keras_transformer.data.report import DataReport

_BAD_LINES = ("raise", "skip")
_EXPECTED = {
    "invalid_utf8": "the line must be valid UTF-8, and is not.",
    "nul": "the line must be text, and has a NUL character.",
    "columns": "the line must have a column for each language, and has too few.",
}


class CheckedPairs(abc.ABC):
    """Sentence pairs that are checked as they are read, and counted in a report.

    A class of its own says where the pairs come from: `_rows` yields the two sides of a pair in bytes, or None for a
    line that lacks one, and `_place` names a line for messages and the report.

    Args:
        bad_lines: `"raise"` or `"skip"`: what to do about a line that is no text or lacks a column.
        max_bytes: Pairs with a longer side are left out.
        drop_duplicates: Whether to leave out a pair that stood earlier. Takes about 100 bytes a pair.

    Attributes:
        report: The `DataReport` of the newest iteration.

    Raises:
        ValueError: Now, if an argument is out of range; when iterating, at a bad line.
    """

    def __init__(self, bad_lines: str = "raise", max_bytes: int = 10_000, drop_duplicates: bool = True):
        self.bad_lines = check_choice("bad_lines", bad_lines, _BAD_LINES)
        self.max_bytes = check_positive("max_bytes", max_bytes)
        self.drop_duplicates = check_bool("drop_duplicates", drop_duplicates)
        self.report = DataReport()

    def __iter__(self) -> Iterator[tuple[str, str]]:
        self.report = report = DataReport()
        seen: set[bytes] = set()
        for number, row in enumerate(self._rows(), start=1):
            report.read += 1
            pair, problem = _parse(row)
            cause, side = problem or (self._unwanted(pair, seen), 0)
            if cause is None:
                report.kept += 1
                yield pair
                continue
            place = self._place(number, side)
            if problem and self.bad_lines == "raise":
                raise ValueError(f'{place}: {_EXPECTED[cause]} bad_lines="skip" leaves such lines out.')
            report.drop(cause, place)

    @abc.abstractmethod
    def _rows(self):
        """Yields the two sides of each pair in bytes, or None for a line that lacks one."""

    @abc.abstractmethod
    def _place(self, number, side):
        """The name of a side, 0 or 1, of the line with this number, counted from 1."""

    def _unwanted(self, pair, seen):
        """The cause for which a pair that is text is left out, or None."""
        blank = [not sentence for sentence in pair]
        if any(blank):
            return "blank" if all(blank) else "one_sided_blank"
        if max(len(sentence.encode()) for sentence in pair) > self.max_bytes:
            return "too_long"
        if self.drop_duplicates:
            digest = hashlib.blake2b("\t".join(pair).encode(), digest_size=16).digest()
            if digest in seen:
                return "duplicate"
            seen.add(digest)
        return None


def _parse(row):
    """The pair of a row of bytes, or None and the problem: its cause and the side, 0 or 1."""
    if row is None:
        return None, ("columns", 0)
    sentences = []
    for side, sentence in enumerate(row):
        try:
            sentences.append(sentence.decode("utf-8").strip())
        except UnicodeDecodeError:
            return None, ("invalid_utf8", side)
        if "\0" in sentences[-1]:
            return None, ("nul", side)
    return tuple(sentences), None
