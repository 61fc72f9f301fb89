"""One step of decoding from caches, made of the model's own layers."""

from __future__ import annotations

from keras_transformer.models.transformer import Transformer


def decoder_step(model: Transformer, target_ids, caches, start_index, memory_mask):
    """The logits at the next positions, as the whole model would give them, for caches that grow.

    Args:
        model: A `Transformer`.
        target_ids: The ids at the next T positions, [B*W,T]; T is 1 in token-by-token decoding.
        caches: A `DecoderCache` for each decoder block, as the step before returned them, or `empty_cache` did.
        start_index: Position of the first of `target_ids`, an integer or a scalar tensor.
        memory_mask: Boolean [B,S], True at real source tokens.

    Returns:
        The pair `(logits, caches)`: [B*W,T,V] and the new caches.
    """
    x = model.target_embedding(target_ids, start_index=start_index)
    new_caches = []
    for block, cache in zip(model.decoder_blocks, caches, strict=True):
        x, _, cache = block.step(x, cache, memory_mask=memory_mask)
        new_caches.append(cache)
    if model.decoder_norm:
        x = model.decoder_norm(x)
    project = model.output_projection
    return (project(x) if project else model.target_embedding(x, reverse=True)), new_caches
