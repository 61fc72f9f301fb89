"""The SentencePiece tokenizer, the same in a TensorFlow graph and in Python."""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from keras_transformer._checks import check_above_zero, check_choice, check_positive, check_rate, is_number
from keras_transformer._replacing import replacing
from keras_transformer.text.graph_tokenizer import GraphTokenizer
from keras_transformer.text.libraries import sentencepiece

_LOGGER = logging.getLogger(__name__)
_IDS: dict[str, Any] = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3}
_MODEL_TYPES = ("unigram", "bpe")
_NORMALIZATIONS = ("identity", "lower", "nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf")


class Tokenizer(tf.Module):
    """A SentencePiece model (Kudo and Richardson, 2018) with the ids pad 0, unk 1, bos 2, eos 3.

    A character that is not in the vocabulary becomes its UTF-8 bytes (byte fallback), so nothing is lost and `unk` is
    never produced. What changes in a round trip, with the default normalisation, is white space alone: runs of spaces
    become one, spaces at the ends go, U+2581, SentencePiece's own mark of a space, becomes a space. Tabs and line
    breaks stay. Bytes that are no UTF-8 become U+FFFD. Text that looks like a control token, `</s>` say, is text.

    Held as an attribute of a `tf.Module` it is exported with it, whole.

    Args:
        model: A serialized SentencePiece model, bytes. Usually made by `train` or `from_file`.

    Raises:
        ValueError: If the bytes are no SentencePiece model, or one with other ids or without byte fallback.

    Example:
        ```python
        from keras_transformer.text import Tokenizer

        sentences = ["I love easy courses", "我爱水课", "Jane visits Africa in September"]
        tokenizer = Tokenizer.train(sentences, vocabulary_size=300, model_type="bpe")
        assert tokenizer.decode(tokenizer.encode("我爱水课 👍")) == "我爱水课 👍"
        assert tokenizer.tokenize(["我爱水课"]).to_list() == [tokenizer.encode("我爱水课")]
        ```
    """

    pad_id, unk_id, bos_id, eos_id = _IDS.values()

    def __init__(self, model: bytes):
        super().__init__(name="tokenizer")
        if not isinstance(model, bytes):
            raise ValueError(f"`model` must be the bytes of a SentencePiece model. Received: {type(model).__name__}")
        self._processor = _load(model)
        self.model = model
        self._graph_tokenizer = GraphTokenizer(model)

    @classmethod
    def train(
        cls,
        sentences: Iterable[str],
        vocabulary_size: int,
        model_type: str = "unigram",
        character_coverage: float = 0.9999,
        normalization: str = "identity",
        max_sentence_bytes: int = 10_000,
    ) -> Tokenizer:
        """Trains a tokenizer.

        Args:
            sentences: The text, of one language or of both (a joint vocabulary). Read once, from start to end.
            vocabulary_size: V, counting the 4 special tokens and the 256 bytes.
            model_type: `"unigram"` (Kudo, 2018) or `"bpe"` (Sennrich et al., 2016).
            character_coverage: Share of the text's characters that get a token of their own before byte fallback.
            normalization: What becomes of the text first, beside its spaces. `"identity"` keeps every character as
                written, `，` and `？` too; `"lower"` makes each letter lower case, one by one, and keeps the rest. The
                others are rules of SentencePiece: the `nfkc` ones replace characters by plain ones, and those with `cf`
                lower the case as well. A model learns what the text has become, and writes it.
            max_sentence_bytes: Longer sentences are left out, and counted in a warning of this module's logger.

        Raises:
            ValueError: If an argument is out of range, no sentence is left, or the vocabulary size does not fit the
                text; the message says which sizes do.
        """
        check_positive("vocabulary_size", vocabulary_size)
        check_choice("model_type", model_type, _MODEL_TYPES)
        check_choice("normalization", normalization, _NORMALIZATIONS)
        check_positive("max_sentence_bytes", max_sentence_bytes)
        if not is_number(character_coverage) or not 0 <= character_coverage <= 1:
            raise ValueError(f"`character_coverage` must be a number from 0 to 1. Received: {character_coverage=}")
        corpus, model = _Corpus(sentences, max_sentence_bytes), io.BytesIO()
        try:
            with _normalization_options(normalization) as normalization_options:
                sentencepiece.SentencePieceTrainer.train(
                    sentence_iterator=iter(corpus),
                    model_writer=model,
                    vocab_size=vocabulary_size,
                    model_type=model_type,
                    character_coverage=character_coverage,
                    **normalization_options,
                    byte_fallback=True,
                    max_sentence_length=max_sentence_bytes,
                    minloglevel=2,
                    **_IDS,
                )
        except RuntimeError as error:
            corpus.check()
            reason = re.sub(r"^.*\)\] ", "", str(error).strip())  # Without the place in SentencePiece's own source.
            raise ValueError(f"The tokenizer could not be trained: {reason} Received: {vocabulary_size=}") from error
        corpus.check()
        return cls(model.getvalue())

    @classmethod
    def from_file(cls, path: str | os.PathLike) -> Tokenizer:
        """Loads what `save` or SentencePiece wrote.

        Raises:
            ValueError: If the file is missing or is not such a model; the message names it.
        """
        try:
            return cls(Path(path).read_bytes())
        except (OSError, ValueError) as error:
            raise ValueError(f"Could not load a tokenizer from {os.fspath(path)!r}: {error}") from error

    def save(self, path: str | os.PathLike) -> None:
        """Writes the model to a file, whole or not at all.

        Raises:
            ValueError: If the file cannot be written.
        """
        try:
            with replacing(path) as file:
                file.write(self.model)
        except OSError as error:
            raise ValueError(f"Could not write {os.fspath(path)}: {error}") from error

    @property
    def vocabulary_size(self) -> int:
        """Number of ids, V."""
        return self._processor.get_piece_size()

    @property
    def checksum(self) -> str:
        """SHA-256 of the model, in hexadecimal: equal for equal tokenizers only."""
        return hashlib.sha256(self.model).hexdigest()

    @property
    def lowers_case(self) -> bool:
        """Whether its text is lower-cased, so that case says nothing about a translation."""
        return self.decode(self.encode("A")) == "a"

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without bos and eos, in Python."""
        return self._processor.encode(_without_lone_surrogates(text))

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, in Python. Pad, bos and eos say nothing; bytes of half a character become U+FFFD.

        Raises:
            ValueError: If an id is not of the vocabulary.
        """
        ids, size = [int(token) for token in ids], self.vocabulary_size
        wrong = [token for token in ids if not 0 <= token < size]
        if wrong:
            raise ValueError(f"Ids are at least 0 and below {size}. Received: {wrong[0]}")
        return self._processor.decode(ids)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The piece of each id as SentencePiece writes it, `▁` for a space."""
        return [self._processor.id_to_piece(int(token)) for token in ids]

    def tokenize(self, texts) -> tf.RaggedTensor:
        """The ids of texts, in graph: string [B] -> int32 [B, (length)], without bos and eos."""
        return self._graph_tokenizer.tokenize(valid_utf8(texts))

    def detokenize(self, ids) -> tf.Tensor:
        """The texts of ids, in graph: int32 [B,T], dense or ragged, -> string [B], as `decode`.

        Raises:
            tf.errors.InvalidArgumentError: If an id is not of the vocabulary.
        """
        ids = ids if isinstance(ids, tf.RaggedTensor) else tf.convert_to_tensor(ids)
        ids = tf.cast(ids, tf.int32)
        values = ids.flat_values if isinstance(ids, tf.RaggedTensor) else ids
        message = f"Ids are at least 0 and below {self.vocabulary_size}."
        # SentencePiece's operation ends the whole process at an id that it does not know.
        checks = [
            tf.debugging.assert_non_negative(values, message=message),
            tf.debugging.assert_less(values, self.vocabulary_size, message=message),
        ]
        with tf.control_dependencies([check for check in checks if check is not None]):
            return self._graph_tokenizer.detokenize(tf.identity(ids))

    def to_pieces(self, ids: tf.RaggedTensor) -> tf.Tensor:
        """As `pieces`, in graph: int32 [B, (length)], ids of the vocabulary, -> string [B,T], "" behind."""
        pieces = self._graph_tokenizer.id_to_string(ids.flat_values)
        return ids.with_flat_values(pieces).to_tensor("")

    def sample(self, texts: Sequence[str], alpha: float, seed: int) -> list[list[int]]:
        """Subword sampling, for training only: the ids of texts cut into pieces at random, in Python.

        Args:
            texts: Texts.
            alpha: For a unigram model the smoothing of the distribution over segmentations (Kudo, 2018; near 0 it is
                uniform); for BPE the share of merges left out (Provilkov et al., 2020; near 0 few).
            seed: An integer. The same seed gives the same pieces, but in the same process only: SentencePiece 0.2.3
                adds a number of its own to it, which is another in every process.

        Raises:
            ValueError: If `alpha` is not between 0 and 1.
        """
        check_rate("alpha", check_above_zero("alpha", alpha))
        samples = []
        for number, text in enumerate(texts):  # One by one: a list would go to threads that know nothing of the seed.
            sentencepiece.set_random_generator_seed((seed + number) % (2**32 - 1))  # The last number would mean none.
            text = _without_lone_surrogates(text)
            samples.append(self._processor.encode(text, enable_sampling=True, nbest_size=-1, alpha=alpha))
        return samples


@contextlib.contextmanager
def _normalization_options(normalization) -> Iterator[dict[str, Any]]:
    """SentencePiece's options for a normalisation, while it trains: it takes rules that are not its own as a file."""
    if normalization != "lower":
        yield {"normalization_rule_name": normalization}
        return
    letters = (chr(code) for code in range(sys.maxunicode + 1))
    rules = {letter: letter.lower() for letter in letters if letter != letter.lower()}
    lines = ("\t".join(" ".join(f"{ord(char):X}" for char in text) for text in rule) for rule in rules.items())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lower.tsv"
        path.write_text("\n".join(lines) + "\n", encoding="ascii")
        yield {"normalization_rule_tsv": str(path)}


