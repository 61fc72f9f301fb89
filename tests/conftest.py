"""What tests share: seeds, and processes that know nothing of this one."""

import os
import subprocess
import sys

import keras
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def seeds():
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
