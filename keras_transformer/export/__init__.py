"""Export: trained models for other engines."""

from keras_transformer.export.ctranslate2 import export_ctranslate2

__all__ = ["export_ctranslate2"]
