"""`benchmark`: how fast a model translates here."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from keras_transformer.cli.app import Data, Model, app, stopped_by_interrupt
from keras_transformer.cli.memory import keep_freed_memory


@app.command()
def benchmark(
    model: Model,
    source: Annotated[
        str | None, typer.Option("--input", help="Text to translate, one a line; the recipe's test set by default.")
    ] = None,
    beam_size: Annotated[list[int] | None, typer.Option(help="May be repeated; 1 and 4 by default.")] = None,
    rounds: Annotated[int, typer.Option(help="How often the text is translated; the median counts.")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Write an object for each beam size.")] = False,
    data: Data = None,
):
    """Measure how fast a model translates on this machine: throughput, latency, memory.

    Example: keras-transformer benchmark runs/multi30k-en-de --beam-size 1 --beam-size 5
    """
    keep_freed_memory()
    from keras_transformer.benchmark import Speed, measure
    from keras_transformer.decoding import Translator
    from keras_transformer.files import read_texts
    from keras_transformer.training.scoring import evaluation_pairs

    translator = Translator.from_preset(model)
    texts = [pair[0] for pair in evaluation_pairs(model, data)[0]] if source is None else list(read_texts(source))
    with stopped_by_interrupt("Stopped."):
        for size in beam_size or (1, 4):
            speed: Speed = measure(translator, texts, size, rounds)
            print(json.dumps(speed.as_dict()) if as_json else speed, flush=True)
