"""tensorflow-text's SentencePiece tokenizer, made to outlive `tf.random.set_seed`."""

from __future__ import annotations

import hashlib

import tensorflow as tf

from keras_transformer.text.libraries import sentencepiece_op, tensorflow_text


class _SharedModel(tf.saved_model.experimental.TrackableResource):
    """The model as a TensorFlow resource with a name.

    tensorflow-text leaves it without one, and a nameless resource lives as long as the kernel that made it: seeding
    TensorFlow (`keras.utils.set_random_seed` does) clears the kernels, and the tokenizer is gone. The name is that of
    the content, so whoever meets a resource of that name may use it.
    """

    def __init__(self, model):
        super().__init__()
        name = f"sentencepiece_{hashlib.sha256(model).hexdigest()}"
        function = tf.function(lambda: sentencepiece_op(model=model, shared_name=name)).get_concrete_function()
        # An export makes the resource in two places, which call one function: it holds the model once. Behind a lambda,
        # since a function that is an attribute would be exported a third time.
        self._create = lambda: function()
        with tf.init_scope():  # Now, and not within the graph that asks for it first.
            self.resource_handle  # noqa: B018  The property makes the resource.

    def _create_resource(self):
        return self._create()


class GraphTokenizer(tensorflow_text.SentencepieceTokenizer):
    """See `tensorflow_text.SentencepieceTokenizer`; `model` is bytes, ids are int32."""

    def __init__(self, model: bytes):
        super().__init__(model, out_type=tf.int32)
        self._model_resource = _SharedModel(model)
