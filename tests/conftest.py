"""What tests share: seeds, and processes that know nothing of this one."""

import io
import os
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

# Here and in the processes that tests start: half of the time of XLA goes into code that runs once.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")


_LONGEST = ("tests/training/", "tests/serving/", "tests/export/", "tests/layers/test_jax", "tests/test_callbacks")


def pytest_collection_modifyitems(items):
    """Files with long tests first: a worker that began one at the end would keep the others waiting."""
    items.sort(key=lambda item: not item.nodeid.startswith(_LONGEST))


tf.random.set_seed(1)  # Once: it drops what is cached, and the next call of every graph takes up to a second longer.


@pytest.fixture(autouse=True)
def seeds(monkeypatch):
    """Python's, NumPy's and Keras' seeds, which layers and tests draw from."""
    with monkeypatch.context() as patch:
        patch.setattr(tf.random, "set_seed", lambda seed: None)
        keras.utils.set_random_seed(1)


@pytest.fixture
def rng():
    return np.random.default_rng(1)


@pytest.fixture
def policy(request):
    """The dtype policy that the test is parametrised with, global for the time of the test."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(request.param)
    yield request.param
    keras.config.set_dtype_policy(before)


@pytest.fixture
def run_python(tmp_path):
    """Runs code in a fresh Python process in `tmp_path`; returns what it printed, fails with its error output."""

    def run(code, *arguments, **environment):
        process = subprocess.run(
            [sys.executable, "-c", code, *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **environment},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert process.returncode == 0, process.stderr[-4000:]
        return process.stdout

    return run


@pytest.fixture
def run_anything(monkeypatch, capsysbinary):
    """Runs a command of `keras-transformer` in this process; gives its exit status, output and last line of errors."""

    from keras_transformer.cli import main

    def run(*arguments, stdin=b""):
        monkeypatch.setattr(sys, "argv", ["keras-transformer", *map(str, arguments)])
        monkeypatch.setenv("GLIBC_TUNABLES", "")  # Else `train` would start this process anew.
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as exit_:
            main()
        output, errors = capsysbinary.readouterr()
        assert b"Traceback" not in errors
        return exit_.value.code, output.decode("utf-8"), (errors.decode("utf-8").splitlines() or [""])[-1]

    return run
