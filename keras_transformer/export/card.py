"""The card of an exported model: what a person wants to know of it, as YAML."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Any

import yaml

CARD_FILE = Path("assets.extra") / "card.yaml"
_DISTRIBUTIONS = ("tensorflow", "tensorflow-text", "keras")


def write_card(folder: Path, card: dict[str, Any]) -> None:
    """Writes the card of a version folder."""
    path = folder / CARD_FILE
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(card, allow_unicode=True, sort_keys=False, width=120), encoding="utf-8")


def checked_card(card: Any) -> dict[str, Any]:
    """Returns a card; raises ValueError unless YAML can write it."""
    try:
        yaml.safe_dump(card)
    except yaml.YAMLError as error:
        raise ValueError(f"`card` must be made of text, numbers, lists and dicts. Received: {card!r}") from error
    if not isinstance(card, dict):
        raise ValueError(f"`card` must be a dict. Received: {card!r}")
    return card


def read_card(folder: Path) -> dict[str, Any]:
    """Reads the card of a version folder.

    Raises:
        ValueError: If there is none, or it is no YAML; the message names it.
    """
    path = folder / CARD_FILE
    try:
        card = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ValueError(f"Could not read the card {path}: {error}") from error
    if not isinstance(card, dict):
        raise ValueError(f"The card {path} must be a mapping. Received: {card!r}")
    return card


def versions() -> dict[str, str]:
    """What the model was made with."""
    from keras_transformer import __version__

    return {"keras_transformer": __version__} | {name: importlib.metadata.version(name) for name in _DISTRIBUTIONS}


def signature_card(signatures) -> dict[str, Any]:
    """Inputs and outputs of concrete functions by the names of their signatures: dtype and shape."""

    def specs(tensors):
        return {name: f"{one.dtype.name} {[*one.shape]}".replace("None", "-1") for name, one in tensors.items()}

    return {
        name: {
            "inputs": specs(dict(zip(function._arg_keywords, function.inputs, strict=False))),
            "outputs": specs(function.structured_outputs),
        }
        for name, function in signatures.items()
    }
