"""Subword sampling: other pieces for the same words at every pass over a corpus."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from keras_transformer._checks import check_above_zero, check_positive, check_rate


class SubwordSampling:
    """Cuts the sentences of a batch into pieces anew, at random (Kudo, 2018; Provilkov et al., 2020).

    For training only. Within a process what a pair becomes depends on its text and its seed alone; another process
    draws other pieces, see `Tokenizer.sample`: a training that goes on after a break is not the same to the digit.

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
        self.alpha = check_rate("alpha", check_above_zero("alpha", alpha))
        self.max_length = check_positive("max_length", max_length)

    def resample(
        self, pairs: Sequence[tuple[list[int], list[int]]], seeds: np.ndarray, longest: int | None = None
    ) -> list[np.ndarray]:
        """Source and target of other pieces, int32 [B,S] and [B,T], for pairs of ids with eos.

        Args:
            pairs: B pairs of lists of ids.
            seeds: The seed of each pair, integers [B].
            longest: A limit below `max_length` for these pairs.
        """
        limit = min(longest or self.max_length, self.max_length)
        sides = []
        for side, tokenizer in enumerate(self._tokenizers):
            usual = [pair[side] for pair in pairs]
            rows = [self._sample(tokenizer, ids, int(seed) + side) for ids, seed in zip(usual, seeds, strict=True)]
            rows = [row if len(row) <= limit else ids for row, ids in zip(rows, usual, strict=True)]
            padded = np.zeros((len(rows), max(map(len, rows), default=0)), "int32")
            for i, row in enumerate(rows):
                padded[i, : len(row)] = row
            sides.append(padded)
        return sides

    def _sample(self, tokenizer, ids, seed):
        return [*tokenizer.sample([tokenizer.decode(ids)], self.alpha, seed)[0], tokenizer.eos_id]
