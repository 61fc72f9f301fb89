"""The folder of a run: whose recipe it holds, who trains in it, and its history."""

from __future__ import annotations

import contextlib
import csv
import errno
import fcntl
from collections.abc import Iterator
from pathlib import Path

import yaml

from keras_transformer.checkpoints import write_text
from keras_transformer.training.recipe import Recipe, load_recipe

# Options that a run may go on with when they have changed since it began.
_FREE_OPTIONS = tuple(
    f"training.{name}" for name in ("epochs", "patience", "translate_every", "average_last", "distribution")
)
_LOCK, _NO_LOCKS = ".trained-by-worker-", (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


def open_run_folder(folder: Path, recipe: Recipe, write: bool) -> None:
    """Begins a run in a folder, or finds it as the same recipe left it.

    Args:
        folder: The folder, in which no other process trains.
        recipe: The run's recipe.
        write: Whether to write the recipe into it: of several workers one does.

    Raises:
        ValueError: If the folder holds a run of another recipe; the message names the options that differ.
    """
    options = recipe.model_dump(mode="json")
    path = folder / "recipe.yaml"
    # A first start that failed, a file misspelt, has made nothing that another recipe would not fit.
    if path.exists() and any(one.name != path.name and not one.name.startswith(_LOCK) for one in folder.iterdir()):
        before = _fixed_options(load_recipe(path).model_dump(mode="json"))
        changed = [key for key, value in _fixed_options(options).items() if before[key] != value]
        if changed:
            raise ValueError(
                f"{folder} holds a run of another recipe: choose another folder, or delete it. Received: "
                f"other values of {', '.join(changed)}"
            )
    if write:
        write_text(path, yaml.safe_dump(options, allow_unicode=True, sort_keys=False))


@contextlib.contextmanager
def only_trainer(folder: Path, worker: int = 0) -> Iterator[None]:
    """Keeps other processes from training in the folder of a run. A process that is killed keeps nobody out.

    On a file system that has no locks nobody is kept out.

    Args:
        folder: The folder, which is made if need be.
        worker: The number of this worker: each keeps out those of its number.

    Raises:
        ValueError: If another one trains in it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{_LOCK}{worker}", "a", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ValueError(
                f"A run folder is trained in by one process at a time: wait for the other one, or stop it. Received: "
                f"{folder}, in which one is at work"
            ) from error
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
        yield


def trim_history(path: Path, epochs: int) -> None:
    """Leaves out the rows of epochs that will be done again."""
    if not path.exists():
        return
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([*rows[:1], *(row for row in rows[1:] if row and int(row[0]) < epochs)])


def _fixed_options(options):
    """The options that must not change within a run, by their dotted names."""
    flat = {f"{section}.{key}": value for section, fields in options.items() for key, value in fields.items()}
    return {key: value for key, value in flat.items() if key not in _FREE_OPTIONS}
