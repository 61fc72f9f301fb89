"""Real worker processes on the loopback address train one model together."""

import json
import os
import runpy
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from keras_transformer.data.phrasebook import phrasebook
from tests.training.runs import command, write_recipe

WORKER = """
import sys
import keras
import numpy as np
import tensorflow as tf

workers = sys.argv[2] == "workers"
strategy = tf.distribute.MultiWorkerMirroredStrategy() if workers else tf.distribute.get_strategy()

from keras_transformer.data import TokenBatches, TokenizedCorpus
from keras_transformer.losses import MaskedCrossentropy
from keras_transformer.metrics import MaskedAccuracy, Perplexity
from keras_transformer.models import TransformerConfig, transformer

rng = np.random.default_rng(1)
lengths = rng.integers(2, 9, (41, 2))
ids = [np.concatenate([[*rng.integers(4, 30, length - 1), 3] for length in side]).astype("int32") for side in lengths.T]
corpus = TokenizedCorpus(ids, np.cumsum(lengths.T, axis=1))
train, validation = TokenBatches(corpus, 400, seed=1), TokenBatches(corpus, 100)
keras.utils.set_random_seed(1)
with strategy.scope():
    model = transformer(
        TransformerConfig(30, None, 1, 1, model_dim=16, intermediate_dim=16, num_heads=2, dropout=0.0)
    )
    model.compile(keras.optimizers.SGD(0.1), MaskedCrossentropy(0.1), metrics=[MaskedAccuracy(), Perplexity()])
    history = model.fit(
        train.distributed(strategy),
        steps_per_epoch=1,
        epochs=2,
        validation_data=validation.distributed(strategy),
        validation_steps=validation.steps_per_epoch,
        verbose=0,
    ).history
    tokens = model.trained_tokens
np.savez(sys.argv[1], *model.get_weights(), *map(np.array, history.values()), np.array(tokens))
"""


LAUNCH = Path(__file__).parents[2] / "training" / "launch.py"
free_ports = runpy.run_path(str(LAUNCH))["free_ports"]


def start(path, tf_config):
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, path, "workers"],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "TF_CONFIG": json.dumps(tf_config)},
        stderr=subprocess.PIPE,
        text=True,
    )


def arrays(path):
    with np.load(path) as file:
        return list(file.values())


def test_two_workers_end_with_the_weights_logs_and_validation_of_one_process(tmp_path, monkeypatch):
    cluster = {"worker": [f"127.0.0.1:{port}" for port in free_ports(2)]}
    processes = [
        start(tmp_path / f"worker{i}.npz", {"cluster": cluster, "task": {"type": "worker", "index": i}}) for i in (0, 1)
    ]
    monkeypatch.setattr(sys, "argv", ["", str(tmp_path / "alone.npz"), "alone"])
    exec(WORKER, {})
    for process in processes:
        _, errors = process.communicate(timeout=240)
        assert process.returncode == 0, errors[-3000:]
    first, second, alone = (arrays(tmp_path / f"{name}.npz") for name in ("worker0", "worker1", "alone"))
    assert len(first) > 20
    for mine, yours, whole in zip(first, second, alone, strict=True):
        np.testing.assert_array_equal(mine, yours)
        np.testing.assert_allclose(mine, whole, rtol=1e-5, atol=1e-6)


def test_recipe_trains_on_two_workers_as_on_one(tmp_path, run_anything, monkeypatch):
    monkeypatch.setenv("GLIBC_TUNABLES", "")  # Else each worker would start itself anew.
    pairs = phrasebook("zh", "train")[:100]
    training = {"epochs": 2, "batch_tokens": 512, "average_last": 1, "translate_every": 2}
    recipe = write_recipe(tmp_path, pairs, pairs[:5], training=training)
    options = ("train", recipe, "--set", "model.dropout=0.0")
    train = command(*options, "--to", tmp_path / "both", "--set", "training.distribution=multi_worker")
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    together = subprocess.Popen([sys.executable, LAUNCH, "--", *train], text=True, **pipes)
    assert run_anything(*options, "--to", tmp_path / "alone")[0] == 0
    errors = together.communicate(timeout=300)[1]
    assert together.returncode == 0, errors[-3000:]
    losses = []
    for name in ("alone", "both"):
        rows = [row.split(",") for row in (tmp_path / name / "history.csv").read_text("utf-8").splitlines()]
        losses.append(
            [[float(row[rows[0].index(key)]) for key in ("loss", "val_loss", "val_bleu")] for row in rows[1:]]
        )
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-3)
    assert (tmp_path / "both" / "model.weights.h5").exists()
    assert (tmp_path / "both" / "scores.json").exists()


def test_launcher_stops_all_workers_and_fails_when_one_fails():
    task = "json.loads(os.environ['TF_CONFIG'])['task']['index']"
    code = f"import json, os, time; index = {task}; index or time.sleep(60); exit(3 * index)"
    started = time.monotonic()
    process = subprocess.run([sys.executable, LAUNCH, "--workers", "2", "--", sys.executable, "-c", code])
    assert process.returncode == 3
    assert time.monotonic() - started < 30
    process = subprocess.run([sys.executable, LAUNCH, "--workers", "0", "x"], capture_output=True, text=True)
    assert process.returncode == 2
    assert "Received: 0" in process.stderr
