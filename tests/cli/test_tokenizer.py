import gzip
import os
import re
import threading

import pytest

pytest.importorskip("tensorflow_text", reason="the tokenizer needs tensorflow-text")

from keras_transformer.data.phrasebook import phrasebook
from keras_transformer.text import Tokenizer

LINES = ["I love easy courses.", "", "我爱水课", "  two  spaces "]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A tokenizer that the command line trained on a plain and a packed file."""
    folder = tmp_path_factory.mktemp("tokenizer")
    for side, name in enumerate(("text.zh", "text.en.gz")):
        content = "\n".join(pair[side] for pair in phrasebook("zh", "train")).encode("utf-8")
        (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return folder


@pytest.fixture
def run(run_anything):
    return lambda *arguments, stdin=b"": run_anything("tokenizer", *arguments, stdin=stdin)


def test_trained_on_files_it_is_the_tokenizer_that_python_trains(run, model):
    path = model / "made.model"
    options = ("--to", path, "--vocabulary-size", 1500, "--model-type", "unigram", "--character-coverage", 0.999)
    assert run("train", model / "text.zh", model / "text.en.gz", *options)[:2] == (0, "")
    texts = [pair[side] for side in (0, 1) for pair in phrasebook("zh", "train")]
    made, expected = Tokenizer.from_file(path), Tokenizer.train(texts, 1500, "unigram", 0.999)
    assert made.vocabulary_size == 1500 and made.checksum == expected.checksum


def test_text_becomes_pieces_or_ids_and_ids_become_text(run, preset):
    tokenizer, stdin = Tokenizer.from_file(preset / "tokenizer.model"), "\n".join(LINES).encode("utf-8")
    for folder_or_file in (preset, preset / "tokenizer.model"):
        status, pieces, _ = run("encode", folder_or_file, stdin=stdin)
        assert status == 0
        assert pieces.splitlines() == [" ".join(tokenizer.pieces(tokenizer.encode(line))) for line in LINES]
        status, ids, _ = run("encode", "--ids", folder_or_file, stdin=stdin)
        assert [[*map(int, line.split())] for line in ids.splitlines()] == [tokenizer.encode(line) for line in LINES]
        status, texts, _ = run("decode", folder_or_file, stdin=ids.encode("utf-8"))
        assert texts.split("\n")[:-1] == [tokenizer.decode(tokenizer.encode(line)) for line in LINES]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "absent.txt", "--to", "x.model"], "Could not read absent.txt"),
        (["train", "few.txt", "--to", "absent/x.model"], "There is no folder absent"),
        (["train", "few.txt", "--to", "x.model", "--model-type", "word"], "`model_type` must be one of"),
        (["train", "few.txt", "--to", "x.model", "--vocabulary-size", "90"], "Received: vocabulary_size=90"),
        (["encode", "few.txt"], "Could not load a tokenizer from 'few.txt'"),
    ],
    ids=str,
)
def test_mistakes_are_one_line_and_leave_no_file(run, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "few.txt").write_text("a few words\n")
    status, output, error = run(*arguments)
    assert (status, output) == (2, "") and re.search(message, error), error
    assert [path.name for path in tmp_path.iterdir()] == ["few.txt"]


@pytest.mark.parametrize("line", ["5 x", "1.5", "-1", "300"])
def test_what_is_no_id_is_named(run, preset, line):
    status, _, error = run("decode", preset, stdin=line.encode())
    assert status == 2 and f"Received: {line!r}" in error


def test_a_link_stays_and_a_pipe_is_written_to(run, preset, tmp_path):
    real, link, pipe = (tmp_path / name for name in ("real", "link", "pipe"))
    real.write_text("old")
    link.symlink_to(real)
    os.mkfifo(pipe)
    received = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    expected = run("encode", preset, stdin=b"water\n")[1]
    for output in (link, pipe):
        assert run("encode", preset, "--output", output, stdin=b"water\n")[:2] == (0, "")
    reader.join(timeout=60)
    assert link.is_symlink() and real.read_text(encoding="utf-8") == expected
    assert pipe.is_fifo() and received == [expected]


def test_places_that_cannot_be_written_to_are_one_line(run, run_anything, preset, model, tmp_path):
    (tmp_path / "file").write_text("")
    for arguments in (
        ("tokenizer", "train", model / "text.zh", "--to", tmp_path, "--vocabulary-size", 700),
        ("tokenizer", "encode", preset, "--output", tmp_path),
        ("tokenizer", "encode", preset, "--output", ""),
        ("train", "demo", "--to", tmp_path / "file"),
    ):
        status, output, error = run_anything(*arguments)
        assert (status, output) == (2, "") and error.startswith("keras-transformer: "), arguments
    assert [path.name for path in tmp_path.iterdir()] == ["file"] and not (tmp_path / "file").read_text()
