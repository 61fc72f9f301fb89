import keras
import numpy as np
import pytest

from keras_transformer.layers import AttentionCache, MultiHeadAttention
from tests import reference

B, T, S, D = 2, 5, 7, 8
CAUSAL = np.tril(np.ones((T, T), bool))
PADDED = np.array([[True] * 5 + [False] * 2, [True] * 3 + [False] * 4])
LEFT_PADDED = PADDED[:, ::-1]


def layer_for(*tensors, **arguments):
    layer = MultiHeadAttention(**{"num_heads": 2, "key_dim": 4, "bias_initializer": "normal", **arguments})
    layer.build(*[tensor.shape for tensor in tensors])
    return layer


@pytest.fixture
def query(rng):
    return rng.normal(size=(B, T, D)).astype("float32")


@pytest.fixture
def memory(rng):
    return rng.normal(size=(B, S, 6)).astype("float32")


@pytest.mark.parametrize("causal", [False, True])
def test_self_attention_is_the_papers_formula(query, causal):
    layer = layer_for(query)
    output, weights = layer(query, use_causal_mask=causal, return_attention_scores=True)
    expected = reference.multi_head_attention(layer, query, allowed=CAUSAL if causal else None)
    np.testing.assert_allclose(output, expected[0], atol=1e-5)
    np.testing.assert_allclose(weights, expected[1], atol=1e-6)


@pytest.mark.parametrize("mask", [None, PADDED, LEFT_PADDED])
def test_attention_to_another_sequence_is_the_papers_formula(query, memory, mask):
    layer = layer_for(query, memory, key_dim=3, value_dim=5)
    output, weights = layer(query, memory, value_mask=mask, return_attention_scores=True)
    allowed = None if mask is None else mask[:, None, :]
    expected = reference.multi_head_attention(layer, query, memory, allowed=allowed)
    np.testing.assert_allclose(output, expected[0], atol=1e-5)
    np.testing.assert_allclose(weights, expected[1], atol=1e-6)


def test_keys_of_their_own_are_the_papers_formula(query, memory):
    layer = layer_for(query, memory, memory)
    output = layer(query, memory, memory[:, ::-1], key_mask=PADDED)
    expected, _ = reference.multi_head_attention(layer, query, memory, memory[:, ::-1], PADDED[:, None, :])
    np.testing.assert_allclose(output, expected, atol=1e-5)


def test_return_type_depends_on_the_argument_alone(query):
    layer = layer_for(query)
    assert keras.ops.is_tensor(layer(query))
    for arguments in ({}, {"training": True}, {"mask": PADDED[:, :T]}):
        pair = layer(query, return_attention_scores=True, **arguments)
        assert isinstance(pair, tuple) and pair[0].shape == (B, T, D) and pair[1].shape == (B, 2, T, T)


def test_all_masks_apply_together(query):
    layer = layer_for(query)
    ours = np.random.default_rng(2).random((B, T, T)) < 0.7
    padding = PADDED[:, :T]
    _, weights = layer(query, mask=padding, attention_mask=ours, use_causal_mask=True, return_attention_scores=True)
    allowed = ours & padding[:, None, :] & CAUSAL
    assert ((np.asarray(weights) > 0) == allowed[:, None]).all()
    per_head = np.repeat(ours[:, None], 2, axis=1)
    np.testing.assert_array_equal(layer(query, attention_mask=per_head), layer(query, attention_mask=ours))


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16", "mixed_float16"], indirect=True)
def test_row_with_no_key_left_has_zero_weights_and_finite_gradients(policy, query):
    """F03."""
    import tensorflow as tf

    layer = layer_for(query)
    mask = np.array([[True] * T, [False] * T])
    x = tf.convert_to_tensor(query)
    with tf.GradientTape() as tape:
        tape.watch(x)
        output, weights = layer(x, mask=mask, return_attention_scores=True)
        loss = tf.reduce_sum(tf.cast(output, "float32") ** 2)
    gradients = tape.gradient(loss, [x, *layer.trainable_variables])
    assert (np.asarray(weights)[1] == 0).all()
    np.testing.assert_allclose(np.asarray(weights, "float32")[0].sum(-1), 1, atol=1e-2)
    assert all(np.isfinite(np.asarray(gradient, "float32")).all() for gradient in gradients)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"], indirect=True)
