"""`translate` and `evaluate` of the command line, on a preset of a model that says nothing sensible."""

import contextlib
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("tensorflow_text", reason="the tokenizer needs tensorflow-text")
pytest.importorskip("typer", reason="the command line needs typer")

from keras_transformer.cli import main
from keras_transformer.data.phrasebook import phrasebook
from keras_transformer.decoding import Translator
from keras_transformer.evaluate import score_translations
from tests.cli.conftest import TEXTS
from tests.training.runs import write_recipe


@pytest.fixture(scope="module")
def expected(preset):
    return [one.text for one in Translator.from_preset(preset).translate(TEXTS, beam_size=1)]


@pytest.fixture
def run(run_anything, preset):
    """Runs a command on the preset."""
    return lambda command, *arguments, stdin=b"": run_anything(command, preset, *arguments, stdin=stdin)


def test_lines_of_standard_input_are_translated_line_by_line(run, expected):
    stdin = ("\r\n".join(TEXTS) + "\r\n").encode("utf-8")
    status, output, _ = run("translate", "--beam-size", 1, stdin=b"\xef\xbb\xbf" + stdin)
    assert (status, output) == (0, "".join(f"{text}\n" for text in expected))
    assert run("translate", stdin=b"")[:2] == (0, "")


def test_plain_and_gzip_files_are_translated_into_a_file(run, expected, tmp_path):
    (tmp_path / "plain.zh").write_text("\n".join(TEXTS), encoding="utf-8")
    (tmp_path / "packed.zh.gz").write_bytes(gzip.compress("\n".join(TEXTS).encode("utf-8")))
    for name in ("plain.zh", "packed.zh.gz"):
        target = tmp_path / f"{name}.en"
        assert run("translate", "--beam-size", 1, "--input", tmp_path / name, "--output", target)[:2] == (0, "")
        assert target.read_text(encoding="utf-8").split("\n") == [*expected, ""]


def test_options_of_the_search_reach_it_and_cut_translations_are_counted(run, preset):
    stdin = "\n".join(TEXTS).encode("utf-8")
    options = ("--beam-size", 3, "--n-best", 2, "--json", "--set", "max_length=2", "--set", "length_penalty=0")
    status, output, error = run("translate", *options, stdin=stdin)
    found = [json.loads(line) for line in output.splitlines()]
    translations = Translator.from_preset(preset).translate(
        TEXTS, beam_size=3, n_best=2, max_length=2, length_penalty=0
    )
    assert status == 0
    assert [one["text"] for one in found] == [one.text for one in translations]
    for one, translation in zip(found, translations, strict=True):
        assert [k["text"] for k in one["n_best"]] == [k.text for k in translation.n_best]
        assert one["score"] == pytest.approx(translation.score, abs=1e-4)
    _, output, _ = run("translate", *options, "--set", "return_scores=false", stdin=stdin)
    assert [one | {"n_best": []} for one in map(json.loads, output.splitlines())] == [
        {"text": one.text, "score": None, "truncated": one.truncated, "n_best": []} for one in translations
    ]
    truncated = sum(one.truncated for one in translations)
    assert truncated and error == f"{truncated} translations ended at the limit of their length."


@pytest.mark.parametrize(
    ("arguments", "stdin", "message"),
    [
        (["--input", "missing.zh"], b"", "Could not read missing.zh"),
        ([], b"ok\nab\xff\n", "standard input:2 is not UTF-8: invalid start byte at byte 3"),
        (["--beam-size", "0"], b"a", "`beam_size` must be .* Received: beam_size=0"),
        (["--n-best", "2"], b"a", "say --json. Received: --n-best 2"),
        (["--set", "lenght_penalty=1"], b"a", "Did you mean 'length_penalty'"),
        (["--set", "length_penalty"], b"a", "--set takes NAME=VALUE"),
        (["--set", "banned_tokens=5"], b"a", "`banned_tokens` must be a list.* Received: banned_tokens=5"),
        (["--set", "verbose=true"], b"a", "no option 'verbose'"),
        (["--output", "missing/folder.en"], b"a", "Could not write missing/folder.en"),
    ],
    ids=str,
)
def test_mistakes_are_one_line_and_leave_no_file(run, monkeypatch, tmp_path, arguments, stdin, message):
    monkeypatch.chdir(tmp_path)
    if "--output" not in arguments:
        arguments = [*arguments, "--output", "out.en"]
    status, output, error = run("translate", *arguments, stdin=stdin)
    assert (status, output) == (2, "")
    assert error.startswith("keras-transformer: ")
    assert re.search(message, error), error
    assert not list(tmp_path.iterdir())


