"""Export to CTranslate2, an engine for fast decoding on CPU."""

from __future__ import annotations

import importlib
import os
import shutil
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_transformer._checks import check_positive
from keras_transformer.models.transformer import Transformer

_ACTIVATIONS = {"relu": "RELU", "silu": "SWISH", "swish": "SWISH", "tanh": "Tanh", "sigmoid": "Sigmoid"}


def export_ctranslate2(
    folder: str | os.PathLike,
    model: Transformer,
    source_tokenizer,
    target_tokenizer=None,
    quantization: str | None = None,
    max_positions: int = 1024,
) -> None:
    """Writes a folder that `ctranslate2.Translator` opens: whole or not at all.

    It takes and gives pieces, `tokenizer.pieces(tokenizer.encode(text))`, and puts eos behind the source itself.

    Args:
        folder: The folder, which must not exist yet.
        model: A `Transformer`.
        source_tokenizer: A `Tokenizer`.
        target_tokenizer: The target side's own; None where both sides share one.
        quantization: A type of CTranslate2's, such as `"int8"`; None for float32.
        max_positions: Sinusoidal positions to write: the engine has no formula of ours. A translation ends there.

    Raises:
        ValueError: If the folder exists or cannot be written, or the model has something that CTranslate2 has not: a
            width of keys or values other than D / H, an activation that it does not know.
        ImportError: If ctranslate2 is missing.

    Example:
        ```python
        import importlib.util

        from keras_transformer.export import export_ctranslate2
        from keras_transformer.models import TransformerConfig, transformer
        from keras_transformer.text import Tokenizer

        tokenizer = Tokenizer.train(["我爱水课", "I love easy courses"], vocabulary_size=290, model_type="bpe")
        model = transformer(TransformerConfig.from_preset("tiny", tokenizer.vocabulary_size))
        if importlib.util.find_spec("ctranslate2"):
            export_ctranslate2("for_ctranslate2", model, tokenizer, quantization="int8")
        ```
    """
    library, target = _library(), Path(folder)
    if target.exists():
        raise ValueError(f"The folder must not exist yet. Received: {target}")
    _check(model.config)
    spec = _spec(library, model, check_positive("max_positions", max_positions))
    for tokenizer, register in (
        (source_tokenizer, spec.register_source_vocabulary),
        (target_tokenizer or source_tokenizer, spec.register_target_vocabulary),
    ):
        register(tokenizer.pieces(range(tokenizer.vocabulary_size)))
    spec.config.add_source_eos, spec.config.add_source_bos = True, False
    spec.config.decoder_start_token = "<s>"
    spec.config.layer_norm_epsilon = model.config.layer_norm_epsilon
    spec.validate()
    spec.optimize(quantization=quantization)
    unfinished = target.with_name(f".{os.getpid()}.{target.name}")
    try:
        unfinished.mkdir(parents=True)
        spec.save(str(unfinished))
        os.replace(unfinished, target)
    except OSError as error:
        raise ValueError(f"Could not write {target}: {error}") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _library() -> Any:
    try:
        importlib.import_module("ctranslate2.specs")
        return importlib.import_module("ctranslate2")
    except ImportError as error:
        raise ImportError(f"This export needs ctranslate2: `pip install ctranslate2`. Received: {error}") from error


def _check(config):
    width = config.model_dim // config.num_heads
    for name in ("key_dim", "value_dim"):
        value = getattr(config, name)
        if value not in (None, width):
            raise ValueError(f"CTranslate2 needs `{name}` to be D / H, {width}. Received: {name}={value}")
    if config.activation not in (*_ACTIVATIONS, "gelu"):
        known = ", ".join([*_ACTIVATIONS, "gelu"])
        raise ValueError(f"CTranslate2 knows the activations {known}. Received: activation={config.activation!r}")


def _spec(library, model, max_positions):
    config, specs = model.config, library.specs
    # Keras' gelu is the exact one by default.
    activation = getattr(specs.common_spec.Activation, _ACTIVATIONS.get(config.activation, "GELU"))
    spec = specs.TransformerSpec.from_config(
        (config.encoder_layers, config.decoder_layers),
        config.num_heads,
        pre_norm=config.normalize_first,
        activation=activation,
        ffn_glu=config.gated,
    )
    for side, part in (("source", spec.encoder), ("target", spec.decoder)):
        embedding = getattr(model, f"{side}_embedding")
        weights = part.embeddings[0] if side == "source" else part.embeddings
        weights.weight = _array(embedding.token_embedding.embeddings)
        part.scale_embeddings = embedding.scale
        positions = config.max_length or max_positions
        part.position_encodings.encodings = _array(embedding.position_encoding(positions))
        norm = model.encoder_norm if side == "source" else model.decoder_norm
        if norm:
            _set_norm(part.layer_norm, norm)
    for block, part in zip(model.encoder_blocks, spec.encoder.layer, strict=True):
        _set_self_attention(part.self_attention, block)
        _set_feed_forward(part.ffn, block)
    for block, part in zip(model.decoder_blocks, spec.decoder.layer, strict=True):
        _set_self_attention(part.self_attention, block)
        attention = block.memory_attention
        layers = attention.query_projection, attention.key_value_projection, attention.output_projection
        _set_attention(part.attention, layers, block.memory_attention_norm)
        _set_feed_forward(part.ffn, block)
    project = model.output_projection
    spec.decoder.projection.weight = _array(project.kernel).T if project else spec.decoder.embeddings.weight
    return spec


def _set_self_attention(spec, block):
    layers = block.self_attention.query_key_value_projection, block.self_attention.output_projection
    _set_attention(spec, layers, block.self_attention_norm)


def _set_attention(spec, layers, norm):
    for linear, layer in zip(spec.linear, layers, strict=True):
        _set_linear(linear, layer.kernel, layer.bias)
    _set_norm(spec.layer_norm, norm.layer_norm)


def _set_feed_forward(spec, block):
    first, second = block.feed_forward.intermediate_projection, block.feed_forward.output_projection
    if block.gated:
        kernels = np.split(_array(first.kernel), 2, axis=1)
        biases = (None, None) if first.bias is None else np.split(_array(first.bias), 2)
        for linear, kernel, bias in zip((spec.linear_0, spec.linear_0_noact), kernels, biases, strict=True):
            _set_linear(linear, kernel, bias)
    else:
        _set_linear(spec.linear_0, first.kernel, first.bias)
    _set_linear(spec.linear_1, second.kernel, second.bias)
    _set_norm(spec.layer_norm, block.feed_forward_norm.layer_norm)


def _set_linear(spec, kernel, bias):
    spec.weight = np.ascontiguousarray(_array(kernel).T)
    if bias is not None:
        spec.bias = _array(bias)


def _set_norm(spec, layer):
    spec.gamma, spec.beta = _array(layer.gamma), _array(layer.beta)


def _array(values):
    return np.asarray(keras.ops.convert_to_numpy(values), "float32")
