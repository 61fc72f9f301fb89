"""A model whose answers are known beforehand: the text again, and the options that came with it."""

import tensorflow as tf

MOST_BEAMS = 8


def export_echo(folder, **signatures):
    """Writes version 1 of a model with the inputs and outputs of a translator; or with other signatures."""
    module = tf.Module()
    signatures = signatures or {"serving_default": _default, "translate": _translate, "score": _score}
    specs = {
        name: [tf.TensorSpec([None], dtype, argument) for argument, dtype in function.__annotations__.items()]
        for name, function in signatures.items()
    }
    functions = {
        name: tf.function(function, input_signature=specs[name], autograph=False).get_concrete_function()
        for name, function in signatures.items()
    }
    tf.saved_model.save(module, str(folder / "1"), signatures=functions)
    return folder


def _default(text: tf.string):
    length = tf.strings.length(text)
    return {"translation": text, "score": -tf.cast(length, tf.float32), "truncated": length > 1000}


def _translate(
    text: tf.string,
    beam_size: tf.int32,
    n_best: tf.int32,
    length_penalty: tf.float32,
    max_length: tf.int32,
    target_prefix: tf.string,
):
    """Row k of the translations of a text says `prefix|text|beam size|max length|k`."""
    check = tf.debugging.Assert(
        tf.reduce_all(beam_size <= MOST_BEAMS), [f"`beam_size` must be at most {MOST_BEAMS}. Received:", beam_size]
    )
    with tf.control_dependencies([check]):
        numbers = tf.range(tf.reduce_max(n_best))
    words = [target_prefix, text, tf.as_string(beam_size), tf.as_string(max_length)]
    grid = tf.zeros([tf.size(text), 1], tf.int32) + numbers
    words = [tf.broadcast_to(word[:, None], tf.shape(grid)) for word in words]
    valid = grid < n_best[:, None]
    return {
        "translations": tf.where(valid, tf.strings.join([*words, tf.as_string(grid)], "|"), ""),
        "scores": tf.where(valid, -length_penalty[:, None] - tf.cast(grid, tf.float32), 0.0),
        "truncated": valid & (grid % 2 == 1),
        "count": n_best,
    }


def _score(text: tf.string, target: tf.string):
    length = tf.strings.length(target)
    return {"log_probability": -tf.cast(tf.strings.length(text), tf.float32), "length": length}
