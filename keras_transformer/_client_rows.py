"""The rows of a client's requests, checked before anything is sent, and those of the answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from keras_transformer._checks import check_positive, is_number
from keras_transformer._client_transports import RequestError

# Text of one request, in bytes: far below the 4 MB at which gRPC's defaults end, on the way there and back.
_MOST_BYTES = 2**20
_MOST_INTEGER = 2**31 - 1
# What `translate` searches with where a call says nothing. The most tokens that a model exported with the default
# limits allows stand for as many as the source has and 50.
_DEFAULTS: dict[str, Any] = {
    "beam_size": 4,
    "n_best": 1,
    "length_penalty": 0.6,
    "max_length": 1024,
    "target_prefix": "",
}


def requests_of(rows, batch_size) -> Iterator[tuple[int, int]]:
    """The rows of each request, `(start, end)`: at most `batch_size`, and text of at most `_MOST_BYTES`."""
    texts = [values for values in rows.values() if isinstance(values[0], str)] if rows["text"] else []
    start, size = 0, 0
    for number, row in enumerate(zip(*texts, strict=True)):
        weight = sum(len(text.encode("utf-8")) for text in row)
        if number > start and (number - start == batch_size or size + weight > _MOST_BYTES):
            yield start, number
            start, size = number, 0
        size += weight
    if rows["text"]:
        yield start, len(rows["text"])


def texts_of(name, texts):
    """Texts as a list, each with U+FFFD for half a UTF-16 character, which has no UTF-8."""
    if not isinstance(texts, Iterable) or isinstance(texts, (bytes, bytearray)):
        raise ValueError(f"`{name}` must be a str, or a list or an iterator of them. Received: {texts!r}")
    texts = [texts] if isinstance(texts, str) else list(texts)
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"`{name}` must be of type str. Received: {text!r} as number {number}, counted from 0")
    return [text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in texts]


def pairs_of(texts, targets):
    """Texts and their translations, as many. Raises ValueError unless they are."""
    if isinstance(texts, str) != isinstance(targets, str):
        raise ValueError("A text goes with a text, and a list with a list. Received: one of each")
    rows = {"text": texts_of("texts", texts), "target": texts_of("targets", targets)}
    if len(rows["text"]) != len(rows["target"]):
        raise ValueError(
            f"Each text needs one target. Received: {len(rows['text'])} texts, {len(rows['target'])} targets"
        )
    return rows


def options_of(given, count):
    """The options of each text, checked: a bad one would fail whatever a server batches with it, too."""
    columns = {}
    for name, value in given.items():
        value = _DEFAULTS[name] if value is None else value
        values = [value] * count if isinstance(value, str) or not hasattr(value, "__len__") else list(value)
        if len(values) != count:
            raise ValueError(f"`{name}` must have one entry for each text, {count}. Received: {len(values)}")
        columns[name] = [_option(name, one) for one in values]
    for n_best, beam_size in zip(columns["n_best"], columns["beam_size"], strict=True):
        if n_best > beam_size:
            raise ValueError(f"`n_best` must be at most the `beam_size`. Received: {n_best=}, {beam_size=}")
    return columns


def _option(name, value):
    if name == "target_prefix":
        if not isinstance(value, str) or "\n" in value or "\r" in value:
            raise ValueError(f"`{name}` must be text of one line. Received: {name}={value!r}")
        return texts_of(name, value)[0]
    if name == "length_penalty":
        if not is_number(value) or not 0 <= value <= 10:
            raise ValueError(f"`{name}` must be a number from 0 to 10. Received: {name}={value!r}")
        return float(value)
    if check_positive(name, value) > _MOST_INTEGER:
        raise ValueError(f"`{name}` must be at most {_MOST_INTEGER}. Received: {name}={value!r}")
    return int(value)


def columns_of(answer, names, count):
    """Some outputs of an answer, by row. Raises RequestError where the server's model is another one."""
    if any(name not in answer or len(answer[name]) != count for name in names):
        received = ", ".join(f"{name} of {len(values)}" for name, values in sorted(answer.items()))
        wanted = f"The outputs must be {', '.join(names)} of {count} rows."
        raise RequestError("FAILED_PRECONDITION", f"{wanted} Received: {received}")
    return [answer[name] for name in names]


def not_negative(name, value):
    """Returns `value`, a finite number of at least 0; raises ValueError otherwise."""
    if not is_number(value) or not 0 <= value < float("inf"):
        raise ValueError(f"`{name}` must be a finite number of at least 0. Received: {name}={value!r}")
    return value
