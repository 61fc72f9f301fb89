"""Sentence pairs from line-aligned or tab-separated files, checked as they are read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator

from keras_transformer._checks import check_bool, check_choice, check_positive
from keras_transformer.data.lines import count_lines, read_lines
from keras_transformer.data.report import DataReport

_BAD_LINES = ("raise", "skip")


class ParallelCorpus:
    r"""Sentence pairs from two line-aligned files, or from two columns of a tab-separated one.

    Files are plain or gzip, UTF-8 whatever the locale, with lines that end at LF or CRLF; a byte order mark at the
    start of a file is no text. Iterating reads from disk anew, pair by pair, so a corpus may be larger than memory.
    Space at the ends of a sentence is no part of it.

    Pairs that are blank on a side, too long or duplicates are left out, and counted by cause in `report`. A line that
    is no text (invalid UTF-8, NUL) or lacks a column is an error that names it, or is left out as well.

    Args:
        source: Path of the source side, or of the tab-separated file.
        target: Path of the target side; None where `source` is tab-separated.
        columns: Columns of source and target in a tab-separated file, counted from 0.
        bad_lines: `"raise"` or `"skip"`: what to do about a line that is no text or lacks a column.
        max_bytes: Pairs with a longer side are left out.
        drop_duplicates: Whether to leave out a pair that stood earlier. Takes about 100 bytes a pair.

    Attributes:
        report: The `DataReport` of the newest iteration.

    Raises:
        ValueError: Now, if a file cannot be read or the two have different numbers of lines; when iterating, at a bad
            line.

    Example:
        ```python
        from pathlib import Path
        from keras_transformer.data import ParallelCorpus

        Path("train.zh").write_text("我爱水课\n\n喝水\n", encoding="utf-8")
        Path("train.en").write_text("I love easy courses\nA line without its other half\ndrink water\n")
        corpus = ParallelCorpus("train.zh", "train.en")
        print(list(corpus))
        #> [('我爱水课', 'I love easy courses'), ('喝水', 'drink water')]
        print(corpus.report)
        '''
        2 of 3 pairs kept
          1 (33.3 %) blank on one side, first at train.zh:2
        '''
        ```
    """

    def __init__(
        self,
        source: str | os.PathLike,
        target: str | os.PathLike | None = None,
        columns: tuple[int, int] = (0, 1),
        bad_lines: str = "raise",
        max_bytes: int = 10_000,
        drop_duplicates: bool = True,
    ):
        self.source, self.target = os.fspath(source), None if target is None else os.fspath(target)
        self.columns = columns
        self.bad_lines = check_choice("bad_lines", bad_lines, _BAD_LINES)
        self.max_bytes = check_positive("max_bytes", max_bytes)
        self.drop_duplicates = check_bool("drop_duplicates", drop_duplicates)
        self.report = DataReport()
        lines = count_lines(self.source)
        if self.target is not None and lines != (target_lines := count_lines(self.target)):
            raise ValueError(
                "Line i of one file must be the translation of line i of the other. "
                f"Received: {self.source} with {lines} lines and {self.target} with {target_lines}"
            )

    def __iter__(self) -> Iterator[tuple[str, str]]:
        self.report = report = DataReport()
        seen: set[bytes] = set()
        for number, row in enumerate(self._rows(), start=1):
            report.read += 1
            pair, problem = _parse(row, self.columns if self.target is None else (0, 1))
            cause, place = problem or (self._unwanted(pair, seen), 0)
            if cause is None:
                report.kept += 1
                yield pair
                continue
            file = self.target if place == 1 and self.target is not None else self.source
            if problem and self.bad_lines == "raise":
                raise ValueError(f'{file}:{number}: {_EXPECTED[cause]} bad_lines="skip" leaves such lines out.')
            report.drop(cause, f"{file}:{number}")

    def _rows(self):
        if self.target is None:
            return (line.split(b"\t") for line in read_lines(self.source))
        return zip(read_lines(self.source), read_lines(self.target), strict=True)

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


_EXPECTED = {
    "invalid_utf8": "the line must be valid UTF-8, and is not.",
    "nul": "the line must be text, and has a NUL character.",
    "columns": "the line must have a column for each language, and has too few.",
}


def _parse(row, columns):
    """The pair of a row of bytes, or None and the problem: its cause and the side, 0 or 1."""
    if len(row) <= max(columns):
        return None, ("columns", 0)
    sentences = []
    for side, column in enumerate(columns):
        try:
            sentences.append(row[column].decode("utf-8").strip())
        except UnicodeDecodeError:
            return None, ("invalid_utf8", side)
        if "\0" in sentences[-1]:
            return None, ("nul", side)
    return tuple(sentences), None
