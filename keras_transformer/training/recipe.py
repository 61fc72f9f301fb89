"""Recipes: everything that a training run depends on, in one YAML file."""

from __future__ import annotations

import difflib
import math
import typing
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import pydantic
import yaml
from pydantic import Field

from keras_transformer.models import TransformerConfig
from keras_transformer.models.config import PRESETS

_LOWERING = ("lower", "nfkc_cf", "nmt_nfkc_cf")


class _Section(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @pydantic.field_validator("*", mode="before")
    @classmethod
    def _no_bool_for_a_number(cls, value, info):
        """Pydantic would take true for 1."""
        kind = cls.model_fields[info.field_name].annotation
        if isinstance(value, bool) and bool not in (kind, *typing.get_args(kind)):
            raise ValueError("takes no true or false")
        return value


class Corpus(_Section):
    """Where sentence pairs come from: exactly one of `source`, `dataset`, `phrasebook` and `tensorflow_dataset`."""

    source: str | None = Field(None, description="File of the source side, or a tab-separated file; plain or gzip.")
    target: str | None = Field(None, description="File of the target side; none where `source` is tab-separated.")
    columns: tuple[int, int] = Field((0, 1), description="Columns of source and target in a tab-separated file.")
    dataset: str | None = Field(None, description="A public data set: multi30k or tatoeba-cmn-eng.")
    tensorflow_dataset: str | None = Field(None, description="A set of TensorFlow Datasets: wmt14_translate/de-en.")
    phrasebook: Literal["zh", "fr"] | None = Field(None, description="The embedded phrasebook, into English.")
    split: str = Field("train", description="Which part of a data set or phrasebook.")
    swap: bool = Field(False, description="Whether to exchange source and target.")

    @pydantic.model_validator(mode="after")
    def _one_origin(self):
        given = [name for name in ("source", "dataset", "tensorflow_dataset", "phrasebook") if getattr(self, name)]
        if len(given) != 1:
            raise ValueError(f"needs exactly one of source, dataset, tensorflow_dataset, phrasebook, and has {given}")
        return self


class Data(_Section):
    """The text."""

    source_language: str = Field(description="Code of the source language: zh, en, de, ...")
    target_language: str = Field(description="Code of the target language; the tokenizer of BLEU depends on it.")
    train: list[Corpus] = Field(min_length=1, description="Corpora to train on, one after the other.")
    validation: list[Corpus] = Field(min_length=1, description="Corpora to validate on.")
    test: list[Corpus] = Field([], description="Corpora to score the finished model on.")
    bad_lines: Literal["raise", "skip"] = Field("raise", description="What to do about lines that are no text.")
    max_bytes: int = Field(10_000, ge=1, description="Pairs with a longer side are left out.")
    max_length: int = Field(256, ge=1, description="Pairs with more tokens on a side are left out.")
    case_augmentation: float = Field(
        0.0, ge=0, le=1, description="Share of training pairs that are added in upper or title case, for such input."
    )
    drop_duplicates: bool = Field(True, description="Whether to leave out pairs that stood earlier in their corpus.")
    diversify: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Share of the epochs, the first ones, that also read translations of the text by a model of both "
        "directions, which is trained before and which the run starts from.",
    )
    teacher_epochs: int | None = Field(
        None, ge=1, description="Epochs of that model, twice as long as the run's; none for as many as the run has."
    )


class TokenizerOptions(_Section):
    """The SentencePiece tokenizer, trained on the training text."""

    vocabulary_size: int = Field(8000, ge=1, description="Tokens, counting 4 special ones and 256 bytes.")
    model_type: Literal["bpe", "unigram"] = Field("bpe", description="Kind of subwords.")
    shared: bool = Field(True, description="One tokenizer for both languages, or one for each.")
    character_coverage: float = Field(1.0, gt=0, le=1, description="Share of characters that get a token.")
    normalization: Literal["identity", "lower", "nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf"] = Field(
        "identity", description="What becomes of the text first; identity keeps it as written, lower lowers its case."
    )
    max_sentences: int = Field(2_000_000, ge=1, description="The tokenizer learns from this many pairs at most.")


