"""A version of a model in memory, and run, as TensorFlow Serving does it."""

import threading

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2
from tensorflow_serving.apis import prediction_log_pb2

from tests.serving.batching import Batcher, invalid

WARMUP_FILE = "assets.extra/tf_serving_warmup_requests"


class LoadedVersion:
    """A SavedModel in a session. Placeholders are fed by name, with whatever shape the client sent.

    Args:
        folder: The version folder.
        batching: Most rows of a batch and seconds that it waits, or None to run each request alone.
        warmup: Whether to run the warm-up requests. One that fails makes the version fail.
    """

    def __init__(self, folder, batching=None, warmup=True):
        self.number = int(folder.name)
        self._session = tf.compat.v1.Session(graph=tf.Graph())
        with self._session.graph.as_default():
            meta_graph = tf.compat.v1.saved_model.load(self._session, ["serve"], str(folder))
        names = [name for name in meta_graph.signature_def if not name.startswith("__saved_model")]
        self.signatures = {name: meta_graph.signature_def[name] for name in names}
        self.prepared, self._preparing = {}, threading.Lock()  # What the first request of a signature waits for.
        self.batcher = Batcher(self._run, *batching) if batching else None
        self.warmed_up_with = self._warm_up(folder / WARMUP_FILE) if warmup else []

    def predict(self, signature, inputs):
        """Runs a signature, in a batch with others where there is a batcher: arrays by name to arrays by name."""
        return (self.batcher or self._run)(signature, inputs)

    def predict_proto(self, request):
        """The same for a `PredictRequest`; returns the arrays."""
        name = request.model_spec.signature_name or "serving_default"
        definition = self.definition(name)
        given, needed = set(request.inputs), set(definition.inputs)
        if given != needed:
            raise invalid(
                f"input size does not match signature: {len(given)}!={len(needed)}. Sent extra: {given - needed}. "
                f"Missing but required: {needed - given}."
            )
        for number, (key, tensor) in enumerate(sorted(request.inputs.items())):
            expected, dtype = tf.as_dtype(definition.inputs[key].dtype), tf.as_dtype(tensor.dtype)
            if dtype != expected:
                raise invalid(f"Expects arg[{number}] to be {expected.name} but {dtype.name} is provided")
        return self.predict(name, {key: _array(key, tensor) for key, tensor in request.inputs.items()})

    def definition(self, name):
        """The `SignatureDef` of a signature."""
        if name not in self.signatures:
            raise tf.errors.FailedPreconditionError(None, None, f'Serving signature key "{name}" not found.')
        return self.signatures[name]

    def _run(self, signature, inputs):
        with self._preparing:
            if signature not in self.prepared:
                self.prepared[signature] = self._callable(self.signatures[signature])
        outputs = self.prepared[signature](*(inputs[name] for name in sorted(inputs)))
        return dict(zip(sorted(self.signatures[signature].outputs), map(np.asarray, outputs), strict=True))

    def _callable(self, definition):
        options = config_pb2.CallableOptions(
            feed=[definition.inputs[name].name for name in sorted(definition.inputs)],
            fetch=[definition.outputs[name].name for name in sorted(definition.outputs)],
        )
        return self._session._make_callable_from_options(options)

    def _warm_up(self, path):
        requests = []
        if path.exists():
            for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
                requests.append(prediction_log_pb2.PredictionLog.FromString(record).predict_log.request)
                self.predict_proto(requests[-1])
        return requests


def _array(name, tensor):
    try:
        return tf.make_ndarray(tensor)
    except (ValueError, TypeError) as error:
        raise invalid(f"tensor parsing error: {name}") from error
