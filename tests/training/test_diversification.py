"""Data diversification, through the command line on a slice of the phrasebook."""

import json
import shutil

import numpy as np
import pytest

from keras_transformer.checkpoints import load_preset, load_tokenizers
from keras_transformer.data import TokenizedCorpus
from keras_transformer.data.phrasebook import phrasebook
from keras_transformer.decoding import Translator
from keras_transformer.decoding.constraints import EOS
from keras_transformer.models import Transformer
from keras_transformer.training import diversification
from keras_transformer.training.diversification import diversified_corpora, teacher_recipe
from keras_transformer.training.recipe import load_recipe
from keras_transformer.training.text import RunText
from tests.training.runs import write_recipe

PAIRS = phrasebook("zh", "train")[:120]
# Models of fewer epochs translate nothing at all.
DIVERSIFIED = {"data.diversify": 0.5, "data.teacher_epochs": 24}


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
def trained(recipe, tmp_path_factory):
    """The run folder, and for both models the pairs of each of the first two epochs and the weights they began with."""
    from keras_transformer.training import Run

    folder, met, fit = tmp_path_factory.mktemp("run"), [], Transformer.fit

    def fit_and_tell(model, dataset, steps_per_epoch, **arguments):
        batches = list(dataset.take(2 * steps_per_epoch).as_numpy_iterator())
        epochs = [pairs_of(batches[:steps_per_epoch]), pairs_of(batches[steps_per_epoch:])]
        met.append((*epochs, model.get_weights()))
        return fit(model, dataset, steps_per_epoch=steps_per_epoch, **arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Transformer, "fit", fit_and_tell)
        Run(load_recipe(recipe, DIVERSIFIED), folder).train()
    return folder, met


@pytest.fixture(scope="module")
def run_folder(trained):
    return trained[0]


def pairs_of(batches):
    """The pairs of batches, as tuples of ids."""
    return {
        tuple(tuple(row[row != 0].tolist()) for row in pair)
        for inputs, labels in batches
        for pair in zip(inputs["source_ids"], labels, strict=True)
    }


def lines(path):
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def test_text_is_there_once_more_as_a_model_of_both_directions_translates_it(run_folder):
    folder = run_folder / "diversification"
    sources, targets = (list(side) for side in zip(*PAIRS, strict=True))
    assert (lines(folder / "source.txt"), lines(folder / "target.txt")) == (sources, targets)
    teacher = Translator.from_preset(folder / "teacher")
    for name, texts in (("source", sources), ("target", targets)):
        translations = teacher.translate(texts, beam_size=4, length_penalty=1.0)
        expected = ["" if one.truncated else one.text for one in translations]
        assert lines(folder / f"{name}_translated.txt") == expected and any(expected)


def test_model_learns_from_the_text_and_both_translations_of_it_and_then_from_the_text_alone(trained):
    folder, (teacher, last) = trained
    tokenizer, made = load_tokenizers(folder)[0], folder / "diversification"
    sources, targets = zip(*PAIRS, strict=True)

    def ids(*sides):
        return {tuple((*tokenizer.encode(text), EOS) for text in pair) for pair in zip(*sides, strict=True)}

    text = ids(sources, targets)
    translated = ids(sources, lines(made / "source_translated.txt"))
    translated_back = ids(lines(made / "target_translated.txt"), targets)
    corpus = TokenizedCorpus.from_folder(folder / "data" / "diversified")
    every = {tuple(map(tuple, pair)) for pair in corpus}
    blank = {pair for pair in translated | translated_back if (EOS,) in pair}
    assert every == (text | translated | translated_back) - blank
    # An epoch has as many updates as batches of the text alone, and the first one reads from three times as much.
    assert last[0] < every and last[0] & text
    assert last[0] & (translated - text) and last[0] & (translated_back - text)
    assert last[1] == text
    assert teacher[0] == text | ids(targets, sources)


def test_model_starts_from_the_one_that_translated(trained):
    folder, (_, last) = trained
    taught = load_preset(folder / "diversification" / "teacher")[0].get_weights()
    assert all(map(np.array_equal, last[2], taught))


def test_report_of_the_text_counts_its_translations(run_folder):
    report = json.loads((run_folder / "data_report.json").read_text(encoding="utf-8"))
    made = run_folder / "diversification"
    assert [title.split()[:2] for title in report["diversified"]][1:] == [
        [str(made / "source.txt"), str(made / "source_translated.txt")],
        [str(made / "target.txt"), str(made / "target_translated.txt")],
    ]
    assert [one["read"] for one in report["diversified"].values()] == [120, 120, 120]
    assert len(report["train"]) == 1 and report["diversified_over_max_length"] == 0


