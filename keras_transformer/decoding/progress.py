"""A progress bar for long work."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def progress_bar(title: str, total: int | None, visible: bool) -> Iterator[Callable[[int], None]]:
    """Shows a bar on standard error, where pipes do not read; gives the function that moves it on.

    Args:
        title: What is being done.
        total: How much there is to do; None where it is not known.
        visible: Whether to show it at all.
    """
    if not visible:
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(title, total=total)
        yield lambda count: progress.advance(task, count)
