"""What a run reads: its text as batches of ids, and the tokenizers that cut it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path

from keras_transformer.checkpoints import load_tokenizers, read_json, save_tokenizers, write_json
from keras_transformer.data import SubwordSampling, TokenBatches, TokenizedCorpus, with_case_variants
from keras_transformer.text import Tokenizer
from keras_transformer.training.corpora import RecipeCorpora
from keras_transformer.training.diversification import diversified_corpora
from keras_transformer.training.recipe import Recipe


class RunText:
    """The text of a recipe, and what a run folder keeps of it: tokenizers, ids, a report.

    Args:
        recipe: The `Recipe`.
        folder: The run folder.
        data: Folder with local copies of public data sets; None to download them.
        worker: The number of this worker. All read the text, and the first one writes what they have in common.
        say: Says what was read.

    Attributes:
        tokenizers: The `Tokenizer` of the sources and that of the targets, the same object where they share one.
        train: `TokenBatches` of the training text.
        validation_pairs: The validation text, pairs of source and target.
        validation: `TokenBatches` of it.

    Raises:
        ValueError: If a corpus or a tokenizer is not as it should be; the message names it.
    """

    def __init__(
        self, recipe: Recipe, folder: Path, data: str | os.PathLike | None, worker: int, say: Callable[..., None]
    ):
        self._recipe, self._folder, self._data, self._worker, self._say = recipe, folder, data, worker, say
        # The test text is not read yet: what is missing is better told now than after hours.
        train, validation, _ = map(self._corpora, (recipe.data.train, recipe.data.validation, recipe.data.test))
        self.validation_pairs = list(validation)
        source, target = self._make_tokenizers(train)
        self.tokenizers: tuple[Tokenizer, Tokenizer] = (source, target)
        name = f"worker-{worker}"
        is_new = not self._ids(name).exists()
        self.train = self._batches(train, name, recipe.data.max_length)
        if is_new:
            say(*(f"{title}: {report}" for title, report in validation.reports.items()))
        if is_new and worker == 0:
            reports = {"train": train.reports_as_dict(), "validation": validation.reports_as_dict()}
            write_json(folder / "data_report.json", {**reports, "over_max_length": self.train.corpus.left_out})
        options = recipe.training
        corpus = TokenizedCorpus.from_pairs(self.validation_pairs, source, target, recipe.data.max_length)
        self.validation = TokenBatches(corpus, options.batch_tokens, fixed_lengths=options.fixed_lengths)

    def diversified(self, train: Callable[[Recipe, Path], object]) -> TokenBatches:
        """Batches of the text with translations of both sides of it.

        Args:
            train: Trains the model that translates, a recipe in a run folder, unless this run has done so before.

        Raises:
            ValueError: As `RunText`.
        """
        name, options = "diversified", self._recipe.training
        is_new, more = not self._ids(name).exists(), []
        if is_new:
            folder = self._folder / "diversification"
            more = diversified_corpora(self._recipe, self.tokenizers[0], folder, train, self._data, self._say)
        corpora = self._corpora([*self._recipe.data.train, *more])
        # A model may say more than any text has: what does not fit in a batch is left out.
        room = max(options.fixed_lengths) if options.fixed_lengths else options.batch_tokens
        batches = self._batches(corpora, name, min(self._recipe.data.max_length, room))
        if is_new:
            path = self._folder / "data_report.json"
            reports = {**read_json(path), "diversified": corpora.reports_as_dict()}
            write_json(path, {**reports, "diversified_over_max_length": batches.corpus.left_out})
        return batches

    def _corpora(self, corpora):
        return RecipeCorpora(corpora, self._recipe.data, self._data)

    def _ids(self, name):
        return self._folder / "data" / name

    def _batches(self, corpora, name, max_length):
        """Batches of a corpus for training, which lies in the run folder as ids once it has been read."""
        options, data = self._recipe.training, self._recipe.data
        if self._ids(name).exists():
            corpus = TokenizedCorpus.from_folder(self._ids(name))
        else:
            pairs = with_case_variants(corpora, data.case_augmentation)
            corpus = TokenizedCorpus.from_pairs(pairs, *self.tokenizers, max_length, self._ids(name))
            self._say(*(f"{title}: {report}" for title, report in corpora.reports.items()))
            if corpus.left_out:
                self._say(f"{corpus.left_out:,} training pairs left out: over {max_length} tokens on a side")
        sampling = options.subword_sampling and SubwordSampling(
            *self.tokenizers, options.subword_sampling, data.max_length
        )
        return TokenBatches(corpus, options.batch_tokens, options.seed, options.fixed_lengths, sampling or None)

    def _make_tokenizers(self, corpora):
        options = self._recipe.tokenizer
        if self._recipe.training.init_from:
            tokenizers = load_tokenizers(Path(self._recipe.training.init_from))
            self._check_tokenizers(tokenizers)
        elif any((self._folder / name).exists() for name in ("tokenizer.model", "target.model")):
            return load_tokenizers(self._folder)
        else:
            arguments = options.model_dump(exclude={"shared", "max_sentences"})
            sides = [(0, 1)] if options.shared else [(0,), (1,)]
            tokenizers = []
            for side in sides:
                pairs = with_case_variants(corpora, self._recipe.data.case_augmentation)
                pairs = itertools.islice(pairs, options.max_sentences)
                texts = (pair[i] for pair in pairs for i in side)
                tokenizers.append(Tokenizer.train(texts, max_sentence_bytes=self._recipe.data.max_bytes, **arguments))
            tokenizers = (tokenizers[0], tokenizers[-1])
        if self._worker == 0:
            save_tokenizers(self._folder, *tokenizers)
        return tokenizers

    def _check_tokenizers(self, tokenizers):
        """A run that goes on must have the tokenizers that it began with."""
        if (self._folder / "data").exists():
            before = [tokenizer.checksum for tokenizer in load_tokenizers(self._folder)]
            if before != [tokenizer.checksum for tokenizer in tokenizers]:
                raise ValueError(
                    f"The tokenizers of init_from must be those that this run began with. Received: others in "
                    f"{self._recipe.training.init_from} than in {self._folder}"
                )
