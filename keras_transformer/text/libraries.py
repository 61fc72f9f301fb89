"""Imports the text libraries, or says in one message which versions are needed."""

from __future__ import annotations

import importlib.metadata

_NEEDED = "`pip install 'keras_transformer[text]'` brings those that fit: tensorflow 2.21, tensorflow-text 2.21.1."


def _version(distribution):
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


try:
    import sentencepiece
    import tensorflow_text
    from tensorflow_text.python.ops.sentencepiece_tokenizer import gen_sentencepiece_tokenizer
except Exception as error:  # The loader of a wheel made for another TensorFlow raises what it likes.
    names = ("tensorflow", "tensorflow-text", "sentencepiece")
    found = ", ".join(f"{name} {_version(name)}" for name in names)
    raise ImportError(f"The tokenizer needs tensorflow-text and sentencepiece. {_NEEDED} Received: {found}") from error

sentencepiece_op = gen_sentencepiece_tokenizer.sentencepiece_op

__all__ = ["sentencepiece", "sentencepiece_op", "tensorflow_text"]