class _Corpus:
    """Hands sentences to SentencePiece; knows afterwards what it left out."""

    def __init__(self, sentences, max_bytes):
        if isinstance(sentences, (str, bytes)):
            raise ValueError(f"`sentences` must be many texts. Received: one {type(sentences).__name__}")
        self._sentences, self._max_bytes = sentences, max_bytes
        self._read = self._too_long = self._blank = 0
        self._error: Exception | None = None

    def __iter__(self) -> Iterator[str]:
        # What an exception says is lost in SentencePiece, so it waits for `check`.
        sentences = iter(self._sentences)
        while True:
            try:
                sentence = next(sentences)
            except StopIteration:
                return
            except Exception as error:
                self._error = error
                return
            self._read += 1
            if not isinstance(sentence, str):
                self._error = ValueError(f"`sentences` must be texts. Received: {sentence!r} as number {self._read}")
                return
            sentence = _without_lone_surrogates(sentence)
            if not sentence.strip():
                self._blank += 1
            elif len(sentence.encode()) > self._max_bytes:
                self._too_long += 1
            else:
                yield sentence

    def check(self):
        """Warns of what was left out; raises the error that explains a failure which lies in the text."""
        if self._error:
            raise self._error
        skipped = f"{self._too_long} of {self._read} sentences are longer than max_sentence_bytes={self._max_bytes}"
        if self._read == self._blank + self._too_long:
            raise ValueError(f"No sentence is left to train on. Received: {skipped}, {self._blank} are blank")
        if self._too_long:
            _LOGGER.warning("%s (%.1f %%) and were left out.", skipped, 100 * self._too_long / self._read)


def _load(model):
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(model)
    except RuntimeError as error:
        raise ValueError(f"Not a SentencePiece model. Received: {len(model)} bytes") from error
    ids = {f"{name}_id": getattr(processor, f"{name}_id")() for name in ("pad", "unk", "bos", "eos")}
    if ids != _IDS:
        raise ValueError(f"The special ids must be {_IDS}. Received: a model with {ids}")
    if not any(processor.is_byte(token) for token in range(processor.get_piece_size())):
        raise ValueError("The model must have byte fallback. Received: a model without bytes among its tokens")
    return processor


def _without_lone_surrogates(text):
    """A Python text may hold half a UTF-16 character, which has no UTF-8: U+FFFD instead."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def valid_utf8(texts):
    """Texts with U+FFFD for bytes that are no UTF-8, in graph: string [B] -> string [B]."""
    return tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
