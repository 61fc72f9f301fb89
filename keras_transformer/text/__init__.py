"""Text to token ids and back. Needs tensorflow-text and sentencepiece; the rest of the package does not."""

from keras_transformer.text.tokenizer import Tokenizer

__all__ = ["Tokenizer"]
