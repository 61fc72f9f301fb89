"""The options of a translation, checked."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from keras_transformer._checks import (
    check_above_zero,
    check_bool,
    check_choice,
    check_integer,
    check_positive,
    is_number,
)
from keras_transformer.decoding.constraints import EOS, RowOptions

# One for all texts, or a list with one for each.
PER_TEXT = ("beam_size", "n_best", "length_penalty", "max_length", "target_prefix")
_LENGTH_PENALTY_FORMS = ("gnmt", "power")
_SAMPLERS = ("random", "top_k", "top_p")
# Tokens, hypotheses, n-grams: more than any search has a use for.
_MOST = 10_000


@dataclasses.dataclass(frozen=True)
class SearchOptions:
    """How a translation is searched for. `Translator.translate` takes the fields as keyword arguments.

    Lengths count tokens and the end of the sentence (eos). `beam_size`, `n_best`, `length_penalty`, `max_length` and
    `target_prefix` may be lists, with one entry for each text.

    Attributes:
        beam_size: Hypotheses kept at each step. 1 is greedy search.
        n_best: Translations wanted of each text, at most `beam_size`; with a `sampler`, any number. Those that ended
            come before those that the limit cut, and then the better score counts.
        length_penalty: Alpha, from 0 to 10; 0 for none, which favours short translations.
        length_penalty_form: A hypothesis of log-probability log P and length |Y| has the score log P / lp, where lp is
            ((5 + |Y|) / 6)^alpha with `"gnmt"` (Wu et al., 2016, formula 14) and |Y|^alpha with `"power"`.
        max_length: Most tokens. None for 50 more than the source has (section 6.1), and the prefix has, and never more
            than the model has positions. A translation that ends there is marked as truncated.
        min_length: Fewest tokens. A translation that may not go on ends before, where all else is banned.
        target_prefix: Text that the translation begins with, spaces tidied as the tokenizer does; of a text of several
            lines the first does. A `max_length` cuts it, too.
        early_stopping: Whether to stop a sentence as soon as `beam_size` hypotheses are finished, which is faster and
            may miss the best. Else search stops when no other can come among the `n_best`.
        return_scores: Whether translations have scores. Without, `score` is NaN, and greedy search of one model
            computes none, which is faster (but for texts that `jit_compile` is for).
        no_repeat_ngram_size: N of the n-grams of tokens that do not come twice; 0 for none.
        repetition_penalty: What the log-probability of a token that came before is multiplied with (Keskar et al.,
            2019). Scores are without it.
        banned_tokens: Ids that never come, besides pad, unk and bos.
        beam_groups: Groups that the beam is divided into, for translations that differ (Vijayakumar et al., 2016).
            `beam_size` must be a multiple. What several groups find comes once, so there may be fewer than `n_best`.
        diversity_penalty: What a token costs for each group before that chose it in the same step. Scores are without.
        sampler: None to search; `"random"`, `"top_k"` or `"top_p"` to draw each token with keras-nlp's sampler.
        temperature: What logits are divided by before a token is drawn, from 0.001 to 1000.
        top_k: Tokens to draw among, for `"top_k"`.
        top_p: Probability of the tokens to draw among (Holtzman et al., 2020), for `"top_p"`.
        seed: Seed of the sampler. The same call with the same seed gives the same translations.

    Raises:
        ValueError: If an option is out of range or options do not fit together; the message names the option.

    Example:
        ```python
        from keras_transformer.decoding import SearchOptions

        SearchOptions(beam_size=5, n_best=5, length_penalty=1.0)
        SearchOptions(beam_size=[1, 4], target_prefix=["", "Ich"])  # Of two texts.
        ```
    """

    beam_size: int | Sequence[int] = 4
    n_best: int | Sequence[int] = 1
    length_penalty: float | Sequence[float] = 0.6
    length_penalty_form: str = "gnmt"
    max_length: int | Sequence[int | None] | None = None
    min_length: int = 0
    target_prefix: str | Sequence[str] = ""
    early_stopping: bool = False
    return_scores: bool = True
    no_repeat_ngram_size: int = 0
    repetition_penalty: float = 1.0
    banned_tokens: Sequence[int] = ()
    beam_groups: int = 1
    diversity_penalty: float = 0.5
    sampler: str | None = None
    temperature: float = 1.0
    top_k: int = 10
    top_p: float = 0.9
    seed: int = 0

    def __post_init__(self):
        checks = {
            "beam_size": _check_count,
            "n_best": _check_count,
            "length_penalty": lambda name, value: _check_range(name, value, 0, 10),
            "max_length": lambda name, value: None if value is None else _check_count(name, value),
            "target_prefix": _check_prefix,
        }
        for name, check in checks.items():
            self._set(name, self._each(name, check))
        for name in ("min_length", "no_repeat_ngram_size"):
            self._set(name, _check_not_negative(name, getattr(self, name), _MOST))
        self._set("seed", _check_not_negative("seed", self.seed, 2**63 - 1))
        self._set("diversity_penalty", _check_range("diversity_penalty", self.diversity_penalty, 0, 1e6))
        self._set("temperature", _check_range("temperature", self.temperature, 1e-3, 1e3))
        self._set("repetition_penalty", _check_range("repetition_penalty", self.repetition_penalty, 1e-3, 1e3))
        for name in ("beam_groups", "top_k"):
            self._set(name, check_positive(name, getattr(self, name)))
        self._set("top_p", check_above_zero("top_p", self.top_p))
        check_choice("length_penalty_form", self.length_penalty_form, _LENGTH_PENALTY_FORMS)
        for name in ("early_stopping", "return_scores"):
            check_bool(name, getattr(self, name))
        if self.top_p > 1:
            raise ValueError(f"`top_p` must be at most 1. Received: top_p={self.top_p}")
        if self.sampler is not None:
            check_choice("sampler", self.sampler, _SAMPLERS)
        if not isinstance(self.banned_tokens, Iterable) or isinstance(self.banned_tokens, str):
            raise ValueError(f"`banned_tokens` must be a list of ids. Received: banned_tokens={self.banned_tokens!r}")
        banned = (_check_not_negative("banned_tokens", token, 2**31 - 1) for token in self.banned_tokens)
        self._set("banned_tokens", tuple(banned))
        self._check_beams()

    @classmethod
    def of(cls, **options) -> SearchOptions:
        """The options by name. Raises ValueError for an unknown one, with the nearest name that there is."""
        known = [field.name for field in dataclasses.fields(cls)]
        for name, value in options.items():
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f" Did you mean {near[0]!r}?" if near else f" There are {', '.join(known)}."
                raise ValueError(f"A translation has no option {name!r}.{hint} Received: {name}={value!r}")
        return cls(**options)

    def _set(self, name, value):
        object.__setattr__(self, name, value)

    def _each(self, name, check):
        value = getattr(self, name)
        if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim):
            return tuple(check(name, one) for one in value)
        return check(name, value)

    def _check_beams(self):
        beams, wanted = _as_list(self.beam_size), _as_list(self.n_best)
        for size in beams:
            if size % self.beam_groups:
                raise ValueError(
                    f"`beam_size` must be a multiple of `beam_groups`. "
                    f"Received: beam_size={size}, beam_groups={self.beam_groups}"
                )
        pairs = (
            zip(beams * len(wanted), wanted * len(beams), strict=True)
            if 1 in (len(beams), len(wanted))
            else zip(beams, wanted, strict=False)
        )
        for size, count in pairs:
            if count > size and self.sampler is None:
                raise ValueError(f"`n_best` must be at most `beam_size`. Received: n_best={count}, beam_size={size}")

    def check_count(self, count: int | None) -> None:
        """Raises ValueError unless each list among the options has `count` entries; for None there must be no list."""
        for name in PER_TEXT:
            value = getattr(self, name)
            if isinstance(value, tuple) and len(value) != count:
                expected = "one value, for texts of any number" if count is None else f"{count} entries, one a text"
                raise ValueError(f"`{name}` must have {expected}. Received: {len(value)} entries")

    def check_vocabulary(self, size: int) -> None:
        """Raises ValueError if a banned token is not among `size` ids, or is eos."""
        wrong = [token for token in self.banned_tokens if token >= size]
        if wrong or EOS in self.banned_tokens:
            raise ValueError(
                f"`banned_tokens` must be below {size}, and not eos, {EOS}. Received: {wrong[0] if wrong else EOS}"
            )

    @property
    def is_greedy(self) -> bool:
        """Whether greedy search does, for every text."""
        return self.sampler is None and set(_as_list(self.beam_size)) == {1}

    @property
    def width(self) -> int:
        """The most hypotheses that a text has at once."""
        return max(_as_list(self.beam_size if self.sampler is None else self.n_best))

    def of_text(self, name: str, number: int) -> Any:
        """An option of one of the texts."""
        value = getattr(self, name)
        return value[number] if isinstance(value, tuple) and name in PER_TEXT else value

    def rows(self, indices: Sequence[int], prefixes: Sequence[Sequence[int]], vocabulary_size: int) -> RowOptions:
        """The options of some of the texts, as arrays.

        Args:
            indices: Which texts.
            prefixes: The ids of their target prefixes.
            vocabulary_size: V.
        """

        def column(name, dtype):
            return np.array([self.of_text(name, number) or 0 for number in indices], dtype)

        prefix_ids = np.zeros((len(prefixes), max(map(len, prefixes), default=0)), "int32")
        for row, ids in zip(prefix_ids, prefixes, strict=True):
            row[: len(ids)] = ids
        banned = np.zeros(vocabulary_size, bool)
        banned[[0, 1, 2, *self.banned_tokens]] = True
        return RowOptions(
            beam_size=column("beam_size", "int32") // self.beam_groups,
            n_best=column("n_best", "int32"),
            length_penalty=column("length_penalty", "float32"),
            max_length=column("max_length", "int32"),
            min_length=column("min_length", "int32"),
            no_repeat_ngram_size=column("no_repeat_ngram_size", "int32"),
            repetition_penalty=column("repetition_penalty", "float32"),
            prefix_ids=prefix_ids,
            banned=banned,
            gnmt=np.array(self.length_penalty_form == "gnmt"),
            early_stopping=np.array(self.early_stopping),
            diversity_penalty=np.float32(self.diversity_penalty),
            temperature=np.float32(self.temperature),
        )


def _as_list(value) -> list[Any]:
    return list(value) if isinstance(value, tuple) else [value]


def _check_count(name, value):
    if check_positive(name, value) > _MOST:
        raise ValueError(f"`{name}` must be at most {_MOST}. Received: {name}={value!r}")
    return int(value)


def _check_not_negative(name, value, most):
    if not 0 <= check_integer(name, value) <= most:
        raise ValueError(f"`{name}` must be at least 0 and at most {most}. Received: {name}={value!r}")
    return int(value)


def _check_range(name, value, least, most):
    if not is_number(value) or not least <= value <= most:
        raise ValueError(f"`{name}` must be a number from {least:g} to {most:g}. Received: {name}={value!r}")
    return float(value)


def _check_prefix(name, value):
    if not isinstance(value, str) or "\n" in value or "\r" in value:
        raise ValueError(f"`{name}` must be text of one line. Received: {name}={value!r}")
    return value
