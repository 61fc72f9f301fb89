"""Models whose outputs vary, searches with them that are traced once, and slow searches in NumPy."""

import functools
import itertools
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from keras_transformer.decoding.beam_search import beam_search
from keras_transformer.decoding.constraints import PackedOptions, RowOptions
from keras_transformer.decoding.searches import IDS, PACKED_OPTIONS
from keras_transformer.decoding.step import Ensemble
from keras_transformer.decoding.teacher_forcing import token_log_probabilities
from keras_transformer.decoding.walk import greedy_search
from keras_transformer.models import TransformerConfig, transformer

BOS, EOS = 2, 3
SOURCES = [[4, 5, 6, 3], [5, 3], [6, 6, 4, 3], [4, 6, 3]]
SEED = 4
SIZES = {"encoder_layers": 1, "decoder_layers": 2, "model_dim": 16, "intermediate_dim": 32, "num_heads": 2}
DEFAULTS = {
    "beam_size": 4,
    "n_best": 1,
    "length_penalty": 0.6,
    "max_length": 8,
    "min_length": 0,
    "no_repeat_ngram_size": 0,
    "repetition_penalty": 1.0,
}


class Found(NamedTuple):
    ids: tuple
    score: float
    log_probability: float
    truncated: bool


def random_model(vocabulary_size=7, seed=1, **fields):
    model = transformer(TransformerConfig(vocabulary_size, **{**SIZES, **fields}))
    randomize(model, seed)
    return model


def randomize(model, seed):
    """With Keras' initial weights a token would be followed by itself."""
    rng = np.random.default_rng(seed)
    for weight in model.weights:
        if weight.path.endswith("kernel"):
            weight.assign(rng.normal(size=weight.shape) / np.sqrt(weight.shape[0]))
        elif "embedding" in weight.path:
            weight.assign(rng.normal(size=weight.shape) * 0.4)


def padded(rows, width=0):
    array = np.zeros((len(rows), max([width, *map(len, rows)])), "int32")
    for i, row in enumerate(rows):
        array[i, : len(row)] = row
    return array


def row_options(
    rows,
    vocabulary_size=7,
    prefix=None,
    banned=(),
    gnmt=True,
    early_stopping=False,
    diversity_penalty=0.0,
    temperature=1.0,
    **options,
):
    """Options of that many rows, one for all or a list with one for each."""

    def column(name, value):
        dtype = "float32" if isinstance(DEFAULTS[name], float) else "int32"
        return np.array(np.broadcast_to(np.asarray(value, dtype), rows))

    return RowOptions(
        **{name: column(name, value) for name, value in {**DEFAULTS, **options}.items()},
        prefix_ids=padded(prefix or [[]] * rows),
        banned=np.isin(np.arange(vocabulary_size), [0, 1, 2, *banned]),
        gnmt=np.array(gnmt),
        early_stopping=np.array(early_stopping),
        diversity_penalty=np.float32(diversity_penalty),
        temperature=np.float32(temperature),
    )


class Decoder:
    """A model with its searches. Its outputs vary most with learned positions."""

    def __init__(self, vocabulary_size=7, seed=SEED, **fields):
        self.vocabulary_size = vocabulary_size
        fields = {"decoder_layers": 1, "tie_embeddings": "none", "positions": "learned", "max_length": 64, **fields}
        self.model = random_model(vocabulary_size, seed, **fields)
        self.ensemble = Ensemble([self.model])

    @functools.cached_property
    def greedy_function(self):
        return _traced_search(lambda ids, options: greedy_search(self.ensemble, ids, options))

    @functools.cached_property
    def greedy_function_without_scores(self):
        return _traced_search(lambda ids, options: greedy_search(self.ensemble, ids, options, return_scores=False))

    @functools.cached_property
    def score_function(self):
        return _traced(lambda *ids: token_log_probabilities(self.ensemble, *ids))

    @functools.cached_property
    def _logits(self):
        def logits(source_ids, target_ids):
            return self.model({"source_ids": source_ids, "target_ids": target_ids})

        return _traced(logits)

    @functools.cache  # noqa: B019
    def beam_function(self, groups=1):
        return _traced_search(lambda ids, options: beam_search(self.ensemble, ids, options, groups=groups))

    def beam(self, sources, groups=1, width=0, **options):
        return self._found(self.beam_function(groups), sources, width, options)

    def greedy(self, sources, width=0, return_scores=True, **options):
        function = self.greedy_function if return_scores else self.greedy_function_without_scores
        return self._found(function, sources, width, options)

    def _found(self, function, sources, width, options):
        return rows_of(function(padded(sources, width), row_options(len(sources), self.vocabulary_size, **options)))

    def forced(self, source, ids):
        """The log-probability of given ids."""
        return float(tf.reduce_sum(self.score_function([source], [ids])))

    def log_probabilities(self, source, targets):
        """Of every token behind bos and each beginning of the targets, by the whole model: float64 [N,T+1,V]."""
        ids = padded([[BOS, *target] for target in targets])
        logits = np.array(self._logits(np.repeat([source], len(ids), 0), ids), "float64")
        return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def _traced(function):
    return tf.function(function, input_signature=[IDS, IDS], autograph=False)


