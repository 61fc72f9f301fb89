"""A server that speaks as TensorFlow Serving does, for tests: gRPC and REST over real sockets, in this process."""

import concurrent.futures
import contextlib
import http.server
import json
import re
import socket
import threading

import grpc
import tensorflow as tf
from google.protobuf import json_format
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from tests.serving.json_format import inputs_from_json, outputs_to_json
from tests.serving.loaded import LoadedVersion

GRPC_STATUS = {status.value[0]: status for status in grpc.StatusCode}
HTTP_STATUS = {3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 11: 400, 12: 501, 14: 503}
OPTIONS = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1), ("grpc.so_reuseport", 0))


class Server:
    """Serves the newest version in a model's folder, on 127.0.0.1.

    Args:
        folder: The model's folder, whose name is that of the model.
        batching: As of `LoadedVersion`.
        warmup: As of `LoadedVersion`.
        ports: Those of gRPC and REST; 0 for any.
    """

    def __init__(self, folder, batching=None, warmup=True, ports=(0, 0)):
        self.name, self._folder, self._loading = folder.name, folder, (batching, warmup)
        self.version = None
        self.requests = []  # The signature of each request, in order of arrival.
        self.before_run = lambda number: None  # Called with the number of each request, from 1.
        self._counting = threading.Lock()
        self.poll()
        self._grpc = grpc.server(concurrent.futures.ThreadPoolExecutor(32), options=OPTIONS)
        prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(_Prediction(self), self._grpc)
        model_service_pb2_grpc.add_ModelServiceServicer_to_server(_Status(self), self._grpc)
        self._http = _HttpServer(("127.0.0.1", ports[1]), type("Handler", (_Handler,), {"served": self}))
        self.address = {
            "gRPC": f"127.0.0.1:{self._grpc.add_insecure_port(f'127.0.0.1:{ports[0]}')}",
            "REST": f"http://127.0.0.1:{self._http.server_address[1]}",
        }
        self._grpc.start()
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()

    def poll(self):
        """Loads the newest version, if it is not loaded yet; it serves once it is warm."""
        folder = max(
            (path for path in self._folder.iterdir() if path.name.isdecimal()), key=lambda path: int(path.name)
        )
        if self.version is None or self.version.number != int(folder.name):
            self.version = LoadedVersion(folder, *self._loading)

    def stop(self):
        """Takes no more requests, and lets those that run end."""
        self._http.shutdown()
        self._http.server_close()
        self._grpc.stop(grace=30).wait(60)
        self._http.close_connections()

    def loaded(self, name, version=None):
        """The version in use, if it is the one that was asked for."""
        current = self.version
        if name != self.name or version not in (None, current.number):
            wanted = f"Latest({name})" if version is None else f"Specific({name}, {version})"
            raise tf.errors.NotFoundError(None, None, f"Servable not found for request: {wanted}")
        return current

    def count(self, signature):
        """Notes a request that is about to be run."""
        with self._counting:
            self.requests.append(signature)
            number = len(self.requests)
        self.before_run(number)

    def states(self, name, version=None):
        """A `GetModelStatusResponse`."""
        try:
            number = self.loaded(name, version).number
        except tf.errors.NotFoundError:
            raise tf.errors.NotFoundError(None, None, f"Could not find any versions of model {name}") from None
        response = get_model_status_pb2.GetModelStatusResponse()
        response.model_version_status.add(version=number, state="AVAILABLE").status.error_code = 0
        return response


class _Prediction(prediction_service_pb2_grpc.PredictionServiceServicer):
    def __init__(self, server):
        self._server = server

    def Predict(self, request, context):  # noqa: N802
        with _grpc_status(context):
            self._server.count(request.model_spec.signature_name or "serving_default")
            version = self._server.loaded(*_model(request.model_spec))
            response = predict_pb2.PredictResponse()
            response.model_spec.CopyFrom(request.model_spec)
            response.model_spec.version.value = version.number
            for name, value in version.predict_proto(request).items():
                response.outputs[name].CopyFrom(tf.make_tensor_proto(value))
        return response

    def GetModelMetadata(self, request, context):  # noqa: N802
        with _grpc_status(context):
            version = self._server.loaded(*_model(request.model_spec))
            response = get_model_metadata_pb2.GetModelMetadataResponse()
            response.model_spec.CopyFrom(request.model_spec)
            response.model_spec.version.value = version.number
            response.metadata["signature_def"].Pack(_signatures(version))
        return response


class _Status(model_service_pb2_grpc.ModelServiceServicer):
    def __init__(self, server):
        self._server = server

    def GetModelStatus(self, request, context):  # noqa: N802
        with _grpc_status(context):
            return self._server.states(*_model(request.model_spec))


class _HttpServer(http.server.ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True
    block_on_close = False

    def __init__(self, *arguments):
        self.connections = []
        super().__init__(*arguments)

    def handle_error(self, request, client_address):
        """Clients that do not wait for their answer are no news."""

    def close_connections(self):
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # A connection takes any number of requests.
    disable_nagle_algorithm = True
    served: Server

    def setup(self):
        super().setup()
        self.server.connections.append(self.connection)

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        self._answer(self._get)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(lambda name, version, method: self._post(body, name, version, method))

    def _get(self, name, version, method):
        if method is None:
            return _as_dict(self.served.states(name, version))
        if method != "/metadata":
            raise tf.errors.NotFoundError(None, None, f"Malformed request: GET {self.path}")
        loaded = self.served.loaded(name, version)
        spec = {"name": name, "signature_name": "", "version": str(loaded.number)}
        return {"model_spec": spec, "metadata": {"signature_def": _as_dict(_signatures(loaded))}}

    def _post(self, body, name, version, method):
        if method != ":predict":
            raise tf.errors.NotFoundError(None, None, f"Malformed request: POST {self.path}")
        loaded = self.served.loaded(name, version)
        try:
            document = json.loads(body)
        except ValueError as error:
            raise tf.errors.InvalidArgumentError(None, None, f"JSON Parse error: {error}") from error
        signature = document.get("signature_name", "serving_default")
        self.served.count(signature)
        inputs, by_rows = inputs_from_json(document, loaded.definition(signature))
        return outputs_to_json(loaded.predict(signature, inputs), by_rows)

    def _answer(self, make):
        match = re.fullmatch(r"/v1/models/([^/:]+)(?:/versions/(\d+))?(/metadata|:\w+)?", self.path)
        try:
            if not match:
                raise tf.errors.NotFoundError(None, None, f"Malformed request: {self.command} {self.path}")
            name, version, method = match.groups()
            status, content = 200, make(name, version and int(version), method)
        except tf.errors.OpError as error:
            status, content = HTTP_STATUS.get(error.error_code, 500), {"error": error.message[:1024]}
        body = json.dumps(content, ensure_ascii=False, indent=4).encode("utf-8")
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _model(spec):
    return spec.name, spec.version.value if spec.HasField("version") else None


def _signatures(version):
    return get_model_metadata_pb2.SignatureDefMap(signature_def=version.signatures)


def _as_dict(message):
    return json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )


@contextlib.contextmanager
def _grpc_status(context):
    try:
        yield
    except tf.errors.OpError as error:
        context.abort(GRPC_STATUS[error.error_code], error.message[:1024])
