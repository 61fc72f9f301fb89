"""The application, and what its commands share: options, interrupts, errors."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Annotated

import typer
import yaml

app = typer.Typer(
    help="Trains, evaluates, exports and shows encoder-decoder Transformers for translation.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
Data = Annotated[
    Path | None,
    typer.Option("--data", help="Folder with local copies of public data sets; else they are downloaded."),
]
Model = Annotated[Path, typer.Argument(help="Folder of a run or a preset.")]
Input = Annotated[str, typer.Option("--input", help="File to read, plain or gzip; - for standard input.")]
Output = Annotated[str, typer.Option("--output", help="File to write; - for standard output.")]
BeamSize = Annotated[int, typer.Option(help="Hypotheses kept at each step; 1 is greedy search.")]
SearchSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Any field of keras_transformer.decoding.SearchOptions: --set length_penalty=1.0. May be repeated.",
    ),
]


@app.callback()
def _options(debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False):
    os.environ["KERAS_TRANSFORMER_DEBUG"] = "1" if debug else ""


@contextlib.contextmanager
def _no_interrupt_is_lost():
    """Sends an interrupt anew that came in a destructor or a callback: Python shows its traceback there and goes on."""
    before = sys.unraisablehook

    def hook(unraisable):
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            # A little later, since here it would be lost again.
            threading.Timer(0.01, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()
        else:
            before(unraisable)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


@_no_interrupt_is_lost()
def main() -> None:
    """Runs the command line; a user's mistake is one line on standard error and the exit status 2."""
    try:
        app(prog_name="keras-transformer")
    except KeyboardInterrupt:  # One that came before the command itself had begun, which Typer does not catch.
        _say_at_interrupt("Stopped.")
        sys.exit(130)
    except (ValueError, ImportError, OSError) as error:
        if os.environ.get("KERAS_TRANSFORMER_DEBUG"):
            raise
        print(f"keras-transformer: {_in_one_line(str(error))}", file=sys.stderr)
        sys.exit(2)


def _in_one_line(message):
    """A message in several lines, a headline and what it is about, as one for logs and for who reads by line."""
    first, *details = [line.strip() for line in message.splitlines() if line.strip()] or [""]
    return " ".join(filter(None, [first, "; ".join(details)]))


@contextlib.contextmanager
def stopped_by_interrupt(message):
    """Makes of Ctrl-C a message on standard error and the exit status 130."""
    try:
        yield
    except KeyboardInterrupt:
        _say_at_interrupt(f"\n{message}")
        raise typer.Exit(130) from None


def _say_at_interrupt(message):
    # The way out waits for what is being computed: keys pressed again in the meantime would change the exit status.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print(message, file=sys.stderr)


def search_options(options, **search):
    """The options of a search by name. Raises ValueError before a model is loaded for nothing."""
    from keras_transformer.decoding import SearchOptions

    search.update(parsed(options or []))
    SearchOptions.of(**search)
    return search


def parsed(options):
    """Values by the names of NAME=VALUE, each read as YAML. Raises ValueError for what is none."""
    values = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals or not key:
            raise ValueError(f"--set takes NAME=VALUE. Received: --set {option}")
        try:
            values[key] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise ValueError(f"The value of --set {key} is no YAML. Received: {value}") from error
    return values
