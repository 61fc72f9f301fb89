"""Export to a SavedModel that TensorFlow Serving serves: text in, translation out."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from keras_transformer._checks import check_choice, check_integer, check_positive
from keras_transformer.decoding.options import PER_TEXT, SearchOptions
from keras_transformer.export.card import checked_card, signature_card, versions, write_card
from keras_transformer.export.compact import compact_saved_model
from keras_transformer.export.limits import ServingLimits
from keras_transformer.export.serving_module import ServingModule
from keras_transformer.export.warmup import LENGTHS, write_warmup
from keras_transformer.models.transformer import Transformer, transformer

DTYPES = ("float32", "bfloat16", "float16")
_LAST_VERSION = 2**63 - 1  # TensorFlow Serving's numbers end there.


def export_saved_model(
    folder: str | os.PathLike,
    models: Sequence[Transformer],
    source_tokenizer,
    target_tokenizer=None,
    *,
    version: int | None = None,
    dtype: str = "float32",
    limits: ServingLimits | None = None,
    attention_layer: int = -1,
    xla_buckets: Sequence[int] = (),
    warmup: bool = True,
    card: dict[str, Any] | None = None,
    **options,
) -> Path:
    """Writes `folder/version/`, whole or not at all: what `Translator.export` does, which documents it."""
    search, path = export_options(options), Path(folder)
    check_target(path, version)
    check_choice("dtype", dtype, DTYPES)
    card = checked_card(card or {})
    target_tokenizer = target_tokenizer or source_tokenizer
    limits, layers = _limits(limits or ServingLimits(), models, xla_buckets), models[0].config.decoder_layers
    if not -layers <= check_integer("attention_layer", attention_layer) < layers:
        raise ValueError(f"`attention_layer` must be one of {layers} layers. Received: {attention_layer=}")
    for name, limit in (("beam_size", "max_beam_size"), ("max_length", "max_length")):
        value, most = getattr(search, name) or 0, getattr(limits, limit)
        if value > most:
            raise ValueError(f"`{name}` must be at most the export's `{limit}`, {most}. Received: {name}={value}")
    copies = [_as_dtype(model, dtype) for model in models]
    module = ServingModule(copies, source_tokenizer, target_tokenizer, search, limits, attention_layer, xla_buckets)
    signatures = module.signatures()
    content = {
        **_description(copies, (source_tokenizer, target_tokenizer), dtype, search, limits),
        **card,
        "signatures": signature_card(signatures),
        "versions": versions(),
    }

    def write(unfinished):
        # Nobody trains what is served, and such gradients would find no operation under its name.
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
        tf.saved_model.save(module, str(unfinished), signatures=signatures, options=options)
        compact_saved_model(unfinished)
        if warmup:
            # Every bucket is compiled when it is first met.
            lengths = [max(bucket * 3 // 4, 1) for bucket in xla_buckets] or LENGTHS
            write_warmup(unfinished, path.name, source_tokenizer, module.default_request(), lengths)
        write_card(unfinished, {"name": path.name, **content})

    return _write_version(path, version, write)


def check_target(folder: Path, version: int | None) -> None:
    """Raises ValueError if a version cannot be written there, as far as can be seen beforehand."""
    if version is not None and check_positive("version", version) > _LAST_VERSION:
        raise ValueError(f"`version` must be at most {_LAST_VERSION}. Received: {version=}")
    if version is not None and (folder / str(version)).exists():
        raise ValueError(f"The version must not exist yet. Received: {folder / str(version)}")
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir():
        raise ValueError(f"Could not write a version to {folder}: {existing} is no folder")


def export_options(options: dict[str, Any]) -> SearchOptions:
    """The options of `serving_default`. Raises ValueError for those that an export cannot have."""
    search = SearchOptions.of(**options)
    lists = [f"{name}={getattr(search, name)}" for name in PER_TEXT if isinstance(getattr(search, name), tuple)]
    reasons = {
        f"one value for each option. Received: {', '.join(lists)}": lists,
        f"no sampler. Received: sampler={search.sampler!r}": search.sampler,
        f"scores. Received: return_scores={search.return_scores}": not search.return_scores,
        f"one beam. Received: beam_groups={search.beam_groups}": search.beam_groups > 1,
        f"no prefix; it comes with a request. Received: target_prefix={search.target_prefix!r}": search.target_prefix,
    }
    for reason, is_wrong in reasons.items():
        if is_wrong:
            raise ValueError(f"An exported model has {reason}")
    return search


def _limits(limits, models, xla_buckets):
    """No more than the models have positions; with fixed shapes no source is longer than the longest of them."""
    positions = [model.config.max_length for model in models if model.config.max_length]
    longest = {name: min([getattr(limits, name), *positions]) for name in ("max_source_length", "max_length")}
    if xla_buckets:
        buckets = [check_positive("xla_buckets", bucket) for bucket in xla_buckets]
        if buckets != sorted(set(buckets)) or buckets[-1] > longest["max_source_length"]:
            most = longest["max_source_length"]
            raise ValueError(f"`xla_buckets` must ascend to at most {most}. Received: {xla_buckets=}")
        longest["max_source_length"] = buckets[-1]
    return dataclasses.replace(limits, **longest)


def _as_dtype(model, dtype):
    copy = transformer(model.config, dtype=dtype)
    copy.set_weights(model.get_weights())
    return copy


def _description(models, tokenizers, dtype, search, limits):
    return {
        "parameters": sum(model.count_params() for model in models),
        "dtype": dtype,
        "models": [model.config.to_dict() for model in models],
        "tokenizers": {side: one.checksum for side, one in zip(("source", "target"), tokenizers, strict=True)},
        "serving_default": {name: value for name, value in dataclasses.asdict(search).items() if name != "seed"},
        "limits": dataclasses.asdict(limits),
    }


def _write_version(folder, version, write):
    """Has a version folder written beside its place, then put there at once; returns it.

    A server that polls the folder takes names that are numbers for versions, and no others.
    """
    unfinished = folder / f".unfinished-{os.getpid()}"
    try:
        unfinished.mkdir(parents=True)
        write(unfinished)
        return _put_in_place(unfinished, folder, version)
    except OSError as error:
        raise ValueError(f"Could not write a version to {folder}: {error}") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _put_in_place(unfinished, folder, version):
    while True:
        target = folder / str(version or _next_version(folder))
        try:
            os.rename(unfinished, target)  # Fails where another process was faster.
            return target
        except OSError:
            if version or not target.exists():
                raise


def _next_version(folder):
    if not folder.exists():
        return 1
    numbers = [int(path.name) for path in folder.iterdir() if path.name.isdecimal()]
    return 1 + max((number for number in numbers if number < _LAST_VERSION), default=0)
