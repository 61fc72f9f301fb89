"""`export` and `inspect` of the command line."""

import shutil

import numpy as np
import pytest
import tensorflow as tf
import yaml

pytest.importorskip("typer", reason="the command line needs typer")

from keras_transformer.export.card import read_card
from tests.training.runs import write_pairs


@pytest.fixture(scope="module")
def preset(exported, tmp_path_factory):
    folder = tmp_path_factory.mktemp("preset")
    exported[0].save_to_preset(folder)
    return folder


def test_export_in_half_precision_says_on_its_card_what_it_costs(run_anything, preset, tmp_path):
    files = write_pairs(tmp_path, "test", [("我爱水课。", "I love easy courses."), ("你好", "Hello")])
    scored_on = ("--source", files["source"], "--reference", files["target"], "--target-language", "en")
    options = ("--dtype", "bfloat16", "--beam-size", 2, "--set", "length_penalty=1.0", "--license", "CC0-1.0")
    status, output, _ = run_anything("export", preset, "--to", tmp_path / "model", *scored_on, *options)
    lines = output.splitlines()
    assert status == 0 and lines[-1] == str(tmp_path / "model" / "1")
    assert [line.partition(":")[0] for line in lines[:-1]] == ["export in float32", "export in bfloat16"]
    card = read_card(tmp_path / "model" / "1")
    assert set(card["scores"]) == {"export in float32", "export in bfloat16"}
    assert card["scores"]["export in bfloat16"]["bleu"].startswith("BLEU ") and card["license"] == "CC0-1.0"
    assert card["serving_default"]["beam_size"] == 2 and card["serving_default"]["length_penalty"] == 1.0


def test_inspect_prints_what_is_in_the_newest_version(run_anything, exported):
    for folder in (exported[1], exported[1].parent):
        status, output, _ = run_anything("inspect", folder)
        content = yaml.safe_load(output)
        assert status == 0 and content["folder"] == str(exported[1])
    assert content["card"]["name"] == "small"
    assert content["signatures"]["serving_default"]["inputs"] == {"text": "string [-1]"}
    assert content["operations"]["SentencepieceOp"] == 1 and content["operations"]["MatMul"] > 10
    sizes = {
        str(file.relative_to(exported[1])): file.stat().st_size for file in exported[1].rglob("*") if file.is_file()
    }
    assert content["bytes"] == {**sizes, "in all": sum(sizes.values())}


def test_export_for_ctranslate2(run_anything, preset, tmp_path):
    pytest.importorskip("ctranslate2")
    arguments = ("--format", "ctranslate2", "--quantization", "int8", "--to", tmp_path / "model")
    status, _, error = run_anything("export", preset, *arguments)
    # Its positions are learned, for 128 tokens.
    assert status == 0 and error == "" and (tmp_path / "model" / "model.bin").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "savedmodel"], "`format` must be one of 'saved_model', 'ctranslate2'"),
        (["--xla-buckets", "32;64"], "--xla-buckets takes whole numbers with commas between. Received: 32;64"),
        (["--dtype", "int8"], "`dtype` must be one of 'float32', 'bfloat16', 'float16'"),
        (["--dtype", "float16"], "A folder without a recipe needs the target language"),
        (["--cells", "0"], "`cells` must be a whole number of at least 1"),
        (["--max-beam-size", "0"], "`max_beam_size` must be a whole number of at least 1"),
        (["--beam-size", "64"], "`beam_size` must be at most the export's `max_beam_size`, 16"),
        (["--max-beam-size", "99999999999"], "`max_beam_size` must be at most 10000"),
        (["--quantization", "int8"], "--quantization is for --format ctranslate2"),
        (["--format", "ctranslate2", "--dtype", "float16", "--version", "2"], "Received: --version, --dtype"),
        (["--format", "ctranslate2", "--beam-size", "5", "--set", "n_best=2"], "Received: --beam-size, --set"),
        (["--source", "lonely.zh"], "Source and reference files go together"),
        (["--xla-buckets", "32,,64"], "--xla-buckets takes whole numbers"),
        (["--version", "-1"], "`version` must be a whole number of at least 1"),
        (["--set", "beam_sise=3"], "Did you mean 'beam_size'"),
        # Before there is anything scored, which here there is nothing for.
        (["--score", "--set", "return_scores=false"], "An exported model has scores. Received: return_scores=False"),
    ],
)
def test_mistakes_are_one_line_and_write_nothing(run_anything, preset, tmp_path, arguments, message):
    status, output, error = run_anything("export", preset, "--to", tmp_path / "model", *arguments)
    assert status == 2 and output == "" and message in error
    assert not (tmp_path / "model").exists()


def test_folders_that_hold_no_model_are_named(run_anything, tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "saved_model.pb").write_bytes(b"no protocol buffer")
    for arguments, message in (
        (("export", tmp_path / "nothing", "--to", tmp_path / "model"), "holds no finished model"),
        (("inspect", tmp_path / "nothing"), "There must be a saved_model.pb"),
        (("inspect", tmp_path), "Could not read a SavedModel from"),
    ):
        status, output, error = run_anything(*arguments)
        assert status == 2 and output == "" and message in error


def test_signatures_of_an_export_of_a_run_are_those_of_its_options(run_anything, preset, tmp_path):
    """What a request cannot give holds for `translate` as well."""
    arguments = ("--set", "banned_tokens=[300,301]", "--set", "no_repeat_ngram_size=1", "--max-length", 20)
    assert run_anything("export", preset, "--to", tmp_path / "model", *arguments)[0] == 0
    loaded = tf.saved_model.load(str(tmp_path / "model" / "1"))
    ids = loaded.signatures["decode"](source_ids=tf.constant([[500, 501, 502, 3]]))["target_ids"].numpy()[0]
    assert len(set(ids)) == len(ids) <= 20 and not set(ids) & {300, 301}
    assert np.all(ids > 0)


def test_scores_that_are_none_are_named(run_anything, preset, tmp_path):
    shutil.copytree(preset, tmp_path / "run")
    (tmp_path / "run" / "scores.json").write_text('{"validation": {"bleu": 3}}')
    status, output, error = run_anything("export", tmp_path / "run", "--to", tmp_path / "model")
    assert status == 2 and output == "" and "scores.json holds no scores of a run" in error


def test_interrupt_is_one_line(run_anything, preset, tmp_path, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(tf.saved_model, "save", interrupted)
    status, output, error = run_anything("export", preset, "--to", tmp_path / "model")
    assert (status, output, error) == (130, "", "Stopped; no version was written.")
    assert list((tmp_path / "model").iterdir()) == []


def test_ctranslate2_that_cannot_be_written_is_named(run_anything, preset, tmp_path):
    pytest.importorskip("ctranslate2")
    (tmp_path / "file").write_text("")
    arguments = ("export", preset, "--format", "ctranslate2", "--to", tmp_path / "file" / "model")
    status, _, error = run_anything(*arguments)
    assert status == 2 and "Could not write" in error
