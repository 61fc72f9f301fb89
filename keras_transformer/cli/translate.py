"""`translate`, `evaluate` and `score`."""

from __future__ import annotations

import itertools
import json
import math
import sys
from pathlib import Path
from typing import Annotated

import typer

from keras_transformer.cli.app import (
    BeamSize,
    Data,
    Input,
    Model,
    Output,
    SearchSettings,
    app,
    search_options,
    stopped_by_interrupt,
)


@app.command()
def translate(
    model: Model,
    source: Input = "-",
    target: Output = "-",
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
    search = search_options(options, beam_size=beam_size, n_best=n_best, return_scores=as_json)
    translations = Translator.from_preset(model).translate(read_texts(source), verbose=sys.stderr.isatty(), **search)
    truncated = 0
    with stopped_by_interrupt("Stopped."), writing(target) as write:
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

    search = search_options(options, beam_size=beam_size)
    with stopped_by_interrupt("Stopped."):
        scores = evaluate_model(model, data, source, reference, test_set, target_language, **search)
    for score in scores.values():
        print(score)


def _as_dict(translation):
    fields = [
        # JSON has no NaN, which a score is with `--set return_scores=false`.
        {"text": one.text, "score": None if math.isnan(one.score) else one.score, "truncated": one.truncated}
        for one in translation.n_best
    ]
    return {**fields[0], "n_best": fields}


@app.command()
def score(
    model: Model,
    source: Annotated[str, typer.Option(help="File of source texts, one a line; - for standard input.")],
    target: Annotated[str, typer.Option(help="File of their translations; - for standard input.")],
    output: Output = "-",
    as_json: Annotated[bool, typer.Option("--json", help="Write objects, with each token's log-probability.")] = False,
):
    """Score given translations: the log-probability of each, line by line, eos included.

    Example: keras-transformer score runs/demo --source test.zh --target test.en
    """
    from keras_transformer.decoding import Translator
    from keras_transformer.files import read_pairs, writing

    pairs, translator = read_pairs(source, target), Translator.from_preset(model)
    with stopped_by_interrupt("Stopped."), writing(output) as write:
        while some := list(itertools.islice(pairs, 1000)):
            for one in translator.score([pair[0] for pair in some], [pair[1] for pair in some]):
                fields = {
                    "log_probability": one.log_probability,
                    "tokens": one.tokens,
                    "token_log_probabilities": one.token_log_probabilities.tolist(),
                }
                write(json.dumps(fields, ensure_ascii=False) if as_json else f"{one.log_probability:.6f}")
