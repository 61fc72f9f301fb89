"""Whole runs through the command line on slices of the phrasebook; what is killed is a process of its own."""

import csv
import errno
import fcntl
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import yaml

from keras_transformer.checkpoints import average_checkpoints, load_preset
from keras_transformer.data.phrasebook import phrasebook
from keras_transformer.decoding import Translator
from keras_transformer.evaluate import score_translations
from keras_transformer.training.folder import only_trainer
from tests.training.runs import TINY, run, stop, write_recipe


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run: its recipe, its folder and what the command printed."""
    folder = tmp_path_factory.mktemp("finished")
    pairs = phrasebook("zh", "train")[:300]
    recipe = write_recipe(
        folder,
        pairs,
        pairs[:20],
        training={"epochs": 3, "batch_tokens": 512, "parallel_parts": 2, "average_last": 2, "patience": 3},
        optimizer={"peak_learning_rate": 0.005, "warmup_steps": 30, "ema_momentum": 0.9},
    )
    process = run("train", recipe, "--to", folder / "run")
    assert process.returncode == 0, process.stderr[-3000:]
    return recipe, folder / "run", process


def test_run_folder_holds_everything_that_the_run_made(finished):
    _, folder, process = finished
    report = json.loads((folder / "data_report.json").read_text(encoding="utf-8"))
    assert [entry["kept"] for entry in report["train"].values()] == [300]
    assert "300 of 300 pairs kept" in process.stdout
    assert "The warm-up of 30 updates lasts longer than the " in process.stdout
    with open(folder / "history.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["epoch"] for row in rows] == ["0", "1", "2"]
    assert {"loss", "val_loss", "val_bleu", "val_chrf", "tokens_per_second"} <= set(rows[0])
    assert list((folder / "logs" / "train").iterdir())
    assert [path.name for path in sorted((folder / "checkpoints").iterdir())] == [
        "best.weights.h5",
        "epoch-0002.weights.h5",
        "epoch-0003.weights.h5",
    ]
    assert yaml.safe_load((folder / "recipe.yaml").read_text(encoding="utf-8"))["model"] == TINY
    assert "nrefs:1|case:mixed|eff:no|tok:13a" in process.stderr


def test_scores_are_those_of_the_model_in_the_folder(finished):
    _, folder, _ = finished
    scores = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
    pairs = phrasebook("zh", "train")[:20]
    translations = Translator.from_preset(folder).translate([source for source, _ in pairs], beam_size=1)
    expected = score_translations(
        hypotheses=[one.text for one in translations], references=[target for _, target in pairs], target_language="en"
    )
    assert scores["test"]["bleu"]["value"] == pytest.approx(expected["bleu"].value)
    assert scores["test"]["bleu"]["signature"] == expected["bleu"].signature
    assert "lowercased_tokenized_bleu" in scores["test"]
    assert scores["examples"] == [source for source, _ in pairs][::4]


def test_evaluate_prints_the_scores_of_the_test_set_or_of_two_files(finished, run_anything):
    _, folder, _ = finished
    status, output, error = run_anything("evaluate", folder)
    assert status == 0, error
    scores = json.loads((folder / "scores.json").read_text(encoding="utf-8"))["test"]
    assert next(line.split()[1] for line in output.splitlines() if line.startswith("BLEU")) == (
        f"{scores['bleu']['value']:.2f}"
    )
    files = [folder.parent / f"validation.{language}" for language in ("zh", "en")]
    assert run_anything("evaluate", folder, "--source", files[0], "--reference", files[1])[1] == output
    one_line_less = files[1].with_name("short.en")
    one_line_less.write_text("".join(files[1].read_text("utf-8").splitlines(keepends=True)[1:]), encoding="utf-8")
    status, _, error = run_anything("evaluate", folder, "--source", files[0], "--reference", one_line_less)
    assert status == 2
    assert "validation.zh with 20 lines" in error
    assert "short.en with 19" in error


def test_finished_run_is_not_trained_again_and_another_recipe_is_refused(finished, run_anything):
    recipe, folder, _ = finished
    before = (folder / "model.weights.h5").stat().st_mtime_ns
    status, output, _ = run_anything("train", recipe, "--to", folder)
    assert (status, (folder / "model.weights.h5").stat().st_mtime_ns) == (0, before)
    assert "is trained already" in output
    status, _, error = run_anything("train", recipe, "--to", folder, "--set", "optimizer.warmup_steps=31")
    assert status == 2
    assert "another recipe" in error and "optimizer.warmup_steps" in error


def test_run_that_lowers_the_case_is_scored_without_it(tmp_path, run_anything):
    pairs = [("我爱水课", "I love easy courses"), ("我想喝水", "I would like water")]
    recipe = write_recipe(
        tmp_path,
        pairs,
        pairs,
        tokenizer={"vocabulary_size": 290, "normalization": "lower"},
        training={"epochs": 3, "batch_tokens": 64, "steps_per_epoch": 40, "average_last": 1, "translate_every": 3},
        optimizer={"peak_learning_rate": 0.003, "warmup_steps": 10},
    )
    status, output, error = run_anything("train", recipe, "--to", tmp_path / "run")
    assert status == 0, error
    assert "case:mixed" not in output + error
    sources, references = zip(*pairs, strict=True)
    translations = [one.text for one in Translator.from_preset(tmp_path / "run").translate(sources, beam_size=1)]
    assert any(translations) and translations == [text.lower() for text in translations]
    sides = {"hypotheses": translations, "target_language": "en", "metrics": ["chrf"]}
    expected = score_translations(**sides, references=[text.lower() for text in references])["chrf"]
    assert expected.value > score_translations(**sides, references=references)["chrf"].value
    scores = json.loads((tmp_path / "run" / "scores.json").read_text(encoding="utf-8"))["test"]
    assert scores["chrf"]["value"] == pytest.approx(expected.value)
    assert all("|case:lc|" in score["signature"] for score in scores.values())


def test_init_from_teaches_a_trained_model_new_sentences(finished, tmp_path, run_anything):
    _, folder, _ = finished
    new = [("他爱打水", "He loves to fetch water"), ("我想喝水果茶", "Fruit tea for me please")]
    assert Translator.from_preset(folder).translate(new[0][0], beam_size=1).text != new[0][1]
    training = {"epochs": 12, "batch_tokens": 64, "steps_per_epoch": 15, "average_last": 1, "translate_every": 12}
    recipe = write_recipe(
        tmp_path,
        new,
        new,
        training={**training, "init_from": str(folder)},
        optimizer={"peak_learning_rate": 0.003, "warmup_steps": 10},
    )
    status, _, error = run_anything("train", recipe, "--to", tmp_path / "run")
    assert status == 0, error
    assert (tmp_path / "run" / "tokenizer.model").read_bytes() == (folder / "tokenizer.model").read_bytes()
    translations = Translator.from_preset(tmp_path / "run").translate([source for source, _ in new], beam_size=1)
    assert [one.text for one in translations] == [target for _, target in new]
    status, _, error = run_anything("train", recipe, "--to", tmp_path / "other", "--set", "model.model_dim=16")
    assert status == 2
    assert "model_dim=32 (here 16)" in error


def test_run_killed_in_an_epoch_and_started_again_equals_one_that_was_not(finished):
    """F15. All in processes of their own, whose operations have as many cores and so round alike."""
    recipe, whole, _ = finished
    killed = whole.with_name("killed")
    assert stop(recipe, killed, "Epoch 2/3", signal.SIGINT) == 130
    assert stop(recipe, killed, "Epoch 3/3", signal.SIGKILL) == -signal.SIGKILL
    assert not (killed / "scores.json").exists()
    again = run("train", recipe, "--to", killed)
    assert again.returncode == 0, again.stderr[-3000:]
    assert "2 of them done" in again.stdout
    models = [load_preset(folder)[0] for folder in (whole, killed)]
    last = [
        average_checkpoints([folder / "checkpoints" / "epoch-0003.weights.h5"], models[0].config)
        for folder in (whole, killed)
    ]
    for pair in (models, last):  # The best one may be of an epoch before the last start.
        for expected, resumed in zip(*(model.get_weights() for model in pair), strict=True):
            np.testing.assert_allclose(resumed, expected, rtol=1e-5, atol=1e-6)
    histories = [(folder / "history.csv").read_text("utf-8").splitlines() for folder in (whole, killed)]
    for expected, resumed in zip(*histories, strict=True):
        columns = [
            cell for cell in range(len(histories[0][0].split(","))) if "second" not in histories[0][0].split(",")[cell]
        ]
        assert len(columns) >= 8
        if not expected.startswith("epoch"):
            rows = [[float(row.split(",")[column]) for column in columns] for row in (expected, resumed)]
            np.testing.assert_allclose(rows[1], rows[0], rtol=1e-4)


def test_a_start_that_failed_leaves_a_folder_that_the_corrected_recipe_may_have(tmp_path, run_anything):
    recipe = write_recipe(tmp_path, phrasebook("zh", "train")[:5], phrasebook("zh", "train")[:5])
    options = yaml.safe_load(recipe.read_text(encoding="utf-8"))
    for name in ("misspelt", "misspelt again"):
        options["data"]["train"][0]["source"] = str(tmp_path / name)
        recipe.write_text(yaml.safe_dump(options, allow_unicode=True), encoding="utf-8")
        status, _, error = run_anything("train", recipe, "--to", tmp_path / "run")
        assert status == 2 and name in error and "another recipe" not in error


HOLDER = """
import sys, time
from pathlib import Path
from keras_transformer.training.folder import only_trainer
with only_trainer(Path(sys.argv[1])), only_trainer(Path(sys.argv[2])):
    print("at work", flush=True)
    time.sleep(300)
