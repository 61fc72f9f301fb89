"""The two ways to TensorFlow Serving: gRPC and REST. Each sends one request and waits for its answer."""

from __future__ import annotations

import importlib
import json
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

# An answer may be larger than the 4 MB that gRPC takes by default: attention of long texts is. A new attempt to connect
# does not wait for long, where gRPC's own pause would outlast the client's.
_CHANNEL = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)
# What TensorFlow Serving makes of a status in HTTP, back again.
_HTTP_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


class RequestError(Exception):
    """A request that has no answer.

    Attributes:
        status: What gRPC calls it: `"UNAVAILABLE"`, say.
        message: What the server says, or the network.
    """

    def __init__(self, status: str, message: str):
        super().__init__(f"{status}: {message}")
        self.status, self.message = status, message


class Transport(Protocol):
    """A way to a server."""

    def predict(self, signature: str, inputs: Mapping[str, Sequence]) -> dict[str, list]:
        """Runs a signature: the rows of its inputs, by name, to those of its outputs. Raises RequestError."""

    def states(self) -> list[str]:
        """The states of the model's versions: `"AVAILABLE"`, `"LOADING"`, .... Raises RequestError."""

    def close(self) -> None:
        """Lets go of the connection."""


class GrpcTransport:
    """Over gRPC.

    Args:
        address: `host:port`.
        model: Name of the model.
        version: Number of its version; None for the newest.
        timeout: Seconds that a request may take.
        credentials: Those of the channel, as `grpc.ssl_channel_credentials` makes them; None for no encryption.

    Raises:
        ImportError: If tensorflow-serving-api is missing.
    """

    def __init__(self, address, model, version, timeout, credentials=None):
        names = ("predict_pb2", "get_model_status_pb2", "prediction_service_pb2_grpc", "model_service_pb2_grpc")
        self._grpc, self._tf, self._predict, self._status, predictions, models = _modules(
            "grpc", "tensorflow", *(f"tensorflow_serving.apis.{name}" for name in names)
        )
        self._model, self._version, self._timeout = model, version, timeout
        if credentials is None:
            self._channel = self._grpc.insecure_channel(address, _CHANNEL)
        else:
            self._channel = self._grpc.secure_channel(address, credentials, _CHANNEL)
        self._predictions = predictions.PredictionServiceStub(self._channel)
        self._models = models.ModelServiceStub(self._channel)

    def predict(self, signature, inputs):
        """As of `Transport`."""
        request = self._addressed(self._predict.PredictRequest())
        request.model_spec.signature_name = signature
        for name, values in inputs.items():
            request.inputs[name].CopyFrom(self._tensor(values))
        answer = self._call(self._predictions.Predict, request)
        return {name: _decoded(self._tf.make_ndarray(tensor).tolist()) for name, tensor in answer.outputs.items()}

    def states(self):
        """As of `Transport`."""
        answer = self._call(self._models.GetModelStatus, self._addressed(self._status.GetModelStatusRequest()))
        return [self._status.ModelVersionStatus.State.Name(one.state) for one in answer.model_version_status]

    def close(self):
        """As of `Transport`."""
        self._channel.close()

    def _addressed(self, request):
        request.model_spec.name = self._model
        if self._version is not None:
            request.model_spec.version.value = self._version
        return request

    def _tensor(self, values):
        dtype = {str: self._tf.string, int: self._tf.int32, float: self._tf.float32}[type(values[0])]
        values = [value.encode("utf-8") for value in values] if dtype == self._tf.string else values
        return self._tf.make_tensor_proto(values, dtype, [len(values)])

    def _call(self, method, request):
        try:
            return method(request, timeout=self._timeout)
        except self._grpc.RpcError as error:
            # Nothing here cancels a call. A server that is shutting down does.
            status = error.code().name.replace("CANCELLED", "UNAVAILABLE")
            raise RequestError(status, error.details() or "") from error


class RestTransport:
    """Over HTTP, with JSON.

    Args:
        url: `http://host:port`, or `https://host:port`.
        model: Name of the model.
        version: Number of its version; None for the newest.
        timeout: Seconds that the connection may take, and the answer.

    Raises:
        ImportError: If requests is missing.
    """

    def __init__(self, url, model, version, timeout):
        (self._requests,) = _modules("requests")
        self._session, self._timeout = self._requests.Session(), timeout
        path = "" if version is None else f"/versions/{version}"
        self._url = f"{url.rstrip('/')}/v1/models/{urllib.parse.quote(model, safe='')}{path}"

    def predict(self, signature, inputs):
        """As of `Transport`."""
        body = json.dumps({"signature_name": signature, "inputs": inputs}, ensure_ascii=False)
        return self._call("POST", f"{self._url}:predict", "outputs", dict, body.encode("utf-8"))

    def states(self):
        """As of `Transport`."""
        return [one["state"] for one in self._call("GET", self._url, "model_version_status", list)]

    def close(self):
        """As of `Transport`."""
        self._session.close()

    def _call(self, method, url, key, kind, body=None) -> Any:
        """What stands under a key of the answer."""
        errors = self._requests.exceptions
        headers = {"Content-Type": "application/json"}
        try:
            # A redirected POST would arrive as a GET.
            answer = self._session.request(
                method, url, data=body, headers=headers, timeout=self._timeout, allow_redirects=False
            )
        except errors.Timeout as error:
            raise RequestError("DEADLINE_EXCEEDED", str(error)) from error
        except (errors.ConnectionError, errors.ChunkedEncodingError) as error:
            raise RequestError("UNAVAILABLE", str(error)) from error
        except errors.RequestException as error:
            raise RequestError("UNKNOWN", str(error)) from error
        content = _json(answer)
        if answer.status_code != 200:
            message = content.get("error", answer.reason)
            raise RequestError(_HTTP_STATUS.get(answer.status_code, f"HTTP {answer.status_code}"), str(message))
        if not isinstance(content.get(key), kind):
            raise RequestError("UNKNOWN", f"The answer must be JSON with {key!r}. Received: {answer.text[:100]!r}")
        return content[key]


def transport_of(address, model, version, timeout, credentials) -> tuple[str, Transport]:
    """The way to an address, and its name. Raises ValueError for what is no address."""
    if isinstance(address, str) and re.fullmatch(r"https?://[^\s/]\S*", address):
        if credentials is not None:
            raise ValueError(f"`credentials` are those of gRPC; for REST say https://. Received: {address=}")
        return "REST", RestTransport(address, model, version, timeout)
    if isinstance(address, str) and re.fullmatch(r"[^\s/]+:\d+|unix:\S+", address):
        return "gRPC", GrpcTransport(address, model, version, timeout, credentials)
    raise ValueError(f"`address` must be host:port for gRPC or http://host:port for REST. Received: {address=}")


def _modules(*names):
    try:
        return [importlib.import_module(name) for name in names]
    except ImportError as error:
        raise ImportError(
            "The client needs tensorflow-serving-api, and requests for REST: "
            f"`pip install 'keras_transformer[serving]'`. Received: {error}"
        ) from error


def _decoded(values):
    """Nested lists with str for bytes."""
    if isinstance(values, list):
        return [_decoded(value) for value in values]
    return values.decode("utf-8", "replace") if isinstance(values, bytes) else values


def _json(answer):
    """The object that an answer holds; an empty one where it is something else, a proxy's page say."""
    try:
        content = json.loads(answer.content)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