class Optimizer(_Section):
    """Adam and its learning rate (section 5.3)."""

    schedule: Literal["inverse_square_root", "noam"] = Field(
        "inverse_square_root", description="Warm-up to a peak and decay; noam computes the peak from the width."
    )
    peak_learning_rate: float = Field(0.001, gt=0, description="Rate at the end of the warm-up; not for noam.")
    scale: float = Field(1.0, gt=0, description="Factor of the rate; for noam only.")
    warmup_steps: int = Field(4000, ge=1, description="Updates of the warm-up.")
    cooldown: float = Field(
        0.0, ge=0, lt=1, description="Share of the updates, the last ones, in which the rate falls to 0."
    )
    beta_1: float = Field(0.9, ge=0, lt=1, description="Adam's decay of the first moment.")
    beta_2: float = Field(0.98, ge=0, lt=1, description="Adam's decay of the second moment.")
    epsilon: float = Field(1e-9, gt=0, description="Adam's epsilon.")
    global_clipnorm: float | None = Field(None, gt=0, description="Limit of the norm of all gradients.")
    ema_momentum: float | None = Field(
        None, gt=0, lt=1, description="Momentum of an exponential moving average of the weights; none without."
    )


class Training(_Section):
    """The run."""

    epochs: int = Field(30, ge=1, description="Epochs. A backup, a checkpoint and a validation follow each.")
    steps_per_epoch: int | None = Field(None, ge=1, description="Updates of an epoch; none for one pass of the text.")
    batch_tokens: int = Field(
        4096, ge=1, description="Cells of a batch on each side, over all devices and micro-batches."
    )
    micro_batches: int = Field(1, ge=1, description="Parts that a batch is computed in, one after the other.")
    parallel_parts: int | None = Field(
        None,
        ge=1,
        description="Parts of these that are computed at once; none for 2 on a CPU of several cores, else 1.",
    )
    fixed_lengths: list[int] | None = Field(None, description="Few fixed lengths of batches, for XLA; none for any.")
    label_smoothing: float = Field(0.1, ge=0, lt=1, description="Label smoothing (section 5.4).")
    r_drop: float | None = Field(None, gt=0, description="Weight of R-Drop (Liang et al., 2021); none without.")
    subword_sampling: float | None = Field(
        None, gt=0, lt=1, description="Alpha of subword sampling, other pieces in every pass; none without."
    )
    seed: int = Field(1, ge=0, description="Seed of weights, order and dropout.")
    precision: Literal["float32", "mixed_bfloat16", "mixed_float16"] = Field("float32", description="Dtype policy.")
    jit_compile: bool = Field(False, description="Whether to use XLA; wants fixed_lengths.")
    distribution: Literal["none", "mirrored", "multi_worker"] = Field(
        "none", description="One device; all devices of this machine; all machines in TF_CONFIG."
    )
    init_from: str | None = Field(None, description="A run or preset folder to start from, with its tokenizer.")
    keep_optimizer: bool = Field(False, description="Whether init_from also brings the optimizer's state.")
    monitor: Literal["val_bleu", "val_chrf", "val_loss"] = Field(
        "val_bleu", description="What makes an epoch the best."
    )
    patience: int | None = Field(None, ge=1, description="Epochs without a better one after which to stop.")
    translate_every: int = Field(1, ge=1, description="Epochs from one translation of the validation set to the next.")
    average_last: int = Field(10, ge=1, description="Checkpoints that are kept, and averaged at the end.")


class Recipe(_Section):
    """All options of a training run."""

    data: Data
    tokenizer: TokenizerOptions = TokenizerOptions()
    model: dict[str, Any] = Field(
        {"preset": "tiny"},
        description="A preset (tiny, small, base, big), and beside it any field of TransformerConfig.",
    )
    optimizer: Optimizer = Optimizer()
    training: Training = Training()

    @pydantic.model_validator(mode="after")
    def _fits(self):
        if self.data.case_augmentation and self.tokenizer.normalization in _LOWERING:
            raise ValueError(
                "data.case_augmentation adds nothing where tokenizer.normalization lowers the case. "
                f"Received: {self.data.case_augmentation} with {self.tokenizer.normalization}"
            )
        self.transformer_config(self.tokenizer.vocabulary_size, self.tokenizer.vocabulary_size)
        self._diversifies()
        return self

    def _diversifies(self):
        given = f"Received: data.diversify={self.data.diversify}"
        if self.data.diversify and self.training.distribution == "multi_worker":
            raise ValueError(
                "data.diversify trains two models in one process, one after the other, which is not possible on "
                f"several machines: set it to 0, or training.distribution to none or mirrored. {given}, "
                "training.distribution='multi_worker'"
            )
        if self.data.diversify and self.training.init_from:
            raise ValueError(
                "data.diversify starts from a model of its own, which training.init_from is not: set it to 0. "
                f"{given}, training.init_from={self.training.init_from!r}"
            )
        if self.data.diversify and not self.tokenizer.shared:
            raise ValueError(
                "data.diversify has one model translate both ways, which needs one tokenizer for both languages: set "
                f"it to 0, or tokenizer.shared to true. {given}, tokenizer.shared=False"
            )

    @property
    def diversified_epochs(self) -> int:
        """How many epochs, the first ones, read translations of the text beside it: at least one of any share."""
        return math.ceil(self.data.diversify * self.training.epochs - 1e-9)

    def transformer_config(self, source_size: int, target_size: int) -> TransformerConfig:
        """The `TransformerConfig` for tokenizers of these sizes."""
        fields = dict(self.model)
        preset = fields.pop("preset", "tiny")
        if preset not in PRESETS:
            raise ValueError(
                f"model.preset must be one of {sorted(PRESETS)}.{_did_you_mean(preset, PRESETS)} Received: {preset!r}"
            )
        for name in ("vocabulary_size", "target_vocabulary_size"):
            if name in fields:
                raise ValueError(
                    f"model.{name} follows from tokenizer.vocabulary_size. Received: {name}={fields[name]!r}"
                )
        if not self.tokenizer.shared:
            fields = {"tie_embeddings": "target", "target_vocabulary_size": target_size, **fields}
        return TransformerConfig.from_preset(preset, source_size, **fields)


