"""Export: trained models for TensorFlow Serving and for other engines."""

from keras_transformer.export.ctranslate2 import export_ctranslate2
from keras_transformer.export.limits import ServingLimits

__all__ = ["ServingLimits", "export_ctranslate2"]
