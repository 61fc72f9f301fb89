"""Parallel text in files to checked sentence pairs."""

from keras_transformer.data.corpus import ParallelCorpus
from keras_transformer.data.report import DataReport

__all__ = ["DataReport", "ParallelCorpus"]
