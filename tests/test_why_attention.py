"""The comparison of the Transformer with its predecessors: what its models may see, and that it runs."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "training" / "benchmarks"
KINDS = ("window", "state", "context", "attention", "convolution", "transformer")
STUDIES = ("time", "memory", "quality")
PAGE = "# Why\n\nBefore.\n\n<!-- measured: begin -->\nstale words\n<!-- measured: end -->\n\nAfter.\n"


@pytest.fixture
def benchmark(monkeypatch):
    """The script's module; the others are found beside it."""
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setenv("GLIBC_TUNABLES", "")  # Else it would start this process anew.
    import why_attention

    return why_attention


@pytest.fixture
def run(benchmark, monkeypatch, capsys):
    """Runs the script with some arguments; gives its exit status and last line of errors."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["why_attention.py", *map(str, arguments)])
        try:
            status = benchmark.main() or 0
        except SystemExit as stopped:
            status = stopped.code
        errors = capsys.readouterr().err
        assert "Traceback" not in errors
        return status, (errors.splitlines() or [""])[-1]

    return run


@pytest.fixture(params=KINDS)
def logits_of(request, benchmark):
    """A function of source and target ids that gives one model's logits."""
    from why_attention_models import made

    model = made(request.param, 30, width=8, units=16, layers=1)

    def logits_of(source, target):
        return np.asarray(model({"source_ids": source, "target_ids": target}, training=False))

    return logits_of


def test_logits_depend_on_earlier_tokens_and_on_no_padding(logits_of, rng):
    source, target = rng.integers(4, 30, (2, 7)), rng.integers(4, 30, (2, 6))
    logits = logits_of(source, target)
    assert logits.shape == (2, 6, 30)

    later = np.where(np.arange(6) < 3, target, target % 26 + 4)
    changed = np.abs(logits_of(source, later) - logits).max(axis=(0, 2))
    assert changed[:3].max() < 1e-5 < changed[3]

    padded = logits_of(np.pad(source, [(0, 0), (0, 5)]), np.pad(target, [(0, 0), (0, 4)]))
    np.testing.assert_allclose(padded[:, :6], logits, atol=1e-5)
    shorter = logits_of(np.where(np.arange(7) < 3, source, 0), target)
    np.testing.assert_allclose(shorter, logits_of(source[:, :3], target), atol=1e-5)

    other = np.concatenate([source[:, :1] % 26 + 4, source[:, 1:]], axis=1)
    assert np.abs(logits_of(other, target) - logits)[:, 0].max() > 1e-5  # The source is read at all.


def test_all_models_are_of_one_size(benchmark):
    from why_attention_models import made

    sizes = benchmark.STUDIES["memory"]  # The smallest; the tables of the others show theirs.
    counts = [made(kind, sizes["vocabulary_size"], **sizes["sizes"]).count_params() for kind in KINDS]
    assert max(counts) < 1.1 * min(counts)


def test_a_training_learns_and_starts_again(benchmark):
    from why_attention_models import made
    from why_attention_studies import Training, backwards

    training = Training(made("attention", 20, width=16, units=32, layers=1, dropout=0.0), rate=0.02, warmup=10)
    batch = backwards(np.random.default_rng(1), 16, 3, 20)
    assert (batch[0][:, ::-1] == batch[2]).all() and (batch[1][:, 1:] == batch[2][:, :-1]).all()
    losses = [training.update(*batch) for _ in range(60)]
    assert losses[-1] < 0.3 * losses[0]
    assert training.accuracy(*batch) > 0.9
    assert (training.translate(batch[0], 3)[:, 0] == batch[2][:, 0]).mean() > 0.9
    training.restart()
    assert training.update(*batch) == pytest.approx(losses[0])


def test_all_studies_of_all_models_are_written_and_put_into_a_page(run, tmp_path):
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    (tmp_path / "page.md").write_text(PAGE)
    assert run("--to", tmp_path / "to", "--quick")[0] == 0
    for study in STUDIES:
        results = json.loads((tmp_path / "to" / f"why_attention_{study}.json").read_text())
        assert tuple(results["models"]) == KINDS
        assert b"<svg" in (tmp_path / "to" / f"why_attention_{study}.svg").read_bytes()
        columns = {"time": "seconds", "memory": "accuracy"}.get(study)
        for model in results["models"].values():
            if study == "quality":
                assert model["same_updates"]["updates"] == 2
                assert model["same_seconds"]["seconds"] >= results["seconds"]
            else:
                assert len(model[columns]) == len(results["lengths"])
    assert run("--to", tmp_path / "to", "--page", tmp_path / "page.md")[0] == 0
    text = (tmp_path / "page.md").read_text()
    assert text.startswith("# Why\n\nBefore.") and text.endswith("After.\n") and "stale" not in text
    assert text.count("| Transformer |") == 4
    assert len(list((tmp_path / "pictures").glob("*.svg"))) == text.count("](pictures/") == 3
    assert run("--to", tmp_path / "to", "--page", tmp_path / "page.md")[0] == 0
    assert (tmp_path / "page.md").read_text() == text


def test_mistakes_are_one_line(run, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "page.md").write_text(PAGE)
    assert run("--to", tmp_path / "file") == (2, f"why_attention.py: [Errno 17] File exists: '{tmp_path / 'file'}'")
    status, line = run("--to", tmp_path, "--page", tmp_path / "page.md")
    assert status == 2 and line.endswith(f"Received: {tmp_path} without time, memory, quality")
    status, line = run("--to", tmp_path, "--page", tmp_path / "file")
    assert status == 2 and "once each. Received:" in line
    status, line = run("--to", tmp_path, "--page", tmp_path / "none.md")
    assert status == 2 and "No such file" in line
    status, line = run("--page", tmp_path / "page.md", "--quick")
    assert status == 2 and "--page measures nothing" in line
