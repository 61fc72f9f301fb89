import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import types

import keras
import numpy as np
import pytest

from keras_transformer import callbacks as callbacks_module
from keras_transformer.callbacks import Backup, LastCheckpoints, TokensPerSecond, TranslationScores
from keras_transformer.decoding import Hypothesis, Translator
from keras_transformer.evaluate import score_translations
from keras_transformer.losses import MaskedCrossentropy
from keras_transformer.models import TransformerConfig, transformer
from keras_transformer.schedules import InverseSquareRootSchedule
from keras_transformer.text import Tokenizer

V = 40
RNG = np.random.default_rng(1)
SOURCE = RNG.integers(4, V, (12, 6)) * (np.arange(6) < RNG.integers(2, 7, (12, 1)))
LABELS = RNG.integers(4, V, (12, 5)) * (np.arange(5) < RNG.integers(1, 6, (12, 1)))
TARGET = np.concatenate([np.full((12, 1), 2), LABELS[:, :-1]], axis=1)
X = {"source_ids": SOURCE, "target_ids": TARGET}
SIZES = {"encoder_layers": 1, "decoder_layers": 1, "model_dim": 16, "intermediate_dim": 32, "num_heads": 2}
STEPS = 3
PAIRS = [("ein Hund", "a dog"), ("zwei Hunde laufen", "two dogs run"), ("ein Kind lacht", "a child laughs")]


def small(dtype=None, **fields):
    return transformer(TransformerConfig(**{"vocabulary_size": V, **SIZES, "dropout": 0.3, **fields}), dtype=dtype)


def momentum(rate):
    return keras.optimizers.SGD(rate, momentum=0.9)


def compiled(dtype=None, optimizer=momentum, vocabulary_size=V, **options):
    model = small(dtype, vocabulary_size=vocabulary_size)
    optimizer = optimizer(InverseSquareRootSchedule(0.02, 5))
    model.compile(optimizer, MaskedCrossentropy(0.1), **options)
    return model


def fit(model, callbacks=(), epochs=1, **options):
    arguments = {"batch_size": 4, "shuffle": False, "verbose": 0, **options}
    return model.fit(X, LABELS, epochs=epochs, callbacks=list(callbacks), **arguments).history


def copy_at(epoch, batch, folder):
    """A callback that copies what a process killed behind that batch would leave in `folder`, to `killed` beside it."""
    now = []

    def on_train_batch_end(number, logs):
        if (now[-1], number) == (epoch, batch):
            shutil.copytree(folder, folder.with_name("killed"))

    return keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs: now.append(epoch), on_train_batch_end=on_train_batch_end
    )


def train(folder, callbacks=(), killed_at=(), epochs=4, seed=5, **options):
    """A training with backups; returns the model and the history."""
    keras.utils.set_random_seed(seed)
    model = compiled(**options)
    callbacks = [*callbacks, *([copy_at(*killed_at, folder)] if killed_at else [])]
    return model, fit(model, [*callbacks, Backup(folder, STEPS, callbacks, seed=3)], epochs=epochs)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A training of four epochs: its model and history, and what a kill in the last epoch would have left."""
    folder = tmp_path_factory.mktemp("whole") / "backup"
    return *train(folder, killed_at=(3, 1)), folder.with_name("killed")


@pytest.fixture
def killed(whole, tmp_path):
    """A folder with the backups of before epochs 3 and 2."""
    return shutil.copytree(whole[2], tmp_path / "killed")


def assert_same_state(model, other):
    assert int(model.optimizer.iterations) == int(other.optimizer.iterations)
    pairs = zip([*model.weights, *model.optimizer.variables], [*other.weights, *other.optimizer.variables], strict=True)
    for one, two in pairs:
        np.testing.assert_allclose(np.asarray(one), np.asarray(two), rtol=1e-6, atol=1e-7, err_msg=one.path)


TRAIN = """
import json, os, pathlib, signal, sys
import keras, numpy as np
from keras_transformer import callbacks as callbacks_module
from keras_transformer.callbacks import Backup, LastCheckpoints
from keras_transformer.data import TokenBatches, TokenizedCorpus
from keras_transformer.losses import MaskedCrossentropy
from keras_transformer.models import TransformerConfig, transformer
from keras_transformer.schedules import InverseSquareRootSchedule

