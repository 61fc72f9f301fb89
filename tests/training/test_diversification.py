"""Data diversification, through the command line on a slice of the phrasebook."""

import json
import shutil

import pytest

from keras_transformer.checkpoints import load_tokenizers
from keras_transformer.data.phrasebook import phrasebook
from keras_transformer.decoding import Translator
from keras_transformer.decoding.constraints import EOS
from keras_transformer.models import Transformer
from keras_transformer.training.diversification import backward_recipe, diversified_corpora, forward_recipe
from keras_transformer.training.recipe import load_recipe
from tests.training.runs import write_recipe

PAIRS = phrasebook("zh", "train")[:120]
# Models of fewer epochs translate nothing at all.
DIVERSIFIED = {"data.diversify": 0.5, "data.teacher_epochs": 12}


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
    """The run folder, and for each of the three models the batches of each of its two epochs."""
    from keras_transformer.training import Run

    folder, met, fit = tmp_path_factory.mktemp("run"), [], Transformer.fit

    def fit_and_tell(model, dataset, steps_per_epoch, **arguments):
        batches = list(dataset.take(2 * steps_per_epoch).as_numpy_iterator())
        met.append([pairs_of(batches[:steps_per_epoch]), pairs_of(batches[steps_per_epoch:])])
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


def test_text_is_there_once_more_as_models_of_both_directions_translate_it(run_folder):
    folder = run_folder / "diversification"
    sources, targets = (list(side) for side in zip(*PAIRS, strict=True))
    assert (lines(folder / "source.txt"), lines(folder / "target.txt")) == (sources, targets)
    for name, texts, file in (("forward", sources, "source"), ("backward", targets, "target")):
        translations = Translator.from_preset(folder / name).translate(texts, beam_size=4, length_penalty=1.0)
        assert lines(folder / f"{file}_translated.txt") == [one.text for one in translations]


def test_model_learns_from_the_text_and_both_translations_of_it_and_then_from_the_text_alone(trained):
    folder, (forward, backward, last) = trained
    tokenizer, made = load_tokenizers(folder)[0], folder / "diversification"
    sources, targets = zip(*PAIRS, strict=True)

    def ids(*sides):
        return {tuple((*tokenizer.encode(text), EOS) for text in pair) for pair in zip(*sides, strict=True)}

    text = ids(sources, targets)
    more = ids(sources, lines(made / "source_translated.txt")) | ids(lines(made / "target_translated.txt"), targets)
    # An epoch has as many updates as batches of the text alone, and the first one reads from three times as much.
    assert last[0] < text | more and last[0] & text and last[0] & more
    assert last[1] == text
    assert forward[0] == text and backward[0] == ids(targets, sources)


def test_the_three_models_have_one_vocabulary(run_folder):
    tokenizer = (run_folder / "tokenizer.model").read_bytes()
    assert (run_folder / "diversification" / "forward" / "tokenizer.model").read_bytes() == tokenizer


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
    Run(load_recipe(recipe, {**DIVERSIFIED, "training.epochs": epochs}), copy).train()
    assert not (copy / "diversification").exists()


def test_recipes_of_the_two_directions_are_the_same_but_for_the_text(recipe):
    asked = load_recipe(recipe, {"data.diversify": 0.5})
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
        options = ("--set", "data.diversify=0.5", "--set", f"data.{option}")
        status, _, error = run_anything("train", recipe, "--to", tmp_path / named, *options)
        assert (status, (tmp_path / named / "diversification").exists()) == (2, False)
        assert named in error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"training.distribution": "multi_worker"}, "not possible on several machines. Received: data.diversify=0.5"),
        ({"training.init_from": "runs/general"}, "which training.init_from is not. Received: data.diversify=0.5"),
    ],
    ids=str,
)
def test_what_does_not_go_with_diversification_is_refused(recipe, options, message):
    with pytest.raises(ValueError, match=message):
        load_recipe(recipe, {"data.diversify": 0.5, **options})