def test_scores_of_twenty_thousand_are_safe_in_half_precision(policy):
    """F03: pads weigh exactly 0 and real positions come within 1e-2 of float32."""
    query = np.random.default_rng(1).choice([-1.0, 1.0], size=(B, T, D)).astype("float32")
    half, full = layer_for(query, bias_initializer="zeros"), layer_for(query, bias_initializer="zeros", dtype="float32")
    kernel, *rest = [np.asarray(weight) for weight in half.get_weights()]
    kernel = np.sign(kernel) * 1.0  # Exact in half precision, so that only the arithmetic differs.
    kernel[:, : 2 * D] *= 32.0
    for layer in (half, full):
        layer.set_weights([kernel, *rest])
    projected = query @ kernel[:, : 2 * D]
    heads = projected.reshape(B, T, 2, 2, 4)
    scores = np.einsum("bthk,bshk->bhts", heads[:, :, 0], heads[:, :, 1]) / 2
    assert scores.max() > 1e4 and scores.min() < -1e4
    mask = PADDED[:, :T]
    (_, weights), (_, expected) = (layer(query, mask=mask, return_attention_scores=True) for layer in (half, full))
    weights = np.asarray(weights, "float32")
    assert np.isfinite(weights).all()
    assert (weights[~np.broadcast_to(mask[:, None, None, :], weights.shape)] == 0).all()
    np.testing.assert_allclose(weights, expected, atol=1e-2)


def carried(x, mask):
    """`x` as it comes out of a Keras layer that makes a mask."""
    x = keras.ops.convert_to_tensor(x)
    x._keras_mask = keras.ops.convert_to_tensor(mask)
    return x


def test_carried_and_explicit_masks_agree(query, memory):
    """F04."""
    layer = layer_for(query)
    mask = PADDED[:, :T]
    expected = layer(query, mask=mask)
    assert np.abs(np.asarray(expected) - np.asarray(layer(query))).max() > 1e-3
    np.testing.assert_array_equal(layer(carried(query, mask)), expected)
    np.testing.assert_array_equal(layer(query, query_mask=mask), expected)
    everything = np.ones((B, T, T), bool)  # A second tensor argument changes the name under which Keras hands masks.
    np.testing.assert_array_equal(layer(carried(query, mask), attention_mask=everything), expected)
    layer = layer_for(query, memory)
    expected = layer(query, memory, value_mask=PADDED)
    np.testing.assert_array_equal(layer(query, carried(memory, PADDED)), expected)
    np.testing.assert_array_equal(layer(carried(query, mask), carried(memory, PADDED)), expected)
    np.testing.assert_array_equal(layer(carried(query, mask), carried(memory, PADDED))._keras_mask, mask)


def test_padding_of_the_other_sequence_changes_nothing(query, memory):
    """F02: lengths are independent, equal or not."""
    layer = layer_for(query, memory)
    expected = layer(query, memory[:, :T], value_mask=PADDED[:, :T])
    longer = np.concatenate([memory[:, :T], np.full((B, 20, 6), 9.0, "float32")], axis=1)
    mask = np.concatenate([PADDED[:, :T], np.zeros((B, 20), bool)], axis=1)
    np.testing.assert_allclose(layer(query, longer, value_mask=mask), expected, atol=1e-6)


def test_dropout_acts_on_the_weights_in_training_only(query):
    layer = layer_for(query, dropout=0.5)
    expected, weights = layer(query, return_attention_scores=True)
    dropped, same_weights = layer(query, training=True, return_attention_scores=True)
    np.testing.assert_array_equal(layer(query, training=False), expected)
    np.testing.assert_array_equal(weights, same_weights)
    assert np.abs(np.asarray(dropped) - np.asarray(expected)).max() > 1e-3


@pytest.mark.parametrize("steps", [[1] * T, [2, 1, 2]])
@pytest.mark.parametrize("fixed", [False, True])
def test_step_with_a_cache_equals_the_causal_call(query, fixed, steps):
    layer = layer_for(query, value_dim=3)
    expected, all_weights = layer(query, use_causal_mask=True, return_attention_scores=True)
    cache, start = layer.empty_cache(B, T + 2 if fixed else 0), 0
    for count in steps:
        index = keras.ops.convert_to_tensor(start) if fixed else None
        output, weights, cache = layer.step(query[:, start : start + count], cache, index)
        end = start + count
        assert isinstance(cache, AttentionCache)
        assert cache.key.shape == (B, 2, T + 2 if fixed else end, 4)
        np.testing.assert_allclose(output, expected[:, start:end], atol=1e-5)
        np.testing.assert_allclose(weights[..., :end], all_weights[:, :, start:end, :end], atol=1e-6)
        start = end


def test_step_heeds_the_mask_of_a_padded_prefix(query):
    layer = layer_for(query)
    mask = LEFT_PADDED[:, -T:]
    expected = layer(query, mask=mask, use_causal_mask=True)
    cache = layer.empty_cache(B)
    for i in range(T):
        output, _, cache = layer.step(query[:, i : i + 1], cache, mask=mask[:, : i + 1])
        np.testing.assert_allclose(output[:, 0], expected[:, i], atol=1e-5)


def test_fixed_cache_compiles_under_xla_once_for_all_steps(query):
    import tensorflow as tf

    layer = layer_for(query)
    step = tf.function(lambda x, cache, index: layer.step(x, cache, index)[::2], jit_compile=True)
    expected = layer(query, use_causal_mask=True)
    cache = layer.empty_cache(B, T)
    for i in range(T):
        output, cache = step(tf.constant(query[:, i : i + 1]), cache, tf.constant(i))
        np.testing.assert_allclose(output[:, 0], expected[:, i], atol=1e-5)
    assert step.experimental_get_tracing_count() == 1


