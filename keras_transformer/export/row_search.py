"""The search of a request: any number of sources with options of their own, some at a time."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from keras_transformer.decoding.constraints import Hypotheses
from keras_transformer.decoding.options import SearchOptions
from keras_transformer.decoding.searches import Searches
from keras_transformer.export.chunks import in_chunks
from keras_transformer.export.fixed_shapes import FixedShapes
from keras_transformer.export.limits import ServingLimits

# What a request can give, beside the prefix.
ROW_OPTIONS = ("beam_size", "n_best", "length_penalty", "max_length")


class RowSearch:
    """Greedy and beam search for rows of ids.

    Args:
        searches: The `Searches` of the models.
        search: The options that a request cannot give, and the defaults of those that it can.
        limits: What a request may ask for.
        vocabulary_size: That of the target, V.
        shapes: The fixed shapes of searches under XLA; None for shapes that follow the request.
    """

    def __init__(
        self,
        searches: Searches,
        search: SearchOptions,
        limits: ServingLimits,
        vocabulary_size: int,
        shapes: FixedShapes | None = None,
    ):
        self._limits, self._shapes = limits, shapes
        self._cells = shapes.cells if shapes else limits.cells
        self._greedy = searches.begin(SearchOptions(beam_size=1))
        self._beam = searches.begin(SearchOptions(beam_size=2))
        self._fixed = search.rows([0], [[]], vocabulary_size)
        self._banned, self._vocabulary_size = self._fixed.banned.nonzero()[0].astype("int32"), vocabulary_size

    def defaults(self, count):
        """The options that a request can give, by name, each [count]."""
        default_length = self._fixed.max_length if self._fixed.max_length[0] else [self._limits.max_length]
        values = {name: getattr(self._fixed, name) for name in ROW_OPTIONS} | {"max_length": default_length}
        return {name: tf.repeat(value, count) for name, value in values.items()}

    def run(self, source_ids, prefix_ids, options, outputs, finish: Callable):
        """Searches for every row.

        Args:
            source_ids: Ragged int32 [N, (S)], at least a token in each row.
            prefix_ids: Ragged int32 [N, (P)].
            options: The options by name, each [N]. The most tokens that a request may ask for stand for as many as the
                source has and 50.
            outputs: Tensors of N rows for the results.
            finish: A function of `(hypotheses, rows)` that makes the results of some rows, as many tensors.

        Returns:
            `outputs`, filled.
        """
        rows = self._rows(prefix_ids[:, : self._limits.max_length], **options)
        tokens = tf.cast(source_ids.row_lengths(), tf.int32)
        prefix_tokens = tf.cast(rows.prefix_ids.row_lengths(), tf.int32)
        limits = rows.limits_of(tokens, prefix_tokens, self._limits.max_length)
        width, length = rows.beam_size, tokens + limits
        if self._shapes:
            bucket = self._shapes.bucket(tokens, limits)
            width, length = self._shapes.width(width), self._shapes.length(bucket)

        def search(numbers, width):
            chosen, ids = rows.take(numbers), tf.gather(source_ids, numbers).to_tensor()
            chosen = chosen._replace(prefix_ids=chosen.prefix_ids.to_tensor())
            if self._shapes:
                found = self._shapes.search(ids, chosen, width, tf.reduce_max(tf.gather(bucket, numbers)))
            else:
                found = tf.cond(width == 1, lambda: self._greedy(ids, chosen), lambda: self._beam(ids, chosen))
            return finish(Hypotheses._make(found), numbers)

        most_rows = None if self._shapes else self._limits.rows
        return in_chunks(search, width, length, self._cells, outputs, most_rows)

    def _rows(self, prefix_ids, max_length, **options):
        count = tf.shape(max_length)[0]
        fixed = ("min_length", "no_repeat_ngram_size", "repetition_penalty")
        return self._fixed._replace(
            prefix_ids=prefix_ids,
            max_length=tf.where(max_length < self._limits.max_length, max_length, 0),
            # As a constant it would stand in the graph of each search, V bytes each.
            banned=tf.scatter_nd(self._banned[:, None], tf.ones_like(self._banned), [self._vocabulary_size]) > 0,
            **options,
            **{name: tf.repeat(getattr(self._fixed, name), count) for name in fixed},
        )
