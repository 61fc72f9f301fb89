"""The annotated recipe, made from the schema: every option, its default and its meaning."""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import Any

import yaml

from keras_transformer.models import TransformerConfig
from keras_transformer.training.recipe import Corpus, Recipe

# What stands for options that every recipe must have.
_EXAMPLES = {"source_language": "zh", "target_language": "en"}
_TRAIN = {"source": "train.zh", "target": "train.en"}


def annotated_recipe() -> str:
    """Every option with its meaning and its default, as YAML that is a recipe itself."""
    lines = [
        "# Every option of a recipe: its meaning and its default. Languages and corpora are needed, the rest is not."
    ]
    for section, field in Recipe.model_fields.items():
        lines.append("")
        if section == "model":
            lines += [f"# {field.description}", "model:", "  preset: tiny", *_model_options()]
            continue
        schema: Any = field.annotation
        lines += [f"# {schema.__doc__}", f"{section}:"]
        for name, option in schema.model_fields.items():
            lines += [f"  # {option.description}", *_option(name, option)]
    return "\n".join(lines) + "\n"


def _option(name, option):
    if name == "train":
        lines = []
        for key, field in Corpus.model_fields.items():
            option = f"{key}: {_TRAIN[key]}" if key in _TRAIN else f"# {key}: {_yaml(field.default)}"
            lines += [f"      # {field.description}", f"      {option}"]
        return ["  train:", f"    -{lines[0][5:]}", *lines[1:]]
    if name == "validation":
        return ["  validation:", "    - {source: validation.zh, target: validation.en}"]
    return [f"  {name}: {_EXAMPLES[name] if option.is_required() else _yaml(option.default)}"]


def _model_options():
    """The fields of TransformerConfig as comments: the preset has set them already."""
    documented = re.findall(r"^    (\w+): (.*(?:\n        .*)*)", inspect.getdoc(TransformerConfig) or "", re.MULTILINE)
    meanings = {name: " ".join(text.split()) for name, text in documented}
    for name, default in TransformerConfig(vocabulary_size=1).to_dict().items():
        if not name.endswith("vocabulary_size"):
            yield from textwrap.wrap(meanings[name], 112, initial_indent="  # ", subsequent_indent="  # ")
            yield f"  # {name}: {_yaml(default)}"


def _yaml(value):
    value = list(value) if isinstance(value, tuple) else value
    return yaml.safe_dump(value, default_flow_style=True).split("\n")[0]
