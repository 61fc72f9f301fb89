"""`tokenizer train`, `tokenizer encode` and `tokenizer decode`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keras_transformer.cli.app import Input, Output, app, stopped_by_interrupt

tokenizer = typer.Typer(help="Train a tokenizer, or use one.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(tokenizer, name="tokenizer")
Model = Annotated[Path, typer.Argument(help="File of a tokenizer, or folder of a run or a preset.")]


@tokenizer.command()
def train(
    files: Annotated[
        list[str], typer.Argument(help="Text to learn from, plain or gzip, of all languages that share it.")
    ],
    to: Annotated[Path, typer.Option(help="File to write.")],
    vocabulary_size: Annotated[int, typer.Option(help="Tokens, counting 4 special ones and 256 bytes.")] = 8000,
    model_type: Annotated[str, typer.Option(help="bpe or unigram.")] = "bpe",
    character_coverage: Annotated[float, typer.Option(help="Share of characters that get a token.")] = 1.0,
    normalization: Annotated[
        str, typer.Option(help="identity keeps text as written; or lower, nfkc, nmt_nfkc, nfkc_cf, nmt_nfkc_cf.")
    ] = "identity",
):
    """Train a SentencePiece tokenizer on text files.

    Example: keras-transformer tokenizer train train.zh train.en --to tokenizer.model
    """
    from keras_transformer.files import read_texts
    from keras_transformer.text import Tokenizer

    if not to.parent.is_dir():
        raise ValueError(f"There is no folder {to.parent}. Received: --to {to}")
    with stopped_by_interrupt("Stopped; nothing was written."):
        texts = (text for file in files for text in read_texts(file))
        Tokenizer.train(texts, vocabulary_size, model_type, character_coverage, normalization).save(to)


@tokenizer.command()
def encode(
    model: Model,
    source: Input = "-",
    target: Output = "-",
    ids: Annotated[bool, typer.Option("--ids", help="Write ids instead of pieces.")] = False,
):
    """Cut text into pieces, or ids, with spaces between.

    Example: echo "A dog runs." | keras-transformer tokenizer encode tokenizer.model
    """
    loaded = _load(model, 0)

    def line(text):
        numbers = loaded.encode(text)
        return " ".join(map(str, numbers) if ids else loaded.pieces(numbers))

    _convert(line, source, target)


@tokenizer.command()
def decode(model: Model, source: Input = "-", target: Output = "-"):
    """Make text of ids with spaces between.

    Example: echo "5 17 9" | keras-transformer tokenizer decode tokenizer.model
    """
    loaded = _load(model, 1)

    def line(text):
        try:
            return loaded.decode([int(number) for number in text.split()])
        except ValueError as error:
            raise ValueError(
                f"Ids are whole numbers of the vocabulary, with spaces between. Received: {text!r}"
            ) from error

    _convert(line, source, target)


def _convert(line, source, target):
    from keras_transformer.files import read_texts, writing

    with stopped_by_interrupt("Stopped."), writing(target) as write:
        for text in read_texts(source):
            write(line(text))


def _load(model, side):
    """The tokenizer of a file; of a folder that for sources (0) or that for targets (1)."""
    from keras_transformer.checkpoints import load_tokenizers
    from keras_transformer.text import Tokenizer

    return load_tokenizers(model)[side] if model.is_dir() else Tokenizer.from_file(model)
