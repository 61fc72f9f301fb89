"""The batcher of TensorFlow Serving: strangers' requests become one, and its answer theirs again."""

import threading

import numpy as np
import tensorflow as tf

WAIT = 120


class Batcher:
    """Joins requests of a signature that arrive within a moment.

    Args:
        run: Function of `(signature, inputs)`: arrays by name to arrays by name.
        max_batch_size: Most rows of a batch, and of a request.
        timeout: Seconds that a batch waits for more requests.
    """

    def __init__(self, run, max_batch_size, timeout):
        self._run, self.max_batch_size, self.timeout = run, max_batch_size, timeout
        self._changed = threading.Condition()
        self._open = {}
        self.requests_of_batches = []  # How many requests each batch was of.

    def __call__(self, signature, inputs):
        rows = self._rows(inputs)
        with self._changed:
            batch = self._open.get(signature)
            opens = batch is None or batch.rows + rows > self.max_batch_size
            if opens:
                batch = self._open[signature] = Batch()  # Whoever opened the one before sees that it is closed.
            number = batch.add(inputs, rows)
            self._changed.notify_all()
            if opens:
                self._changed.wait_for(lambda: self._is_closed(signature, batch), self.timeout)
                if self._open.get(signature) is batch:
                    del self._open[signature]
                self.requests_of_batches.append(len(batch.inputs))
        if opens:
            batch.run(lambda merged: self._run(signature, merged))
        return batch.result(number)

    def _is_closed(self, signature, batch):
        return batch.rows == self.max_batch_size or self._open.get(signature) is not batch

    def _rows(self, inputs):
        ranks, sizes = {value.ndim for value in inputs.values()}, {value.shape[:1] for value in inputs.values()}
        if 0 in ranks:
            raise invalid("Batching session Run() input tensors must have at least one dimension")
        if len(sizes) > 1:
            raise invalid("Batching session Run() input tensors must have equal 0th-dimension size")
        ((rows,),) = sizes
        if rows > self.max_batch_size:
            raise invalid(f"Task size {rows} is larger than maximum input batch size {self.max_batch_size}")
        return rows


class Batch:
    """Requests that are run together. What goes wrong goes wrong for all of them."""

    def __init__(self):
        self.inputs, self.sizes, self.rows = [], [], 0
        self._outputs, self._error, self._done = [], None, threading.Event()

    def add(self, inputs, rows):
        """Takes a request in; returns its number."""
        self.inputs.append(inputs)
        self.sizes.append(rows)
        self.rows += rows
        return len(self.inputs) - 1

    def run(self, run):
        """Joins, runs and splits."""
        try:
            self._outputs = self._split(run(self._merged()))
        except Exception as error:
            self._error = error
        finally:
            self._done.set()

    def result(self, number):
        """The outputs of a request, once there are any."""
        if not self._done.wait(WAIT):
            raise tf.errors.DeadlineExceededError(None, None, "The batch did not end.")
        if self._error:
            raise self._error
        return self._outputs[number]

    def _merged(self):
        merged = {}
        for name in self.inputs[0]:
            parts = [inputs[name] for inputs in self.inputs]
            if len({part.shape[1:] for part in parts}) > 1:
                raise tf.errors.FailedPreconditionError(
                    None, None, f"Tensors with name '{name}' have different shapes and padding is turned off."
                )
            merged[name] = np.concatenate(parts)
        return merged

    def _split(self, outputs):
        for value in outputs.values():
            if value.ndim == 0 or len(value) != self.rows:
                raise tf.errors.FailedPreconditionError(
                    None, None, "Batched output tensor's 0th dimension does not equal the sum of those of the inputs"
                )
        ends = np.cumsum(self.sizes)[:-1]
        parts = {name: np.split(value, ends) for name, value in outputs.items()}
        return [{name: part[number] for name, part in parts.items()} for number in range(len(self.sizes))]


def invalid(message):
    """The error of TensorFlow for a bad request."""
    return tf.errors.InvalidArgumentError(None, None, message)
