"""Tokens per second of `model.fit` fed by `TokenBatches` and fed the same batches from memory.

Run it with `.venv/bin/python training/benchmarks/pipeline.py`. Model `tiny`, vocabulary 8,000, sentences of the
embedded phrasebook two by two; both ways train on the same batches, in turn.
"""

import os
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import tensorflow as tf

from keras_transformer.cli import keep_freed_memory
from keras_transformer.data import SubwordSampling, TokenBatches, TokenizedCorpus
from keras_transformer.data.phrasebook import phrasebook
from keras_transformer.losses import MaskedCrossentropy
from keras_transformer.models import TransformerConfig, transformer
from keras_transformer.text import Tokenizer

VOCABULARY, BATCH_TOKENS, STEPS, ROUNDS = 8_000, 4_096, 15, 5


def from_memory(batches):
    """A data set of batches that are there already."""
    kept = list(zip(range(STEPS), batches.as_numpy_iterator(), strict=False))
    return (
        tf.data.Dataset.from_generator(lambda: (batch for _, batch in kept), output_signature=batches.element_spec)
        .prefetch(8)
        .with_options(batches.options())
    )


def ways_to_feed():
    """The data sets to compare, by name: each way after the same batches in memory."""
    pairs = phrasebook("fr", "train")
    pairs = [tuple(" ".join(texts) for texts in zip(*pairs[i : i + 2], strict=True)) for i in range(len(pairs) - 1)]
    tokenizer = Tokenizer.train((text for pair in pairs for text in pair), 2_500, "bpe")
    corpus = TokenizedCorpus.from_pairs(pairs, tokenizer)
    batches = TokenBatches(corpus, BATCH_TOKENS, seed=1)
    sampled = TokenBatches(corpus, BATCH_TOKENS, seed=1, subword_sampling=SubwordSampling(tokenizer, alpha=0.1))
    return {
        "batches in memory": from_memory(batches.dataset()),
        "TokenBatches": batches.dataset(),
        "batches in memory, subword sampling": from_memory(sampled.dataset()),
        "TokenBatches, subword sampling": sampled.dataset(),
    }


def main():
    """Prints the tokens per second of every round, then the medians and their ratios to the batches in memory."""
    keep_freed_memory()  # As training has it; else the kernel's page faults are what is timed.
    ways = ways_to_feed()
    keras.utils.set_random_seed(1)
    model = transformer(TransformerConfig.from_preset("tiny", VOCABULARY))
    model.compile("adam", MaskedCrossentropy(0.1))
    rates = {name: [] for name in ways}
    for number in range(ROUNDS + 1):
        for name, dataset in ways.items():
            started = time.perf_counter()
            model.fit(dataset, steps_per_epoch=STEPS, verbose=0, shuffle=False)
            rate = model.trained_tokens / (time.perf_counter() - started)
            if number:  # The first batches of each way are traced, and its pages come for the first time.
                rates[name].append(rate)
            print(f"round {number or 'to warm up'}: {name:<38} {rate:>7,.0f} tokens/s", flush=True)
    for number, (name, values) in enumerate(rates.items()):
        if number % 2 == 0:
            base = statistics.median(values)
        median = statistics.median(values)
        spread = f"{min(values):,.0f} to {max(values):,.0f}"
        print(f"{name:<38} {median:>7,.0f} tokens/s ({spread}), {median / base:.2f} of memory's")


if __name__ == "__main__":
    main()
