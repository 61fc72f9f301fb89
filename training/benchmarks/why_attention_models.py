"""The models that `why_attention.py` compares: the Transformer's predecessors from stock Keras layers, and itself.

All map `source_ids` [B,S] and `target_ids` [B,T], shifted right and padded with 0, to logits [B,T,V]; logits at t
depend on target ids up to t, and on no padding. All have one embedding for both sides that also projects to logits,
initialised and scaled as the Transformer's. What lies between is what the comparison is about.
"""

import functools

import keras
import numpy as np
from keras import ops

# The window model sees 4 source tokens to each side of its place, and 4 target tokens. Convolutions double their step.
REACH, PREVIOUS, DILATIONS = 4, 4, (1, 2, 4, 8)


def window(vocabulary_size, units, width, dropout):
    """A feed-forward network over a window (Bengio et al., 2003; with a source window, Devlin et al., 2014).

    Position t is given source tokens t - 4 to t + 4 and the last four target tokens, and nothing else.
    """

    def hidden_of(source, target, mask):
        # A convolution of width k is a dense layer over k embeddings side by side.
        # Room behind the end, and no bias: what is far from all tokens is 0, however much padding there is.
        source = keras.layers.ZeroPadding1D((0, REACH))(_without_padding(source, mask))
        near = keras.layers.Conv1D(units, 2 * REACH + 1, padding="same", use_bias=False)(source)
        past = keras.layers.Conv1D(units, PREVIOUS, padding="causal")(target)
        hidden = keras.layers.Dropout(dropout)(ops.relu(InStep()(near, target) + past))
        return keras.layers.Dense(units, "relu")(hidden)

    return _model("window", vocabulary_size, width, dropout, hidden_of)


def state(vocabulary_size, units, width, dropout):
    """An encoder-decoder whose decoder starts from the encoder's last state (Sutskever et al., 2014)."""

    def hidden_of(source, target, mask):
        _, summary = _encoded(source, mask, units)
        return keras.layers.GRU(units, return_sequences=True)(target, initial_state=summary)

    return _model("state", vocabulary_size, width, dropout, hidden_of)


def context(vocabulary_size, units, width, dropout):
    """The same, with the encoder's last state given to decoder and output at every step (Cho et al., 2014)."""

    def hidden_of(source, target, mask):
        _, summary = _encoded(source, mask, units)
        everywhere = ops.expand_dims(summary, 1) * ops.ones_like(target[:, :, :1])
        given = ops.concatenate([target, everywhere], axis=-1)
        states = keras.layers.GRU(units, return_sequences=True)(given, initial_state=summary)
        return ops.concatenate([states, everywhere], axis=-1)

    return _model("context", vocabulary_size, width, dropout, hidden_of)


def attention(vocabulary_size, units, width, dropout):
    """The same encoder, and a decoder that attends to all of its states (Bahdanau et al., 2015).

    Scores are theirs. The state after the step asks, as in Luong et al. (2015), and not the one before, so that the
    recurrence is a stock layer.
    """

    def hidden_of(source, target, mask):
        memory, summary = _encoded(source, mask, units)
        states = keras.layers.GRU(units, return_sequences=True)(target, initial_state=summary)
        query, key = keras.layers.Dense(units)(states), keras.layers.Dense(units, use_bias=False)(memory)
        found = keras.layers.AdditiveAttention()([query, memory, key], mask=[None, mask])
        return keras.layers.Dense(units, "tanh")(ops.concatenate([states, found], axis=-1))

    return _model("attention", vocabulary_size, width, dropout, hidden_of)


def convolution(vocabulary_size, units, width, dropout):
    """Convolutions on both sides without attention, one on top of the other (ByteNet, Kalchbrenner et al., 2016).

    Decoder position t is given what the encoder has at t, and its causal convolutions look back from there.
    """

    def block(x, dilation, padding, mask=None):
        y = keras.layers.LayerNormalization()(x)
        y = y if mask is None else _without_padding(y, mask)
        y = keras.layers.Conv1D(units, 3, padding=padding, dilation_rate=dilation, activation="relu")(y)
        return x + keras.layers.Dropout(dropout)(y)

    def hidden_of(source, target, mask):
        x = keras.layers.Dense(units)(source)
        for dilation in DILATIONS:
            x = block(x, dilation, "same", mask)
        x = InStep()(_without_padding(x, mask), target)
        x = keras.layers.Dense(units)(ops.concatenate([target, x], axis=-1))
        for dilation in DILATIONS:
            x = block(x, dilation, "causal")
        return keras.layers.LayerNormalization()(x)

    return _model("convolution", vocabulary_size, width, dropout, hidden_of)


