"""The searches as functions of TensorFlow, each traced once."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from keras_transformer.decoding.beam_search import beam_search
from keras_transformer.decoding.constraints import PackedOptions
from keras_transformer.decoding.options import SearchOptions
from keras_transformer.decoding.sampling import Sampler
from keras_transformer.decoding.step import Ensemble
from keras_transformer.decoding.teacher_forcing import memory_attention_weights, token_log_probabilities
from keras_transformer.decoding.walk import greedy_search

IDS = tf.TensorSpec((None, None), tf.int32)
# Of every length, batch size and option: one trace.
PACKED_OPTIONS = PackedOptions(
    whole=tf.TensorSpec((5, None), tf.int32),
    real=tf.TensorSpec((2, None), tf.float32),
    of_all=tf.TensorSpec((4,), tf.float32),
    prefix_ids=IDS,
    banned=tf.TensorSpec((None,), tf.bool),
)


class Searches:
    """What an ensemble can do, as functions that are made when they are asked for.

    Args:
        ensemble: An `Ensemble`.
    """

    def __init__(self, ensemble: Ensemble):
        self._ensemble = ensemble
        self._samplers: dict[tuple, Sampler] = {}
        self._begun: dict[str, Any] = {}
        self.functions: dict[str, Any] = {}

    def begin(self, options: SearchOptions):
        """The search for these options, a function of `(source_ids, row_options)` that gives `Hypotheses`."""
        name, search = self._search(options)
        if name not in self._begun:

            def packed_search(source_ids, *packed):
                return search(source_ids, PackedOptions(*packed).unpacked())

            # As the concrete function, which need not be found by its arguments at each call.
            self._begun[name] = self._function(name, packed_search, IDS, *PACKED_OPTIONS).get_concrete_function()
        return lambda source_ids, rows: self._begun[name](source_ids, *rows.packed())

    def _search(self, options):
        """The name of a search, and its function of `(source_ids, row_options)`."""
        if options.sampler is None:
            if options.is_greedy:
                scores = options.return_scores
                name = "greedy" if scores else "greedy, no scores"
                return name, lambda ids, rows: greedy_search(self._ensemble, ids, rows, return_scores=scores)
            groups = options.beam_groups
            return f"beam, {groups} groups", lambda ids, rows: beam_search(self._ensemble, ids, rows, groups=groups)
        threshold = {"random": None, "top_k": options.top_k, "top_p": options.top_p}[options.sampler]
        key = (options.sampler, threshold)
        if key not in self._samplers:
            self._samplers[key] = Sampler(self._ensemble, *key)
        self._samplers[key].seed(options.seed)
        return f"sample, {key}", self._samplers[key]

    def token_log_probabilities(self, source_ids, target_ids):
        """See `teacher_forcing`."""
        function = self._function("score", lambda *ids: token_log_probabilities(self._ensemble, *ids), IDS, IDS)
        return function(source_ids, target_ids)

    def memory_attention_weights(self, source_ids, target_ids):
        """See `teacher_forcing`."""
        function = self._function("attention", lambda *ids: memory_attention_weights(self._ensemble, *ids), IDS, IDS)
        return function(source_ids, target_ids)

    def _function(self, name, python_function, *signature):
        if name not in self.functions:
            # AutoGraph would look for Python's control flow, of which there is none on tensors.
            self.functions[name] = tf.function(python_function, input_signature=signature, autograph=False)
        return self.functions[name]