def test_mistakes_of_training_and_folders_that_hold_no_model_are_one_line(run_anything, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    recipe = write_recipe(tmp_path, phrasebook("zh", "train")[:10], phrasebook("zh", "train")[:10])
    (tmp_path / "train.en").write_bytes(b"one\n\xe9\n" + b"more\n" * 8)
    (tmp_path / "broken.yaml").write_text(recipe.read_text("utf-8") + "  epoch: 1\n")
    for arguments, message in (
        (["train", recipe, "--to", tmp_path / "bad"], "train.en:2: the line must be valid UTF-8"),
        (["train", "multi30k-en-de", "--data", tmp_path], "train.en.gz"),
        (["train", recipe, "--set", "training.epochs"], "--set takes NAME=VALUE"),
        (
            ["train", recipe, "--set", "training.epoch=1", "--set", "optimizer.beta=1"],
            "Received: optimizer.beta=1; training.epoch is no option. Did you mean epochs? ",
        ),
        (["train", "tatoeba-zh-en", "--data", tmp_path], "train.tsv.gz"),
        (["recipe", tmp_path / "train.zh"], "A recipe is one of "),
        (["recipe", tmp_path / "broken.yaml"], "training.epoch is no option"),
        (["evaluate", tmp_path / "absent"], "holds no finished model"),
        (["translate", tmp_path / "absent"], "holds no finished model"),
    ):
        status, output, error = run_anything(*arguments)
        assert (status, message in error) == (2, True), error
        assert error.startswith("keras-transformer: ") and not output  # `error` is the last line.
    monkeypatch.setattr(sys, "argv", ["keras-transformer", "--debug", "evaluate", str(tmp_path / "absent")])
    with pytest.raises(ValueError, match="holds no finished model"):
        main()


def test_interrupt_by_one_who_presses_the_keys_again_and_again_leaves_what_was_there_before(preset, tmp_path):
    target = tmp_path / "out.en"
    target.write_text("before\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "keras_transformer", "translate", preset, "--output", target],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    process.stdin.write(b"I love easy courses\n" * 3000)
    process.stdin.flush()
    while not list(tmp_path.glob(".*out.en")):  # The lines to come are waited for.
        time.sleep(0.1)
        assert process.poll() is None
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.1)
    _, errors = process.communicate(timeout=100)
    assert process.returncode == 130 and b"Traceback" not in errors
    assert target.read_text() == "before\n" and os.listdir(tmp_path) == ["out.en"]


def test_interrupt_in_a_callback_that_python_would_let_go_of_ends_the_command():
    code = """
import gc, signal, sys, time
from keras_transformer.cli.app import app, main, stopped_by_interrupt

def interrupted(*arguments):
    gc.callbacks.remove(interrupted)
    signal.raise_signal(signal.SIGINT)

@app.command()
def wait():
    with stopped_by_interrupt("Stopped."):
        gc.callbacks.append(interrupted)
        gc.collect()
        print("collected", flush=True)
        time.sleep(1000)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = ["keras-transformer", "wait"]
main()
"""
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert (process.returncode, process.stdout) == (130, "collected\n")
    assert process.stderr.endswith("\nStopped.\n") and "Traceback" not in process.stderr


def test_reader_who_has_had_enough_ends_it_quietly(preset):
    command = (
        f"yes water | head -30 | {sys.executable} -m keras_transformer translate {preset} --set max_length=2 | true"
    )
    process = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, timeout=300)
    assert b"Traceback" not in process.stderr and b"Exception" not in process.stderr


def test_evaluate_scores_a_pair_of_files_with_the_search_that_is_asked_for(run, preset, tmp_path):
    sources, references = [TEXTS[i] for i in (0, 1, 3)], ["a", "b c", "d"]
    for name, texts in (("test.zh", sources), ("test.en", references)):
        (tmp_path / name).write_text("\n".join(texts), encoding="utf-8")
    files = ("--source", tmp_path / "test.zh", "--reference", tmp_path / "test.en")
    assert run("evaluate", *files)[::2] == (
        2,
        f"keras-transformer: A folder without a recipe needs the target language. Received: {preset}",
    )
    for options, search in ((("--beam-size", 1), {"beam_size": 1}), (("--set", "max_length=3"), {"max_length": 3})):
        status, output, _ = run("evaluate", *files, "--target-language", "en", *options)
        translations = [one.text for one in Translator.from_preset(preset).translate(sources, **search)]
        scores = score_translations(hypotheses=translations, references=references, target_language="en")
        assert status == 0 and output.splitlines()[:3] == [str(score) for score in scores.values()]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--source", "a.txt"], "Source and reference files go together"),
        (["--test-set", "multi40k/test"], "The public sets are multi30k"),
        (["--test-set", "multi30k/test", "--data", "."], "multi30k"),
        ([], "The recipe has no test set"),
    ],
    ids=str,
)
def test_test_sets_that_are_none_are_named(run, arguments, message):
    status, _, error = run("evaluate", "--target-language", "de", *arguments)
    assert status == 2 and message in error
