"""Lines of text files. Text is UTF-8 whatever the locale, and a line ends at LF or CRLF only."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

_BOM = b"\xef\xbb\xbf"


def read_lines(path: str | os.PathLike) -> Iterator[bytes]:
    """The lines of a file, plain or gzip by its first bytes, without their ends and without a byte order mark.

    Reads from disk as it goes: a file may be larger than memory.

    Raises:
        ValueError: If the file cannot be read, or its lines end in CR alone.
    """
    path = Path(path)
    try:
        with _open(path) as file:
            yield from iterate_lines(file, path)
    except (OSError, EOFError) as error:  # gzip raises EOFError where a file was cut.
        raise ValueError(f"Could not read {path}: {error}") from error


def iterate_lines(file: Iterable[bytes], name: object) -> Iterator[bytes]:
    """The same of an open file, for which errors have a name."""
    for number, line in enumerate(file):
        if number == 0:
            line = line.removeprefix(_BOM)
            if not line.endswith(b"\n") and b"\r" in line:
                raise ValueError(
                    f"The lines of a file must end in LF or CRLF. Received: {name}, with CR and without LF"
                )
        yield line.removesuffix(b"\n").removesuffix(b"\r")


def count_lines(path: str | os.PathLike) -> int:
    """How many lines `read_lines` gives."""
    return sum(1 for _ in read_lines(path))


def _open(path):
    with open(path, "rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if compressed else open(path, "rb")
