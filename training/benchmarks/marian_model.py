"""A Marian model of Hugging Face's with the weights of ours."""

import itertools

import numpy as np
import torch
from transformers import MarianConfig, MarianMTModel

POSITIONS = 512


def save_marian(path, ours):
    """Writes the `MarianMTModel` of a `Transformer`, for `torch.load`.

    Marian's own `save_pretrained` and `from_pretrained` leave out positions, and put other sinusoids in their place.
    """
    torch.save(marian_of(ours), path)


def marian_of(ours):
    """A `MarianMTModel` that computes what a `Transformer` does.

    Args:
        ours: A `Transformer` with one vocabulary for both sides, all embeddings tied, post-norm and biases: all that
            Marian knows.

    Raises:
        ValueError: If Marian has a weight that ours has not.
    """
    config = ours.config
    model = MarianMTModel(
        MarianConfig(
            vocab_size=config.vocabulary_size,
            d_model=config.model_dim,
            encoder_layers=config.encoder_layers,
            decoder_layers=config.decoder_layers,
            encoder_attention_heads=config.num_heads,
            decoder_attention_heads=config.num_heads,
            encoder_ffn_dim=config.intermediate_dim,
            decoder_ffn_dim=config.intermediate_dim,
            activation_function=config.activation,
            scale_embedding=True,
            max_position_embeddings=POSITIONS,
            pad_token_id=0,
            eos_token_id=3,
            forced_eos_token_id=None,
            decoder_start_token_id=2,
        )
    ).eval()
    weights = dict(_weights(ours))
    with torch.no_grad():
        for name, parameter in itertools.chain(model.named_parameters(), model.named_buffers()):
            if name in weights:
                parameter.copy_(torch.tensor(weights[name]))
            elif name != "final_logits_bias":
                raise ValueError(f"The Transformer has nothing for a weight of Marian. Received: {name}")
    return model


def _weights(ours):
    """Marian's names and arrays."""
    yield "model.shared.weight", _array(ours.source_embedding.token_embedding.embeddings)
    for side, blocks in (("encoder", ours.encoder_blocks), ("decoder", ours.decoder_blocks)):
        prefix = f"model.{side}"
        yield f"{prefix}.embed_tokens.weight", _array(ours.source_embedding.token_embedding.embeddings)
        yield f"{prefix}.embed_positions.weight", _array(ours.source_embedding.position_encoding(POSITIONS))
        for number, block in enumerate(blocks):
            yield from _block(f"{prefix}.layers.{number}", block, side == "decoder")


def _block(name, block, is_decoder):
    attention = block.self_attention
    names = ("q_proj", "k_proj", "v_proj")
    yield from _attention(f"{name}.self_attn", names, attention.query_key_value_projection)
    yield from _linear(f"{name}.self_attn.out_proj", attention.output_projection)
    yield from _norm(f"{name}.self_attn_layer_norm", block.self_attention_norm)
    if is_decoder:
        attention = block.memory_attention
        yield from _linear(f"{name}.encoder_attn.q_proj", attention.query_projection)
        yield from _attention(f"{name}.encoder_attn", names[1:], attention.key_value_projection)
        yield from _linear(f"{name}.encoder_attn.out_proj", attention.output_projection)
        yield from _norm(f"{name}.encoder_attn_layer_norm", block.memory_attention_norm)
    yield from _linear(f"{name}.fc1", block.feed_forward.intermediate_projection)
    yield from _linear(f"{name}.fc2", block.feed_forward.output_projection)
    yield from _norm(f"{name}.final_layer_norm", block.feed_forward_norm)


def _attention(name, parts, fused):
    kernels, biases = (np.split(_array(weight), len(parts), axis=-1) for weight in (fused.kernel, fused.bias))
    for part, kernel, bias in zip(parts, kernels, biases, strict=True):
        yield f"{name}.{part}.weight", kernel.T
        yield f"{name}.{part}.bias", bias


def _linear(name, layer):
    yield f"{name}.weight", _array(layer.kernel).T
    yield f"{name}.bias", _array(layer.bias)


def _norm(name, norm):
    yield f"{name}.weight", _array(norm.layer_norm.gamma)
    yield f"{name}.bias", _array(norm.layer_norm.beta)


def _array(weight):
    return np.array(weight, "float32")
