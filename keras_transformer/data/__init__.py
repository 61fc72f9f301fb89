"""Parallel text in files to checked sentence pairs, and pairs to batches for `model.fit`."""

from keras_transformer.data.batches import TokenBatches
from keras_transformer.data.case import with_case_variants
from keras_transformer.data.corpus import ParallelCorpus
from keras_transformer.data.public import PUBLIC_DATASETS, PublicDataset, dataset_files
from keras_transformer.data.report import DataReport
from keras_transformer.data.subwords import SubwordSampling
from keras_transformer.data.tensorflow_datasets import TensorFlowDatasetsCorpus
from keras_transformer.data.tokenized import TokenizedCorpus

__all__ = [
    "PUBLIC_DATASETS",
    "DataReport",
    "ParallelCorpus",
    "PublicDataset",
    "SubwordSampling",
    "TensorFlowDatasetsCorpus",
    "TokenBatches",
    "TokenizedCorpus",
    "dataset_files",
    "with_case_variants",
]