"""


def test_folder_that_another_process_trains_in_is_refused_until_that_is_gone(finished, tmp_path, run_anything):
    recipe, folder, _ = finished
    held = tmp_path / "held"  # As a run has it that has only begun to read.
    held.mkdir()
    (held / "recipe.yaml").write_bytes((folder / "recipe.yaml").read_bytes())
    before = {path: path.stat().st_mtime_ns for path in [*folder.rglob("*"), *held.rglob("*")]}
    with subprocess.Popen([sys.executable, "-c", HOLDER, folder, held], stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout.readline() == "at work\n"
            for busy, option in ((folder, "training.epochs=9"), (held, "optimizer.warmup_steps=31")):
                status, _, error = run_anything("train", recipe, "--to", busy, "--set", option)
                assert status == 2
                assert f"one process at a time: wait for the other one, or stop it. Received: {busy}" in error
        finally:
            other.kill()
    assert {path: path.stat().st_mtime_ns for path in before} == before
    with only_trainer(folder), only_trainer(folder, worker=1):
        pass


def test_where_a_file_system_has_no_locks_nobody_is_kept_out(tmp_path, monkeypatch):
    def refused(number):
        def flock(*_):
            raise OSError(number, os.strerror(number))

        return flock

    monkeypatch.setattr(fcntl, "flock", refused(errno.ENOLCK))
    with only_trainer(tmp_path):
        pass
    monkeypatch.setattr(fcntl, "flock", refused(errno.EIO))
    with pytest.raises(OSError, match="Input/output error"), only_trainer(tmp_path):
        pass
