"""The run loop: from a recipe to a trained model, all of it in one folder."""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import keras

from keras_transformer.callbacks import Backup, LastCheckpoints, TokensPerSecond, TranslationScores
from keras_transformer.checkpoints import (
    average_checkpoints,
    load_tokenizers,
    load_weights,
    read_json,
    save_preset,
    save_tokenizers,
    write_json,
)
from keras_transformer.data import SubwordSampling, TokenBatches, TokenizedCorpus, with_case_variants
from keras_transformer.decoding import Translator
from keras_transformer.evaluate import score_translations
from keras_transformer.losses import MaskedCrossentropy
from keras_transformer.metrics import MaskedAccuracy, Perplexity
from keras_transformer.models import transformer
from keras_transformer.text import Tokenizer
from keras_transformer.training.corpora import RecipeCorpora
from keras_transformer.training.devices import parallel_parts_of, strategy_of
from keras_transformer.training.diversification import diversified_corpora
from keras_transformer.training.folder import open_run_folder, trim_history
from keras_transformer.training.optimizer import make_optimizer
from keras_transformer.training.recipe import Recipe
from keras_transformer.training.scoring import score_model, scores_as_dict

_EXAMPLES, _LONGEST_EXAMPLE = 5, 100
# Name of the folder in `data/` with the text and its translations by other models.
_DIVERSIFIED = "diversified"


