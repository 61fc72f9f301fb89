"""`train` and `recipe`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keras_transformer.cli.app import Data, app, parsed, stopped_by_interrupt
from keras_transformer.cli.memory import keep_freed_memory


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

    loaded = load_recipe(recipe, parsed(options or []))
    with stopped_by_interrupt("Stopped. The same command goes on from the last epoch."):
        Run(loaded, to or Path("runs") / Path(recipe).stem, data).train()


@app.command()
def recipe(name: Annotated[str | None, typer.Argument(help="Name of a recipe; none for the annotated one.")] = None):
    """Print a recipe, to start one of your own from; without a name every option, its default and its meaning.

    Example: keras-transformer recipe multi30k-en-de > my.yaml
    """
    from keras_transformer.training.annotated import annotated_recipe
    from keras_transformer.training.recipe import parse_recipe, recipe_text

    text = recipe_text(name) if name else annotated_recipe()
    if name:
        parse_recipe(text, name)  # Refuses a file that no training could begin with.
    print(text, end="")
