"""Sentence pairs from line-aligned or tab-separated files, checked as they are read."""

from __future__ import annotations

import os

from keras_transformer.data.checked_pairs import CheckedPairs
from keras_transformer.data.lines import count_lines, read_lines


class ParallelCorpus(CheckedPairs):
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
        super().__init__(bad_lines, max_bytes, drop_duplicates)
        self.source, self.target = os.fspath(source), None if target is None else os.fspath(target)
        self.columns = columns
        lines = count_lines(self.source)
        if self.target is not None and lines != (target_lines := count_lines(self.target)):
            raise ValueError(
                "Line i of one file must be the translation of line i of the other. "
                f"Received: {self.source} with {lines} lines and {self.target} with {target_lines}"
            )

    def _rows(self):
        if self.target is not None:
            yield from zip(read_lines(self.source), read_lines(self.target), strict=True)
            return
        for line in read_lines(self.source):
            cells = line.split(b"\t")
            yield [cells[column] for column in self.columns] if len(cells) > max(self.columns) else None

    def _place(self, number, side):
        return f"{self.target if side == 1 and self.target is not None else self.source}:{number}"
