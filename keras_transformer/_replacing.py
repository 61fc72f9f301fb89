"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def replacing(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """Gives a file to write to, which takes the place of another when all is written.

    A link stays, and what it leads to is replaced; a device or a pipe is written to as it is.

    Raises:
        OSError: If the file cannot be written.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file() and not target.is_dir():
        with open(target, "wb") as file:
            yield file
        return
    if not os.fspath(path) or target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "It must be a file, not a folder")
    unfinished = target.with_name(f".{os.getpid()}.{target.name}")
    try:
        with open(unfinished, "wb") as file:
            yield file
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)
