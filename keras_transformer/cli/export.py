"""`export` and `inspect`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keras_transformer.cli.app import (
    BeamSize,
    Data,
    Model,
    SearchSettings,
    app,
    search_options,
    stopped_by_interrupt,
)


@app.command()
def export(
    context: typer.Context,
    model: Model,
    to: Annotated[Path, typer.Option(help="Folder of the model, saved_models/NAME; a version folder is made in it.")],
    version: Annotated[int | None, typer.Option(help="Number of the version; the next free one by default.")] = None,
    kind: Annotated[str, typer.Option("--format", help="saved_model or ctranslate2.")] = "saved_model",
    dtype: Annotated[str, typer.Option(help="Weights and computation: float32, bfloat16 or float16.")] = "float32",
    quantization: Annotated[str | None, typer.Option(help="For ctranslate2: int8, float16, ...")] = None,
    license: Annotated[str | None, typer.Option(help="Licence of the model, for its card.")] = None,
    score: Annotated[
        bool | None,
        typer.Option(help="Score the export on the test set, for its card; by default where the dtype is not float32."),
    ] = None,
    source: Annotated[Path | None, typer.Option(help="Source file to score on, instead of the test set.")] = None,
    reference: Annotated[Path | None, typer.Option(help="Its reference translations.")] = None,
    target_language: Annotated[
        str | None, typer.Option(help="Code of the target language, for a folder without a recipe.")
    ] = None,
    max_beam_size: Annotated[int, typer.Option(help="Widest beam that a request may ask for.")] = 16,
    max_source_length: Annotated[int, typer.Option(help="Most tokens of a source line.")] = 1024,
    max_length: Annotated[int, typer.Option(help="Most tokens of a translation.")] = 1024,
    cells: Annotated[
        int, typer.Option(help="Hypotheses times positions computed at a time; memory grows with it.")
    ] = 65536,
    rows: Annotated[int, typer.Option(help="Lines computed at a time; a GPU wants more, 10000.")] = 128,
    xla_buckets: Annotated[
        str,
        typer.Option(help="Lengths of sources to compile searches for, as GPUs like it: 32,64,128. None by default."),
    ] = "",
    beam_size: BeamSize = 4,
    data: Data = None,
    options: SearchSettings = None,
):
    """Export a trained model: as a SavedModel for TensorFlow Serving, or for CTranslate2.

    Example: keras-transformer export runs/demo --to saved_models/demo
    """
    from keras_transformer._checks import check_choice
    from keras_transformer.checkpoints import load_preset
    from keras_transformer.export import ServingLimits, export_ctranslate2
    from keras_transformer.export.from_run import export_run
    from keras_transformer.export.saved_model import DTYPES

    check_choice("dtype", dtype, DTYPES)
    search = search_options(options, beam_size=beam_size)
    if check_choice("format", kind, ("saved_model", "ctranslate2")) == "ctranslate2":
        _refuse_options_but(context, "model", "to", "kind", "quantization")
        trained, source_tokenizer, target_tokenizer = load_preset(model)
        export_ctranslate2(to, trained, source_tokenizer, target_tokenizer, quantization)
        print(to)
        return
    if quantization is not None:
        raise ValueError(f"--quantization is for --format ctranslate2. Received: --quantization {quantization}")
    limits = ServingLimits(max_beam_size, max_source_length, max_length, cells, rows)
    scored_on = {"source": source, "reference": reference, "target_language": target_language, "data": data}
    wants_score = dtype != "float32" or source is not None if score is None else score
    with stopped_by_interrupt("Stopped; no version was written."):
        path, scores = export_run(
            model,
            to,
            search,
            dtype,
            license,
            scored_on if wants_score else None,
            version=version,
            limits=limits,
            xla_buckets=_integers("--xla-buckets", xla_buckets),
        )
    for name, parts in scores.items():
        print(f"{name}: {parts['bleu']}")
    print(path)


@app.command()
def inspect(folder: Annotated[Path, typer.Argument(help="Folder of an exported model, or of one of its versions.")]):
    """Print the card, signatures, operations and sizes of an exported model, as YAML.

    Example: keras-transformer inspect saved_models/demo
    """
    from keras_transformer.export.inspect import describe_saved_model

    print(describe_saved_model(folder), end="")


def _refuse_options_but(context, *names):
    """Raises ValueError if others were given than a format has a use for."""
    given = [
        option.opts[-1]
        for option in context.command.params
        if option.name not in names and context.get_parameter_source(option.name).name == "COMMANDLINE"
    ]
    if given:
        raise ValueError(f"--format ctranslate2 takes --quantization alone. Received: {', '.join(given)}")


def _integers(name, text):
    """The whole numbers of "1,2,3"."""
    try:
        return tuple(int(part) for part in text.split(",")) if text else ()
    except ValueError:
        raise ValueError(f"{name} takes whole numbers with commas between. Received: {text}") from None
