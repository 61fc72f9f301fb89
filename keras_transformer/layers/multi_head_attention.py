"""Multi-head attention: section 3.2 of "Attention Is All You Need"."""

from __future__ import annotations

from typing import Any, NamedTuple

import keras
from keras import ops

from keras_transformer._checks import check_bool, check_positive, check_rate, check_sequence_shape, known_integer
from keras_transformer.layers.masks import MASKED_SCORE, check_mask, merge_masks
from keras_transformer.layers.projection import leading, positions, projection


class AttentionCache(NamedTuple):
    """Keys and values that a `MultiHeadAttention` layer has projected already.

    It holds no mask: `attend` and `step` heed the masks they are given, not those that tensors carry.

    Attributes:
        key: Projected keys, [B,H,S,K].
        value: Projected values, [B,H,S,value_dim].
    """

    key: Any
    value: Any


@keras.saving.register_keras_serializable(package="keras_transformer")
class MultiHeadAttention(keras.layers.Layer):
    """Scaled dot-product attention in several heads (section 3.2, formula 1).

        Attention(Q, K, V) = softmax(Q K^T / sqrt(key_dim)) V

    Which projections the layer has follows from the arguments of its first call (or of `build`), and stays so:

    - `layer(query)`: self-attention; one matrix projects queries, keys and values together.
    - `layer(query, value)`: attention over another sequence; one matrix projects its keys and values together.
    - `layer(query, value, key)`: three matrices.

    `kernel_initializer` draws each matrix as a whole, so Glorot's fan-out counts all that the matrix projects.

    Queries are scaled before the product, and the softmax is taken in float32 at least whatever the dtype policy. A
    masked position has a weight of exactly zero; where no position is left to attend to, all weights are zero and so
    is the weighted sum.

    Args:
        num_heads: Number of heads, H.
        key_dim: Width of queries and keys in each head, K.
        value_dim: Width of values in each head. Defaults to `key_dim`.
        dropout: Share of attention weights dropped in training.
        use_bias: Whether the projections add a bias.
        kernel_initializer: Initializer of the projections' matrices.
        bias_initializer: Initializer of the projections' biases.
        **kwargs: `name`, `dtype` and `trainable` of `keras.layers.Layer`.

    Call arguments:
        query: [B,T,D]. The output has its width.
        value: Sequence to attend to, [B,S,any width]. Omit it for self-attention.
        key: Sequence that keys are made from, [B,S,any width]. Defaults to `value`.
        query_mask: Boolean [B,T], True at real tokens. In self-attention it masks the keys. In attention over another
            sequence it changes nothing: a padded query's output is as good as any, and is for its reader to mask.
        value_mask: Boolean [B,S], True at the tokens of `value` that may be attended to. Not for self-attention.
        key_mask: The same for `key`; both apply.
        attention_mask: Boolean [B,T,S] or [B,H,T,S], True where the query may attend to the key. All masks apply.
        return_attention_scores: Whether to return the attention weights as well.
        training: Whether to apply dropout.
        use_causal_mask: Whether a query attends only to keys at its own and earlier positions.
        mask: In self-attention, another name of `query_mask`, which goes before it. Keras hands the carried mask of an
            only tensor argument under this name.

    The masks of tensors that carry one (Keras masks) apply where the argument is not given. Masks are boolean or
    integer; additive ones, of 0 and -1e9, are refused.

    Returns:
        The attention output, [B,T,D]; with `return_attention_scores=True` always the pair `(output, weights)`, weights
        [B,H,T,S] as they were before dropout.

    Raises:
        ValueError: If an argument is out of range, a shape does not fit, or the layer is called with other kinds of
            arguments than it was built for.

    Example:
        ```python
        import numpy as np
        from keras_transformer.layers import MultiHeadAttention

        attention = MultiHeadAttention(num_heads=8, key_dim=64)
        sentence = np.random.normal(size=(1, 4, 512))  # 我 爱 水 课
        output, weights = attention(sentence, return_attention_scores=True)
        print(output.shape, weights.shape)
        #> (1, 4, 512) (1, 8, 4, 4)
        ```
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        value_dim: int | None = None,
        dropout: float = 0.0,
        use_bias: bool = True,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads = check_positive("num_heads", num_heads)
        self.key_dim = check_positive("key_dim", key_dim)
        self.value_dim = check_positive("value_dim", key_dim if value_dim is None else value_dim)
        self.dropout = check_rate("dropout", dropout)
        self.use_bias = check_bool("use_bias", use_bias)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.supports_masking = True
        self._dropout = keras.layers.Dropout(dropout, dtype=self.dtype_policy)

    def build(self, query_shape, value_shape=None, key_shape=None):
        for name, shape in (("query", query_shape), ("value", value_shape), ("key", key_shape)):
            if shape is not None:
                check_sequence_shape(f"`{name}`", shape)
        if value_shape is None and key_shape is not None:
            raise ValueError(f"`key` needs `value` beside it. Received: key of shape {key_shape} and no value.")
        keys, values = self.num_heads * self.key_dim, self.num_heads * self.value_dim
        self._kind = 1 + (value_shape is not None) + (key_shape is not None)
        if self._kind == 1:
            self.query_key_value_projection = projection(self, "query_key_value", query_shape[-1], keys + keys + values)
        else:
            self.query_projection = projection(self, "query", query_shape[-1], keys)
            if self._kind == 2:
                self.key_value_projection = projection(self, "key_value", value_shape[-1], keys + values)
            else:
                self.key_projection = projection(self, "key", key_shape[-1], keys)
                self.value_projection = projection(self, "value", value_shape[-1], values)
        self.output_projection = projection(self, "output", values, query_shape[-1])

    def call(
        self,
        query,
        value=None,
        key=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
        use_causal_mask=False,
        mask=None,
    ):
        padding = self._check_call(query, value, key, query_mask, value_mask, key_mask, attention_mask, mask)
        if value is None:
            projected, cache = self._project_self(query)
        else:
            projected, cache = (
                self._split(self.query_projection(positions(query)), query, self.key_dim),
                self.project(value, key),
            )
        allowed = merge_masks(padding, attention_mask, use_causal_mask, ops.shape(query)[1], ops.shape(cache.key)[2])
        output, weights = self._attend(projected, cache, allowed, training)
        return (output, weights) if return_attention_scores else output

    def _check_call(self, query, value, key, query_mask, value_mask, key_mask, attention_mask, mask):
        """Raises ValueError for tensors and masks that do not fit each other; returns the padding masks that apply."""
        self._check_kind(value, key)
        if value is None and (value_mask is not None or key_mask is not None):
            raise ValueError("Self-attention takes `mask` or `query_mask`. Received: `value_mask` or `key_mask`")
        if value is not None and mask is not None:
            raise ValueError("Attention over another sequence takes `value_mask`. Received: `mask`")
        batch, length = query.shape[:2]
        keys = (query if value is None else value).shape[1]
        padding = (query_mask if mask is None else mask,) if value is None else (value_mask, key_mask)
        for padding_mask in padding:
            check_mask(padding_mask, "padding mask", [(batch, keys)])
        shapes = [(batch, length, keys), (batch, self.num_heads, length, keys)]
        check_mask(attention_mask, "`attention_mask`", shapes)
        return padding

    def project(self, value, key=None) -> AttentionCache:
        """Projects the sequence to attend to, once for any number of `attend` calls.

        Args:
            value: [B,S,any width].
            key: [B,S,any width]. Defaults to `value`.

        Returns:
            An `AttentionCache`.
        """
        self._check_kind(value, key)
        if key is not None:
            return AttentionCache(
                self._split(self.key_projection(positions(key)), key, self.key_dim),
                self._split(self.value_projection(positions(value)), value),
            )
        keys, values = ops.split(self.key_value_projection(positions(value)), [self.num_heads * self.key_dim], axis=-1)
        return AttentionCache(self._split(keys, value, self.key_dim), self._split(values, value))

    def attend(self, query, cache: AttentionCache, mask=None):
        """Attends to a sequence that `project` has projected. No dropout.

        Args:
            query: [B,T,D]. The W hypotheses of a beam may stand side by side as T = W queries of one sentence: the
                cache needs no copy for each.
            cache: What `project` returned.
            mask: Boolean [B,S], True at the tokens that may be attended to.

        Returns:
            The pair `(output, weights)`, output [B,T,D], weights [B,H,T,S].
        """
        if not self.built or self._kind == 1:
            raise ValueError(f"`attend` is for attention over another sequence. Received: layer '{self.name}'")
        check_mask(mask, "padding mask", [(query.shape[0], cache.key.shape[2])])
        allowed = merge_masks((mask,), None, False, ops.shape(query)[1], ops.shape(cache.key)[2])
        return self._attend(self._split(self.query_projection(positions(query)), query, self.key_dim), cache, allowed)

    def empty_cache(self, batch_size, length: int = 0) -> AttentionCache:
        """Makes the cache that `step` starts from.

        Args:
            batch_size: B, an integer or a scalar tensor.
            length: S. 0 makes a cache that grows with each step; any other length one that is filled in place, whose
                shape never changes, as XLA needs it.

        Returns:
            An `AttentionCache` of zeros.
        """
        self._check_kind(None, None)
        return AttentionCache(
            ops.zeros((batch_size, self.num_heads, length, self.key_dim), dtype=self.compute_dtype),
            ops.zeros((batch_size, self.num_heads, length, self.value_dim), dtype=self.compute_dtype),
        )

    def step(self, query, cache: AttentionCache, index=None, mask=None):
        """Self-attention of the next T positions to themselves and all before them. No dropout.

        The result equals that of `call` with `use_causal_mask=True` on the whole sequence, at these positions.

        Args:
            query: The next positions, [B,T,D]; T is 1 in token-by-token decoding.
            cache: What the step before returned, or `empty_cache`.
            index: Position of the first query, an integer or a scalar tensor, for a cache that is filled in place.
                None for a cache that grows. Where the index is a tensor of a graph, nothing checks that the queries end
                within the cache.
            mask: Boolean [B,S], S the length of the returned cache: True at the positions that may be attended to.

        Returns:
            The triple `(output, weights, cache)`: output [B,T,D], weights [B,H,T,S], the cache with T more positions.
        """
        self._check_kind(None, None)
        _check_index(index, query.shape[1], cache.key.shape[2])
        projected, new = self._project_self(query)
        start = ops.shape(cache.key)[2] if index is None else index
        pairs = zip(cache, new, strict=True)
        if index is None:
            cache = AttentionCache(*(ops.concatenate(pair, axis=2) for pair in pairs))
        else:
            cache = AttentionCache(*(ops.slice_update(old, (0, 0, index, 0), part) for old, part in pairs))
        check_mask(mask, "padding mask", [(query.shape[0], cache.key.shape[2])])
        causal = index is not None or query.shape[1] != 1  # One query that closes a growing cache sees all of it.
        allowed = merge_masks((mask,), None, causal, ops.shape(query)[1], ops.shape(cache.key)[2], start)
        return *self._attend(projected, cache, allowed), cache

    def _check_kind(self, value, key):
        kind = 1 + (value is not None) + (key is not None)
        if not self.built or kind != self._kind:
            arguments = ("query", "query, value", "query, value, key")
            built = f"built for ({arguments[self._kind - 1]})" if self.built else "not built"
            raise ValueError(
                f"A MultiHeadAttention layer is called with the kinds of arguments it was built for. "
                f"Received: ({arguments[kind - 1]}) for layer '{self.name}', {built}."
            )

    def _project_self(self, query):
        keys = self.num_heads * self.key_dim
        queries, key, value = ops.split(self.query_key_value_projection(positions(query)), [keys, 2 * keys], axis=-1)
        cache = AttentionCache(self._split(key, query, self.key_dim), self._split(value, query))
        return self._split(queries, query, self.key_dim), cache

    def _split(self, x, sequence, width=None):
        """[B*T,H*width] -> [B,H,T,width]; B and T are those of `sequence`, [B,T,any width]."""
        width = width or self.value_dim
        if sequence.shape[1] == 1:  # A step of decoding: there is nothing to be moved.
            return ops.reshape(x, (-1, self.num_heads, 1, width))
        return ops.transpose(ops.reshape(x, (*leading(sequence), self.num_heads, width)), (0, 2, 1, 3))

    def _attend(self, query, cache, allowed, training=False):
        """Formula 1 on projected heads: [B,H,T,K] queries -> [B,T,D] output and [B,H,T,S] weights."""
        # The queries are scaled, not the scores: in float16 an unscaled product overflows sqrt(key_dim) times sooner.
        query = ops.multiply(query, ops.cast(self.key_dim**-0.5, query.dtype))
        scores = ops.matmul(query, ops.transpose(cache.key, (0, 1, 3, 2)))
        scores = ops.cast(scores, keras.backend.result_type(scores.dtype, "float32"))
        if allowed is not None:
            scores = ops.where(allowed, scores, MASKED_SCORE)
        # Keras warns of a softmax over one key.
        weights = ops.softmax(scores, axis=-1) if scores.shape[-1] != 1 else ops.ones_like(scores)
        if allowed is not None:
            weights = ops.where(allowed, weights, 0.0)  # A row without any allowed key was uniform.
        weights = ops.cast(weights, self.compute_dtype)
        context = ops.matmul(self._dropout(weights, training=training), cache.value)
        is_step = context.shape[2] == 1
        context = context if is_step else ops.transpose(context, (0, 2, 1, 3))
        sizes = (-1, 1) if is_step else leading(context)
        output = self.output_projection(ops.reshape(context, (-1, self.num_heads * self.value_dim)))
        return ops.reshape(output, (*sizes, output.shape[-1])), weights

    def compute_output_spec(
        self,
        query,
        value=None,
        key=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
        use_causal_mask=False,
        mask=None,
    ):
        self._check_call(query, value, key, query_mask, value_mask, key_mask, attention_mask, mask)
        output = keras.KerasTensor(query.shape, dtype=self.compute_dtype)
        if not return_attention_scores:
            return output
        batch, length, _ = query.shape
        keys = (query if value is None else value).shape[1]
        return output, keras.KerasTensor((batch, self.num_heads, length, keys), dtype=self.compute_dtype)

    def compute_output_shape(self, query_shape, *other_shapes):
        return query_shape

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "value_dim": self.value_dim,
            "dropout": self.dropout,
            "use_bias": self.use_bias,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
        }


def _check_index(index, queries, length):
    """Raises ValueError where a cache filled in place is known to end before the queries do."""
    start = None if index is None else known_integer("index", index)
    if start is None or queries is None or length is None:
        return
    if not 0 <= start <= length - queries:
        raise ValueError(
            f"`index` must leave room for {queries} queries in a cache of length {length}. Received: index={start}"
        )
