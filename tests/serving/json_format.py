"""Tensors as TensorFlow Serving reads and writes them in JSON, by rows or by columns."""

import base64
import binascii

import numpy as np
import tensorflow as tf

from tests.serving.batching import invalid


def inputs_from_json(document, definition):
    """Arrays by name, and whether the request is by rows. `definition` is a `SignatureDef`."""
    dtypes = {name: tf.as_dtype(info.dtype) for name, info in definition.inputs.items()}
    if ("instances" in document) == ("inputs" in document):
        raise invalid("Expecting one of 'inputs' or 'instances' keys to exist")
    if "inputs" in document:
        return _from_columns(document["inputs"], dtypes), False
    if not isinstance(document["instances"], list) or not document["instances"]:
        raise invalid("No values in 'instances' array")
    return _from_rows(document["instances"], dtypes), True


def outputs_to_json(outputs, by_rows):
    """The answer: one output alone stands without its name."""
    lists = {name: _plain(value.tolist()) for name, value in outputs.items()}
    if not by_rows:
        return {"outputs": lists if len(lists) > 1 else next(iter(lists.values()))}
    rows = [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
    return {"predictions": rows if len(lists) > 1 else next(iter(lists.values()))}


def _from_columns(inputs, dtypes):
    if not isinstance(inputs, dict) or set(inputs) == {"b64"}:
        if len(dtypes) > 1:
            raise invalid("inputs is a plain value/list, but expecting an object as multiple input tensors required")
        inputs = {next(iter(dtypes)): inputs}
    missing = sorted(set(dtypes) - set(inputs))
    if missing:
        raise invalid(f"Missing named input: {missing[0]} in 'inputs' object.")
    return {name: _tensor(inputs[name], dtype) for name, dtype in dtypes.items()}


def _from_rows(instances, dtypes):
    if isinstance(instances[0], dict) and set(instances[0]) != {"b64"}:
        if any(not isinstance(row, dict) or set(row) != set(dtypes) for row in instances):
            raise invalid(f"Failed to process 'instances' list. JSON objects must only have keys: {','.join(dtypes)}")
        columns = {name: [row[name] for row in instances] for name in dtypes}
    elif len(dtypes) > 1:
        raise invalid("instances is a plain list, but expecting list of objects as multiple input tensors required")
    else:
        columns = {next(iter(dtypes)): instances}
    return {name: _tensor(values, dtypes[name]) for name, values in columns.items()}


def _tensor(value, dtype):
    shape, inner = [], value
    while isinstance(inner, list):
        shape.append(len(inner))
        inner = inner[0] if inner else None
    leaves = list(_leaves(value, shape, dtype))
    array = np.empty(len(leaves), object if dtype == tf.string else dtype.as_numpy_dtype)
    array[:] = leaves
    return array.reshape(shape)


def _leaves(value, shape, dtype):
    if isinstance(value, list):
        if not shape or len(value) != shape[0]:
            raise invalid(f"Encountered list at unexpected size: {len(value)}")
        for one in value:
            yield from _leaves(one, shape[1:], dtype)
    elif shape:
        raise invalid(f"JSON Value: {value!r} found at incorrect level")
    else:
        yield _leaf(value, dtype)


def _leaf(value, dtype):
    if dtype == tf.string and isinstance(value, str):
        return value.encode("utf-8")
    if dtype == tf.string and isinstance(value, dict) and set(value) == {"b64"}:
        try:
            return base64.b64decode(value["b64"], validate=True)
        except (binascii.Error, TypeError) as error:
            raise invalid("Unable to base64 decode") from error
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    if dtype == tf.int32 and is_integer and abs(value) < 2**31:
        return value
    if dtype == tf.float32 and (is_integer or isinstance(value, float)):
        return value
    raise invalid(f"JSON Value: {value!r} Type: {type(value).__name__} is not of expected type: {dtype.name}")


def _plain(value):
    """Lists with text for bytes. Bytes that are no UTF-8 have no place in JSON."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError as error:
            raise tf.errors.InternalError(None, None, f"An output is no UTF-8: {value!r}") from error
    return value