class Run:
    """One training, in one folder; the same call goes on where a killed one was.

    Args:
        recipe: A `Recipe`.
        folder: The run folder. It will hold `recipe.yaml`, `tokenizer.model`, `data_report.json`, `data/`, `logs/` for
            TensorBoard, `history.csv`, `checkpoints/`, `backup/`, and at the end the best model (`config.json`,
            `model.weights.h5`) with its `scores.json`; with `data.diversify` first of all `diversification/`.
        data: Folder with local copies of public data sets; None to download them.

    Raises:
        ValueError: If the folder holds a run of another recipe.
    """

    def __init__(self, recipe: Recipe, folder: str | os.PathLike, data: str | os.PathLike | None = None):
        self.recipe, self.folder, self._data = recipe, Path(folder), data
        self._tokenizers: tuple[Tokenizer, Tokenizer]
        self._strategy = strategy_of(recipe.training.distribution)  # First of all: it wants TensorFlow untouched.
        self._parallel_parts = parallel_parts_of(recipe.training)
        cluster = self._strategy.cluster_resolver
        self._worker = (cluster.task_id or 0) if cluster and recipe.training.distribution == "multi_worker" else 0
        self._unused = tempfile.TemporaryDirectory()  # It goes when the run does.
        open_run_folder(self.folder, recipe, write=self._worker == 0)

    def train(self) -> dict[str, Any]:
        """Trains, or goes on, and writes the best model; returns what `scores.json` holds.

        Raises:
            ValueError: If a corpus, a tokenizer or a checkpoint is not as it should be; the message names it.
        """
        training = self.recipe.training
        if self._finished():
            self._say(f"{self.folder} is trained already. A greater training.epochs would go on.")
            return read_json(self.folder / "scores.json")
        translated = self._translations_of_the_text() if self.recipe.data.diversify else []
        keras.utils.set_random_seed(training.seed)
        keras.config.set_dtype_policy(training.precision)
        train, validation, validation_pairs = self._read_data()
        with self._strategy.scope():
            steps = training.steps_per_epoch or train.steps_per_epoch
            model = self._make_model(steps)
            callbacks, backup = self._callbacks(model, validation_pairs, steps)
            done = backup.restore(model)
            self._say(
                f"{model.count_params():,} parameters, {len(train.corpus):,} pairs, {train.steps_per_epoch:,} batches "
                f"a pass, {steps:,} updates an epoch, {training.epochs} epochs"
                + (f", {done} of them done" if done else "")
            )
            if self._worker == 0:
                trim_history(self.folder / "history.csv", done)
            started = time.perf_counter()
            if done < training.epochs:
                before = self._diversified_batches(translated, steps)
                model.fit(
                    train.distributed(self._strategy, first_batch=done * steps, before=before),
                    validation_data=validation.distributed(self._strategy),
                    validation_steps=validation.steps_per_epoch,
                    epochs=training.epochs,
                    initial_epoch=done,
                    steps_per_epoch=steps,
                    callbacks=callbacks,
                    shuffle=False,
                    verbose=(1 if sys.stdout.isatty() else 2) if self._worker == 0 else 0,
                )
            self._say(f"Trained in {(time.perf_counter() - started) / 60:.1f} minutes.")
        return self._finish(model.config, validation_pairs) if self._worker == 0 else {}

    def _translations_of_the_text(self):
        """The corpora that two other models make of the text; none where they have been read already."""
        data = self.recipe.data
        if (self.folder / "data" / _DIVERSIFIED).exists():
            return []
        # What is missing or does not fit is better told now than after hours.
        self._make_tokenizers(RecipeCorpora(data.train, data, self._data))
        for corpora in (data.validation, data.test):
            RecipeCorpora(corpora, data, self._data)
        for language in (data.source_language, data.target_language):
            score_translations(hypotheses=["-"], references=["-"], target_language=language)

        def train(recipe, folder):
            Run(recipe, folder, self._data).train()

        return diversified_corpora(self.recipe, self.folder / "diversification", train, self._data, self._say)

    def _diversified_batches(self, translated, steps):
        """What `TokenBatches.distributed` wants to come before the text alone; None for nothing."""
        data = self.recipe.data
        if not data.diversify:
            return None
        corpora = RecipeCorpora([*data.train, *translated], data, self._data)
        batches = self._training_batches(corpora, _DIVERSIFIED)
        epochs = round(data.diversify * self.recipe.training.epochs)
        self._say(f"The first {epochs} epochs read {len(batches.corpus):,} pairs, of the text and its translations.")
        return batches, epochs * steps

    def _training_batches(self, corpora, name):
        """Batches of a corpus, which lies as ids in `data/` once it has been read."""
        options, data = self.recipe.training, self.recipe.data
        folder = self.folder / "data" / name
        if folder.exists():
            corpus = TokenizedCorpus.from_folder(folder)
        else:
            pairs = with_case_variants(corpora, data.case_augmentation)
            corpus = TokenizedCorpus.from_pairs(pairs, *self._tokenizers, data.max_length, folder)
            self._say(*(f"{title}: {report}" for title, report in corpora.reports.items()))
            if corpus.left_out:
                self._say(f"{corpus.left_out:,} training pairs left out: over {data.max_length} tokens on a side")
        sampling = options.subword_sampling and SubwordSampling(
            *self._tokenizers, options.subword_sampling, data.max_length
        )
        return TokenBatches(corpus, options.batch_tokens, options.seed, options.fixed_lengths, sampling or None)

    def _read_data(self):
        options, data = self.recipe.training, self.recipe.data
        corpora = RecipeCorpora(data.train, data, self._data)
        validation_corpora = RecipeCorpora(data.validation, data, self._data)
        validation_pairs, name = list(validation_corpora), f"worker-{self._worker}"
        self._tokenizers = self._make_tokenizers(corpora)
        is_new = not (self.folder / "data" / name).exists()
        train = self._training_batches(corpora, name)
        if is_new:
            self._say(*(f"{title}: {report}" for title, report in validation_corpora.reports.items()))
        if is_new and self._worker == 0:
            reports = {"train": corpora.reports_as_dict(), "validation": validation_corpora.reports_as_dict()}
            write_json(self.folder / "data_report.json", {**reports, "over_max_length": train.corpus.left_out})
        validation = TokenizedCorpus.from_pairs(validation_pairs, *self._tokenizers, data.max_length)
        batches = TokenBatches(validation, options.batch_tokens, fixed_lengths=options.fixed_lengths)
        return train, batches, validation_pairs

    def _make_tokenizers(self, corpora):
        options = self.recipe.tokenizer
        if self.recipe.training.init_from:
            tokenizers = load_tokenizers(Path(self.recipe.training.init_from))
            self._check_tokenizers(tokenizers)
        elif any((self.folder / name).exists() for name in ("tokenizer.model", "target.model")):
            return load_tokenizers(self.folder)
        else:
            arguments = options.model_dump(exclude={"shared", "max_sentences"})
            sides = [(0, 1)] if options.shared else [(0,), (1,)]
            tokenizers = []
            for side in sides:
                pairs = with_case_variants(corpora, self.recipe.data.case_augmentation)
                pairs = itertools.islice(pairs, options.max_sentences)
                texts = (pair[i] for pair in pairs for i in side)
                tokenizers.append(Tokenizer.train(texts, max_sentence_bytes=self.recipe.data.max_bytes, **arguments))
            tokenizers = (tokenizers[0], tokenizers[-1])
        if self._worker == 0:
            save_tokenizers(self.folder, *tokenizers)
        return tokenizers

    def _check_tokenizers(self, tokenizers):
        """A run that goes on must have the tokenizers that it began with."""
        if (self.folder / "data").exists():
            before = [tokenizer.checksum for tokenizer in load_tokenizers(self.folder)]
            if before != [tokenizer.checksum for tokenizer in tokenizers]:
                raise ValueError(
                    f"The tokenizers of init_from must be those that this run began with. Received: others in "
                    f"{self.recipe.training.init_from} than in {self.folder}"
                )

    def _make_model(self, steps_per_epoch):
        recipe, training = self.recipe, self.recipe.training
        model = transformer(recipe.transformer_config(*(tokenizer.vocabulary_size for tokenizer in self._tokenizers)))
        updates = training.epochs * steps_per_epoch
        if recipe.optimizer.warmup_steps >= updates:
            self._say(
                f"The warm-up of {recipe.optimizer.warmup_steps:,} updates lasts longer than the {updates:,} of this "
                "training: the learning rate never reaches its peak. A smaller optimizer.warmup_steps helps."
            )
        model.compile(
            optimizer=make_optimizer(recipe.optimizer, model.config.model_dim, updates),
            loss=MaskedCrossentropy(label_smoothing=training.label_smoothing),
            metrics=[MaskedAccuracy(), Perplexity()],
            jit_compile=training.jit_compile,
            r_drop=training.r_drop,
            micro_batches=training.micro_batches,
            parallel_parts=self._parallel_parts,
        )
        if training.init_from:
            self._start_from(model, Path(training.init_from))
        return model

    def _start_from(self, model, folder):
        """Weights, and if asked the optimizer's state, of an earlier run."""
        weights = folder / "model.weights.h5"
        if self.recipe.training.keep_optimizer:
            checkpoints = LastCheckpoints(folder / "checkpoints").paths()
            if not checkpoints:
                raise ValueError(f"keep_optimizer needs a run with checkpoints. Received: init_from={folder}")
            load_weights(model, checkpoints[-1])
        bare = transformer(model.config)  # Without an optimizer, as the file.
        load_weights(bare, weights)
        model.set_weights(bare.get_weights())

    def _callbacks(self, model, validation_pairs, steps_per_epoch):
        training, chief = self.recipe.training, self._worker == 0
        translator = Translator(model, *self._tokenizers)
        mode = "min" if training.monitor == "val_loss" else "max"
        scores = TranslationScores(
            translator, validation_pairs, self.recipe.data.target_language, training.translate_every, samples=2 * chief
        )
        callbacks: list = (
            [keras.callbacks.SwapEMAWeights(swap_on_epoch=True)] if self.recipe.optimizer.ema_momentum else []
        )
        callbacks += [TokensPerSecond(), scores]
        if training.patience:
            callbacks.append(keras.callbacks.EarlyStopping(training.monitor, patience=training.patience, mode=mode))
        # All workers have the same callbacks, since saving takes all of them; only the first one's files are used.
        folder = self.folder if chief else Path(self._unused.name)
        callbacks += [
            LastCheckpoints(folder / "checkpoints", training.average_last),
            keras.callbacks.ModelCheckpoint(
                str(folder / "checkpoints" / "best.weights.h5"),
                monitor=training.monitor,
                mode=mode,
                save_best_only=True,
                save_weights_only=True,
            ),
            keras.callbacks.CSVLogger(folder / "history.csv", append=True),
            keras.callbacks.TensorBoard(folder / "logs", write_graph=False),
        ]
        backup = Backup(
            self.folder / "backup",
            steps_per_epoch,
            callbacks,
            seed=training.seed,
            read_only=not chief,
        )
        return [*callbacks, backup], backup

    def _finish(self, config, validation_pairs):
        """Takes the better of the averaged last checkpoints and the best single one, and scores it."""
        keras.config.set_dtype_policy("float32")
        checkpoints = self.folder / "checkpoints"
        last = LastCheckpoints(checkpoints).paths()[-self.recipe.training.average_last :]
        candidates = {f"average of the last {len(last)} checkpoint{'s' * (len(last) > 1)}": last}
        if (checkpoints / "best.weights.h5").exists():
            candidates["best checkpoint"] = [checkpoints / "best.weights.h5"]
        results = {}
        for name, paths in candidates.items():
            model = average_checkpoints(paths, config)
            results[name] = (self._score(model, validation_pairs), model)
            self._say(f"{name}: validation {results[name][0]['bleu']}")
        name = max(results, key=lambda name: results[name][0]["bleu"].value)
        validation, model = results[name]
        save_preset(self.folder, model, *self._tokenizers)
        scores: dict[str, Any] = {
            "model": name,
            "epochs": self.recipe.training.epochs,
            "validation": scores_as_dict(validation),
            "examples": _examples([source for source, _ in validation_pairs]),
        }
        if self.recipe.data.test:
            test = list(RecipeCorpora(self.recipe.data.test, self.recipe.data, self._data))
            test_scores = self._score(model, test)
            scores["test"] = scores_as_dict(test_scores)
            self._say("test:", *test_scores.values(), sep="\n  ")
        write_json(self.folder / "scores.json", scores)
        self._say(f"The best model ({name}) is in {self.folder}.")
        return scores

    def _score(self, model, pairs):
        return score_model(Translator(model, *self._tokenizers), pairs, self.recipe.data.target_language)

    def _finished(self):
        path = self.folder / "scores.json"
        return path.exists() and read_json(path)["epochs"] >= self.recipe.training.epochs

    def _say(self, *lines, sep="\n"):
        if self._worker == 0:
            print(*lines, sep=sep, flush=True)


def _examples(texts):
    """A few short texts from all over, for whoever tries the model."""
    short = list(dict.fromkeys(text for text in texts if 0 < len(text) <= _LONGEST_EXAMPLE))
    return short[:: max(1, len(short) // _EXAMPLES)][:_EXAMPLES]
