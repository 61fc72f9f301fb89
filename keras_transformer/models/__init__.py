"""The encoder-decoder model and its configuration."""

from keras_transformer.models.config import TransformerConfig
from keras_transformer.models.transformer import Transformer, transformer

__all__ = ["Transformer", "TransformerConfig", "transformer"]
