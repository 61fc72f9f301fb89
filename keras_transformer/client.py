"""A client of a served model: texts to TensorFlow Serving, translations back, over gRPC or REST.

It needs nothing of the model: no tokenizer, no Keras. `pip install 'keras_transformer[serving]'` brings what it needs.
"""

from __future__ import annotations

import dataclasses
import random
import re
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from keras_transformer._checks import check_above_zero, check_integer, check_positive
from keras_transformer._client_rows import columns_of, not_negative, options_of, pairs_of, requests_of, texts_of
from keras_transformer._client_transports import RequestError, transport_of

_HINTS = {
    "UNAVAILABLE": "Nothing answered in {attempts} attempts: does a server listen there, for {kind}?",
    "NOT_FOUND": "Is a model served under this name and version?",
    "DEADLINE_EXCEEDED": "No answer within {timeout:g} s: a smaller `batch_size` or a longer `timeout` may help.",
}


@dataclasses.dataclass(frozen=True)
class ServedHypothesis:
    """One translation of a text.

    Attributes:
        text: The translation.
        score: Its log-probability divided by the length penalty; of a text of several lines the sum over them.
        truncated: Whether it ended at the limit of its length, or its source was longer than the model takes.
    """

    text: str
    score: float
    truncated: bool

    def __str__(self):
        return self.text


@dataclasses.dataclass(frozen=True)
class ServedTranslation(ServedHypothesis):
    """The best translation of a text.

    Attributes:
        n_best: The best and those that come after, as many as there are of the `n_best` asked for.
    """

    n_best: tuple[ServedHypothesis, ...] = ()


@dataclasses.dataclass(frozen=True)
class ServedScore:
    """What the model says of a given translation.

    Attributes:
        log_probability: Sum of the tokens' log-probabilities, eos included, before any length penalty.
        length: How many tokens that are.
    """

    log_probability: float
    length: int


@dataclasses.dataclass(frozen=True)
class ServedAttention:
    """Attention of a translation to its source, the mean over the heads of one decoder block.

    Attributes:
        source_tokens: The S source tokens, eos included.
        target_tokens: The T target tokens, eos included.
        weights: float32 [T,S].
    """

    source_tokens: tuple[str, ...]
    target_tokens: tuple[str, ...]
    weights: np.ndarray


class TranslationError(RuntimeError):
    """A request failed. What was done before is kept, so that one can go on from there.

    Attributes:
        status: What gRPC calls the reason, for REST too: `"UNAVAILABLE"`, `"NOT_FOUND"`, `"INVALID_ARGUMENT"`,
            `"DEADLINE_EXCEEDED"` and so on.
        first_untranslated: Number of the first text that has no result, counted from 0.
        done: The results of the texts before it.
    """

    def __init__(self, message: str, status: str, done: Sequence[Any] = ()):
        super().__init__(message)
        self.status, self.done, self.first_untranslated = status, list(done), len(done)


