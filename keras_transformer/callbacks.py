"""Callbacks for `model.fit`, where Keras has none."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import keras
import numpy as np

from keras_transformer._checks import check_integer, check_positive
from keras_transformer.checkpoints import write_json

# What Keras' callbacks forget in a new process, and need to go on as if there had been no break.
_STATE = {
    keras.callbacks.ModelCheckpoint: ("best",),
    keras.callbacks.EarlyStopping: ("best", "best_epoch", "wait"),
}


class TranslationScores(keras.callbacks.Callback):
    """Translates a validation set during training and adds its BLEU and chrF to the logs of the epoch.

    They are `val_bleu` and `val_chrf`, in percent, of sacreBLEU, whose signature is printed once: monitor them with
    Keras' `ModelCheckpoint` or `EarlyStopping`, behind this callback in the list and with `mode="max"`.

    Args:
        decoder: A `GreedyDecoder` for the model in training.
        pairs: Pairs of texts, source and reference translation.
        target_language: Code of the target language; sacreBLEU's tokenizer depends on it.
        frequency: Epochs from one translation to the next; in between the scores stay as they were.
        samples: Translations to print.

    Raises:
        ValueError: If an argument is out of range.
    """

    def __init__(
        self, decoder, pairs: Sequence[tuple[str, str]], target_language: str, frequency: int = 1, samples: int = 2
    ):
        super().__init__()
        self._decoder, self._target_language = decoder, target_language
        self._sources, self._references = ([pair[side] for pair in pairs] for side in (0, 1))
        self.frequency, self.samples = check_positive("frequency", frequency), check_integer("samples", samples)
        self._signature_printed = False
        self.scores: dict[str, float] = {}

    def on_epoch_end(self, epoch, logs=None):
        if not self.scores or (epoch + 1) % self.frequency == 0 or epoch + 1 == self.params["epochs"]:
            self._translate()
        if logs is not None:
            logs.update(self.scores)

    def _translate(self):
        from keras_transformer.evaluate import score_translations

        translations = self._decoder.translate(self._sources)
        scores = score_translations(
            hypotheses=translations,
            references=self._references,
            target_language=self._target_language,
            metrics=("bleu", "chrf"),
        )
        self.scores = {f"val_{name}": score.value for name, score in scores.items()}
        lines = [] if self._signature_printed else [str(score) for score in scores.values()]
        self._signature_printed = True
        for row in range(min(self.samples, len(self._sources))):
            lines.append(f"  {self._sources[row]}  ->  {translations[row]}")
        print("", *lines, sep="\n", file=sys.stderr, flush=True)


class TokensPerSecond(keras.callbacks.Callback):
    """Adds the real target tokens that training takes a second to the logs, and so to Keras' progress bar."""

    def on_epoch_begin(self, epoch, logs=None):
        self._started = None

    def on_train_batch_end(self, batch, logs=None):
        tokens, now = self.model.trained_tokens, time.perf_counter()
        if self._started is None:  # The first step also traces.
            self._started, self._tokens_before, self.value = now, tokens, 0.0
        else:
            self.value = (tokens - self._tokens_before) / (now - self._started)
        if logs is not None and self.value:
            logs["tokens_per_second"] = self.value

    def on_epoch_end(self, epoch, logs=None):
        if logs is not None and self._started is not None:
            logs["tokens_per_second"] = self.value


class LastCheckpoints(keras.callbacks.Callback):
    """Saves a checkpoint after every epoch and keeps the last few, to average them (section 6.1).

    Args:
        folder: Where they go, as `epoch-0001.weights.h5` and so on.
        keep: How many.

    Raises:
        ValueError: If `keep` is less than 1.
    """

    def __init__(self, folder: str | os.PathLike, keep: int = 10):
        super().__init__()
        self.folder, self.keep = Path(folder), check_positive("keep", keep)

    def on_epoch_end(self, epoch, logs=None):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.model.save_weights(self.folder / f"epoch-{epoch + 1:04d}.weights.h5")
        for path in self.paths()[: -self.keep]:
            path.unlink()

    def paths(self) -> list[Path]:
        """The checkpoints that there are, oldest first."""
        return sorted(self.folder.glob("epoch-*.weights.h5"), key=lambda path: int(path.name[6:].split(".")[0]))


