"""The token ids of a corpus, in memory or in a folder on disk."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from keras_transformer._checks import check_positive

_SIDES = ("source", "target")
_FILES = {"corpus.json", *(f"{side}_{part}.bin" for side in _SIDES for part in ("ids", "ends"))}


class TokenizedCorpus:
    """The token ids of sentence pairs, each sentence with eos behind it.

    Usually made by `from_pairs` or `from_folder`. Where it lies in a folder, ids are read from disk as they are asked
    for: a corpus may be larger than memory, of which each pair takes 24 bytes.

    Args:
        ids: The ids of all source sentences one after the other, and those of all target sentences: two int32 arrays.
        ends: Where in them each sentence ends: two int64 arrays, [pairs].
        left_out: Number of pairs that were longer than `max_length`.
        folder: The folder that it lies in, if any.

    Attributes:
        lengths: Tokens of each sentence with eos, int32, [pairs, 2]: source and target.
        left_out, folder: As given.

    Example:
        ```python
        from keras_transformer.data import TokenizedCorpus
        from keras_transformer.text import Tokenizer

        pairs = [("我爱水课", "I love easy courses"), ("喝水", "drink water")]
        tokenizer = Tokenizer.train([text for pair in pairs for text in pair], vocabulary_size=290, model_type="bpe")
        corpus = TokenizedCorpus.from_pairs(pairs, tokenizer)
        source, target = corpus[1]
        print(len(corpus), source[-1], tokenizer.decode(target))
        #> 2 3 drink water
        ```
    """

    def __init__(self, ids, ends, left_out: int = 0, folder: str | os.PathLike | None = None):
        self._ids, self._ends = tuple(ids), tuple(ends)
        self.left_out, self.folder = left_out, folder
        self.lengths = np.stack([np.diff(end, prepend=0).astype("int32") for end in self._ends], axis=-1)

    @classmethod
    def from_pairs(
        cls,
        pairs: Iterable[tuple[str, str]],
        source_tokenizer,
        target_tokenizer=None,
        max_length: int = 256,
        folder: str | os.PathLike | None = None,
    ) -> TokenizedCorpus:
        """Tokenizes sentence pairs.

        Args:
            pairs: Pairs of texts, a `ParallelCorpus` say. Read once.
            source_tokenizer: A `Tokenizer`.
            target_tokenizer: The target side's own; None where both sides share one.
            max_length: Pairs with more tokens on a side, eos counted, are left out.
            folder: Where to write the ids, whole or not at all; an earlier corpus is replaced. None keeps them in
                memory.

        Raises:
            ValueError: If no pair is left, `folder` holds anything else than a corpus, or as the iteration over `pairs`
                says.
        """
        check_positive("max_length", max_length)
        tokenizers = (source_tokenizer, target_tokenizer or source_tokenizer)
        with _Writer(folder) as writer:
            for pair in pairs:
                rows = [
                    [*tokenizer.encode(text), tokenizer.eos_id]
                    for tokenizer, text in zip(tokenizers, pair, strict=True)
                ]
                writer.add(rows if max(map(len, rows)) <= max_length else None)
            if not writer.pairs:
                raise ValueError(
                    f"There is no pair to train on. Received: 0 pairs of at most {max_length=} tokens, "
                    f"{writer.left_out} longer ones"
                )
            corpus = writer.finish()
        return cls.from_folder(folder) if folder else corpus

    @classmethod
    def from_folder(cls, folder: str | os.PathLike) -> TokenizedCorpus:
        """Opens what `from_pairs` wrote.

        Raises:
            ValueError: If there is no such corpus.
        """
        path = Path(folder)
        try:
            left_out = json.loads((path / "corpus.json").read_text(encoding="utf-8"))["left_out"]
            ids = [np.memmap(path / f"{side}_ids.bin", dtype="int32", mode="r") for side in _SIDES]
            ends = [np.fromfile(path / f"{side}_ends.bin", dtype="int64") for side in _SIDES]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"Could not open a tokenized corpus in {os.fspath(folder)}: {error}") from error
        pairs = {len(end) for end in ends}
        if len(pairs) > 1 or 0 in pairs or any(len(flat) != end[-1] for flat, end in zip(ids, ends, strict=True)):
            raise ValueError(f"The tokenized corpus is incomplete. Received: {os.fspath(folder)}")
        return cls(ids, ends, left_out, folder)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> tuple[list[int], list[int]]:
        """The ids of one pair, with eos, as Python lists."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"The corpus has {len(self)} pairs. Received: index {index}")
        index %= len(self)
        rows = (self.padded(side, np.array([index]), int(self.lengths[index, side]))[0].tolist() for side in (0, 1))
        return next(rows), next(rows)

    def padded(self, side: int, indices: np.ndarray, width: int) -> np.ndarray:
        """The sentences at `indices` as rows of one array, int32 [len(indices), width], 0 behind their ends.

        Args:
            side: 0 for source, 1 for target.
            indices: Integers, [B].
            width: At least the length of the longest.
        """
        lengths = self.lengths[indices, side]
        real = np.arange(width) < lengths[:, None]
        positions = (self._ends[side][indices] - lengths)[:, None] + np.arange(width)
        rows = np.zeros(real.shape, "int32")
        rows[real] = self._ids[side][positions[real]]
        return rows


