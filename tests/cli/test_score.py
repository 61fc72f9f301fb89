import json
import re

import numpy as np
import pytest

pytest.importorskip("tensorflow_text", reason="the tokenizer needs tensorflow-text")

from keras_transformer.decoding import Translator
from tests.cli.conftest import TEXTS

TARGETS = ["我爱水课", "I love", "x", ""]


@pytest.fixture
def files(tmp_path):
    paths = tmp_path / "test.zh", tmp_path / "test.en"
    for path, texts in zip(paths, (TEXTS, TARGETS), strict=True):
        path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return paths


def test_scores_come_line_by_line(run_anything, preset, files):
    expected = Translator.from_preset(preset).score(TEXTS, TARGETS)
    status, output, _ = run_anything("score", preset, "--source", files[0], "--target", files[1])
    assert status == 0
    assert [float(line) for line in output.splitlines()] == pytest.approx(
        [one.log_probability for one in expected], abs=1e-5
    )
    stdin = files[1].read_bytes()
    status, output, _ = run_anything("score", preset, "--source", files[0], "--target", "-", "--json", stdin=stdin)
    for line, one in zip(output.splitlines(), expected, strict=True):
        fields = json.loads(line)
        assert fields["tokens"] == list(one.tokens)
        assert fields["log_probability"] == pytest.approx(sum(fields["token_log_probabilities"]), abs=1e-4)
        np.testing.assert_allclose(fields["token_log_probabilities"], one.token_log_probabilities, atol=1e-5)


def test_sides_of_different_lengths_are_refused_and_leave_no_file(run_anything, preset, files, tmp_path):
    files[1].write_text("a\nb\n")
    arguments = ("--source", files[0], "--target", files[1], "--output", tmp_path / "out")
    status, _, error = run_anything("score", preset, *arguments)
    assert status == 2 and re.search(r"Each source needs one target. Received: .*test.en ends after 2 lines", error)
    assert not (tmp_path / "out").exists()
    status, _, error = run_anything("score", preset, "--source", "-", "--target", "-")
    assert status == 2 and "Received: - for both" in error
