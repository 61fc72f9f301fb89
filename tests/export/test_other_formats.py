"""Encoder and forward pass in the formats of Keras' own `export`, against the Keras model."""

import importlib

import numpy as np
import pytest

from keras_transformer.models import TransformerConfig, transformer
from tests.decoding.models import randomize

KINDS = {
    "the paper's": {},
    "all else": {
        "positions": "learned",
        "max_length": 64,
        "tie_embeddings": "none",
        "normalize_first": True,
        "gated": True,
        "activation": "silu",
    },
}


def run_onnx(path, inputs):
    session = importlib.import_module("onnxruntime").InferenceSession(path)
    return session.run(None, {one.name: inputs[one.name] for one in session.get_inputs()})[0]


def run_litert(path, inputs):
    runner = importlib.import_module("ai_edge_litert.interpreter").Interpreter(path).get_signature_runner()
    return next(iter(runner(**inputs).values()))


@pytest.mark.parametrize(
    ("kind", "file_format", "run", "needs"),
    [
        ("all else", "onnx", run_onnx, ("onnx", "tf2onnx", "onnxruntime")),
        ("the paper's", "litert", run_litert, ("ai_edge_litert",)),
    ],
    ids=["onnx", "litert"],
)
def test_encoder_and_model_give_what_keras_gives_at_any_length(tmp_path, rng, kind, file_format, run, needs):
    for module in needs:
        pytest.importorskip(module, exc_type=ImportError)
    model = transformer(TransformerConfig.from_preset("tiny", 100, encoder_layers=1, decoder_layers=1, **KINDS[kind]))
    randomize(model, 3)
    path = str(tmp_path / ("model.tflite" if file_format == "litert" else "model.onnx"))
    lengths = ((2, 7, 5), (3, 11, 1))
    batches = [
        {
            "source_ids": rng.integers(4, 100, (rows, source_length)).astype("int32"),
            "target_ids": rng.integers(4, 100, (rows, target_length)).astype("int32"),
        }
        for rows, source_length, target_length in lengths
    ]
    for batch in batches:
        batch["source_ids"][1, -2:] = 0
    encoder = [{"source_ids": batch["source_ids"]} for batch in batches]
    for part, requests in ((model.encoder(), encoder), (model, batches)):
        expected = [np.asarray(part(one if part is model else one["source_ids"])) for one in requests]
        part.export(path, format=file_format, verbose=False)  # Keras' ONNX needs a model that was called.
        for one, outputs in zip(requests, expected, strict=True):
            np.testing.assert_allclose(run(path, one), outputs, atol=1e-4)