class _Writer(contextlib.AbstractContextManager):
    """Collects ids, in memory or in a folder that gets its name at the end."""

    def __init__(self, folder):
        self.pairs = self.left_out = 0
        self._folder = Path(folder) if folder else None
        self._rows: tuple[list, list] = ([], [])
        self._lengths: tuple[list, list] = ([], [])
        self._kept: list = []
        self._unfinished = None
        if self._folder:
            _check_replaceable(self._folder)
            self._unfinished = self._folder.with_name(f".{self._folder.name}.{os.getpid()}")
            shutil.rmtree(self._unfinished, ignore_errors=True)  # Of a killed process that had the same number.
            self._unfinished.mkdir(parents=True)

    def add(self, rows):
        """Takes the ids of a pair, or None for a pair left out."""
        if rows is None:
            self.left_out += 1
            return
        self.pairs += 1
        for side, row in enumerate(rows):
            self._rows[side].extend(row)
            self._lengths[side].append(len(row))
        if len(self._lengths[0]) == 100_000:
            self._flush()

    def _flush(self):
        chunk = [np.array(rows, "int32") for rows in self._rows], [np.array(rows, "int64") for rows in self._lengths]
        for rows in (*self._rows, *self._lengths):
            rows.clear()
        if self._unfinished is None:
            self._kept.append(chunk)
            return
        for name, arrays in zip(("ids", "lengths"), chunk, strict=True):
            for side, array in zip(_SIDES, arrays, strict=True):
                with open(self._unfinished / f"{side}_{name}.bin", "ab") as file:
                    array.tofile(file)

    def finish(self):
        """The corpus, where it is in memory; else its folder is complete."""
        self._flush()
        if self._unfinished is None or self._folder is None:
            ids, lengths = (
                [np.concatenate([chunk[kind][side] for chunk in self._kept]) for side in (0, 1)] for kind in (0, 1)
            )
            return TokenizedCorpus(ids, [np.cumsum(side) for side in lengths], self.left_out)
        for side in _SIDES:
            lengths_file = self._unfinished / f"{side}_lengths.bin"
            np.cumsum(np.fromfile(lengths_file, dtype="int64")).tofile(self._unfinished / f"{side}_ends.bin")
            lengths_file.unlink()
        (self._unfinished / "corpus.json").write_text(json.dumps({"pairs": self.pairs, "left_out": self.left_out}))
        shutil.rmtree(self._folder, ignore_errors=True)
        self._unfinished.rename(self._folder)
        return None

    def __exit__(self, *error):
        if self._unfinished is not None:
            shutil.rmtree(self._unfinished, ignore_errors=True)


def _check_replaceable(folder):
    """Raises ValueError where a corpus written to `folder` would delete what is none."""
    if folder.exists() and not (folder.is_dir() and set(os.listdir(folder)) <= _FILES):
        raise ValueError(f"`folder` must be new, empty or hold an earlier corpus. Received: {os.fspath(folder)}")
