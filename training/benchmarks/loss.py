"""Times a training step of the `tiny` model with our loss and with the obvious ways to write it.

Run it with `.venv/bin/python training/benchmarks/loss.py`. All variants do the same work in the same run, in turn.
"""

import os
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf

from keras_transformer.losses import MaskedCrossentropy
from keras_transformer.metrics import MaskedAccuracy, Perplexity
from keras_transformer.models import Transformer, TransformerConfig

VOCABULARY, BATCH, LENGTH, STEPS, ROUNDS = 8_000, 170, 24, 4, 5
SMOOTHING = 0.1


class Obvious(keras.losses.Loss):
    """Smoothed cross-entropy of TensorFlow's own pieces, each with its own gradient."""

    def call(self, y_true, y_pred):
        """[B,T] labels and [B,T,V] logits -> [B,T]."""
        labels = tf.cast(y_true, tf.int32)
        likelihood = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=y_pred)
        uniform = tf.reduce_logsumexp(y_pred, axis=-1) - tf.reduce_mean(y_pred, axis=-1)
        return (1 - SMOOTHING) * likelihood + SMOOTHING * uniform


class WithLogits(Transformer):
    """A model that makes its logits: what derives from `Transformer` might have use for them."""


OURS, METRICS = MaskedCrossentropy(SMOOTHING), (MaskedAccuracy, Perplexity)
VARIANTS = {
    "MaskedCrossentropy, smoothed": (Transformer, OURS, ()),
    "the same with MaskedAccuracy and Perplexity": (Transformer, OURS, METRICS),
    "MaskedCrossentropy of logits, smoothed": (WithLogits, OURS, ()),
    "the same with MaskedAccuracy and Perplexity, of logits": (WithLogits, OURS, METRICS),
    "TensorFlow's pieces, smoothed": (Transformer, Obvious(), ()),
    "Keras' SparseCategoricalCrossentropy, not smoothed": (
        Transformer,
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        (),
    ),
}


def make(cls, loss, metrics):
    """A compiled model and one batch of random ids, all of them real tokens."""
    keras.utils.set_random_seed(1)
    model = cls(TransformerConfig.from_preset("tiny", vocabulary_size=VOCABULARY))
    model.compile("adam", loss, metrics=[metric() for metric in metrics])
    ids = np.random.default_rng(1).integers(3, VOCABULARY, (2, BATCH, LENGTH))
    return model, ({"source_ids": ids[0], "target_ids": ids[1]}, ids[1])


def main():
    """Prints the median and the range of target tokens per second of each variant, and its ratio to the first."""
    models = {name: make(*parts) for name, parts in VARIANTS.items()}
    rates = {name: [] for name in models}
    for model, batch in models.values():
        model.train_on_batch(*batch)
    for _ in range(ROUNDS):
        for name, (model, batch) in models.items():
            started = time.perf_counter()
            for _ in range(STEPS):
                model.train_on_batch(*batch)
            rates[name].append(STEPS * BATCH * LENGTH / (time.perf_counter() - started))
    first = statistics.median(next(iter(rates.values())))
    for name, values in rates.items():
        median = statistics.median(values)
        print(f"{median:8,.0f} tokens/s ({min(values):,.0f} to {max(values):,.0f})  {median / first:.2f}  {name}")


if __name__ == "__main__":
    main()
