"""The graph that is served: text in, translation out."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import tensorflow as tf

from keras_transformer.decoding.constraints import EOS
from keras_transformer.decoding.options import SearchOptions
from keras_transformer.decoding.searches import Searches
from keras_transformer.export.chunks import in_chunks
from keras_transformer.export.fixed_shapes import FixedShapes
from keras_transformer.export.limits import ServingLimits, checked_options, of_rank, one_per_text, refuse
from keras_transformer.export.row_search import ROW_OPTIONS, RowSearch
from keras_transformer.export.shared_graph import SharedGraphEnsemble
from keras_transformer.export.text_ops import has_line_break, is_blank, join_lines, one_line, split_lines
from keras_transformer.models.transformer import Transformer
from keras_transformer.text.tokenizer import valid_utf8

# Hypotheses of lines that a request may have, most of them of nothing where lines are blank.
_MOST_HYPOTHESES = 2**20
# Positions whose logits are computed at a time; attention weights computed at a time, and given at once.
_SCORE_CELLS, _ATTENTION_CELLS, _MOST_WEIGHTS = 2_048, 2**20, 2**26


class ServingModule(tf.Module):
    """Models, tokenizers and searches as one object that TensorFlow saves: weights once, tokenizers inside.

    Args:
        models: `Transformer` models of one vocabulary, which decode together.
        source_tokenizer: A `Tokenizer`.
        target_tokenizer: The target side's, the same object where both sides share one.
        search: The options of `serving_default` and `decode`; what a request cannot give holds for `translate` too.
        limits: What a request may ask for.
        attention_layer: Decoder block whose attention `attention` gives, from 0, or from the last one by -1.
        xla_buckets: Lengths of sources to compile searches for; none for a graph without XLA.
    """

    def __init__(
        self,
        models: Sequence[Transformer],
        source_tokenizer,
        target_tokenizer,
        search: SearchOptions,
        limits: ServingLimits,
        attention_layer: int = -1,
        xla_buckets: Sequence[int] = (),
    ):
        super().__init__(name="translator")
        ensemble = SharedGraphEnsemble(models, limits.max_length)
        # A Keras model held here would be saved a second time, as the object that it is.
        self._weights = [weight.value for model in models for weight in model.weights]
        self._source, self._target = source_tokenizer, target_tokenizer
        self._limits, self._attention_layer = limits, attention_layer
        self._searches, self._source_size = Searches(ensemble), ensemble.vocabulary_sizes[0]
        shapes = FixedShapes(ensemble, limits, xla_buckets) if xla_buckets else None
        self._rows = RowSearch(self._searches, search, limits, ensemble.vocabulary_sizes[1], shapes)

    def signatures(self):
        """The concrete functions by the names of their signatures, for `tf.saved_model.save`."""
        text, target, prefix = (tf.TensorSpec([None], tf.string, name) for name in ("text", "target", "target_prefix"))
        beam_size, n_best, max_length = (
            tf.TensorSpec([None], tf.int32, name) for name in ("beam_size", "n_best", "max_length")
        )
        length_penalty = tf.TensorSpec([None], tf.float32, "length_penalty")
        arguments = [text, beam_size, n_best, length_penalty, max_length, prefix]
        # One graph for the two signatures that use it; as an attribute it would be saved a second time.
        translate_texts = tf.function(self._translate_texts, input_signature=arguments, autograph=False)
        pairs = tf.function(self._pairs, input_signature=[text, target], autograph=False)
        inputs = {
            "serving_default": (functools.partial(self._serve, translate_texts), [text]),
            "translate": (functools.partial(self._translate, translate_texts), arguments),
            "decode": (self._decode, [tf.TensorSpec([None, None], tf.int32, "source_ids")]),
            "score": (functools.partial(self._score, pairs), [text, target]),
            "attention": (functools.partial(self._attention, pairs), [text, target]),
        }
        return {
            name: tf.function(function, input_signature=specs, autograph=False).get_concrete_function()
            for name, (function, specs) in inputs.items()
        }

    def default_request(self):
        """What `serving_default` searches with, as inputs of `translate` for one text."""
        options = {name: value.numpy() for name, value in self._rows.defaults(1).items()}
        return {**options, "target_prefix": ""}

    def _serve(self, translate_texts, text):
        text = of_rank("text", text, 1)
        options = self._rows.defaults(tf.shape(text)[0])
        translations, scores, truncated, _ = translate_texts(text, *options.values(), tf.zeros_like(text))
        return {"translation": translations[:, 0], "score": scores[:, 0], "truncated": truncated[:, 0]}

    def _translate(self, translate_texts, text, beam_size, n_best, length_penalty, max_length, target_prefix):
        text = of_rank("text", text, 1)
        options = one_per_text(
            text,
            beam_size=beam_size,
            n_best=n_best,
            length_penalty=length_penalty,
            max_length=max_length,
            target_prefix=target_prefix,
        )
        results = translate_texts(text, *checked_options(self._limits, **options))
        return dict(zip(("translations", "scores", "truncated", "count"), results, strict=True))

    def _translate_texts(self, text, beam_size, n_best, length_penalty, max_length, target_prefix):
        """All that `translate` gives, and `serving_default` the first column of."""
        lines = split_lines(valid_utf8(text))
        rows = tf.cast(tf.where(~is_blank(lines.line))[:, 0], tf.int32)
        texts_of_rows = tf.gather(lines.text, rows)
        options = dict(zip(ROW_OPTIONS, (beam_size, n_best, length_penalty, max_length), strict=True))
        prefix = tf.where(lines.is_first, tf.gather(target_prefix, lines.text), "")
        source_ids, is_cut = self._cut(self._source.tokenize(tf.gather(lines.line, rows)))
        wanted = _largest(n_best, tf.shape(lines.line)[:1])

        def finish(found, numbers):
            count, most = tf.shape(found.ids)[0], tf.shape(found.ids)[1]
            texts = self._target.detokenize(tf.reshape(found.ids, [count * most, -1]))
            valid = tf.range(most) < found.count[:, None]
            return (
                tf.where(valid, tf.reshape(one_line(texts), [count, most]), ""),
                found.score,
                found.truncated | (valid & tf.gather(is_cut, numbers)[:, None]),
                found.count,
            )

        def outputs(count, default):
            shape = tf.stack([count, wanted])
            return tf.fill(shape, ""), tf.zeros(shape), tf.zeros(shape, tf.bool), tf.fill([count], default)

        results = self._rows.run(
            source_ids,
            self._target.tokenize(tf.gather(prefix, rows)),
            {name: tf.gather(values, texts_of_rows) for name, values in options.items()},
            outputs(tf.shape(rows)[0], 0),
            finish,
        )
        # A blank line has one translation, of nothing.
        whole = outputs(tf.shape(lines.line)[0], 1)
        parts = (
            tf.tensor_scatter_nd_update(one, rows[:, None], part) for one, part in zip(whole, results, strict=True)
        )
        return join_lines(tf.shape(text)[0], lines, *parts)

    def _decode(self, source_ids):
        ids = of_rank("source_ids", source_ids, 2)
        size, most = self._source_size, self._limits.max_source_length
        length = tf.math.count_nonzero(ids, axis=-1, dtype=tf.int32)
        is_padding = tf.range(tf.shape(ids)[1]) >= length[:, None]
        flat, padded_before = tf.reshape(ids, [-1]), tf.reduce_any(is_padding & (ids != 0), axis=-1)
        checks = [
            refuse((flat < 0) | (flat >= size), f"`source_ids` must be at least 0 and below {size}.", flat),
            refuse(length > most, f"`source_ids` must have at most {most} tokens in a row.", length),
            refuse(padded_before, "Padding of `source_ids`, 0, must stand behind the tokens of a row.", ids[:, :1]),
        ]
        with tf.control_dependencies(checks):
            rows = tf.cast(tf.where(length > 0)[:, 0], tf.int32)  # The others are blank.
        count, longest = tf.shape(rows)[0], self._limits.max_length

        def finish(found, numbers):
            return found.ids[:, 0], found.length[:, 0], found.score[:, 0]

        results = self._rows.run(
            tf.RaggedTensor.from_tensor(tf.gather(ids, rows), lengths=tf.gather(length, rows)),
            tf.RaggedTensor.from_row_lengths(tf.zeros([0], tf.int32), tf.zeros([count], tf.int64)),
            self._rows.defaults(count),
            (tf.zeros([count, longest], tf.int32), tf.zeros([count], tf.int32), tf.zeros([count])),
            finish,
        )
        target_ids, length, score = (
            tf.scatter_nd(rows[:, None], part, tf.concat([tf.shape(ids)[:1], tf.shape(part)[1:]], 0))
            for part in results
        )
        target_ids = target_ids[:, : tf.reduce_max(tf.concat([length, [0]], 0))]
        return {"target_ids": target_ids, "length": length, "score": score}

    def _score(self, pairs, text, target):
        source_ids, target_ids = pairs(text, target)
        length = tf.cast(target_ids.row_lengths(), tf.int32)
        longest = tf.maximum(tf.cast(source_ids.row_lengths(), tf.int32), length)

        def run(rows, width):
            ids = (tf.gather(side, rows).to_tensor() for side in (source_ids, target_ids))
            return (tf.reduce_sum(self._searches.token_log_probabilities(*ids), axis=-1),)

        outputs = (tf.zeros(tf.shape(length)),)
        (log_probability,) = in_chunks(run, tf.ones_like(length), longest, _SCORE_CELLS, outputs)
        return {"log_probability": log_probability, "length": length}

    def _attention(self, pairs, text, target):
        source_ids, target_ids = pairs(text, target)
        lengths = [tf.cast(side.row_lengths(), tf.int32) for side in (source_ids, target_ids)]
        count = tf.shape(lengths[0])[:1]
        most_sources, most_targets = (tf.reduce_max(tf.concat([length, [0]], 0)) for length in lengths)
        cells = tf.reduce_prod(tf.cast(tf.concat([count, [most_sources, most_targets]], 0), tf.float32))
        check = refuse(
            cells[None] > _MOST_WEIGHTS, f"`text` and `target` must have at most {_MOST_WEIGHTS} weights.", cells[None]
        )
        with tf.control_dependencies([check]):
            shape = tf.concat([count, [most_targets, most_sources]], 0)

        def run(rows, width):
            ids = [tf.gather(side, rows).to_tensor() for side in (source_ids, target_ids)]
            weights = self._searches.memory_attention_weights(*ids)[:, self._attention_layer]
            return (tf.where((ids[1] != 0)[..., None], tf.reduce_mean(weights, axis=1), 0.0),)

        outputs = (tf.zeros(shape),)
        (weights,) = in_chunks(run, tf.ones_like(lengths[0]), lengths[0] * lengths[1], _ATTENTION_CELLS, outputs)
        return {
            "source_tokens": self._source.to_pieces(source_ids),
            "target_tokens": self._target.to_pieces(target_ids),
            "attention": weights,
        }

    def _cut(self, ids):
        """Ragged ids with eos behind them, no more than may be, and whether some had to go for that."""
        most = self._limits.max_source_length
        is_cut = ids.row_lengths() >= most
        return tf.concat([ids[:, : most - 1], tf.fill([ids.nrows(), 1], EOS)], axis=1), is_cut

    def _pairs(self, text, target):
        """The ids of pairs of texts, with eos: ragged int32 [B, (S)] and [B, (T)]."""
        text = of_rank("text", text, 1)
        sides = {"text": text, **one_per_text(text, target=target)}
        tokenizers = {"text": self._source, "target": self._target}
        most = {"text": self._limits.max_source_length, "target": self._limits.max_length}
        checks, ids = [], []
        for name, texts in sides.items():
            checks.append(refuse(has_line_break(texts), f"`{name}` must be text of one line.", texts))
            tokens = tokenizers[name].tokenize(texts)
            length = tf.cast(tokens.row_lengths(), tf.int32) + 1
            checks.append(refuse(length > most[name], f"`{name}` must have at most {most[name]} tokens.", length))
            ids.append(tf.concat([tokens, tf.fill([tokens.nrows(), 1], EOS)], axis=1))
        with tf.control_dependencies(checks):
            return [side.with_flat_values(tf.identity(side.flat_values)) for side in ids]


def _largest(n_best, lines):
    """The most hypotheses that any text wants, if there is room for as many of each of so many lines, int32 [1]."""
    wanted = tf.reduce_max(tf.concat([n_best, [1]], 0))
    message = f"`text` must have at most {_MOST_HYPOTHESES} lines, all texts together, divided by the largest `n_best`."
    with tf.control_dependencies([refuse(lines > _MOST_HYPOTHESES // wanted, message, lines)]):
        return tf.identity(wanted)
