"""The wheel, and the command line that it gives in an environment of its own, in a folder without the sources."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.request
import venv
import zipfile

import pytest
import yaml

from keras_transformer.data.phrasebook import phrasebook
from tests.training.runs import TINY

HELP = """
import contextlib, io, sys
import typer
from keras_transformer.cli import app, main
for command in typer.main.get_command(app.app).commands:
    sys.argv = ["keras-transformer", command, "--help"]
    with contextlib.redirect_stdout(io.StringIO()) as output, contextlib.suppress(SystemExit):
        main()
    print(command, f"Usage: keras-transformer {command}" in output.getvalue())
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory, request):
    root, folder = request.config.rootpath, tmp_path_factory.mktemp("wheel")
    copy = folder / "copy"  # setuptools adds what an earlier build has left behind.
    shutil.copytree(
        root / "keras_transformer", copy / "keras_transformer", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(root / name, copy)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, copy]
    built = subprocess.run(command, capture_output=True, text=True)
    if built.returncode and "No matching distribution" in built.stderr:
        pytest.skip("building a wheel needs setuptools, which pip could not get")
    assert built.returncode == 0, built.stderr
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """The `bin` folder of an environment with the wheel; what it depends on is that of the tests."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    install = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", "--quiet", "--no-deps"]
    subprocess.run([*install, wheel], check=True)
    packages = next((folder / "lib").glob("python*/site-packages"))
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return folder / "bin"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the commands run: a recipe and its texts."""
    folder = tmp_path_factory.mktemp("work")
    for language, texts in zip(("zh", "en"), zip(*phrasebook("zh", "train")[:40], strict=True), strict=True):
        (folder / f"text.{language}").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    pairs = {"source": "text.zh", "target": "text.en"}
    recipe = {
        "data": {
            "source_language": "zh",
            "target_language": "en",
            "train": [pairs],
            "validation": [pairs],
            "test": [pairs],
        },
        "tokenizer": {"vocabulary_size": 500},
        "model": TINY,
        "optimizer": {"warmup_steps": 1},
        "training": {"epochs": 1, "average_last": 1, "parallel_parts": 1},
    }
    (folder / "my.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def run(environment, folder):
    """Runs the installed command to its end; gives what it printed."""

    def run(*arguments, stdin=""):
        process = subprocess.run(
            [environment / "keras-transformer", *map(str, arguments)],
            cwd=folder,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            timeout=300,
        )
        assert process.returncode == 0, process.stderr[-3000:]
        return process.stdout

    return run


@pytest.fixture(scope="module")
def trained(run):
    return run("train", "my.yaml", "--to", "run")


@pytest.fixture(scope="module")
def exported(run, trained):
    return run("export", "run", "--to", "exported")


def test_wheel_holds_the_package_and_nothing_else(wheel, request):
    root, names = request.config.rootpath, zipfile.ZipFile(wheel).namelist()
    sources = {str(path.relative_to(root)) for path in (root / "keras_transformer").rglob("*.py")}
    sources |= {str(path.relative_to(root)) for path in (root / "keras_transformer").glob("training/recipes/*.yaml")}
    assert {name for name in names if ".dist-info/" not in name} == sources
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_every_command_has_help(environment, folder):
    pytest.importorskip("typer", reason="the command line needs typer")
    script = f"import keras_transformer; print(keras_transformer.__file__){HELP}"
    process = subprocess.run([environment / "python", "-c", script], cwd=folder, capture_output=True, text=True)
    file, *commands = process.stdout.splitlines()
    assert process.returncode == 0 and file.startswith(str(environment.parent)), process.stderr[-3000:]
    assert len(commands) == 10 and all(line.endswith(" True") for line in commands)


def test_recipe_is_printed(run):
    assert yaml.safe_load(run("recipe", "demo"))["data"]


def test_tokenizer_is_trained_and_used(run):
    run("tokenizer", "train", "text.zh", "text.en", "--to", "my.model", "--vocabulary-size", 500)
    ids = run("tokenizer", "encode", "my.model", "--ids", stdin="我爱水课\n")
    assert run("tokenizer", "decode", "my.model", stdin=ids) == "我爱水课\n"


def test_model_is_trained_evaluated_scored_and_measured(run, trained, folder):
    assert "40 of 40 pairs kept" in trained and (folder / "run" / "model.weights.h5").exists()
    assert len(run("translate", "run", "--beam-size", 1, stdin="我爱水课\n\n他\n").splitlines()) == 3
    assert run("evaluate", "run", "--beam-size", 1).startswith("BLEU ")
    scores = run("score", "run", "--source", "text.zh", "--target", "text.en").splitlines()
    assert len(scores) == 40 and all(float(score) < 0 for score in scores)
    speed = json.loads(run("benchmark", "run", "--input", "text.zh", "--beam-size", 1, "--rounds", 1, "--json"))
    assert speed["sentences"] == 40


def test_export_is_inspected_and_has_the_examples_of_the_run(run, exported, folder):
    assert (folder / "exported" / "1" / "saved_model.pb").exists()
    assert "serving_default" in run("inspect", "exported")
    card = yaml.safe_load((folder / "exported" / "1" / "assets.extra" / "card.yaml").read_text(encoding="utf-8"))
    scores = json.loads((folder / "run" / "scores.json").read_text(encoding="utf-8"))
    assert card["examples"] == scores["examples"] and len(scores["examples"]) == 5


def test_demo_page_is_served(environment, folder, exported):
    pytest.importorskip("gradio", reason="the demo page needs gradio")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [environment / "keras-transformer", "demo", "exported", "--port", str(port)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        page = b""
        while not page:
            assert process.poll() is None, process.stdout.read()
            time.sleep(0.5)
            with contextlib.suppress(OSError):
                page = urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10).read()
        assert b"gradio" in page
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) in (0, 130)
    finally:
        process.kill()