def test_projected_memory_serves_many_calls_and_beams(query, memory):
    layer = layer_for(query, memory, value_dim=3)
    cache = layer.project(memory)
    output, weights = layer.attend(query, cache, PADDED)
    expected = layer(query, memory, value_mask=PADDED, return_attention_scores=True)
    np.testing.assert_allclose(output, expected[0], atol=1e-6)
    np.testing.assert_allclose(weights, expected[1], atol=1e-6)
    assert cache.key.shape == (B, 2, S, 4) and cache.value.shape == (B, 2, S, 3)


def test_user_errors_say_what_was_expected_and_received(query, memory):
    for arguments in ({"num_heads": 0}, {"key_dim": -1}, {"value_dim": 1.5}, {"dropout": 1.0}, {"use_bias": "no"}):
        with pytest.raises(ValueError, match=f"`{next(iter(arguments))}`.*Received"):
            layer_for(query, **arguments)
    with pytest.raises(ValueError, match=r"\[batch, length, width\].*Received"):
        MultiHeadAttention(2, 4)(query[0])
    layer = layer_for(query)
    with pytest.raises(ValueError, match="kinds of arguments it was built for"):
        layer(query, memory)
    with pytest.raises(ValueError, match=r"Self-attention takes `mask`.*Received: `value_mask`"):
        layer(query, value_mask=PADDED[:, :T])
    with pytest.raises(ValueError, match=r"takes `value_mask`. Received: `mask`"):
        layer_for(query, memory)(query, memory, mask=PADDED)
    with pytest.raises(ValueError, match="`key` needs `value`"):
        MultiHeadAttention(2, 4)(query, key=memory)
    with pytest.raises(ValueError, match="not built"):
        MultiHeadAttention(2, 4).step(query, None)


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("mask", (B, T + 1)),
        ("mask", (B + 1, T)),
        ("mask", (B, 1)),
        ("mask", (T,)),
        ("query_mask", (B, T, 1)),
        ("attention_mask", (T, T)),
        ("attention_mask", (B, T + 1, T)),
        ("attention_mask", (B, 3, T, T)),
        ("attention_mask", (B, T, 1)),
    ],
)
def test_mask_of_another_shape_is_refused_when_called_and_when_a_model_is_made(query, symbolic, name, shape):
    layer = layer_for(query)
    mask = np.ones(shape, bool)
    if symbolic:
        query, mask = keras.KerasTensor(query.shape), keras.KerasTensor(shape, "bool")
    with pytest.raises(ValueError, match=r"mask`? must be boolean, of shape \[2, .*Received: bool of shape"):
        layer(query, **{name: mask})


def test_additive_mask_is_refused(query):
    with pytest.raises(ValueError, match=r"must be boolean.*Received: float32"):
        layer_for(query)(query, attention_mask=np.where(CAUSAL, 0.0, -1e9)[None].astype("float32"))


def test_explicit_mask_goes_before_the_carried_one(query):
    layer = layer_for(query)
    everything = np.ones((B, T), bool)
    for name in ("mask", "query_mask"):
        np.testing.assert_array_equal(layer(carried(query, PADDED[:, :T]), **{name: everything}), layer(query))


def test_masks_may_be_given_by_position_in_a_functional_model(query, memory):
    inputs, mask = keras.Input((T, D)), keras.Input((T,), dtype="bool")
    layer = layer_for(query)
    model = keras.Model([inputs, mask], layer(inputs, None, None, mask))
    np.testing.assert_allclose(
        model.predict([query, PADDED[:, :T]], verbose=0), layer(query, mask=PADDED[:, :T]), atol=1e-6
    )


@pytest.mark.parametrize(("length", "queries", "index"), [(3, 1, 3), (3, 2, 2), (3, 1, -1), (0, 1, 0)])
def test_index_outside_of_a_cache_is_refused(query, length, queries, index):
    layer = layer_for(query)
    for start in (index, keras.ops.convert_to_tensor(index)):
        with pytest.raises(ValueError, match=f"`index` must leave room for {queries} queries.*Received: index={index}"):
            layer.step(query[:, :queries], layer.empty_cache(B, length), start)


def test_cache_methods_refuse_the_other_kind_of_layer(query, memory):
    to_self, to_memory = layer_for(query), layer_for(query, memory)
    for call in (
        lambda: to_self.project(memory),
        lambda: to_self.attend(query, to_memory.project(memory)),
        lambda: to_memory.empty_cache(B),
        lambda: to_memory.step(query, to_self.empty_cache(B)),
    ):
        with pytest.raises(ValueError, match="Received"):
            call()


def test_sequence_of_no_tokens_gives_an_output_of_no_tokens(query):
    layer = layer_for(query)
    assert layer(query[:, :0]).shape == (B, 0, D)
    assert layer(query[:0]).shape == (0, T, D)
