"""Files and standard streams of the command line: UTF-8 whatever the locale, one text a line."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
from collections.abc import Callable, Iterator

from keras_transformer._replacing import replacing
from keras_transformer.data.lines import iterate_lines, read_lines


def read_texts(path: str) -> Iterator[str]:
    """The lines of a file, or of standard input for "-".

    Raises:
        ValueError: If the file cannot be read, or a line is no UTF-8; the message names it.
    """
    name = "standard input" if path == "-" else path
    lines = iterate_lines(sys.stdin.buffer, name) if path == "-" else read_lines(path)
    for number, line in enumerate(lines, start=1):
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{name}:{number} is not UTF-8: {error.reason} at byte {error.start + 1}") from error


def read_pairs(source: str, target: str) -> Iterator[tuple[str, str]]:
    """The lines of two files side by side, one of which may be standard input.

    Raises:
        ValueError: As `read_texts`, or if one has fewer lines than the other.
    """
    if source == target == "-":
        raise ValueError("Standard input holds the lines of one side. Received: - for both")
    texts = (itertools.chain(read_texts(path), itertools.repeat(None)) for path in (source, target))
    for number, pair in enumerate(zip(*texts, strict=True)):
        if None in pair:
            if pair != (None, None):
                shorter = source if pair[0] is None else target
                raise ValueError(f"Each source needs one target. Received: {shorter} ends after {number} lines")
            return
        yield pair


@contextlib.contextmanager
def writing(path: str) -> Iterator[Callable[[str], None]]:
    """Gives the function that writes a line to a file, or to standard output for "-".

    The file appears when all is written: not at all if an error or an interrupt comes before. A link stays, and what it
    leads to is written; a device or a pipe is written to as it is.

    Raises:
        ValueError: If the file cannot be written.
    """
    if path == "-":
        try:
            yield lambda line: _write(sys.stdout.buffer, line)
            sys.stdout.buffer.flush()
        except BrokenPipeError:  # Whoever read has had enough, `head` for one.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return
    try:
        with replacing(path) as file:
            yield lambda line: _write(file, line)
    except OSError as error:
        raise ValueError(f"Could not write {path}: {error}") from error


def _write(file, line):
    file.write(line.encode("utf-8") + b"\n")
