import keras
import numpy as np
import pytest

from keras_transformer.layers import DecoderBlock, DecoderCache, PositionalEmbedding

B, T, S, D = 2, 5, 3, 8
X = np.random.default_rng(1).normal(size=(B, T, D)).astype("float32")
MEMORY = np.random.default_rng(2).normal(size=(B, S, 6)).astype("float32")
MASK = np.array([[True, True, True], [True, False, False]])


@pytest.mark.parametrize("normalize_first", [False, True])
def test_no_output_depends_on_a_later_position(normalize_first):
    """F01."""
    block = DecoderBlock(2, 16, normalize_first=normalize_first)
    expected = block(X, MEMORY)
    changed = np.concatenate([X[:, :3], -X[:, 3:]], axis=1)
    np.testing.assert_allclose(block(changed, MEMORY)[:, :3], expected[:, :3], atol=1e-6)
    assert np.abs(np.asarray(block(changed, MEMORY)[:, 3:] - expected[:, 3:])).max() > 1e-2


def test_masked_memory_changes_nothing_and_unmasked_memory_does():
    """F02."""
    block = DecoderBlock(2, 16)
    expected = block(X, MEMORY, memory_mask=MASK)
    changed = np.where(MASK[..., None], MEMORY, 9).astype("float32")
    np.testing.assert_allclose(block(X, changed, memory_mask=MASK), expected, atol=1e-6)
    assert np.abs(np.asarray(block(X, changed) - expected)).max() > 1e-2


def test_carried_and_explicit_masks_agree():
    """F04: positional, by name, and in a functional model."""
    source, target = np.array([[4, 5, 6], [7, 0, 0]]), np.array([[2, 5, 6, 7, 8], [2, 3, 4, 0, 0]])
    embedding, block = PositionalEmbedding(11, D), DecoderBlock(2, 16)
    memory, x = embedding(source), embedding(target)
    output = block(x, memory)
    np.testing.assert_array_equal(block(x, memory=memory), output)
    np.testing.assert_array_equal(output._keras_mask, target != 0)
    plain_x, plain_memory = np.asarray(x), np.asarray(memory)
    explicit = block(plain_x, memory=plain_memory, inputs_mask=target != 0, memory_mask=source != 0)
    np.testing.assert_array_equal(explicit, output)
    np.testing.assert_array_equal(block(x, plain_memory, memory_mask=source != 0), output)
    assert np.abs(np.asarray(block(x, plain_memory) - output)).max() > 1e-3
    inputs = [keras.Input((None,), dtype="int32") for _ in range(2)]
    model = keras.Model(inputs, block(embedding(inputs[1]), embedding(inputs[0])))
    np.testing.assert_allclose(model.predict([source, target], verbose=0), output, atol=1e-6)


def test_forms_that_would_lose_the_memory_are_refused():
    """F04."""
    for call in (lambda block: block([X, MEMORY]), lambda block: block(X), lambda block: block(X, MEMORY[0])):
        with pytest.raises(ValueError, match=r"called as `layer\(inputs, memory\)`.*Received"):
            call(DecoderBlock(2, 16))
        built = DecoderBlock(2, 16)
        built(X, MEMORY)
        with pytest.raises(ValueError, match=r"called as `layer\(inputs, memory\)`.*Received"):
            call(built)


def test_attention_weights_come_as_a_triple_on_request():
    block = DecoderBlock(2, 16)
    outputs, weights, memory_weights = block(X, MEMORY, memory_mask=MASK, return_attention_scores=True)
    np.testing.assert_array_equal(outputs, block(X, MEMORY, memory_mask=MASK))
    assert weights.shape == (B, 2, T, T) and memory_weights.shape == (B, 2, T, S)
    assert (np.triu(np.asarray(weights), 1) == 0).all()
    assert (np.asarray(memory_weights)[1, :, :, 1:] == 0).all()


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("normalize_first", [False, True])
def test_steps_with_a_cache_equal_the_call_on_the_whole_target(fixed, normalize_first):
    block = DecoderBlock(2, 16, normalize_first=normalize_first, value_dim=3)
    expected, _, weights = block(X, MEMORY, memory_mask=MASK, return_attention_scores=True)
    cache = block.empty_cache(MEMORY, T + 1 if fixed else 0)
    for i in range(T):
        index = keras.ops.convert_to_tensor(i) if fixed else None
        outputs, step_weights, cache = block.step(X[:, i : i + 1], cache, index, memory_mask=MASK)
        assert isinstance(cache, DecoderCache)
        np.testing.assert_allclose(outputs[:, 0], expected[:, i], atol=1e-5)
        np.testing.assert_allclose(step_weights[:, :, 0], weights[:, :, i], atol=1e-6)


def test_hypotheses_of_a_beam_share_one_memory_and_follow_their_reordered_pasts():
    """Row by row equal to the call on each hypothesis' own past, after every reordering."""
    block, beam = DecoderBlock(2, 16), 3
    rng = np.random.default_rng(3)
    block.build(X.shape, MEMORY.shape)
    cache = block.empty_cache(MEMORY, beam_width=beam)
    memory_key, past = cache.memory.key, np.zeros((B * beam, 0, D), "float32")
    for _ in range(4):
        new = rng.normal(size=(B * beam, 1, D)).astype("float32")
        past = np.concatenate([past, new], axis=1)
        outputs, _, cache = block.step(new, cache, memory_mask=MASK)
        expected = block(past, MEMORY.repeat(beam, 0), memory_mask=MASK.repeat(beam, 0))
        np.testing.assert_allclose(outputs[:, 0], expected[:, -1], atol=1e-5)
        assert cache.memory.key is memory_key and memory_key.shape[0] == B
        order = np.concatenate([rng.integers(0, beam, beam) + beam * row for row in range(B)])
        target = type(cache.target)(*(keras.ops.take(part, order, axis=0) for part in cache.target))
        cache, past = cache._replace(target=target), past[order]


def test_width_that_no_head_count_divides_needs_key_dim():
    """F06."""
    with pytest.raises(ValueError, match=r"multiple of `num_heads`.*Received: width 30, num_heads=4"):
        DecoderBlock(4, 16)(np.zeros((1, 2, 30), "float32"), MEMORY[:1])


@pytest.mark.parametrize("beam", [1, 3])
def test_steps_that_know_the_beam_width_equal_those_that_find_it_out(beam):
    block, x = DecoderBlock(2, 16), np.repeat(X, beam, axis=0)
    block.build(X.shape, MEMORY.shape)
    cache = block.empty_cache(MEMORY, beam_width=beam)
    expected, weights, _ = block.step(x[:, :1], cache, memory_mask=MASK)
    for width in (beam, keras.ops.convert_to_tensor(beam)):
        found = block.step(x[:, :1], cache, memory_mask=MASK, beam_width=width)[:2]
        for one, other in zip(found, (expected, weights), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)
    with pytest.raises(ValueError, match="`beam_width` must be a whole number of at least 1. Received: beam_width=0"):
        block.step(x[:, :1], cache, memory_mask=MASK, beam_width=0)
