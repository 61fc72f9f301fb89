"""What a `Translator` gives."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np

from keras_transformer.decoding.texts import join_lines


@dataclasses.dataclass(frozen=True)
class Hypothesis:
    """One translation of a text.

    Attributes:
        text: The translation.
        score: Its log-probability divided by the length penalty; of a text of several lines the sum over them. NaN with
            `return_scores=False`.
        truncated: Whether it ended at the limit of its length, or its source was longer than the model has positions.
        token_ids: Its tokens, eos included where it ended; of a text of several lines, those of all of them.
    """

    text: str
    score: float
    truncated: bool
    token_ids: tuple[int, ...] = ()

    def __str__(self):
        return self.text


@dataclasses.dataclass(frozen=True)
class Translation(Hypothesis):
    """The best translation of a text.

    Attributes:
        n_best: The best and those that come after, as many as there are of the `n_best` asked for. Of a text of several
            lines, the k-th is made of the k-th of each line (the last, where a line has fewer).
    """

    n_best: tuple[Hypothesis, ...] = ()


@dataclasses.dataclass(frozen=True)
class ForcedScore:
    """What a model says of a given translation.

    Attributes:
        log_probability: Sum of the tokens' log-probabilities, eos included, before any length penalty.
        tokens: The T tokens as SentencePiece writes them, eos included.
        token_log_probabilities: float32 [T].
    """

    log_probability: float
    tokens: tuple[str, ...]
    token_log_probabilities: np.ndarray


@dataclasses.dataclass(frozen=True)
class Attention:
    """Attention of a translation to its source.

    Attributes:
        source_tokens: The S source tokens, eos included.
        target_tokens: The T target tokens, eos included.
        weights: float32 [N,H,T,S], for N decoder blocks of H heads: row t is what the model attended to as it chose
            target token t.
    """

    source_tokens: tuple[str, ...]
    target_tokens: tuple[str, ...]
    weights: np.ndarray


def joined(lines: Sequence[Sequence[Hypothesis]], ends: Sequence[str]) -> Translation:
    """The translation of a text from the hypotheses of its lines, and what stands between these."""
    n_best = tuple(lines[0]) if len(lines) == 1 else tuple(_joined_hypotheses(lines, ends))
    best = n_best[0]
    return Translation(best.text, best.score, best.truncated, best.token_ids, n_best)


def _joined_hypotheses(lines, ends):
    for k in range(max(map(len, lines))):
        parts = [line[min(k, len(line) - 1)] for line in lines]
        yield Hypothesis(
            join_lines([part.text for part in parts], ends),
            sum(part.score for part in parts),
            any(part.truncated for part in parts),
            tuple(itertools.chain.from_iterable(part.token_ids for part in parts)),
        )
