import json

import pytest

pytest.importorskip("tensorflow_text", reason="the tokenizer needs tensorflow-text")

from keras_transformer.decoding import Translator
from tests.cli.conftest import TEXTS


def test_speed_counts_the_sentences_and_tokens_of_the_text(run_anything, preset, tmp_path):
    (tmp_path / "text").write_text("\n".join(TEXTS), encoding="utf-8")
    arguments = ("--input", tmp_path / "text", "--beam-size", 2, "--beam-size", 1, "--rounds", 2, "--json")
    status, output, _ = run_anything("benchmark", preset, *arguments)
    assert status == 0
    speeds = [json.loads(line) for line in output.splitlines()]
    assert [(speed["beam_size"], speed["sentences"]) for speed in speeds] == [(2, 4), (1, 4)]
    for speed in speeds:
        found = Translator.from_preset(preset).translate(TEXTS, beam_size=speed["beam_size"])
        tokens = sum(len(one.token_ids) for one in found)
        assert speed["tokens_per_second"] / speed["sentences_per_second"] == pytest.approx(tokens / 4)
        assert 0 < speed["median_latency"] <= speed["p99_latency"]
        assert speed["peak_bytes"] > 10**8


def test_a_line_for_people_says_the_same(run_anything, preset):
    status, output, _ = run_anything("benchmark", preset, "--input", "-", "--beam-size", 1, "--rounds", 1, stdin=b"a\n")
    assert status == 0 and output.startswith("beam size 1: ")
    assert all(word in output for word in ("sentences/s", "tokens/s; one sentence", "p99", "MiB"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input", "-"], "There must be texts to translate"),
        (["--input", "absent"], "Could not read absent"),
        (["--input", "-", "--rounds", "0"], "`rounds` must be"),
        ([], "needs the target language"),
    ],
    ids=str,
)
def test_mistakes_are_one_line(run_anything, preset, arguments, message):
    stdin = b"a" if "--rounds" in arguments else b""
    status, output, error = run_anything("benchmark", preset, *arguments, stdin=stdin)
    assert (status, output) == (2, "") and message in error
