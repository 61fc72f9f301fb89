"""Data diversification, through the command line on a slice of the phrasebook."""

import json
import shutil

import pytest

from keras_transformer.data.phrasebook import phrasebook
from keras_transformer.decoding import Translator
from keras_transformer.training.diversification import backward_recipe, diversified_corpora, forward_recipe
from keras_transformer.training.recipe import load_recipe
from tests.training.runs import write_recipe

PAIRS = phrasebook("zh", "train")[:120]


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    folder = tmp_path_factory.mktemp("diversified")
    return write_recipe(
        folder,
        PAIRS,
        PAIRS[:10],
        training={"epochs": 2, "batch_tokens": 512, "translate_every": 2, "average_last": 1},
        optimizer={"peak_learning_rate": 0.01, "warmup_steps": 10},
    )


@pytest.fixture(scope="module")
def run_folder(recipe, tmp_path_factory):
    from keras_transformer.training import Run

    folder = tmp_path_factory.mktemp("run")
    Run(load_recipe(recipe, {"data.diversify": True}), folder).train()
    return folder


def lines(path):
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def test_text_is_there_once_more_as_models_of_both_directions_translate_it(run_folder):
    folder = run_folder / "diversification"
    sources, targets = (list(side) for side in zip(*PAIRS, strict=True))
    assert (lines(folder / "source.txt"), lines(folder / "target.txt")) == (sources, targets)
    for name, texts, file in (("forward", sources, "source"), ("backward", targets, "target")):
        translations = Translator.from_preset(folder / name).translate(texts, beam_size=4, length_penalty=1.0)
        assert lines(folder / f"{file}_translated.txt") == [one.text for one in translations]


def test_model_learns_from_the_text_and_from_both_translations_of_it(run_folder):
    report = json.loads((run_folder / "data_report.json").read_text(encoding="utf-8"))
    made = run_folder / "diversification"
    assert [title.split()[:2] for title in report["train"]][1:] == [
        [str(made / "source.txt"), str(made / "source_translated.txt")],
        [str(made / "target.txt"), str(made / "target_translated.txt")],
    ]
    assert [one["read"] for one in report["train"].values()] == [120, 120, 120]


def test_the_three_models_have_one_vocabulary(run_folder):
    tokenizer = (run_folder / "tokenizer.model").read_bytes()
    assert (run_folder / "diversification" / "forward" / "tokenizer.model").read_bytes() == tokenizer


def test_training_that_goes_on_trains_the_last_model_alone(run_folder, recipe, run_anything):
    before = {path: path.stat().st_mtime_ns for path in (run_folder / "diversification").rglob("*")}
    status, output, error = run_anything(
        "train", recipe, "--to", run_folder, "--set", "data.diversify=true", "--set", "training.epochs=3"
    )
    assert status == 0, error
    assert "1 of them done" in output and "Diversification" not in output
    assert {path: path.stat().st_mtime_ns for path in (run_folder / "diversification").rglob("*")} == before


def test_what_a_killed_run_has_made_is_not_made_again(run_folder, recipe, tmp_path):
    """Killed while it wrote the last text: all but that is as it was."""
    folder = tmp_path / "diversification"
    shutil.copytree(run_folder / "diversification", folder)
    missing = folder / "target_translated.txt"
    text = missing.read_bytes()
    missing.unlink()
    before, said = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}, []
    forward, backward = diversified_corpora(load_recipe(recipe), folder, train=None, say=said.append)
    assert said == [f"Diversification: translating {folder / 'target.txt'}"]
    assert missing.read_bytes() == text
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert (forward.source, forward.target) == tuple(str(folder / f"source{end}.txt") for end in ("", "_translated"))
    assert (backward.source, backward.target, backward.swap) == (str(folder / "target.txt"), str(missing), True)


def test_texts_of_a_finished_training_may_be_deleted(run_folder, recipe, tmp_path):
    from keras_transformer.training import Run

    copy = tmp_path / "run"
    shutil.copytree(run_folder, copy, ignore=shutil.ignore_patterns("diversification"))
    epochs = json.loads((copy / "scores.json").read_text(encoding="utf-8"))["epochs"] + 1
    Run(load_recipe(recipe, {"data.diversify": True, "training.epochs": epochs}), copy).train()
    assert not (copy / "diversification").exists()


def test_recipes_of_the_two_directions_are_the_same_but_for_the_text(recipe):
    asked = load_recipe(recipe, {"data.diversify": True})
    forward, backward = forward_recipe(asked), backward_recipe(asked)
    plain = load_recipe(recipe)
    assert forward == plain.model_copy(update={"data": plain.data.model_copy(update={"test": []})})
    assert (backward.data.source_language, backward.data.target_language) == ("en", "zh")
    assert [corpus.swap for corpus in backward.data.train + backward.data.validation] == [True, True]
    assert backward.training == forward.training
    assert backward_recipe(backward) == forward


def test_what_is_missing_is_told_before_anything_is_trained(recipe, tmp_path, run_anything):
    for option, named in (
        ("test=[{source: none.zh, target: none.en}]", "none.zh"),
        ("source_language=Chinese", "'Chinese'"),
    ):
        options = ("--set", "data.diversify=true", "--set", f"data.{option}")
        status, _, error = run_anything("train", recipe, "--to", tmp_path / named, *options)
        assert (status, (tmp_path / named / "diversification").exists()) == (2, False)
        assert named in error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"training.distribution": "multi_worker"}, "not possible on several machines. Received: data.diversify=True"),
        ({"training.init_from": "runs/general"}, "which training.init_from is not. Received: data.diversify=True"),
    ],
    ids=str,
)
def test_what_does_not_go_with_diversification_is_refused(recipe, options, message):
    with pytest.raises(ValueError, match=message):
        load_recipe(recipe, {"data.diversify": True, **options})
