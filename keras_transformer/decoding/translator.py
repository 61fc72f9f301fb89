"""From texts to translations."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from keras_transformer._checks import check_positive
from keras_transformer.decoding.compiled import CompiledSearches
from keras_transformer.decoding.constraints import EOS, Hypotheses
from keras_transformer.decoding.in_flight import in_flight
from keras_transformer.decoding.options import SearchOptions
from keras_transformer.decoding.progress import progress_bar
from keras_transformer.decoding.results import Attention, ForcedScore, Hypothesis, Translation, joined
from keras_transformer.decoding.searches import Searches
from keras_transformer.decoding.step import Ensemble
from keras_transformer.decoding.texts import batches_by_length, is_blank, one_line, padded, split_lines

# Texts that are sorted by length together: enough for full batches, few enough not to wait for long.
_WINDOW = 2_000


class Translator:
    """Translates texts with a trained model: greedy search, beam search and sampling, scores, attention.

    Each kind of search is traced once, whatever the lengths, the batch and the options. The translation of a text is
    the same alone and in any company (with a `sampler` it depends on the company and the seed).

    Args:
        model: A `Transformer`, or a list of them of one vocabulary, which decode together: the mean of their
            log-probabilities counts.
        tokenizer: A `Tokenizer`, of both sides or of the source.
        target_tokenizer: The target side's own; None where both sides share one.

    Raises:
        ValueError: If a tokenizer has other ids than the model, or the models have different vocabularies.

    Example:
        ```python
        from keras_transformer.decoding import Translator
        from keras_transformer.models import TransformerConfig, transformer
        from keras_transformer.text import Tokenizer

        tokenizer = Tokenizer.train(["我爱水课", "I love easy courses"], vocabulary_size=290, model_type="bpe")
        sizes = TransformerConfig.from_preset("tiny", tokenizer.vocabulary_size, encoder_layers=1, decoder_layers=1)
        model = transformer(sizes)  # Yours is trained.
        translator = Translator(model, tokenizer)
        best, blank = translator.translate(["我爱水课", ""], beam_size=4, n_best=2, max_length=5)
        print(len(best.n_best), repr(blank.text))
        #> 2 ''
        print(translator.attention("我爱水课", "I love easy courses").weights.shape[:2])
        #> (1, 4)
        ```
    """

    def __init__(self, model, tokenizer, target_tokenizer=None):
        self._ensemble = Ensemble(model if isinstance(model, (list, tuple)) else [model])
        self._source, self._target = tokenizer, target_tokenizer or tokenizer
        sizes = (self._source.vocabulary_size, self._target.vocabulary_size)
        expected = self._ensemble.vocabulary_sizes
        if sizes != expected:
            raise ValueError(f"The tokenizers must have as many ids as the model, {expected}. Received: {sizes}")
        self._searches = Searches(self._ensemble)
        self._compiled: dict[int, CompiledSearches] = {}

    @classmethod
    def from_preset(cls, folder: str | os.PathLike, dtype=None) -> Translator:
        """Opens a folder that `save_to_preset` wrote, or the folder of a run.

        Args:
            folder: The folder.
            dtype: Dtype policy of the model. Defaults to Keras' global one.

        Raises:
            ValueError: If a part is missing or broken; the message names it.
        """
        from keras_transformer.checkpoints import load_preset

        return cls(*load_preset(folder, dtype))

    @property
    def lowers_case(self) -> bool:
        """Whether translations are lower-cased, as the target tokenizer makes them."""
        return self._target.lowers_case

    def save_to_preset(self, folder: str | os.PathLike) -> None:
        """Writes model and tokenizers to a folder, which is made if need be.

        Raises:
            ValueError: If there are several models, or the folder cannot be written.
        """
        from keras_transformer.checkpoints import save_preset

        model = self._only_model("A preset")
        try:
            save_preset(folder, model, self._source, self._target)
        except OSError as error:
            raise ValueError(f"Could not write the preset {os.fspath(folder)}: {error}") from error

    def export(self, folder: str | os.PathLike, **arguments) -> Path:
        """Writes a SavedModel for TensorFlow Serving: text in, translation out, without Python.

        `folder/1/`, or the next free number, appears whole or not at all, with the signatures `serving_default`,
        `translate`, `decode`, `score` and `attention`, which `saved_models/README.md` describes.

        Args:
            folder: The folder of the model, whose last part is its name for the server.
            **arguments: `version`: a number instead of the next free one. `dtype`: `"float32"`, `"bfloat16"` or
                `"float16"`, of weights and computation. `limits`: `keras_transformer.export.ServingLimits`, the most
                that a request may ask for. `attention_layer`: decoder block of which `attention` gives the mean over
                heads, -1 for the last. `xla_buckets`: lengths of sources, `(32, 64, 128)` say, for which searches are
                compiled by XLA with fixed shapes, as GPUs like them; by default none. `warmup`: whether to write the
                requests that a server warms up with. `card`: a dict of what else the card of the model says, `license`
                for one. And the fields of `SearchOptions`, one value each: how `serving_default` searches; what a
                request cannot choose holds for `translate`, too.

        Returns:
            The folder of the version.

        Raises:
            ValueError: If the version exists, an argument is out of range, or the folder cannot be written.
            ImportError: If tensorflow-serving-api is missing, which warm-up requests need.
        """
        from keras_transformer.export.saved_model import export_saved_model

        return export_saved_model(folder, self._ensemble.models, self._source, self._target, **arguments)

    def jit_compile(self, source_lengths: Sequence[int] = (16, 32, 64), *, beam_size: int = 1) -> None:
        """Compiles the search of a single text by XLA, for who translates one text at a time and waits for it.

        It takes some seconds for each length, once; afterwards a single text takes three fifths of the time. What does
        not fit (several texts in a batch, a longer one, a wider or narrower beam, a `sampler`) is translated as before,
        and the translations are the same.

        Args:
            source_lengths: Tokens that sources are padded to, the end counted. Each is compiled by itself.
            beam_size: The width that `translate` will be asked for; call it again for another.

        Raises:
            ValueError: If an argument is out of range.
        """
        self._compiled[beam_size] = CompiledSearches(self._ensemble, source_lengths, beam_size)

    def translate(self, texts, *, batch_tokens: int = 4096, verbose: bool = False, **options):
        """Translates. The lines of a text (LF or CRLF ends one) are translated one by one, and their ends kept.

        Args:
            texts: A text, a list of texts, or an iterator over any number of them.
            batch_tokens: Cells of a batch: its longest source times its sources times `beam_size`. On a CPU as many
                batches are computed side by side as there are cores.
            verbose: Whether to show a progress bar, on standard error.
            **options: The fields of `SearchOptions`.

        Returns:
            A `Translation`, a list of them, or an iterator over them, in the order of the texts. A blank text, one of
            white space and invisible characters, gives a blank one.

        Raises:
            ValueError: If a text is no str, or an option is unknown or out of range.
        """
        if not isinstance(texts, Iterable) or isinstance(texts, (bytes, bytearray)):
            raise ValueError(f"Texts are a str, a list or an iterator of them. Received: {texts!r}")
        check_positive("batch_tokens", batch_tokens)
        search = SearchOptions.of(**options)
        search.check_vocabulary(self._target.vocabulary_size)
        if isinstance(texts, str):
            search.check_count(1)
            return next(self._stream([texts], search, batch_tokens, verbose))
        if isinstance(texts, Sequence):
            search.check_count(len(texts))
            return list(self._stream(texts, search, batch_tokens, verbose))
        search.check_count(None)
        return self._stream(texts, search, batch_tokens, verbose)

    def score(self, sources, targets, *, batch_tokens: int = 2048):
        """The log-probability of given translations.

        Args:
            sources: A text of one line, or a list of them.
            targets: A translation, or a list with one for each source: texts of one line, or what `translate` gave,
                with the very tokens that came out (a text may be cut into others).
            batch_tokens: Cells of a batch: its longest text times its pairs.

        Returns:
            A `ForcedScore`, or a list of them.

        Raises:
            ValueError: If the two do not fit together, or a text is no str of one line.
        """
        check_positive("batch_tokens", batch_tokens)
        ids = self._pairs_of_ids(sources, targets)
        scores: list[Any] = [None] * len(ids)
        for batch in batches_by_length([max(map(len, pair)) for pair in ids], batch_tokens):
            arrays = (padded([ids[i][side] for i in batch]) for side in (0, 1))
            for i, row in zip(batch, self._searches.token_log_probabilities(*arrays).numpy(), strict=True):
                target = ids[i][1]
                row = row[: len(target)]
                scores[i] = ForcedScore(float(row.sum()), tuple(self._target.pieces(target)), row)
        return scores[0] if isinstance(sources, str) else scores

    def attention(self, sources, targets=None, **options):
        """What each token of translations attends to, in every decoder block and head.

        Args:
            sources: A text of one line, or a list of them.
            targets: As of `score`; None to translate first.
            **options: The fields of `SearchOptions`, for that.

        Returns:
            An `Attention`, or a list of them.

        Raises:
            ValueError: As `score` and `translate`, or if there are several models.
        """
        self._only_model("Attention")
        if targets is not None and options:
            raise ValueError(f"Options are for translations yet to be made. Received: `targets` and {sorted(options)}")
        if targets is None:
            targets = self.translate(sources, **{"return_scores": False, **options})
        results = []
        for source, target in self._pairs_of_ids(sources, targets):
            weights = self._searches.memory_attention_weights(padded([source]), padded([target]))[0].numpy()
            tokens = tuple(self._source.pieces(source)), tuple(self._target.pieces(target))
            results.append(Attention(*tokens, weights))
        return results[0] if isinstance(sources, str) else results

    def _only_model(self, what):
        if len(self._ensemble.models) > 1:
            raise ValueError(f"{what} is of one model. Received: an ensemble of {len(self._ensemble.models)}")
        return self._ensemble.models[0]

    def _pairs_of_ids(self, sources, targets):
        """The ids of pairs of texts, with eos. Raises ValueError unless they are pairs, of one line each."""
        sides = []
        for side in (sources, targets):
            one = isinstance(side, (str, Hypothesis))
            if not one and (not isinstance(side, Sequence) or isinstance(side, bytes)):
                raise ValueError(f"Sources and targets are texts or lists of texts. Received: {side!r}")
            sides.append([side] if one else list(side))
        if isinstance(sources, str) != isinstance(targets, (str, Hypothesis)):
            raise ValueError("A text goes with a text, and a list with a list. Received: one of each")
        if len(sides[0]) != len(sides[1]):
            raise ValueError(f"Each source needs one target. Received: {len(sides[0])} and {len(sides[1])}")
        return [
            (self._ids(source, self._source), self._ids(target, self._target))
            for source, target in zip(*sides, strict=True)
        ]

    def _ids(self, text, tokenizer):
        if isinstance(text, Hypothesis) and tokenizer is self._target:
            if len(split_lines(text.text)[0]) == 1:
                return text.token_ids or (EOS,)
        elif isinstance(text, str) and len(split_lines(text)[0]) == 1:
            return self._with_eos(tokenizer.encode(text))[0]
        raise ValueError(f"Sources and targets are texts of one line. Received: {text!r}")

    def _with_eos(self, ids):
        """Ids with eos behind them, no more than the model has positions, and whether some had to go for that."""
        room = self._ensemble.max_length
        if room and len(ids) >= room:
            return [*ids[: room - 1], EOS], True
        return [*ids, EOS], False

    def _stream(self, texts: Iterable[str], search: SearchOptions, batch_tokens, verbose) -> Iterator[Translation]:
        remaining = enumerate(texts)
        with progress_bar("Translating", len(texts) if isinstance(texts, Sequence) else None, verbose) as advance:
            while window := list(itertools.islice(remaining, _WINDOW)):
                lines, ends = [], []
                for number, text in window:
                    if not isinstance(text, str):
                        raise ValueError(f"Texts must be of type str. Received: {text!r} as number {number + 1}")
                    split, between = split_lines(text)
                    lines += [(number, place, line) for place, line in enumerate(split)]
                    ends.append(between)
                results = iter(self._translate_lines(lines, search, batch_tokens, advance))
                for between in ends:
                    yield joined([next(results) for _ in range(len(between) + 1)], between)

    def _translate_lines(self, lines, search, batch_tokens, advance: Callable[[int], None]):
        """The hypotheses of each line, `(number of its text, place in it, line)`."""
        results = [[Hypothesis("", 0.0 if search.return_scores else math.nan, False)] for _ in lines]
        sources = [([], False) if is_blank(line) else self._with_eos(self._source.encode(line)) for *_, line in lines]
        run = self._searches.begin(search)
        advance(sum(place == 0 and not ids for (_, place, _), (ids, _) in zip(lines, sources, strict=True)))
        batches = batches_by_length([len(ids) for ids, _ in sources], max(1, batch_tokens // search.width))

        def translate(batch):
            numbers, places, _ = zip(*(lines[i] for i in batch), strict=True)
            prefixes = [
                self._target.encode(search.of_text("target_prefix", number)) if place == 0 else []
                for number, place in zip(numbers, places, strict=True)
            ]
            rows = search.rows(numbers, prefixes, self._target.vocabulary_size)
            ids = padded([sources[i][0] for i in batch])
            compiled = search.sampler is None and search.beam_groups == 1 and self._compiled.get(search.width)
            found = (compiled and compiled.find(ids, rows)) or run
            hypotheses = Hypotheses(*(part.numpy() for part in found(ids, rows)))
            return hypotheses if search.return_scores else hypotheses._replace(score=hypotheses.score * math.nan)

        # What a sampler draws depends on the order of batches.
        for batch, found in zip(batches, in_flight(translate, batches, 1 if search.sampler else None), strict=True):
            for row, i in enumerate(batch):
                wanted, cut = search.of_text("n_best", lines[i][0]), sources[i][1]
                results[i] = self._hypotheses(found, row, min(found.count[row], wanted), cut)
            advance(sum(lines[i][1] == 0 for i in batch))
        return results

    def _hypotheses(self, found, row, count, cut):
        hypotheses = []
        for k in range(count):
            ids = found.ids[row, k, : found.length[row, k]].tolist()
            truncated = bool(found.truncated[row, k]) or cut
            hypotheses.append(
                Hypothesis(one_line(self._target.decode(ids)), float(found.score[row, k]), truncated, tuple(ids))
            )
        return hypotheses
