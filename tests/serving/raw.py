"""Requests as any program sends them, right or wrong, and what comes back."""

import json

import numpy as np
import requests
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2

WAIT = 180
OPTIONS = {"beam_size": 2, "n_best": 1, "length_penalty": 0.6, "max_length": 8, "target_prefix": ""}
OUTPUTS = {
    "serving_default": {"translation", "score", "truncated"},
    "translate": {"translations", "scores", "truncated", "count"},
    "decode": {"target_ids", "length", "score"},
    "score": {"log_probability", "length"},
    "attention": {"source_tokens", "target_tokens", "attention"},
}
DTYPES = dict.fromkeys(("beam_size", "n_best", "max_length", "source_ids"), "int32") | {"length_penalty": "float32"}


def grpc_predict(stub, signature, model="small", **inputs):
    """The outputs as lists; raises grpc.RpcError."""
    request = predict_pb2.PredictRequest()
    request.model_spec.name, request.model_spec.signature_name = model, signature
    for name, value in inputs.items():
        array = value if isinstance(value, np.ndarray) else np.array(value, DTYPES.get(name, object))
        request.inputs[name].CopyFrom(tf.make_tensor_proto(array))
    outputs = stub.Predict(request, timeout=WAIT).outputs
    return {name: tf.make_ndarray(tensor).tolist() for name, tensor in outputs.items()}


def rest_predict(server, document):
    """The HTTP status and the JSON."""
    answer = requests.post(f"{server.address['REST']}/v1/models/small:predict", data=json.dumps(document), timeout=WAIT)
    return answer.status_code, answer.json()


def rows(options, count):
    return {name: [value] * count for name, value in options.items()}


def decoded(texts):
    return [text.decode("utf-8") for text in texts]


def texts_and_scores(translation):
    """Those of the n best."""
    return [one.text for one in translation.n_best], [one.score for one in translation.n_best]
