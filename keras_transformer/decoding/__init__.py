"""Decoding: from texts to translations."""

from keras_transformer.decoding.options import SearchOptions
from keras_transformer.decoding.results import Attention, ForcedScore, Hypothesis, Translation
from keras_transformer.decoding.translator import Translator

__all__ = ["Attention", "ForcedScore", "Hypothesis", "SearchOptions", "Translation", "Translator"]
