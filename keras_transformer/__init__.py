"""The Transformer of "Attention Is All You Need" (Vaswani et al., 2017) for Keras 3 on TensorFlow."""

from keras_transformer import layers, losses, metrics, models, schedules
from keras_transformer._version import __version__

__all__ = ["__version__", "layers", "losses", "metrics", "models", "schedules"]
