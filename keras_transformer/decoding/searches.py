"""The searches as functions of TensorFlow, each traced once."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from keras_transformer.decoding.beam_search import beam_search
from keras_transformer.decoding.constraints import RowOptions
from keras_transformer.decoding.options import SearchOptions
from keras_transformer.decoding.sampling import Sampler
from keras_transformer.decoding.step import Ensemble
from keras_transformer.decoding.teacher_forcing import memory_attention_weights, token_log_probabilities
from keras_transformer.decoding.walk import greedy_search

IDS = tf.TensorSpec((None, None), tf.int32)
_ROW = tf.TensorSpec((None,), tf.int32)
_NUMBER = tf.TensorSpec((), tf.float32)
_FLAG = tf.TensorSpec((), tf.bool)
# Of every length, batch size and option: one trace.
ROW_OPTIONS = RowOptions(
    beam_size=_ROW,
    n_best=_ROW,
    length_penalty=tf.TensorSpec((None,), tf.float32),
    max_length=_ROW,
    min_length=_ROW,
    no_repeat_ngram_size=_ROW,
    repetition_penalty=tf.TensorSpec((None,), tf.float32),
    prefix_ids=IDS,
    banned=tf.TensorSpec((None,), tf.bool),
    gnmt=_FLAG,
    early_stopping=_FLAG,
    diversity_penalty=_NUMBER,
    temperature=_NUMBER,
)


class Searches:
    """What an ensemble can do, as functions that are made when they are asked for.

    Args:
        ensemble: An `Ensemble`.
    """

    def __init__(self, ensemble: Ensemble):
        self._ensemble = ensemble
        self._samplers: dict[tuple, Sampler] = {}
        self.functions: dict[tuple, Any] = {}

    def begin(self, options: SearchOptions):
        """The search for these options, a function of `(source_ids, row_options)` that gives `Hypotheses`."""
        if options.sampler is None:
            if options.is_greedy:
                return self._function("greedy", lambda ids, rows: greedy_search(self._ensemble, ids, rows), ROW_OPTIONS)
            groups = options.beam_groups
            return self._function(
                f"beam, {groups} groups",
                lambda ids, rows: beam_search(self._ensemble, ids, rows, groups=groups),
                ROW_OPTIONS,
            )
        threshold = {"random": None, "top_k": options.top_k, "top_p": options.top_p}[options.sampler]
        key = (options.sampler, threshold)
        if key not in self._samplers:
            self._samplers[key] = Sampler(self._ensemble, *key)
        self._samplers[key].seed(options.seed)
        return self._function(f"sample, {key}", self._samplers[key], ROW_OPTIONS)

    def token_log_probabilities(self, source_ids, target_ids):
        """See `teacher_forcing`."""
        function = self._function("score", lambda *ids: token_log_probabilities(self._ensemble, *ids), IDS)
        return function(source_ids, target_ids)

    def memory_attention_weights(self, source_ids, target_ids):
        """See `teacher_forcing`."""
        function = self._function("attention", lambda *ids: memory_attention_weights(self._ensemble, *ids), IDS)
        return function(source_ids, target_ids)

    def _function(self, name, python_function, second_argument):
        if name not in self.functions:
            # AutoGraph would look for Python's control flow, of which there is none on tensors.
            self.functions[name] = tf.function(python_function, input_signature=[IDS, second_argument], autograph=False)
        return self.functions[name]