def transformer(vocabulary_size, units, width, dropout, layers=2, num_heads=4):
    """The model of this package; `units` is the width of its feed-forward networks."""
    from keras_transformer.models import TransformerConfig, transformer

    config = TransformerConfig(
        vocabulary_size,
        encoder_layers=layers,
        decoder_layers=layers,
        model_dim=width,
        intermediate_dim=units,
        num_heads=num_heads,
        dropout=dropout,
    )
    return transformer(config)


MAKERS = {"window": window, "state": state, "context": context, "attention": attention, "convolution": convolution}


def made(kind, vocabulary_size, width, units, layers, dropout=0.1):
    """One model of a comparison, as large as the Transformer of these sizes.

    Args:
        kind: A key of `NAMES` in `why_attention_page`.
        vocabulary_size: V.
        width: Width of all embeddings, and of the Transformer.
        units: Width of the Transformer's feed-forward networks.
        layers: The Transformer's blocks on either side.
        dropout: Share dropped.
    """
    if kind != "transformer":
        units = units_for(kind, vocabulary_size, width, units, layers)
    keras.utils.set_random_seed(1)
    if kind == "transformer":
        return transformer(vocabulary_size, units, width, dropout, layers)
    return MAKERS[kind](vocabulary_size, units, width, dropout)


@functools.cache
def units_for(kind, vocabulary_size, width, units, layers):
    """The even number of hidden units with which a predecessor comes nearest to the Transformer's parameters."""
    wanted = transformer(vocabulary_size, units, width, 0.0, layers).count_params()
    # Parameters are a polynomial of the second degree in the units, which three small models determine.
    tried = (8, 16, 24)
    counts = [MAKERS[kind](vocabulary_size, units, width, 0.0).count_params() for units in tried]
    return max(2 * round(float(np.roots(np.polyfit(tried, np.subtract(counts, wanted), 2)).max()) / 2), 2)


@keras.saving.register_keras_serializable(package="why_attention")
class InStep(keras.layers.Layer):
    """Lays the source beside the target, position by position: [B,S,D] and [B,T,E] -> [B,T,D], 0 past its end."""

    def call(self, source, target):
        """Cuts the source, or fills it up."""
        length = ops.shape(target)[1]
        return ops.pad(source, [[0, 0], [0, length], [0, 0]])[:, :length]

    def compute_output_shape(self, source_shape, target_shape):
        """As long as the target, as wide as the source."""
        return (*target_shape[:2], source_shape[-1])


def _model(name, vocabulary_size, width, dropout, hidden_of):
    """Embeddings, what a model makes of them, and logits.

    Args:
        name: Name of the model.
        vocabulary_size: V.
        width: Width of the embeddings, D.
        dropout: Share dropped of embeddings and of the last layer.
        hidden_of: A function of the embedded source [B,S,D] and target [B,T,D] and of the mask of the source [B,S],
            true at real tokens, that gives [B,T,any].
    """
    ids = {side: keras.Input((None,), dtype="int32", name=side) for side in ("source_ids", "target_ids")}
    embedding = keras.layers.ReversibleEmbedding(
        vocabulary_size, width, embeddings_initializer=keras.initializers.RandomNormal(stddev=width**-0.5)
    )
    source, target = (keras.layers.Dropout(dropout)(embedding(side) * width**0.5) for side in ids.values())
    hidden = hidden_of(source, target, ops.not_equal(ids["source_ids"], 0))
    hidden = keras.layers.Dense(width)(keras.layers.Dropout(dropout)(hidden))
    return keras.Model(ids, embedding(hidden, reverse=True), name=name)


def _encoded(source, mask, units):
    """States of a GRU in both directions [B,S,U], and one vector of both last states [B,U]."""
    gru = keras.layers.GRU(units // 2, return_sequences=True, return_state=True)
    states, forward, backward = keras.layers.Bidirectional(gru)(source, mask=mask)
    return states, keras.layers.Dense(units, "tanh")(ops.concatenate([forward, backward], axis=-1))


def _without_padding(x, mask):
    return x * ops.cast(ops.expand_dims(mask, -1), x.dtype)
