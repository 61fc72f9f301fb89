"""Requests that TensorFlow Serving runs before a version takes real ones."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

# Where TensorFlow Serving looks for them, and the most that it takes.
WARMUP_FILE = Path("assets.extra") / "tf_serving_warmup_requests"
LENGTHS, _BATCH_SIZES = (4, 16, 48), (1, 8)


def write_warmup(folder: Path, name: str, tokenizer, options: dict[str, Any], lengths: Sequence[int] = LENGTHS) -> None:
    """Writes requests of several lengths and batch sizes for the signatures that take text.

    Args:
        folder: A version folder.
        name: The model's name.
        tokenizer: The source `Tokenizer`, from whose words the texts are made.
        options: The other inputs of `translate`, by name: one value each.
        lengths: Tokens of the texts, about.

    Raises:
        ImportError: If tensorflow-serving-api is missing.
    """
    logs, requests = _api()
    path = folder / WARMUP_FILE
    path.parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for length in lengths:
            text = _text(tokenizer, length)
            for batch_size in _BATCH_SIZES:
                for signature, rows in (("serving_default", {"text": text}), ("translate", {"text": text, **options})):
                    request = requests.PredictRequest()
                    request.model_spec.name, request.model_spec.signature_name = name, signature
                    for key, value in rows.items():
                        request.inputs[key].CopyFrom(tf.make_tensor_proto(np.repeat(value, batch_size)))
                    log = logs.PredictionLog(predict_log=logs.PredictLog(request=request))
                    writer.write(log.SerializeToString())


def _text(tokenizer, length):
    """A text of about that many tokens, always the same."""
    words = np.random.default_rng(1).integers(
        min(260, tokenizer.vocabulary_size - 1), tokenizer.vocabulary_size, length
    )
    return tokenizer.decode(words.tolist())


def _api():
    try:
        return tuple(
            importlib.import_module(f"tensorflow_serving.apis.{name}") for name in ("prediction_log_pb2", "predict_pb2")
        )
    except ImportError as error:
        raise ImportError(
            "Warm-up requests need tensorflow-serving-api: `pip install 'keras_transformer[serving]'`. "
            f"Received: {error}"
        ) from error
