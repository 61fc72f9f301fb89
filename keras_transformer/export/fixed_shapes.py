"""The searches for a few fixed shapes, as XLA compiles them."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import tensorflow as tf

from keras_transformer.decoding.compiled import fixed_search
from keras_transformer.decoding.constraints import MORE_TOKENS, Hypotheses, RowOptions
from keras_transformer.decoding.step import Ensemble
from keras_transformer.export.limits import ServingLimits

# Neutral options of the rows that fill a batch, whose sources are blank.
_FILL = {"beam_size": 1, "n_best": 1, "repetition_penalty": 1.0}


class FixedShapes:
    """Greedy search, and beam search of the widest beam, compiled once for each length of sources.

    Args:
        ensemble: An `Ensemble`.
        limits: What a request may ask for; its `max_beam_size` is the width of every beam.
        buckets: Lengths of sources, ascending. Translations have 50 tokens more, and behind the longest sources as many
            as the limits allow.

    Attributes:
        cells: Hypotheses times positions of a batch: of those of the limits a quarter, for a single text waits for all
            of its batch.
    """

    def __init__(self, ensemble: Ensemble, limits: ServingLimits, buckets: Sequence[int]):
        self._ensemble, self._limits = ensemble, limits
        self.cells = max(limits.cells // 4, 1)
        most = ensemble.max_length or limits.max_length
        lengths = [min(bucket + MORE_TOKENS, most) for bucket in buckets[:-1]] + [most]
        self._shapes = list(zip(buckets, lengths, strict=True))

    def bucket(self, tokens, limits):
        """The first bucket that holds sources of these lengths and translations of these limits, int32 [N]."""
        sources, targets = zip(*self._shapes, strict=True)
        fits = (tokens[:, None] <= list(sources)) & (limits[:, None] <= list(targets))
        return tf.argmax(fits, axis=-1, output_type=tf.int32)

    def length(self, bucket):
        """Positions of source and target in a bucket, int32 [N]."""
        return tf.gather([source + target for source, target in self._shapes], bucket)

    def width(self, beam_size):
        """The width of the beam that finds so many, int32 [N]."""
        return tf.where(beam_size == 1, 1, self._limits.max_beam_size)

    def search(self, source_ids, options: RowOptions, width, bucket) -> Hypotheses:
        """Searches for rows of one bucket and width, which `cells` hold all."""
        rows, wanted = tf.shape(source_ids)[0], tf.reduce_max(options.n_best)

        def branch(number):
            greedy, beam = (
                functools.partial(self._run, number, beams, source_ids, options)
                for beams in (1, self._limits.max_beam_size)
            )
            return lambda: tf.cond(width == 1, greedy, beam)

        found = Hypotheses._make(tf.switch_case(bucket, [branch(number) for number in range(len(self._shapes))]))
        # The beam gives as many as it is wide.
        return Hypotheses._make(part[:rows] if part.shape.rank == 1 else part[:rows, :wanted] for part in found)

    def _run(self, number, width, source_ids, options):
        source_length, length = self._shapes[number]
        rows = max(self.cells // (width * (source_length + length)), 1)
        shapes = {name: [rows] for name in options.of_rows()} | {"prefix_ids": [rows, length]}
        filled = {name: _padded(getattr(options, name), shape, _FILL.get(name, 0)) for name, shape in shapes.items()}
        fixed = options._replace(**filled)
        specs = RowOptions._make(tf.TensorSpec(part.shape, part.dtype) for part in map(tf.convert_to_tensor, fixed))
        ids = tf.TensorSpec([rows, source_length], tf.int32)

        def search(ids, options):
            return fixed_search(self._ensemble, ids, options, width, length)

        compiled = tf.function(search, input_signature=[ids, specs], jit_compile=True, autograph=False)
        return compiled(_padded(source_ids, ids.shape, 0), fixed)


def _padded(values, shape, fill):
    """Values with more rows and columns behind, and of a shape that is known."""
    missing = tf.constant(list(shape)) - tf.minimum(tf.shape(values), list(shape))
    cut = tf.slice(values, [0] * len(shape), tf.minimum(tf.shape(values), list(shape)))
    padding = tf.stack([tf.zeros_like(missing), missing], axis=1)
    return tf.ensure_shape(tf.pad(cut, padding, constant_values=tf.cast(fill, values.dtype)), shape)
