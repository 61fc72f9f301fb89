"""The command line: `keras-transformer train`, `translate`, `evaluate`, `export`, `inspect`, `recipe`."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import sys
from pathlib import Path
from typing import Annotated

import typer
import yaml

GLIBC_TUNABLES = ":".join(
    f"glibc.malloc.{name}" for name in ("mmap_max=0", "trim_threshold=100000000000", "top_pad=268435456", "hugetlb=1")
)
app = typer.Typer(
    help="Trains, evaluates and exports encoder-decoder Transformers for translation.",
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


@app.command()
def train(
    recipe: Annotated[str, typer.Argument(help="Name of a recipe (demo, multi30k-en-de, ...) or a YAML file.")],
    to: Annotated[Path | None, typer.Option(help="The run folder; runs/RECIPE by default.")] = None,
    data: Data = None,
    options: Annotated[
        list[str] | None,
        typer.Option("--set", help="An option of the recipe: --set training.epochs=3. May be repeated."),
    ] = None,
):
    """Train a model; the same command goes on where a killed one was.

    Example: keras-transformer train demo --to runs/demo
    """
    keep_freed_memory()
    from keras_transformer.training import Run, load_recipe

    loaded = load_recipe(recipe, _parse(options or []))
    with _stopped_by_interrupt("Stopped. The same command goes on from the last epoch."):
        Run(loaded, to or Path("runs") / Path(recipe).stem, data).train()


@app.command()
def translate(
    model: Model,
    source: Annotated[
        str, typer.Option("--input", help="File to translate, plain or gzip; - for standard input.")
    ] = "-",
    target: Annotated[str, typer.Option("--output", help="File to write; - for standard output.")] = "-",
    beam_size: BeamSize = 4,
    n_best: Annotated[int, typer.Option(help="Translations of each line; more than one needs --json.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Write objects with text, score, truncated, n_best.")] = False,
    options: SearchSettings = None,
):
    """Translate line by line: line i of the output belongs to line i of the input.

    Example: echo "A dog runs." | keras-transformer translate runs/multi30k-en-de
    """
    from keras_transformer.decoding import Translator
    from keras_transformer.files import read_texts, writing

    if n_best > 1 and not as_json:
        raise ValueError(f"A line of text has one translation; say --json. Received: --n-best {n_best}")
    search = _search_options(options, beam_size=beam_size, n_best=n_best)
    translations = Translator.from_preset(model).translate(read_texts(source), verbose=sys.stderr.isatty(), **search)
    truncated = 0
    with _stopped_by_interrupt("Stopped."), writing(target) as write:
        for translation in translations:
            truncated += translation.truncated
            write(json.dumps(_as_dict(translation), ensure_ascii=False) if as_json else translation.text)
    if truncated:
        print(f"{truncated} translations ended at the limit of their length.", file=sys.stderr)


@app.command()
def evaluate(
    model: Model,
    source: Annotated[Path | None, typer.Option(help="Source file, instead of the recipe's test set.")] = None,
    reference: Annotated[Path | None, typer.Option(help="Its reference translations.")] = None,
    test_set: Annotated[
        str | None, typer.Option(help="A split of a public data set: multi30k/test_2016_flickr.")
    ] = None,
    target_language: Annotated[
        str | None, typer.Option(help="Code of the target language, for a folder without a recipe.")
    ] = None,
    beam_size: BeamSize = 4,
    data: Data = None,
    options: SearchSettings = None,
):
    """Score a trained model: BLEU, chrF, TER on its recipe's test set, on another, or on a pair of files.

    Example: keras-transformer evaluate runs/multi30k-en-de --data PATH --beam-size 5
    """
    from keras_transformer.training.scoring import evaluate_model

    search = _search_options(options, beam_size=beam_size)
    with _stopped_by_interrupt("Stopped."):
        scores = evaluate_model(model, data, source, reference, test_set, target_language, **search)
    for score in scores.values():
        print(score)


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
    search = _search_options(options, beam_size=beam_size)
    if check_choice("format", kind, ("saved_model", "ctranslate2")) == "ctranslate2":
        _refuse_options_but(context, "model", "to", "kind", "quantization")
        trained, source_tokenizer, target_tokenizer = load_preset(model)
        export_ctranslate2(to, trained, source_tokenizer, target_tokenizer, quantization)
        print(to)
        return
    if quantization is not None:
        raise ValueError(f"--quantization is for --format ctranslate2. Received: --quantization {quantization}")
    limits = ServingLimits(max_beam_size, max_source_length, max_length)
    scored_on = {"source": source, "reference": reference, "target_language": target_language, "data": data}
    wants_score = dtype != "float32" or source is not None if score is None else score
    with _stopped_by_interrupt("Stopped; no version was written."):
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


@app.command()
def recipe(name: Annotated[str | None, typer.Argument(help="Name of a recipe; none for the annotated one.")] = None):
    """Print a recipe, to start one of your own from; without a name every option, its default and its meaning.

    Example: keras-transformer recipe multi30k-en-de > my.yaml
    """
    from keras_transformer.training.annotated import annotated_recipe
    from keras_transformer.training.recipe import recipe_text

    print(recipe_text(name) if name else annotated_recipe(), end="")


@contextlib.contextmanager
def _stopped_by_interrupt(message):
    try:
        yield
    except KeyboardInterrupt:
        print(f"\n{message}", file=sys.stderr)
        raise typer.Exit(130) from None


def _search_options(options, **search):
    """The options of a search by name. Raises ValueError before a model is loaded for nothing."""
    from keras_transformer.decoding import SearchOptions

    search.update(_parse(options or []))
    SearchOptions.of(**search)
    return search


def _refuse_options_but(context, *names):
    """Raises ValueError if others were given than a format has a use for."""
    given = [
        option.opts[-1]
        for option in context.command.params
        if option.name not in names and context.get_parameter_source(option.name).name == "COMMANDLINE"
    ]
    if given:
        raise ValueError(f"--format ctranslate2 takes --quantization alone. Received: {', '.join(given)}")


def _as_dict(translation):
    fields = [{name: getattr(one, name) for name in ("text", "score", "truncated")} for one in translation.n_best]
    return {**fields[0], "n_best": fields}


def _integers(name, text):
    """The whole numbers of "1,2,3"."""
    try:
        return tuple(int(part) for part in text.split(",")) if text else ()
    except ValueError:
        raise ValueError(f"{name} takes whole numbers with commas between. Received: {text}") from None


def _parse(options):
    parsed = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals or not key:
            raise ValueError(f"--set takes NAME=VALUE. Received: --set {option}")
        try:
            parsed[key] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise ValueError(f"The value of --set {key} is no YAML. Received: {value}") from error
    return parsed


def keep_freed_memory():
    """Starts the process anew with settings of glibc's allocator that it reads at the start only.

    By default it hands large buffers back to the kernel as soon as they are free, and a training step asks for hundreds
    of megabytes anew, page fault by page fault. With memory kept, in huge pages, training on two cores of a virtual
    machine took from 4 % less to less than half the time, as its host had it; see `training/benchmarks/memory.py`.
    """
    if platform.libc_ver()[0] != "glibc" or "GLIBC_TUNABLES" in os.environ:
        return
    os.environ["GLIBC_TUNABLES"] = GLIBC_TUNABLES
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def main() -> None:
    """Runs the command line; a user's mistake is one line on standard error and the exit status 2."""
    try:
        app()
    except (ValueError, ImportError) as error:
        if os.environ.get("KERAS_TRANSFORMER_DEBUG"):
            raise
        print(f"keras-transformer: {error}", file=sys.stderr)
        sys.exit(2)
