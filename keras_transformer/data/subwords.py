"""Subword sampling: other pieces for the same words at every pass over a corpus."""

from __future__ import annotations

import numpy as np

from keras_transformer._checks import check_above_zero


class SubwordSampling:
    """Cuts the sentences of a batch into pieces anew, at random (Kudo, 2018; Provilkov et al., 2020).

    For training only, and repeatable: what a batch becomes depends on its number and the seed of the batches.

    Args:
        source_tokenizer: A `Tokenizer`.
        target_tokenizer: The target side's own; None where both sides share one.
        alpha: See `Tokenizer.sample`.
        max_length: Sentences that come out longer, eos counted, keep their usual pieces.

    Raises:
        ValueError: If `alpha` is not between 0 and 1.
    """

    def __init__(self, source_tokenizer, target_tokenizer=None, alpha: float = 0.1, max_length: int = 256):
        self._tokenizers = (source_tokenizer, target_tokenizer or source_tokenizer)
        self.alpha, self.max_length = check_above_zero("alpha", alpha), max_length

    def resample(self, pairs, seed) -> list[np.ndarray]:
        """Source and target of other pieces, int32 [B,S] and [B,T], for pairs of ids with eos.

        Args:
            pairs: B pairs of lists of ids.
            seed: Integers that say which sample.
        """
        state = int(np.random.SeedSequence([part % 2**32 for part in seed]).generate_state(1)[0])
        sides = []
        for side, tokenizer in enumerate(self._tokenizers):
            usual = [pair[side] for pair in pairs]
            texts = [tokenizer.decode(ids) for ids in usual]
            rows = [[*ids, tokenizer.eos_id] for ids in tokenizer.sample(texts, self.alpha, seed=state + side)]
            rows = [row if len(row) <= self.max_length else ids for row, ids in zip(rows, usual, strict=True)]
            padded = np.zeros((len(rows), max(map(len, rows), default=0)), "int32")
            for i, row in enumerate(rows):
                padded[i, : len(row)] = row
            sides.append(padded)
        return sides