def test_translation_that_was_cut_off_teaches_nobody_to_stop_there(run_folder, recipe, tmp_path, monkeypatch):
    folder = tmp_path / "diversification"
    shutil.copytree(run_folder / "diversification", folder)
    (folder / "source_translated.txt").unlink()
    search = {**diversification.SEARCH, "max_length": 4}
    monkeypatch.setattr(diversification, "SEARCH", search)
    diversified_corpora(load_recipe(recipe), load_tokenizers(run_folder)[0], folder, train=None)
    translations = Translator.from_preset(folder / "teacher").translate([source for source, _ in PAIRS], **search)
    assert {one.truncated for one in translations} == {False, True}
    assert lines(folder / "source_translated.txt") == ["" if one.truncated else one.text for one in translations]


def test_both_models_have_one_vocabulary(run_folder):
    tokenizer = (run_folder / "tokenizer.model").read_bytes()
    assert (run_folder / "diversification" / "teacher" / "tokenizer.model").read_bytes() == tokenizer


def test_training_that_goes_on_trains_the_last_model_alone(run_folder, recipe, run_anything):
    before = {path: path.stat().st_mtime_ns for path in (run_folder / "diversification").rglob("*")}
    set_options = [part for name, value in DIVERSIFIED.items() for part in ("--set", f"{name}={value}")]
    status, output, error = run_anything(
        "train", recipe, "--to", run_folder, *set_options, "--set", "training.epochs=3"
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
    tokenizer = load_tokenizers(run_folder)[0]
    forward, backward = diversified_corpora(load_recipe(recipe), tokenizer, folder, train=None, say=said.append)
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
    Run(load_recipe(recipe, {**DIVERSIFIED, "training.epochs": epochs}), copy).train()
    assert not (copy / "diversification").exists()


def test_translations_that_fit_in_no_batch_are_left_out(run_folder, recipe, tmp_path):
    """A model may write fifty tokens more than its source has."""
    shutil.copytree(run_folder / "diversification", tmp_path / "diversification")
    path = tmp_path / "diversification" / "source_translated.txt"
    path.write_text("\n".join(["water " * 100, *lines(path)[1:], ""]), encoding="utf-8")
    asked = load_recipe(recipe, {**DIVERSIFIED, "training.fixed_lengths": [100, 30]})
    said = []
    batches = RunText(asked, tmp_path, None, 0, lambda *lines: said.extend(lines)).diversified(train=None)
    assert batches.corpus.left_out == 1 and batches.corpus.lengths.max() <= 100
    assert "1 training pairs left out: over 100 tokens on a side" in said


def test_patience_begins_where_the_text_is_read_alone(run_folder, recipe, tmp_path):
    """Nothing is learnt at such a rate, so that no epoch is better than the first."""
    from keras_transformer.training import Run

    shutil.copytree(run_folder / "diversification", tmp_path / "diversification")
    options = {"training.epochs": 6, "training.patience": 1, "optimizer.peak_learning_rate": 1e-12}
    Run(load_recipe(recipe, {**DIVERSIFIED, **options}), tmp_path).train()
    history = lines(tmp_path / "history.csv")
    assert [row.split(",")[0] for row in history] == ["epoch", "0", "1", "2", "3", "4"]


@pytest.mark.parametrize(
    ("share", "epochs", "expected"), [(0, 4, 0), (0.01, 4, 1), (0.5, 3, 2), (0.5, 5, 3), (0.75, 96, 72), (1, 7, 7)]
)
def test_share_of_the_epochs_is_rounded_up(recipe, share, epochs, expected):
    asked = load_recipe(recipe, {"data.diversify": share, "training.epochs": epochs})
    assert asked.diversified_epochs == expected


def test_recipe_of_the_model_that_translates_is_the_same_but_for_the_text(recipe):
    plain = load_recipe(recipe)
    teacher = teacher_recipe(load_recipe(recipe, {"data.diversify": 0.5}))
    train = [*plain.data.train, *(corpus.model_copy(update={"swap": True}) for corpus in plain.data.train)]
    assert teacher == plain.model_copy(update={"data": plain.data.model_copy(update={"train": train, "test": []})})
    shorter = teacher_recipe(load_recipe(recipe, {"data.diversify": 0.5, "data.teacher_epochs": 1}))
    assert shorter.training == plain.training.model_copy(update={"epochs": 1})


def test_what_is_missing_is_told_before_anything_is_trained(recipe, tmp_path, run_anything):
    options = ("--set", "data.diversify=0.5", "--set", "data.test=[{source: none.zh, target: none.en}]")
    status, _, error = run_anything("train", recipe, "--to", tmp_path / "run", *options)
    assert status == 2 and "none.zh" in error
    # The corrected recipe may have the folder.
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [".trained-by-worker-0", "recipe.yaml"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"training.distribution": "multi_worker"},
            "on several machines: set it to 0, or .*=0.5",
        ),
        (
            {"training.init_from": "runs/general"},
            "init_from is not: set it to 0. Received: data.diversify=0.5",
        ),
        ({"tokenizer.shared": False}, "one tokenizer for both languages: set it to 0, or .*=0.5, tokenizer.shared"),
    ],
    ids=str,
)
def test_what_does_not_go_with_diversification_is_refused(recipe, options, message):
    with pytest.raises(ValueError, match=message):
        load_recipe(recipe, {"data.diversify": 0.5, **options})
