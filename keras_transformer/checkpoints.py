"""Weights on disk: folders that hold a whole model, and the average of checkpoints (section 6.1)."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from keras_transformer._replacing import replacing
from keras_transformer.models import Transformer, TransformerConfig, transformer


def average_checkpoints(paths: Sequence[str | os.PathLike], config: TransformerConfig) -> Transformer:
    """A model whose weights are the mean of those in checkpoints.

    Weights alone are averaged: what the files hold of an optimizer is left out. The mean is taken in float64 and kept
    in the dtype of the weights, so that the average of equal checkpoints is equal to them.

    Args:
        paths: Files `*.weights.h5` of `save_weights`, of one and the same model.
        config: The `TransformerConfig` of that model.

    Returns:
        A `Transformer`, not compiled.

    Raises:
        ValueError: If there is no path, or a file cannot be read or holds the weights of another model.
    """
    if not paths:
        raise ValueError("An average needs at least one checkpoint. Received: none")
    model = transformer(config, dtype="float32")
    sums = [np.zeros(weight.shape, "float64") for weight in model.weights]
    for path in paths:
        load_weights(model, path)
        for total, weight in zip(sums, model.get_weights(), strict=True):
            total += weight
    model.set_weights(
        [(total / len(paths)).astype(weight.dtype) for total, weight in zip(sums, model.weights, strict=True)]
    )
    return model


def load_weights(model: Transformer, path: str | os.PathLike) -> None:
    """Loads a `*.weights.h5` file, the optimizer's state too where the model is compiled.

    Raises:
        ValueError: If the file is missing, broken, or holds the weights of another model; the message names it.
    """
    try:
        model.load_weights(path)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise ValueError(f"Could not load the weights in {os.fspath(path)}: {_reason(error)}") from error


def _reason(error):
    """What is wrong, without the list of objects that Keras puts around it."""
    paragraphs = str(error).split("\n\n")
    return paragraphs[1] if len(paragraphs) > 2 and paragraphs[0].startswith("A total of") else error


def save_preset(folder: str | os.PathLike, model: Transformer, source_tokenizer, target_tokenizer=None) -> None:
    """Writes what a translation needs to a folder: `config.json`, `model.weights.h5` and the tokenizers.

    Args:
        folder: The folder, made if need be.
        model: A `Transformer`.
        source_tokenizer: A `Tokenizer`.
        target_tokenizer: The target side's own; None where both sides share one.
    """
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    save_tokenizers(path, source_tokenizer, target_tokenizer)
    checksums = [tokenizer.checksum for tokenizer in (source_tokenizer, target_tokenizer or source_tokenizer)]
    write_json(path / "config.json", {"model": model.config.to_dict(), "tokenizers": checksums})
    bare = transformer(model.config, dtype="float32")
    bare.set_weights(model.get_weights())
    bare.save_weights(path / "model.weights.h5")  # Without the optimizer's state, three times as much.


def load_preset(folder: str | os.PathLike, dtype=None):
    """Opens what `save_preset` wrote, a run folder too.

    Args:
        folder: The folder.
        dtype: Dtype policy of the model. Defaults to Keras' global one.

    Returns:
        The triple `(model, source_tokenizer, target_tokenizer)`; the tokenizers are one object where they are shared.

    Raises:
        ValueError: If a part is missing or broken, or a tokenizer is not the one that was saved with the model; the
            message names it.
    """
    path = Path(folder)
    try:
        content = read_json(path / "config.json")
        config, checksums = TransformerConfig.from_dict(content["model"]), content["tokenizers"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = error if isinstance(error, ValueError) else repr(error)
        raise ValueError(f"{path} holds no finished model, by its config.json: {reason}") from error
    model = transformer(config, dtype=dtype)
    load_weights(model, path / "model.weights.h5")
    tokenizers = load_tokenizers(path)
    found = [tokenizer.checksum for tokenizer in tokenizers]
    if found != checksums:
        raise ValueError(f"The tokenizers in {path} must have the checksums {checksums}. Received: {found}")
    return model, *tokenizers


def save_tokenizers(folder: Path, source, target=None) -> None:
    """Writes `tokenizer.model`, or `source.model` and `target.model` where each side has its own."""
    shared = target is None or target is source
    named = {"tokenizer.model": source} if shared else {"source.model": source, "target.model": target}
    for name in ("tokenizer.model", "source.model", "target.model"):
        if name in named:
            named[name].save(folder / name)
        else:
            (folder / name).unlink(missing_ok=True)  # Of what was in the folder before.


def load_tokenizers(folder: Path):
    """The pair `(source, target)` of what `save_tokenizers` wrote."""
    from keras_transformer.text import Tokenizer

    separate = [folder / "source.model", folder / "target.model"]
    if any(path.exists() for path in separate):
        return tuple(map(Tokenizer.from_file, separate))
    shared = Tokenizer.from_file(folder / "tokenizer.model")
    return shared, shared


def write_json(path: Path, content) -> None:
    """Writes a file of JSON, whole or not at all."""
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Writes a file of UTF-8, whole or not at all."""
    with replacing(path) as file:
        file.write(text.encode("utf-8"))


def read_json(path: Path):
    """Reads what `write_json` wrote. Raises ValueError, naming the file, if it cannot."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"Could not read {path}: {error}") from error
