"""Callbacks for `model.fit`, where Keras has none."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py  # type: ignore[import-untyped]
import keras
import numpy as np

from keras_transformer._checks import check_integer, check_positive


class TranslationScores(keras.callbacks.Callback):
    """Translates a validation set during training and adds its BLEU and chrF to the logs of the epoch.

    They are `val_bleu` and `val_chrf`, in percent, of sacreBLEU, whose signature is printed once: monitor them with
    Keras' `ModelCheckpoint` or `EarlyStopping`, behind this callback in the list and with `mode="max"`. They ignore the
    case where the model writes lower case, which the signature says.

    Args:
        translator: A `Translator` of the model in training.
        pairs: Pairs of texts, source and reference translation.
        target_language: Code of the target language; sacreBLEU's tokenizer depends on it.
        frequency: Epochs from one translation to the next; in between the scores stay as they were.
        samples: Translations to print.

    Raises:
        ValueError: If an argument is out of range, or the references cannot be scored.
    """

    def __init__(
        self, translator, pairs: Sequence[tuple[str, str]], target_language: str, frequency: int = 1, samples: int = 2
    ):
        super().__init__()
        self._translator, self._target_language = translator, target_language
        self._sources, self._references = ([pair[side] for pair in pairs] for side in (0, 1))
        self.frequency, self.samples = check_positive("frequency", frequency), check_integer("samples", samples)
        self._signature_printed = False
        self._score(self._references)  # What is wrong with them shows before an epoch has passed.
        self.scores: dict[str, float] = {}

    def on_epoch_end(self, epoch, logs=None):
        if not self.scores or (epoch + 1) % self.frequency == 0 or epoch + 1 == self.params["epochs"]:
            self._translate()
        if logs is not None:
            logs.update(self.scores)

    def _translate(self):
        translations = [one.text for one in self._translator.translate(self._sources, beam_size=1, return_scores=False)]
        scores = self._score(translations)
        self.scores = {f"val_{name}": score.value for name, score in scores.items()}
        lines = [] if self._signature_printed else [str(score) for score in scores.values()]
        self._signature_printed = True
        for row in range(min(self.samples, len(self._sources))):
            lines.append(f"  {self._sources[row]}  ->  {translations[row]}")
        if lines:
            print("", *lines, sep="\n", file=sys.stderr, flush=True)

    def _score(self, translations):
        from keras_transformer.evaluate import score_translations

        return score_translations(
            hypotheses=translations,
            references=self._references,
            target_language=self._target_language,
            metrics=("bleu", "chrf"),
            lowercase=self._translator.lowers_case,
        )


class TokensPerSecond(keras.callbacks.Callback):
    """Adds the real target tokens that training takes a second to the logs, and so to Keras' progress bar.

    The count is on the device that trains, and asked for once a second: to ask is to wait for the step.
    """

    def on_epoch_begin(self, epoch, logs=None):
        self._started, self._asked, self.value = None, 0.0, 0.0

    def on_train_batch_end(self, batch, logs=None):
        now = time.perf_counter()
        if self._started is None:  # The first step also traces.
            self._started, self._asked, self._tokens_before = now, now, self.model.trained_tokens
        elif now - self._asked >= 1 or batch + 1 == self.params.get("steps"):
            self._ask(now)
        if logs is not None and self.value:
            logs["tokens_per_second"] = self.value

    def on_epoch_end(self, epoch, logs=None):
        if logs is not None and self.value:  # Not asked anew: validation has a count of its own in the meantime.
            logs["tokens_per_second"] = self.value

    def _ask(self, now):
        self._asked = now
        self.value = (self.model.trained_tokens - self._tokens_before) / max(now - self._started, 1e-9)


class LastCheckpoints(keras.callbacks.Callback):
    """Saves a checkpoint after every epoch and keeps the last few, to average them (section 6.1).

    Args:
        folder: Where they go, as `epoch-0001.weights.h5` and so on, and nothing else does.
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
        for path in self.paths():
            if not epoch + 1 - self.keep < _number(path) <= epoch + 1:  # Later ones are of another training.
                path.unlink()

    def paths(self) -> list[Path]:
        """The checkpoints that there are, oldest first."""
        return sorted(self.folder.glob("epoch-*.weights.h5"), key=_number)


def _number(path):
    return int(path.name.removeprefix("epoch-").split(".")[0])


# What callbacks forget in a new process, and need to go on as if there had been no break.
_STATE = {
    TranslationScores: ("scores",),
    keras.callbacks.ModelCheckpoint: ("best",),
    keras.callbacks.EarlyStopping: ("best", "best_epoch", "wait"),
    keras.callbacks.ReduceLROnPlateau: ("best", "wait", "cooldown_counter"),
}