folder, dies_while_saving = pathlib.Path(sys.argv[1]), sys.argv[2] == "dies while saving"
keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)


def corpus(pairs):
    sides = [[np.append(rng.integers(4, 40, rng.integers(2, 9)), 3) for _ in range(pairs)] for _ in range(2)]
    ids = [np.concatenate(side).astype("int32") for side in sides]
    return TokenizedCorpus(ids, [np.cumsum([len(sentence) for sentence in side]) for side in sides])


class LabelSum(keras.metrics.Sum):
    def update_state(self, y_true, y_pred, sample_weight=None):
        super().update_state(keras.ops.cast(y_true, "float32"))


class Report(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        report = {"at": [self.epoch, batch], "iterations": int(self.model.optimizer.iterations), **logs}
        print(json.dumps({**report, "rate": float(self.model.optimizer.learning_rate)}), flush=True)

    def on_epoch_end(self, epoch, logs=None):
        print(json.dumps({"at": [epoch], "wait": stopping.wait, "best": float(best.best), **logs}), flush=True)


train, validation = TokenBatches(corpus(60), 100, seed=1), TokenBatches(corpus(20), 100)
steps = 4  # Fewer than a pass: a pass ends within an epoch.
sizes = {"encoder_layers": 1, "decoder_layers": 1, "model_dim": 16, "intermediate_dim": 32, "num_heads": 2}
model = transformer(TransformerConfig(40, dropout=0.3, attention_dropout=0.1, **sizes))
optimizer = keras.optimizers.Adam(InverseSquareRootSchedule(0.015, 6))
model.compile(optimizer, MaskedCrossentropy(0.1), metrics=[LabelSum(name="labels")])
stopping = keras.callbacks.EarlyStopping("val_loss", patience=2)
best = keras.callbacks.ModelCheckpoint(str(folder / "best.weights.h5"), save_best_only=True, save_weights_only=True)
callbacks = [LastCheckpoints(folder / "last", keep=3), best, stopping, Report()]
backup = Backup(folder / "backup", steps, callbacks, seed=7)
if dies_while_saving:
    def replace(source, target, real=os.replace):
        if "latest" in str(target) and (folder / "backup" / "previous.weights.h5").exists():
            os.kill(os.getpid(), signal.SIGKILL)
        real(source, target)

    callbacks_module.os.replace = replace
done = backup.restore(model)
model.fit(
    train.dataset(first_batch=done * steps),
    validation_data=validation.dataset(),
    epochs=12,
    initial_epoch=done,
    steps_per_epoch=steps,
    callbacks=[*callbacks, backup],
    verbose=0,
)
np.savez(folder / "end.npz", *map(np.asarray, [*model.weights, *optimizer.variables]))
"""


def run_and_kill(folder, kill_at=None, mode=""):
    """Runs the training above in a process of its own and kills it behind a batch; returns what it reported."""
    process = subprocess.Popen(
        [sys.executable, "-c", TRAIN, str(folder), mode],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    reports = []
    for line in process.stdout:
        if line.startswith("{"):
            reports.append(json.loads(line))
            if reports[-1]["at"] == kill_at:
                os.kill(process.pid, signal.SIGKILL)
                break
    errors = process.communicate()[1]
    assert process.returncode == (-signal.SIGKILL if kill_at or mode else 0), errors[-4000:]
    return reports


def test_training_that_is_killed_again_and_again_ends_as_if_it_had_not_been(tmp_path):
    """F15: weights, optimizer, rate, order of the data, dropout, best score, patience, number of epochs."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir(), killed.mkdir()
    expected = {tuple(report.pop("at")): report for report in run_and_kill(whole)}
    epochs = [at[0] for at in expected if len(at) == 1]
    assert 5 <= len(epochs) < 12 and expected[epochs[-1],]["wait"] == 2  # Patience ends it: there is something to lose.

    parts = [
        run_and_kill(killed, mode="dies while saving"),
        run_and_kill(killed, kill_at=[epochs[-1], 2]),
        run_and_kill(killed),
    ]
    assert [part[0]["at"] for part in parts] == [[0, 0], [1, 0], [epochs[-1], 0]]
    for report in itertools.chain(*parts):
        at = tuple(report.pop("at"))
        assert report == pytest.approx(expected[at], rel=1e-6), at
    assert list(expected)[-1] == at
    ends = [np.load(folder / "end.npz") for folder in (whole, killed)]
    for name in ends[0]:
        np.testing.assert_allclose(ends[1][name], ends[0][name], rtol=1e-6, atol=1e-7)
    for name in ("last", "backup", ""):
        files = [{path.name: path for path in (folder / name).glob("*.weights.h5")} for folder in (whole, killed)]
        assert files[0].keys() == files[1].keys()
    models = [small(), small()]
    for folder, model in zip((whole, killed), models, strict=True):
        model.load_weights(folder / "best.weights.h5")
    for one, two in zip(*(model.get_weights() for model in models), strict=True):
        np.testing.assert_allclose(two, one, atol=1e-7)


def averaged(rate):
    return keras.optimizers.SGD(rate, momentum=0.9, use_ema=True, ema_momentum=0.8)


def overflowing(rate):
    """The first few updates are skipped, and not counted."""
    return keras.optimizers.LossScaleOptimizer(momentum(rate), initial_scale=2.0**24)


@pytest.mark.parametrize(("optimizer", "dtype"), [(averaged, None), (overflowing, "mixed_float16")])
def test_resumed_training_equals_the_uninterrupted_one(tmp_path, optimizer, dtype):
    """F15: with averaged weights swapped in at each epoch's end; with fewer updates than batches."""

    def run(name, **options):
        swap = [keras.callbacks.SwapEMAWeights(swap_on_epoch=True)] if optimizer is averaged else []
        last = LastCheckpoints(tmp_path / f"{name} checkpoints")
        return *train(tmp_path / name, [*swap, last], optimizer=optimizer, dtype=dtype, epochs=3, **options), last

    whole, expected, checkpoints = run("whole", killed_at=(2, 1))
    assert (0 < int(whole.optimizer.iterations) < 9) == (optimizer is overflowing)
    resumed, history, resumed_checkpoints = run("killed", seed=6)
    assert history["loss"] == pytest.approx(expected["loss"][2:], rel=1e-6)
    assert_same_state(resumed, whole)
    whole.load_weights(checkpoints.paths()[-1]), resumed.load_weights(resumed_checkpoints.paths()[-1])
    assert_same_state(resumed, whole)


REPLICAS = """
import shutil
import keras, numpy as np, tensorflow as tf
from keras_transformer.callbacks import Backup
from keras_transformer.losses import MaskedCrossentropy
from keras_transformer.models import TransformerConfig, transformer

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
ids = np.random.default_rng(1).integers(3, 20, size=(4, 6))

def train(folder, copy_to=None):
    with strategy.scope():
        model = transformer(TransformerConfig(20, None, 1, 1, 8, 16, 2, dropout=0.3))
        model.compile(keras.optimizers.SGD(0.5), MaskedCrossentropy())
    copy = keras.callbacks.LambdaCallback(
        on_train_batch_begin=lambda batch, logs: epochs[-1] == 1 and copy_to and shutil.copytree(folder, copy_to),
        on_epoch_begin=lambda epoch, logs: epochs.append(epoch),
    )
    epochs, backup = [], Backup(folder, 1, seed=3)
    data = {"source_ids": ids, "target_ids": ids}
    history = model.fit(data, ids, batch_size=4, epochs=2, shuffle=False, callbacks=[copy, backup], verbose=0).history
    return model.get_weights(), history["loss"], epochs

weights, losses, epochs = train("whole", "killed")
resumed_weights, resumed_losses, resumed_epochs = train("killed")
assert (epochs, resumed_epochs) == ([0, 1], [1])
np.testing.assert_allclose(resumed_losses, losses[1:], rtol=1e-6)
for one, other in zip(resumed_weights, weights):
    np.testing.assert_allclose(one, other, atol=1e-7)
print("equal")
"""


def test_training_on_two_replicas_is_resumed_like_any_other(run_python):
    """F15."""
    assert run_python(REPLICAS) == "equal\n"


def hypotheses(*texts):
    return [Hypothesis(text, 0.0, False) for text in texts]


def test_what_callbacks_know_survives(tmp_path):
    """F15: scores between translations, the best score, patience, the reduced learning rate."""

    class Greedy:
        lowers_case = False

        def translate(self, sources, beam_size, return_scores):
            assert beam_size == 1 and not return_scores
            calls.append(sources)
            return hypotheses("a dog", "two dogs run", "a child " + "laughs " * len(calls))

    def callbacks():
        return [
            TranslationScores(Greedy(), PAIRS, "en", frequency=3, samples=0),
            keras.callbacks.ModelCheckpoint(str(tmp_path / "best.keras"), "val_bleu", mode="max", save_best_only=True),
            keras.callbacks.EarlyStopping("val_bleu", mode="max", patience=9),
            keras.callbacks.ReduceLROnPlateau("val_bleu", mode="max", patience=4, cooldown=1),
        ]

    def optimizer(rate):
        return keras.optimizers.SGD(0.1)

    def knowledge(callbacks):
        scores, best, stopping, plateau = callbacks
        return scores.scores, best.best, stopping.best, stopping.wait, plateau.best, plateau.wait

    calls = []
    whole = callbacks()
    model, expected = train(tmp_path / "whole", whole, killed_at=(4, 1), epochs=8, optimizer=optimizer)
    assert len(calls) == 4  # After the first epoch, every third, and the last.
    rates = expected["learning_rate"]
    assert rates[-1] < rates[0]
    del calls[2:]
    resumed_callbacks = callbacks()
    resumed, history = train(tmp_path / "killed", resumed_callbacks, epochs=8, optimizer=optimizer)
    assert len(calls) == 4
    assert knowledge(resumed_callbacks) == knowledge(whole)
    assert history.keys() == expected.keys()
    for name, values in history.items():
        assert values == pytest.approx(expected[name][4:], rel=1e-6), name
    assert_same_state(resumed, model)


def test_broken_backup_falls_back_to_the_one_before(whole, killed):
    """F15."""
    latest, model = killed / "latest.weights.h5", compiled()
    assert Backup(killed, STEPS).restore(model) == 3 and int(model.optimizer.iterations) == 9
    content = latest.read_bytes()
    for size in (0, 100, len(content) // 2, len(content) - 1):
        latest.write_bytes(content[:size])
        assert Backup(killed, STEPS).restore(model) == 2 and int(model.optimizer.iterations) == 6
    resumed, history = train(killed)
    assert history["loss"] == pytest.approx(whole[1]["loss"][2:], rel=1e-6)
    assert_same_state(resumed, whole[0])
    for path in killed.glob("*.weights.h5"):
        path.write_bytes(b"broken")
    with pytest.raises(ValueError, match=r"No backup is whole. Received: .*latest.weights.h5: .*previous.weights.h5: "):
        train(killed)


def test_backup_of_another_training_is_refused(killed):
    with pytest.raises(ValueError, match="of epochs of 3 steps. Received: steps_per_epoch=4"):
        Backup(killed, STEPS + 1).restore(compiled())
    with pytest.raises(ValueError, match=r"weights with vocabulary_size=40 \(here 41\)"):
        Backup(killed, STEPS).restore(compiled(vocabulary_size=V + 1))
    compiled().save_weights(killed / "latest.weights.h5")  # No backup at all.
    assert Backup(killed, STEPS).restore(compiled()) == 2


def test_worker_that_only_reads_restores_and_writes_nothing(killed):
    before = {path.name: path.stat().st_mtime_ns for path in killed.iterdir()}
    assert set(before) == {"latest.weights.h5", "previous.weights.h5"}
    history = fit(compiled(), [Backup(killed, STEPS, read_only=True)], epochs=5)
    assert len(history["loss"]) == 2
    assert {path.name: path.stat().st_mtime_ns for path in killed.iterdir()} == before


def test_what_a_process_killed_while_saving_left_goes_with_the_next_backup(killed):
    (killed / ".4711..unfinished.weights.h5").write_bytes(b"part")
    model, history = train(killed, epochs=5)
    assert len(history["loss"]) == 2
    assert sorted(path.name for path in killed.iterdir()) == ["latest.weights.h5", "previous.weights.h5"]
    assert len(fit(model)["loss"]) == 1  # Without a backup, `fit` begins where it is told to.


def test_dropout_of_an_epoch_does_not_depend_on_what_was_before():
    def losses(initial_epoch, seed):
        model = compiled(optimizer=lambda rate: keras.optimizers.SGD(0.0))
        model.set_weights(weights)
        return fit(model, [Backup("nowhere", STEPS, seed=seed, read_only=True)], 3, initial_epoch=initial_epoch)["loss"]

    weights = compiled().get_weights()
    first, second = losses(0, seed=1), losses(2, seed=1)
    assert second == pytest.approx(first[2:], rel=1e-6)
    assert len({round(loss, 5) for loss in [*first, *losses(0, seed=-2)]}) == 6


def test_backup_refuses_what_it_cannot_keep(tmp_path):
    for steps in (0, 2.5, True):
        with pytest.raises(ValueError, match="`steps_per_epoch` must be .*Received: steps_per_epoch="):
            Backup(tmp_path, steps)
    with pytest.raises(ValueError, match="`seed` must be a whole number"):
        Backup(tmp_path, 1, seed=0.5)
    with pytest.raises(ValueError, match="Received: EarlyStopping with restore_best_weights=True"):
        Backup(tmp_path, 1, [keras.callbacks.EarlyStopping(restore_best_weights=True)])


def test_last_checkpoints_are_kept_and_older_ones_go(tmp_path):
    callback = LastCheckpoints(tmp_path / "new" / "folder", keep=2)
    weights = []
    fit(compiled(), [callback, keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: weights.append(0))], epochs=3)
    assert [path.name for path in callback.paths()] == ["epoch-0002.weights.h5", "epoch-0003.weights.h5"]
    assert sorted(path.name for path in callback.folder.iterdir()) == [path.name for path in callback.paths()]


def save_epochs(callback, epochs):
    for epoch in epochs:
        callback.on_epoch_end(epoch - 1)
    return [int(path.name[6:].split(".")[0]) for path in callback.paths()]


def checkpoints_of_nothing(folder, keep):
    callback = LastCheckpoints(folder, keep)
    callback.set_model(types.SimpleNamespace(save_weights=lambda path: path.write_bytes(b"")))
    return callback


def test_last_checkpoints_are_ordered_by_number(tmp_path):
    assert save_epochs(checkpoints_of_nothing(tmp_path, keep=3), range(9997, 10_002)) == [9999, 10_000, 10_001]


def test_checkpoints_of_a_longer_training_before_do_not_displace_those_of_this_one(tmp_path):
    assert save_epochs(checkpoints_of_nothing(tmp_path, keep=2), range(1, 6)) == [4, 5]
    assert save_epochs(checkpoints_of_nothing(tmp_path, keep=2), [1]) == [1]
    assert save_epochs(checkpoints_of_nothing(tmp_path, keep=2), [2, 3]) == [2, 3]


@pytest.mark.parametrize("keep", [0, -1, 1.5, True])
def test_number_of_checkpoints_must_be_positive(tmp_path, keep):
    with pytest.raises(ValueError, match=rf"`keep` must be .*Received: keep={keep}"):
        LastCheckpoints(tmp_path, keep)


@pytest.mark.parametrize("options", [{}, {"r_drop": 1.0}, {"r_drop": 1.0, "micro_batches": 2}], ids=str)
def test_tokens_per_second_count_real_target_tokens_once(monkeypatch, options):
    now = 0.0
    monkeypatch.setattr(callbacks_module, "time", types.SimpleNamespace(perf_counter=lambda: now))
    counts, speeds = [], []

    def on_train_batch_end(batch, logs):
        nonlocal now
        now += 0.6
        counts.append(model.trained_tokens), speeds.append(logs.get("tokens_per_second", 0))

    model = compiled(run_eagerly=True, **options)
    recorder = keras.callbacks.LambdaCallback(on_train_batch_end=on_train_batch_end)
    validation = ({name: ids[:2] for name, ids in X.items()}, LABELS[:2])
    history = fit(model, [TokensPerSecond(), recorder], epochs=2, validation_data=validation)
    tokens = (LABELS != 0).reshape(3, 20).sum(axis=-1)
    assert counts == [*np.cumsum(tokens), *np.cumsum(tokens)]
    whole = tokens[1:].sum()  # The first step traces, and is left out.
    assert speeds == pytest.approx([0, 0, whole / 1.2] * 2)  # A count is asked for when a second has passed.
    assert history["tokens_per_second"] == pytest.approx([whole / 1.2] * 2)


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train([text for pair in PAIRS for text in pair], vocabulary_size=285, model_type="bpe")


def translating(tokenizer):
    model = compiled(vocabulary_size=tokenizer.vocabulary_size)
    return model, Translator(model, tokenizer)


def test_translation_scores_are_those_of_greedy_translations(tokenizer, tmp_path, capsys):
    model, translator = translating(tokenizer)
    expected = []

    def on_epoch_end(epoch, logs):
        hypotheses = [one.text for one in translator.translate([pair[0] for pair in PAIRS], beam_size=1)]
        scores = score_translations(hypotheses=hypotheses, references=[pair[1] for pair in PAIRS], target_language="en")
        expected.append((scores["bleu"].value, scores["chrf"].value))

    callbacks = [
        TranslationScores(translator, PAIRS, "en", samples=1),
        keras.callbacks.ModelCheckpoint(
            str(tmp_path / "{epoch}.weights.h5"), "val_chrf", mode="max", save_best_only=True, save_weights_only=True
        ),
        keras.callbacks.LambdaCallback(on_epoch_end=on_epoch_end),
    ]
    history = fit(model, callbacks, epochs=3)
    assert list(zip(history["val_bleu"], history["val_chrf"], strict=True)) == expected
    improved = [str(i + 1) for i in range(3) if all(expected[i][1] > chrf for _, chrf in expected[:i])]
    assert sorted(path.name.split(".")[0] for path in tmp_path.iterdir()) == improved
    errors = capsys.readouterr().err
    assert errors.count("nrefs:1|case:mixed|eff:no|tok:13a") == errors.count("nc:6|nw:0|space:no") == 1
    assert errors.count("ein Hund  ->  ") == 3 and "zwei Hunde" not in errors


def test_translation_scores_ignore_the_case_of_a_model_that_lowers_it(capsys):
    class Greedy:
        lowers_case = True

        def translate(self, sources, beam_size, return_scores):
            return hypotheses(*(target.lower() for _, target in pairs))

    pairs = [(source, target.title()) for source, target in PAIRS]
    callback = TranslationScores(Greedy(), pairs, "en", samples=0)
    callback.set_params({"epochs": 1})
    callback.on_epoch_end(0, {})
    assert callback.scores["val_chrf"] == pytest.approx(100)
    assert capsys.readouterr().err.count("case:lc") == 2


def test_translations_are_made_at_every_nth_epoch_and_the_last(capsys):
    class Greedy:
        lowers_case = False

        def translate(self, sources, beam_size, return_scores):
            assert beam_size == 1 and not return_scores
            epochs.append(len(epochs))
            return hypotheses("a dog and more", "two", "three")

    epochs, logs = [], []
    callback = TranslationScores(Greedy(), PAIRS, "en", frequency=3, samples=0)
    callback.set_params({"epochs": 8})
    for epoch in range(8):
        logs.append({})
        callback.on_epoch_end(epoch, logs[-1])
        logs[-1]["translated"] = len(epochs)
    assert [log["translated"] for log in logs] == [1, 1, 2, 2, 2, 3, 3, 4]
    assert all(log["val_bleu"] == logs[0]["val_bleu"] and log["val_chrf"] > 0 for log in logs)
    assert capsys.readouterr().err.count("\n") == 3  # The signatures, and an empty line before them.


def test_arguments_of_translation_scores_are_checked_before_an_epoch_has_passed(tokenizer):
    _, translator = translating(tokenizer)
    with pytest.raises(ValueError, match="`frequency` must be .*Received: frequency=0"):
        TranslationScores(translator, PAIRS, "en", frequency=0)
    with pytest.raises(ValueError, match="`samples` must be .*Received: samples=1.5"):
        TranslationScores(translator, PAIRS, "en", samples=1.5)
    with pytest.raises(ValueError, match="at least one of both"):
        TranslationScores(translator, [], "en")
    with pytest.raises(ValueError, match="`target_language` must be"):
        TranslationScores(translator, PAIRS, "English")
    with pytest.raises(ValueError, match="one line"):
        TranslationScores(translator, [("ein Hund", "a\ndog")], "en")