RECIPES = tuple(
    sorted(path.name.removesuffix(".yaml") for path in resources.files(__package__).joinpath("recipes").iterdir())
)


def load_recipe(recipe: str | Path, overrides: dict[str, Any] | None = None) -> Recipe:
    """Reads and checks a recipe.

    Args:
        recipe: Name of a recipe of the package, or path of a YAML file.
        overrides: Options to set in it, by their dotted names: `{"training.epochs": 3}`.

    Raises:
        ValueError: If there is no such recipe, it is no YAML, or an option is unknown or has a bad value; the message
            names the option, and the nearest one where it is unknown.
    """
    return parse_recipe(recipe_text(str(recipe)), str(recipe), overrides)


def parse_recipe(text: str, name: str, overrides: dict[str, Any] | None = None) -> Recipe:
    """The `Recipe` of a text. Raises ValueError as `load_recipe`; the message names it."""
    try:
        options = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"The recipe {name} is no YAML: {error}") from error
    if not isinstance(options, dict):
        raise ValueError(f"A recipe must hold sections of options. Received: {name} with {type(options).__name__}")
    for key, value in (overrides or {}).items():
        _override(options, key, value)
    return check_recipe(options, name)


def recipe_text(name: str) -> str:
    """The text of a recipe of the package, or of a YAML file. Raises ValueError as `load_recipe`."""
    if name in RECIPES:
        return resources.files(__package__).joinpath("recipes", f"{name}.yaml").read_text(encoding="utf-8")
    if Path(name).suffix not in (".yaml", ".yml"):
        raise ValueError(
            f"A recipe is one of {', '.join(RECIPES)}, or a file *.yaml.{_did_you_mean(name, RECIPES)} Received: {name}"
        )
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"Could not read the recipe {name}: {error}") from error


def check_recipe(options: dict[str, Any], name: str = "recipe") -> Recipe:
    """The `Recipe` of nested dictionaries. Raises ValueError as `load_recipe`."""
    try:
        return Recipe.model_validate(options)
    except pydantic.ValidationError as error:
        problems = "\n".join(f"  {_problem(detail, options)}" for detail in error.errors())
        raise ValueError(f"The recipe {name} has options that do not work:\n{problems}") from error


def _override(options, key, value):
    *sections, last = key.split(".")
    place = options
    for section in sections:
        if place.get(section) is None:  # A section of which all options are commented out is None, too.
            place[section] = {}
        place = place[section]
        if not isinstance(place, dict):
            raise ValueError(f"{key} is no option: {section} has no options of its own. Received: {key}={value!r}")
    place[last] = value


def _problem(detail, options):
    """One line that names an option, what is wrong with it and what it was."""
    where = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        known = _known_options(detail["loc"][:-1])
        return (
            f"{where} is no option.{_did_you_mean(str(detail['loc'][-1]), known)} Received: {where}={detail['input']!r}"
        )
    if detail["type"] == "missing":
        return f"{where} is missing."
    message = detail["msg"].removeprefix("Value error, ")
    if not where or "Received:" in message:
        return message
    return f"{where}: {message}. Received: {detail['input']!r}"


def _known_options(location):
    section: Any = Recipe
    for part in location:  # The number of a corpus stands in a list.
        section = section.model_fields[part].annotation if isinstance(part, str) else section.__args__[0]
    return list(section.model_fields)


def _did_you_mean(name, known):
    near = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean {near[0]}?" if near else f" There are: {', '.join(known)}."