class Backup(keras.callbacks.Callback):
    """As Keras' `BackupAndRestore`, with all that a training needs to go on as if it had not been killed.

    A backup is made before each epoch but the first: one file with the weights, the optimizer's state, the epoch, and
    what other callbacks know (the best score, the patience used up). It appears whole or not at all, and the one before
    is kept. The seeds of dropout are set anew for each epoch, so that they do not depend on what was before. The order
    of the data is the caller's: see `TokenBatches.dataset`.

    Put it last in the list of callbacks.

    Args:
        folder: Where backups go, and nothing else does.
        steps_per_epoch: Batches of an epoch, as `fit` has it: a backup of epochs of another length is refused.
        callbacks: The other callbacks of the list.
        seed: Seed of dropout, an integer.
        read_only: Whether to keep no backup of one's own, as all workers but the first do.

    Raises:
        ValueError: If an argument is out of range, or a callback is an `EarlyStopping` that restores the best weights:
            they are in no backup. A `ModelCheckpoint` keeps them.
    """

    def __init__(
        self, folder: str | os.PathLike, steps_per_epoch: int, callbacks=(), seed: int = 0, read_only: bool = False
    ):
        super().__init__()
        self._folder, self._callbacks, self._read_only = Path(folder), list(callbacks), read_only
        self.steps_per_epoch = check_positive("steps_per_epoch", steps_per_epoch)
        self.seed = check_integer("seed", seed)
        for callback in self._callbacks:
            if getattr(callback, "restore_best_weights", False):
                raise ValueError(
                    "A backup does not hold the best weights: let a ModelCheckpoint keep them. "
                    f"Received: {type(callback).__name__} with restore_best_weights=True"
                )
        self._paths = [self._folder / f"{name}.weights.h5" for name in ("latest", "previous")]
        self._restored: dict[str, Any] = {}

    def restore(self, model) -> int:
        """Loads the newest whole backup into a compiled model; returns the epochs done, 0 where there is none.

        Raises:
            ValueError: If there are backups and none is whole, or they are those of another model or of epochs of
                another length.
        """
        self._restored, problems = {}, []
        for path in filter(Path.exists, self._paths):
            try:
                with h5py.File(path) as file:
                    state = json.loads(file.attrs["backup"])
                if state["steps_per_epoch"] != self.steps_per_epoch:
                    raise ValueError(
                        f"The backup in {self._folder} is of epochs of {state['steps_per_epoch']} steps. "
                        f"Received: steps_per_epoch={self.steps_per_epoch}"
                    )
                model.load_weights(path)
            except (OSError, KeyError) as error:
                problems.append(f"{path}: {error}")
            else:
                self._restored = state
                break
        if problems and not self._restored:
            raise ValueError(f"No backup is whole. Received: {'; '.join(problems)}")
        model._initial_epoch = self._restored.get("epochs", 0)  # As BackupAndRestore tells it to `fit`.
        return model._initial_epoch

    def on_train_begin(self, logs=None):
        self.restore(self.model)
        callbacks = self._stateful()
        for key, attributes in self._restored.get("callbacks", {}).items():
            for name, value in attributes.items() if key in callbacks else ():
                setattr(callbacks[key], name, value)

    def on_epoch_begin(self, epoch, logs=None):
        # And not at an epoch's end: there a callback may have put averaged weights in the model.
        if epoch and epoch != self._restored.get("epochs"):
            self._save(epoch)
        states = [variable for variable in self.model.variables if "seed_generator_state" in variable.path]
        for number, variable in enumerate(states):
            seeds = np.random.SeedSequence([self.seed % 2**32, epoch, number]).generate_state(2)
            variable.assign(np.array([seeds[0], 0], dtype=variable.dtype))

    def on_train_end(self, logs=None):
        self.model._initial_epoch = None  # The next `fit` begins where it is told to.

    def _save(self, epoch):
        if self._read_only:
            # To read some variables, workers speak to each other: all must save for one to save.
            with tempfile.TemporaryDirectory() as folder:
                self.model.save_weights(Path(folder) / "unused.weights.h5")
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        for leftover in self._folder.glob(".*.weights.h5"):  # Of a process that was killed here.
            leftover.unlink()
        state = {
            "epochs": epoch,
            "steps_per_epoch": self.steps_per_epoch,
            "callbacks": {
                key: {name: _plain(getattr(callback, name)) for name in _attributes(callback)}
                for key, callback in self._stateful().items()
            },
        }
        latest, previous = self._paths
        unfinished = self._folder / ".unfinished.weights.h5"
        self.model.save_weights(unfinished)
        with h5py.File(unfinished, "a") as file:
            file.attrs["backup"] = json.dumps(state)
        if latest.exists():
            os.replace(latest, previous)
        os.replace(unfinished, latest)

    def _stateful(self):
        return {
            f"{i}_{type(callback).__name__}": callback
            for i, callback in enumerate(self._callbacks)
            if _attributes(callback)
        }


def _attributes(callback):
    return next((names for kind, names in _STATE.items() if isinstance(callback, kind)), ())


def _plain(value):
    """A number for JSON; None stays, and so does a dict of numbers."""
    return value.item() if isinstance(value, np.generic) else value