class Backup(keras.callbacks.BackupAndRestore):
    """Keras' `BackupAndRestore`, with all that a training needs to go on as if it had not been killed.

    A backup is made before each epoch. With the weights and the optimizer's state it holds what Keras' callbacks know
    (the best score, the patience used up), and the epoch comes from the optimizer's own count of updates: files that
    belong to different moments, as a kill between two writes leaves them, cannot be mixed. The seeds of dropout are
    set anew for each epoch, so that they do not depend on what was before. The order of the data is the caller's: see
    `TokenBatches.dataset`.

    Put it last in the list of callbacks.

    Args:
        folder: Where backups go.
        steps_per_epoch: Updates of an epoch, as `fit` has it.
        callbacks: The other callbacks of the list.
        seed: Seed of dropout, an integer.
        read_only: Whether to restore only, as all workers but the first do.

    Raises:
        ValueError: If an argument is out of range.
    """

    def __init__(
        self, folder: str | os.PathLike, steps_per_epoch: int, callbacks=(), seed: int = 0, read_only: bool = False
    ):
        super().__init__(os.fspath(folder), delete_checkpoint=False, double_checkpoint=True)
        self._folder, self._callbacks, self._read_only = Path(folder), list(callbacks), read_only
        self.steps_per_epoch = check_positive("steps_per_epoch", steps_per_epoch)
        self.seed = check_integer("seed", seed)
        self._first_update: int | None = None

    def restore(self, model) -> int:
        """Loads the newest whole backup into a compiled model; returns the epochs done, 0 where there is none."""
        if self._first_update is None:  # An optimizer that has learnt elsewhere does not begin at 0.
            self._first_update = int(model.optimizer.iterations)
        self.set_model(model)
        super().on_train_begin()
        epochs = (int(model.optimizer.iterations) - self._first_update) // self.steps_per_epoch
        model._initial_epoch = epochs
        return epochs

    def on_train_begin(self, logs=None):
        epochs = self.restore(self.model)
        path = self._state_path(epochs)
        state = json.loads(path.read_text(encoding="utf-8")) if epochs and path.exists() else {}
        for key, attributes in state.items():
            callback = self._stateful().get(key)
            for name, value in attributes.items() if callback else ():
                setattr(callback, name, value)

    def on_epoch_begin(self, epoch, logs=None):
        if epoch and not self._read_only and epoch != self.model._initial_epoch:
            self._folder.mkdir(parents=True, exist_ok=True)
            state = {
                key: {name: _plain(getattr(callback, name)) for name in _attributes(callback)}
                for key, callback in self._stateful().items()
            }
            write_json(self._state_path(epoch), state)
            self._current_epoch = epoch
            self._save_model()
            for path in self._folder.glob("callbacks-*.json"):
                if int(path.stem.split("-")[1]) < epoch - 1:
                    path.unlink()
        self._seed_dropout(epoch)

    def on_epoch_end(self, epoch, logs=None):
        """Nothing: a callback may have put averaged weights in the model until the next epoch begins."""

    def _seed_dropout(self, epoch):
        states = [variable for variable in self.model.variables if "seed_generator_state" in variable.path]
        for number, variable in enumerate(states):
            seeds = np.random.SeedSequence([self.seed % 2**32, epoch, number]).generate_state(2)
            variable.assign(np.array([seeds[0], 0], dtype=variable.dtype))

    def _stateful(self):
        return {
            f"{i}_{type(callback).__name__}": callback
            for i, callback in enumerate(self._callbacks)
            if _attributes(callback)
        }

    def _state_path(self, epoch):
        return self._folder / f"callbacks-{epoch}.json"


def _attributes(callback):
    return next((names for kind, names in _STATE.items() if isinstance(callback, kind)), ())


def _plain(value):
    """A number for JSON; None stays."""
    return value.item() if isinstance(value, np.generic) else value
