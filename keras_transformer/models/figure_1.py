"""Figure 1 of "Attention Is All You Need": the layers of a model, and how they are joined."""

from __future__ import annotations

import keras

from keras_transformer.layers import DecoderBlock, EncoderBlock, PositionalEmbedding


def make_layers(config, dtype):
    """All layers that have weights, by the names under which the model keeps them."""

    def embedding(vocabulary_size, name):
        return PositionalEmbedding(
            vocabulary_size,
            config.model_dim,
            positions=config.positions,
            max_length=config.max_length,
            sinusoid_layout=config.sinusoid_layout,
            dtype=dtype,
            name=name,
        )

    def blocks(block, count, name):
        fields = (
            "num_heads intermediate_dim key_dim value_dim dropout attention_dropout activation_dropout activation "
            "gated use_bias normalize_first layer_norm_epsilon"
        )
        arguments = {field: getattr(config, field) for field in fields.split()}
        return [block(**arguments, dtype=dtype, name=f"{name}_{i}") for i in range(count)]

    def final_norm(name):
        if not config.normalize_first:
            return None  # Post-norm blocks end in a normalisation of their own.
        return keras.layers.LayerNormalization(epsilon=config.layer_norm_epsilon, dtype=dtype, name=name)

    target_size = config.target_vocabulary_size or config.vocabulary_size
    tied = config.tie_embeddings == "all"
    source = embedding(config.vocabulary_size, "embedding" if tied else "source_embedding")
    return {
        "source_embedding": source,
        "target_embedding": source if tied else embedding(target_size, "target_embedding"),
        "encoder_blocks": blocks(EncoderBlock, config.encoder_layers, "encoder_block"),
        "decoder_blocks": blocks(DecoderBlock, config.decoder_layers, "decoder_block"),
        "encoder_norm": final_norm("encoder_norm"),
        "decoder_norm": final_norm("decoder_norm"),
        "output_projection": keras.layers.Dense(target_size, use_bias=False, dtype=dtype, name="output_projection")
        if config.tie_embeddings == "none"
        else None,
    }


def encode(config, parts, source_ids, dtype):
    """The left half of Figure 1: [B,S] -> [B,S,D]."""
    x = parts["source_embedding"](source_ids)
    x = keras.layers.Dropout(config.dropout, dtype=dtype, name="source_dropout")(x)
    for block in parts["encoder_blocks"]:
        x = block(x)
    return parts["encoder_norm"](x) if parts["encoder_norm"] else x


def decode(config, parts, target_ids, memory, dtype):
    """The right half: [B,T] and [B,S,D] -> what is projected, [B,T,D], and logits [B,T,V]."""
    x = parts["target_embedding"](target_ids)
    x = keras.layers.Dropout(config.dropout, dtype=dtype, name="target_dropout")(x)
    for block in parts["decoder_blocks"]:
        x = block(x, memory)
    if parts["decoder_norm"]:
        x = parts["decoder_norm"](x)
    project = parts["output_projection"]
    logits = project(x) if project else parts["target_embedding"](x, reverse=True)
    return x, keras.layers.Activation("linear", dtype=dtype, name="logits")(logits)
