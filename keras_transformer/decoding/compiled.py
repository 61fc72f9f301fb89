"""The search of one source, compiled by XLA."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from keras_transformer._checks import check_positive
from keras_transformer.decoding.beam_search import beam_search
from keras_transformer.decoding.constraints import MORE_TOKENS, Hypotheses, PackedOptions, RowOptions
from keras_transformer.decoding.options import SearchOptions
from keras_transformer.decoding.step import Ensemble
from keras_transformer.decoding.walk import greedy_search


def fixed_search(ensemble: Ensemble, source_ids, options: RowOptions, width: int, length: int) -> Hypotheses:
    """Greedy search for a width of 1, else a beam of this width, with the fixed length that XLA needs."""
    if width == 1:
        return greedy_search(ensemble, source_ids, options, length=length)
    return beam_search(ensemble, source_ids, options, width, length=length)


class CompiledSearches:
    """Greedy search, or beam search of one width, for a single source of up to some lengths.

    A step of one source is some eight hundred small operations, most of whose time is spent between them; XLA makes
    them one program.

    Args:
        ensemble: An `Ensemble`.
        source_lengths: The lengths that sources are padded to, each compiled by itself.
        beam_size: Width of the beam; 1 for greedy search.

    Raises:
        ValueError: If an argument is out of range.
    """

    def __init__(self, ensemble: Ensemble, source_lengths: Sequence[int], beam_size: int = 1):
        self._ensemble, self._beam_size = ensemble, check_positive("beam_size", beam_size)
        if not isinstance(source_lengths, (list, tuple)) or not source_lengths:
            raise ValueError(f"`source_lengths` must be a list of lengths. Received: source_lengths={source_lengths!r}")
        lengths = sorted({check_positive("source_lengths", length) for length in source_lengths})
        most = [length + MORE_TOKENS for length in lengths]
        if ensemble.max_length:
            most = [min(length, ensemble.max_length) for length in most]
        self._searches = [(*both, self._search(*both)) for both in zip(lengths, most, strict=True)]
        blank = SearchOptions(beam_size=beam_size).rows([0], [[]], ensemble.vocabulary_sizes[1])
        for *_, search in self._searches:
            search(np.zeros((1, 1), "int32"), blank)  # XLA compiles at the first call.

    def find(self, source_ids, options: RowOptions) -> Callable | None:
        """The search that holds these sources, a function of both arguments; None where there is none.

        Args:
            source_ids: int32 array [B,S].
            options: `RowOptions` of arrays.
        """
        if len(source_ids) != 1 or options.beam_size[0] != self._beam_size:
            return None
        prefix = options.prefix_ids.shape[1]
        tokens = source_ids.shape[1]
        wanted = options.max_length[0] or tokens + prefix + MORE_TOKENS
        for source, target, search in self._searches:
            # A search that goes on to the last position of the model asks for no more than that.
            if tokens <= source and prefix <= target and (wanted <= target or target == self._ensemble.max_length):
                return search
        return None

    def _search(self, source_length, length):
        """A function of `(source_ids, options)`, compiled."""

        def search(source_ids, *packed):
            return fixed_search(self._ensemble, source_ids, PackedOptions(*packed).unpacked(), self._beam_size, length)

        compiled = tf.function(search, jit_compile=True, autograph=False)
        vocabulary_size = self._ensemble.vocabulary_sizes[1]
        shapes = PackedOptions((5, 1), (2, 1), (4,), (1, length), (vocabulary_size,))
        dtypes = PackedOptions("int32", "float32", "float32", "int32", "bool")
        concrete = compiled.get_concrete_function(
            tf.TensorSpec((1, source_length), tf.int32), *map(tf.TensorSpec, shapes, dtypes)
        )

        def run(source_ids, options):
            options = options._replace(prefix_ids=_padded(options.prefix_ids, length))
            return concrete(tf.constant(_padded(source_ids, source_length)), *map(tf.constant, options.packed()))

        return run


def _padded(ids, length):
    return np.pad(ids, [(0, 0), (0, length - ids.shape[1])])