def _traced_search(function):
    def packed(source_ids, *options):
        return function(source_ids, PackedOptions(*options).unpacked())

    traced = tf.function(packed, input_signature=[IDS, *PACKED_OPTIONS], autograph=False)
    return lambda source_ids, options: traced(source_ids, *options.packed())


@functools.cache
def shared_decoder(vocabulary_size=7):
    """One for the tests of all modules. Who changes its weights calls `randomize(model, SEED)` afterwards."""
    return Decoder(vocabulary_size)


def rows_of(hypotheses):
    """What was found for each source, as a list of `Found`. Nothing stands beside it."""
    parts = type(hypotheses)(*(np.asarray(part) for part in hypotheses))
    rows = []
    for row, count in enumerate(parts.count):
        for part in parts[:-1]:
            assert not part[row, count:].any()
        rows.append([])
        for k in range(count):
            ids, length = parts.ids[row, k], parts.length[row, k]
            assert (ids[:length] > 0).all() and not ids[length:].any()
            numbers = float(parts.score[row, k]), float(parts.log_probability[row, k]), bool(parts.truncated[row, k])
            rows[-1].append(Found(tuple(ids[:length].tolist()), *numbers))
    return rows


def assert_same(found, expected, tolerance=1e-4):
    assert [one.ids for one in found] == [one.ids for one in expected]
    assert [one.truncated for one in found] == [one.truncated for one in expected]
    np.testing.assert_allclose([one.score for one in found], [one.score for one in expected], atol=tolerance)
    np.testing.assert_allclose(
        [one.log_probability for one in found], [one.log_probability for one in expected], atol=tolerance
    )


def divisor(length, alpha, gnmt=True):
    return ((5 + length) / 6 if gnmt else length) ** alpha


def every_hypothesis(decoder, source, limit):
    """All there are up to `limit` tokens: ids and log-probability."""
    words = [*range(EOS + 1, decoder.vocabulary_size)]
    targets = [(*ids, EOS) for count in range(limit) for ids in itertools.product(words, repeat=count)]
    targets += itertools.product(words, repeat=limit)
    logs, ids = decoder.log_probabilities(source, targets)[:, :-1], padded(targets)
    totals = np.where(ids > 0, np.take_along_axis(logs, ids[..., None], -1)[..., 0], 0).sum(-1)
    return list(zip(targets, totals.tolist(), strict=True))


def ranked(hypotheses, alpha, gnmt=True):
    """Those that ended before those that were cut, then by score."""
    found = [Found(ids, log / divisor(len(ids), alpha, gnmt), log, ids[-1] != EOS) for ids, log in hypotheses]
    return sorted(found, key=lambda one: (one.truncated, -one.score))


def slow_beam(decoder, source, **options):
    """A beam search by the whole model that goes on to the limit, of one source. A beam of 1 stops where it ends."""
    options = {**DEFAULTS, "prefix": (), "banned": (), **options}
    size, limit, alpha = options["beam_size"], options["max_length"], options["length_penalty"]
    live, finished = [((), 0.0, 0.0)], []
    while live and len(live[0][0]) < limit and not (size == 1 and finished):
        logs = decoder.log_probabilities(source, [ids for ids, *_ in live])[:, -1]
        candidates = []
        for (ids, rank, total), row in zip(live, logs, strict=True):
            for token, log in _allowed(row, ids, options).items():
                candidates.append(((*ids, token), rank + log, total + row[token]))
        candidates.sort(key=lambda candidate: -candidate[1])
        finished += [candidate for candidate in candidates[:size] if candidate[0][-1] == EOS]
        live = [candidate for candidate in candidates if candidate[0][-1] != EOS][:size]
    cut = [] if size == 1 and finished else live
    found = [
        Found(ids, total / divisor(len(ids), alpha), total, truncated)
        for truncated, those in ((False, finished), (True, cut))
        for ids, rank, total in sorted(those, key=lambda one: -one[1] / divisor(len(one[0]), alpha))
    ]
    return found[: options["n_best"]]


def _allowed(row, ids, options) -> dict[int, Any]:
    """The log-probabilities of what may come next, by which hypotheses are chosen."""
    if len(ids) < len(options["prefix"]):
        token = options["prefix"][len(ids)]
        return {token: row[token]}
    size = options["no_repeat_ngram_size"]
    ngrams = {ids[i : i + size] for i in range(len(ids) - size + 1)} if size else ()
    allowed = {}
    for token in range(EOS, len(row)):
        early = token == EOS and len(ids) + 1 < options["min_length"]
        if not early and token not in options["banned"] and (*ids, token)[len(ids) + 1 - size :] not in ngrams:
            allowed[token] = row[token] * (options["repetition_penalty"] if token in ids else 1)
    return allowed if set(allowed) - {EOS} else {EOS: row[EOS]}