class TranslationClient:
    """Translates with a model that TensorFlow Serving serves.

    A job of any size goes in requests of `batch_size` texts, one after another, and the results come in the order of
    the texts. A request is sent again where the server cannot be reached (`UNAVAILABLE`, HTTP 503), and for no other
    reason: what the server refuses once it will refuse again, and what took too long adds to its load.

    Args:
        address: `"host:port"` for gRPC (TensorFlow Serving's own port is 8500), `"http://host:port"` or
            `"https://host:port"` for REST (8501).
        model: Name of the model.
        version: Number of its version; None for the newest.
        timeout: Seconds that one request may take.
        batch_size: Most texts of a request; fewer where they are long, 1 MiB in all. A server that batches refuses
            requests above its `max_batch_size`.
        retries: How often a request is sent again.
        backoff: Seconds before it is, about; twice as many each time.
        credentials: For gRPC with encryption, what `grpc.ssl_channel_credentials` makes.

    Raises:
        ValueError: If an argument is out of range.
        ImportError: If tensorflow-serving-api is missing, or requests for REST.

    Example:
        ```python
        from keras_transformer.client import TranslationClient, TranslationError

        with TranslationClient("localhost:1", model="demo", retries=0) as client:  # Yours is at 8500.
            print(client.is_ready())
            #> False
            try:
                print(client.translate(["我爱水课", "你好"], beam_size=8, n_best=2)[0].text)
            except TranslationError as error:
                print(error.status, error.first_untranslated)
                #> UNAVAILABLE 0
        ```
    """

    def __init__(
        self,
        address: str,
        model: str,
        version: int | None = None,
        *,
        timeout: float = 30.0,
        batch_size: int = 32,
        retries: int = 4,
        backoff: float = 0.5,
        credentials=None,
    ):
        if not isinstance(model, str) or not model:
            raise ValueError(f"`model` must be the name of a model. Received: {model=}")
        self._place = f"{address}, model {model!r}" + ("" if version is None else f", version {version}")
        self._timeout = check_above_zero("timeout", timeout)
        self._batch_size = check_positive("batch_size", batch_size)
        self._retries = not_negative("retries", check_integer("retries", retries))
        self._backoff = not_negative("backoff", backoff)
        version = None if version is None else not_negative("version", check_integer("version", version))
        self._kind, self._transport = transport_of(address, model, version, self._timeout, credentials)

    def __enter__(self) -> TranslationClient:
        return self

    def __exit__(self, *error):
        self.close()

    def close(self) -> None:
        """Lets go of the connection. `with` does it, too."""
        self._transport.close()

    def is_ready(self) -> bool:
        """Whether the server answers and has the model, or the version of it, loaded.

        Raises:
            TranslationError: If the server answers, but refuses to say.
        """
        try:
            return "AVAILABLE" in self._transport.states()
        except RequestError as error:
            if error.status in ("UNAVAILABLE", "NOT_FOUND", "DEADLINE_EXCEEDED"):
                return False
            raise self._error(error, [], 0) from error

    def translate(
        self, texts, *, beam_size=None, n_best=None, length_penalty=None, max_length=None, target_prefix=None
    ):
        """Translates. Without options the server searches as the model was exported to.

        Each option is one value, or a list with one for each text. With one of them given, the others are `beam_size`
        4, `n_best` 1, `length_penalty` 0.6, `max_length` 1024 and no prefix. A model exported with a lower limit of
        `max_length` needs that limit said here; it stands for as many tokens as the source has and 50.

        Args:
            texts: A text, or a list or iterator of texts. A lone surrogate becomes U+FFFD.
            beam_size: Hypotheses kept at each step; 1 is greedy search.
            n_best: Translations wanted, at most `beam_size`.
            length_penalty: From 0 to 10; 0 favours short translations.
            max_length: Most tokens of a translation.
            target_prefix: What the translation begins with, text of one line.

        Returns:
            A `ServedTranslation`, or a list of them.

        Raises:
            ValueError: If a text is no str or an option is out of range; nothing is sent then.
            TranslationError: If a request fails: it says which text is the first without a result, and has the others.
        """
        rows = {"text": texts_of("texts", texts)}
        given = {
            "beam_size": beam_size,
            "n_best": n_best,
            "length_penalty": length_penalty,
            "max_length": max_length,
            "target_prefix": target_prefix,
        }
        if all(value is None for value in given.values()):
            results = self._run("serving_default", rows, _best, ("translation", "score", "truncated"))
        else:
            rows |= options_of(given, len(rows["text"]))
            results = self._run("translate", rows, _several, ("translations", "scores", "truncated", "count"))
        return results[0] if isinstance(texts, str) else results

    def score(self, texts, targets):
        """The log-probability of given translations.

        Args:
            texts: A text of one line, or a list of them.
            targets: A translation, or a list with one for each text: text of one line as well.

        Returns:
            A `ServedScore`, or a list of them.

        Raises:
            ValueError: If the two do not fit together or a text is no str; nothing is sent then.
            TranslationError: As `translate`.
        """
        rows = pairs_of(texts, targets)
        results = self._run("score", rows, ServedScore, ("log_probability", "length"))
        return results[0] if isinstance(texts, str) else results

    def attention(self, text: str, target: str) -> ServedAttention:
        """What each token of a translation attends to.

        Args:
            text: A text of one line.
            target: Its translation, or any other.

        Raises:
            ValueError: If one is no str; nothing is sent then.
            TranslationError: If the request fails.
        """
        if not isinstance(text, str):
            raise ValueError(f"`attention` is of one text. Received: {text!r}")
        names = ("source_tokens", "target_tokens", "attention")
        return self._run("attention", pairs_of(text, target), _attention, names)[0]

    def _run(self, signature, rows, result: Callable, outputs):
        """The results of all rows, some of them a request: `result` makes one of a row of the outputs."""
        done: list[Any] = []
        for start, end in requests_of(rows, self._batch_size):
            part = {name: values[start:end] for name, values in rows.items()}
            try:
                answer = self._retried(self._transport.predict, signature, part)
                done += map(result, *columns_of(answer, outputs, end - start))
            except RequestError as error:
                raise self._error(error, done, len(rows["text"])) from error
        return done

    def _retried(self, call, *arguments):
        for attempt in range(self._retries):
            try:
                return call(*arguments)
            except RequestError as error:
                if error.status != "UNAVAILABLE":
                    raise
            # Clients that lost the same server at the same time should not come back all at once.
            time.sleep(self._backoff * 2**attempt * random.uniform(0.5, 1))
        return call(*arguments)

    def _error(self, error, done, count):
        reason = re.sub(r"\s*\[\[\{\{.*", "", error.message, flags=re.DOTALL)  # Names of the graph say nothing.
        hint = _HINTS.get(error.status, "").format(attempts=self._retries + 1, kind=self._kind, timeout=self._timeout)
        where = f"Text number {len(done)}, counted from 0, is the first of {count} without a result." if count else ""
        lines = (f"{self._place}: {error.status}: {reason}", hint, where)
        return TranslationError("\n".join(filter(None, lines)), error.status, done)


def _best(text, score, truncated):
    return ServedTranslation(text, score, truncated, (ServedHypothesis(text, score, truncated),))


def _several(texts, scores, truncated, count):
    n_best = tuple(map(ServedHypothesis, texts[:count], scores[:count], truncated[:count]))
    return ServedTranslation(texts[0], scores[0], truncated[0], n_best)


def _attention(source_tokens, target_tokens, weights):
    return ServedAttention(tuple(source_tokens), tuple(target_tokens), np.array(weights, "float32"))
