"""What mkdocs runs as it builds the guide: the page of all recipe options, and the sections of our docstrings."""

from __future__ import annotations

import re

import griffe
from mkdocs.structure.files import File

RECIPE_PAGE = "recipe.md"
CHINESE = "[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef“”]"


def on_files(files, config):
    """Adds the page that is made from the recipe's schema, so that it cannot fall behind the code."""
    files.append(File.generated(config, RECIPE_PAGE, content=recipe_page()))
    return files


def on_page_markdown(markdown, page, **kwargs):
    """Joins lines between Chinese characters, where browsers would show a space."""
    return re.sub(f"(?<={CHINESE})\n(?={CHINESE})", "", markdown) if page.file.src_uri.endswith(".zh.md") else markdown


def on_post_page(output, page, config):
    """Says of a page in Chinese that it is, which browsers choose the shapes of characters by."""
    return output.replace('<html lang="en"', '<html lang="zh"', 1) if page.file.src_uri.endswith(".zh.md") else output


def recipe_page() -> str:
    """Markdown: every option of a recipe with its meaning and default, and the recipes of the package."""
    from keras_transformer.training.annotated import annotated_recipe
    from keras_transformer.training.recipe import RECIPES, recipe_text

    parts = [
        "# Options of a recipe",
        "A recipe is a YAML file with everything that a training depends on. `keras-transformer recipe > mine.yaml` "
        "writes the file below, `--set training.epochs=5` sets one option, and "
        "[Train on your own text](train.md) goes through a training. This page is made from the code.",
        "## Every option",
        f"```yaml\n{annotated_recipe()}```",
        "## The recipes of the package",
        "`keras-transformer train NAME` runs one, `keras-transformer recipe NAME > mine.yaml` copies it.",
    ]
    for name in RECIPES:
        parts += [f"### {name}", f"```yaml\n{recipe_text(name)}```"]
    return "\n\n".join(parts) + "\n"


class CallArguments(griffe.Extension):
    """Shows the section "Call arguments" of our layers as what it is, a list of arguments."""

    def on_instance(self, *, obj, **kwargs):
        """Gives the section the form that griffe knows."""
        if obj.docstring:
            obj.docstring.value = re.sub(
                r"^Call arguments:$", "Other arguments: Call arguments", obj.docstring.value, flags=re.MULTILINE
            )
