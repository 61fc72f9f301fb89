"""What a page translates with: a trained model in Python, or an exported one."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from keras_transformer.checkpoints import read_json
from keras_transformer.decoding import Hypothesis


@dataclasses.dataclass(frozen=True)
class Look:
    """How a model came to one translation.

    Attributes:
        source_tokens: The S source tokens, eos included.
        target_tokens: The T target tokens, eos included.
        attention: Weights by their names, "mean" first: float32 [T,S] each.
        probabilities: What the model gave each target token, float32 [T]; None where that cannot be known.
        confidence: The geometric mean of these probabilities.
    """

    source_tokens: Sequence[str]
    target_tokens: Sequence[str]
    attention: dict[str, np.ndarray]
    probabilities: np.ndarray | None
    confidence: float


class Engine(Protocol):
    """A model, wherever it runs.

    Attributes:
        title: What the page is called.
        examples: Texts to start from.
        card: What is known of the model.
    """

    title: str
    examples: Sequence[str]
    card: dict[str, Any]

    def translate(self, text: str, **options) -> Sequence[Hypothesis]:
        """The `n_best` translations of a text. Options: those of `translate` of an exported model."""

    def look(self, source: str, target: str) -> Look:
        """How the model sees a translation of one line."""


class RunEngine:
    """A model of a run or a preset, in Python.

    Args:
        folder: Its folder.

    Raises:
        ValueError: If the folder holds no finished model.
    """

    def __init__(self, folder: Path):
        from keras_transformer.decoding import Translator

        self._translator = Translator.from_preset(folder)
        path = folder / "scores.json"
        self.card = read_json(path) if path.exists() else {}
        self.title, self.examples = folder.resolve().name, self.card.pop("examples", [])

    def translate(self, text, **options):
        """As of `Engine`."""
        return self._translator.translate(text, **options).n_best

    def look(self, source, target):
        """As of `Engine`."""
        attention = self._translator.attention(source, target)
        score = self._translator.score(source, target)
        layers = attention.weights.mean(axis=1)
        maps = {"mean": layers.mean(axis=0)} | {f"layer {number}": weights for number, weights in enumerate(layers, 1)}
        probabilities = np.exp(score.token_log_probabilities)
        confidence = math.exp(score.log_probability / len(score.tokens))
        return Look(attention.source_tokens, attention.target_tokens, maps, probabilities, confidence)


class SavedModelEngine:
    """An exported model, by its signatures alone.

    Args:
        folder: A folder of a version.

    Raises:
        ValueError: If it is no exported translation model.
    """

    def __init__(self, folder: Path):
        import tensorflow as tf
        import tensorflow_text  # noqa: F401  Registers the tokenizer's operations.

        from keras_transformer.export.card import CARD_FILE, read_card

        self._tf = tf
        # The signatures are of the object: TensorFlow lets go of the variables with it.
        self._model = tf.saved_model.load(str(folder))
        self._signatures = self._model.signatures
        missing = {"translate", "score", "attention"} - set(self._signatures)
        if missing:
            raise ValueError(f"{folder} is no export of this package. Received: no signatures {sorted(missing)}")
        card = read_card(folder) if (folder / CARD_FILE).exists() else {}
        self.card = {key: value for key, value in card.items() if key != "signatures"}
        self.title, self.examples = folder.resolve().parent.name, self.card.pop("examples", [])

    def translate(self, text, **options):
        """As of `Engine`."""
        dtypes = {"length_penalty": self._tf.float32, "target_prefix": self._tf.string}
        inputs = {name: self._tf.constant([value], dtypes.get(name, self._tf.int32)) for name, value in options.items()}
        found = self._call("translate", text=self._tf.constant([text]), **inputs)
        columns = (found[name][0].numpy()[: int(found["count"][0])] for name in ("translations", "scores", "truncated"))
        return [
            Hypothesis(one.decode("utf-8"), float(score), bool(cut)) for one, score, cut in zip(*columns, strict=True)
        ]

    def look(self, source, target):
        """As of `Engine`."""
        pair = {"text": self._tf.constant([source]), "target": self._tf.constant([target])}
        seen, score = self._call("attention", **pair), self._call("score", **pair)
        source_tokens, target_tokens = (
            [token.decode("utf-8") for token in seen[name][0].numpy()] for name in ("source_tokens", "target_tokens")
        )
        confidence = math.exp(float(score["log_probability"][0]) / int(score["length"][0]))
        return Look(source_tokens, target_tokens, {"mean": seen["attention"][0].numpy()}, None, confidence)

    def _call(self, signature, **inputs):
        try:
            return self._signatures[signature](**inputs)
        except self._tf.errors.InvalidArgumentError as error:
            # A check of the graph says its parts in brackets, after words about nodes: "assertion failed: [a:] [1]".
            said = error.message.partition("assertion failed: ")[2] or error.message
            said = said.split("[[", 1)[0].splitlines()[0].strip()
            raise ValueError(said.removeprefix("[").removesuffix("]").replace("] [", " ")) from error


def engine_of(folder: Path) -> Engine:
    """The engine for a folder: of a run, a preset, an exported model or one of its versions.

    Raises:
        ValueError: If it is none of these, or cannot be loaded.
    """
    from keras_transformer.export.inspect import version_folder

    if (folder / "config.json").exists() or (folder / "recipe.yaml").exists():
        return RunEngine(folder)
    return SavedModelEngine(version_folder(folder))
