"""Trains a small model to spell words backwards, on two cores in about two minutes, and shows what it learnt.

Run it with `make demo`. The words are random letters, so a word of the held-out set was hardly ever in training.
"""

import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np

from keras_transformer.losses import MaskedCrossentropy
from keras_transformer.metrics import MaskedAccuracy
from keras_transformer.models import TransformerConfig, transformer
from keras_transformer.schedules import InverseSquareRootSchedule

BOS, EOS, FIRST_LETTER = 2, 3, 4
LONGEST = 8


def make_words(count, rng):
    """Source ids, target ids that begin with BOS, labels that end with EOS: [count,LONGEST] and twice one longer."""
    source = np.zeros((count, LONGEST), "int32")
    target = np.zeros((count, LONGEST + 1), "int32")
    labels = np.zeros((count, LONGEST + 1), "int32")
    for i, length in enumerate(rng.integers(3, LONGEST + 1, count)):
        word = rng.integers(FIRST_LETTER, FIRST_LETTER + 26, length)
        source[i, :length] = word
        target[i, : length + 1] = [BOS, *word[::-1]]
        labels[i, : length + 1] = [*word[::-1], EOS]
    return {"source_ids": source, "target_ids": target}, labels


def spell(ids):
    """The letters of a row of ids, up to EOS or padding."""
    letters = ""
    for token in ids:
        if token < FIRST_LETTER:
            break
        letters += chr(ord("a") + int(token) - FIRST_LETTER)
    return letters


def decode(model, source):
    """Greedy decoding, the simplest loop there is: the likeliest next token, [B,S] -> [B,LONGEST+1]."""
    target = np.zeros((len(source), LONGEST + 2), "int32")
    target[:, 0] = BOS
    for step in range(LONGEST + 1):
        logits = model.predict({"source_ids": source, "target_ids": target[:, :-1]}, verbose=0)
        target[:, step + 1] = logits[:, step].argmax(axis=-1)
    return target[:, 1:]


def main():
    """Trains, decodes the held-out words, prints."""
    keras.utils.set_random_seed(1)
    rng = np.random.default_rng(1)
    train, held_out = make_words(20_000, rng), make_words(1_000, rng)
    config = TransformerConfig(
        vocabulary_size=30, encoder_layers=2, decoder_layers=2, model_dim=64, intermediate_dim=128, num_heads=4
    )
    model = transformer(config)
    model.compile(
        optimizer=keras.optimizers.Adam(InverseSquareRootSchedule(3e-3, warmup_steps=300), beta_2=0.98),
        loss=MaskedCrossentropy(label_smoothing=0.1),
        metrics=[MaskedAccuracy()],
    )
    started = time.perf_counter()
    model.fit(*train, validation_data=held_out, batch_size=128, epochs=6, verbose=2)
    print(f"\n{model.count_params():,} parameters, trained in {time.perf_counter() - started:.0f} seconds")

    source = held_out[0]["source_ids"]
    words, answers = [spell(row) for row in source], [spell(row) for row in decode(model, source)]
    right = np.mean([answer == word[::-1] for word, answer in zip(words, answers, strict=True)])
    print(f"{right:.1%} of {len(words):,} held-out words spelt backwards without a fault, for example:")
    for word, answer in list(zip(words, answers, strict=True))[:5]:
        print(f"  {word:>{LONGEST}} -> {answer}")


if __name__ == "__main__":
    main()
