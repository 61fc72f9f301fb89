"""The run loop: from a recipe to a trained model, all of it in one folder."""

from __future__ import annotations

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
    load_weights,
    read_json,
    save_preset,
    write_json,
)
from keras_transformer.decoding import Translator
from keras_transformer.losses import MaskedCrossentropy
from keras_transformer.metrics import MaskedAccuracy, Perplexity
from keras_transformer.models import transformer
from keras_transformer.training.corpora import RecipeCorpora
from keras_transformer.training.devices import parallel_parts_of, strategy_of
from keras_transformer.training.folder import only_trainer, open_run_folder, trim_history
from keras_transformer.training.optimizer import make_optimizer
from keras_transformer.training.recipe import Recipe
from keras_transformer.training.scoring import score_model, scores_as_dict
from keras_transformer.training.text import RunText

_EXAMPLES, _LONGEST_EXAMPLE = 5, 100


class Run:
    """One training, in one folder; the same call goes on where a killed one was.

    Args:
        recipe: A `Recipe`.
        folder: The run folder. It will hold `recipe.yaml`, `tokenizer.model`, `data_report.json`, `data/`, `logs/` for
            TensorBoard, `history.csv`, `checkpoints/`, `backup/`, and at the end the best model (`config.json`,
            `model.weights.h5`) with its `scores.json`; with `data.diversify` also `diversification/`.
        data: Folder with local copies of public data sets; None to download them.
    """

    def __init__(self, recipe: Recipe, folder: str | os.PathLike, data: str | os.PathLike | None = None):
        self.recipe, self.folder, self._data = recipe, Path(folder), data
        self._text: RunText
        self._strategy = strategy_of(recipe.training.distribution)  # First of all: it wants TensorFlow untouched.
        self._parallel_parts = parallel_parts_of(recipe.training)
        cluster = self._strategy.cluster_resolver
        self._worker = (cluster.task_id or 0) if cluster and recipe.training.distribution == "multi_worker" else 0
        self._unused = tempfile.TemporaryDirectory()  # It goes when the run does.

    def train(self) -> dict[str, Any]:
        """Trains, or goes on, and writes the best model; returns what `scores.json` holds.

        Raises:
            ValueError: If the folder holds a run of another recipe, or another process trains in it. If a corpus, a
                tokenizer or a checkpoint is not as it should be; the message names it.
        """
        with only_trainer(self.folder, self._worker):
            open_run_folder(self.folder, self.recipe, write=self._worker == 0)
            if not self._finished():
                return self._train()
        self._say(f"{self.folder} is trained already. A greater training.epochs would go on.")
        return read_json(self.folder / "scores.json")

    def _train(self):
        training = self.recipe.training
        text = self._text = RunText(self.recipe, self.folder, self._data, self._worker, self._say)
        steps = training.steps_per_epoch or text.train.steps_per_epoch
        first = self.recipe.diversified_epochs
        before = (text.diversified(self._train_teacher), first * steps) if first else None
        if before:
            self._say(f"The first {first} epochs read {len(before[0].corpus):,} pairs: the text and its translations.")
        keras.utils.set_random_seed(training.seed)
        keras.config.set_dtype_policy(training.precision)
        with self._strategy.scope():
            model = self._make_model(steps)
            callbacks, backup = self._callbacks(model, steps)
            done = backup.restore(model)
            if before and not done:
                self._start_from(model, self.folder / "diversification" / "teacher")
            self._say(
                f"{model.count_params():,} parameters, {len(text.train.corpus):,} pairs, "
                f"{text.train.steps_per_epoch:,} batches a pass, {steps:,} updates an epoch, {training.epochs} epochs"
                + (f", {done} of them done" if done else "")
            )
            if self._worker == 0:
                trim_history(self.folder / "history.csv", done)
            started = time.perf_counter()
            if done < training.epochs:
                model.fit(
                    text.train.distributed(self._strategy, first_batch=done * steps, before=before),
                    validation_data=text.validation.distributed(self._strategy),
                    validation_steps=text.validation.steps_per_epoch,
                    epochs=training.epochs,
                    initial_epoch=done,
                    steps_per_epoch=steps,
                    callbacks=callbacks,
                    shuffle=False,
                    verbose=(1 if sys.stdout.isatty() else 2) if self._worker == 0 else 0,
                )
            self._say(f"Trained in {(time.perf_counter() - started) / 60:.1f} minutes.")
        return self._finish(model.config) if self._worker == 0 else {}

    def _train_teacher(self, recipe, folder):
        Run(recipe, folder, self._data).train()

    def _make_model(self, steps_per_epoch):
        recipe, training = self.recipe, self.recipe.training
        model = transformer(
            recipe.transformer_config(*(tokenizer.vocabulary_size for tokenizer in self._text.tokenizers))
        )
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
            self._start_from(model, Path(training.init_from), training.keep_optimizer)
        return model

    def _start_from(self, model, folder, keep_optimizer=False):
        """Weights, and if asked the optimizer's state, of an earlier run."""
        weights = folder / "model.weights.h5"
        if keep_optimizer:
            checkpoints = LastCheckpoints(folder / "checkpoints").paths()
            if not checkpoints:
                raise ValueError(f"keep_optimizer needs a run with checkpoints. Received: init_from={folder}")
            load_weights(model, checkpoints[-1])
        bare = transformer(model.config)  # Without an optimizer, as the file.
        load_weights(bare, weights)
        model.set_weights(bare.get_weights())

    def _callbacks(self, model, steps_per_epoch):
        training, chief = self.recipe.training, self._worker == 0
        translator = Translator(model, *self._text.tokenizers)
        mode = "min" if training.monitor == "val_loss" else "max"
        scores = TranslationScores(
            translator,
            self._text.validation_pairs,
            self.recipe.data.target_language,
            training.translate_every,
            samples=2 * chief,
        )
        callbacks: list = (
            [keras.callbacks.SwapEMAWeights(swap_on_epoch=True)] if self.recipe.optimizer.ema_momentum else []
        )
        callbacks += [TokensPerSecond(), scores]
        if training.patience:
            # No sooner than the text is read alone, where more is to be had.
            begin = {"start_from_epoch": self.recipe.diversified_epochs}
            stop = keras.callbacks.EarlyStopping(training.monitor, patience=training.patience, mode=mode, **begin)
            callbacks.append(stop)
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

    def _finish(self, config):
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
            results[name] = (self._score(model, self._text.validation_pairs), model)
            self._say(f"{name}: validation {results[name][0]['bleu']}")
        name = max(results, key=lambda name: results[name][0]["bleu"].value)
        validation, model = results[name]
        save_preset(self.folder, model, *self._text.tokenizers)
        scores: dict[str, Any] = {
            "model": name,
            "epochs": self.recipe.training.epochs,
            "validation": scores_as_dict(validation),
            "examples": _examples([source for source, _ in self._text.validation_pairs]),
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
        return score_model(Translator(model, *self._text.tokenizers), pairs, self.recipe.data.target_language)

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
