"""The command line: `keras-transformer COMMAND`. One file for each group of commands, `app.py` for what they share."""

from keras_transformer.cli import benchmark, demo, export, tokenizer, train, translate  # noqa: F401  The commands.
from keras_transformer.cli.app import main
from keras_transformer.cli.memory import GLIBC_TUNABLES, keep_freed_memory

__all__ = ["GLIBC_TUNABLES", "keep_freed_memory", "main"]
