"""What the benchmarks are run by."""

import json
import sys
from pathlib import Path

import keras
import pytest

from keras_transformer.decoding import Translator
from keras_transformer.models import TransformerConfig, transformer
from keras_transformer.text import Tokenizer

FOLDER = Path(__file__).parents[1] / "training" / "benchmarks"
WORKS = """
import os
import time


def sleep(seconds, log, fast=True):
    print("libraries write to standard output")

    def work():
        time.sleep(seconds if fast else 5 * seconds)
        with open(log, "a") as file:
            file.write(f"{os.getpid()} {seconds}\\n")
        return {"sentences": 10}

    return work


def broken():
    raise ValueError("No such engine.")
"""


@pytest.fixture
def harness(tmp_path, monkeypatch):
    """The module, which finds works in a file of the test's own."""
    (tmp_path / "works_of_test.py").write_text(WORKS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delitem(sys.modules, "harness", raising=False)
    import harness

    return harness


def test_peers_work_in_turn_in_processes_of_their_own_at_their_best_setting(harness, tmp_path, capfd):
    log = tmp_path / "log"
    peers = [
        harness.Peer("quick", "works_of_test:sleep", {"seconds": 0.01, "log": str(log)}, {"fast": [False, True]}),
        harness.Peer("slow", "works_of_test:sleep", {"seconds": 0.05, "log": str(log)}),
    ]
    results = harness.compare(peers, rounds=3)
    assert [result["setting"] for result in results] == [{"fast": True}, {}]
    assert results[1]["tried"] == {}
    assert set(results[0]["tried"]) == {'{"fast": false}', '{"fast": true}'}
    assert all(len(result["seconds"]) == 3 and 1e6 < result["peak_bytes"] < 1e8 for result in results)
    assert all(0.01 <= seconds < 0.05 for seconds in results[0]["seconds"])
    assert len(log.read_text().splitlines()) == 2 * 6 + 2 + 2 * 3  # Two settings tried, two warmed up, three rounds.
    rounds = [line.split() for line in log.read_text().splitlines()][-6:]
    assert [seconds for _, seconds in rounds] == ["0.01", "0.05"] * 3
    assert len({process for process, _ in rounds}) == 2
    assert "libraries" not in capfd.readouterr().out


def test_table_has_medians_and_ratios_to_the_first(harness):
    results = [
        {"name": "ours", "setting": {"threads": 2}, "seconds": [1, 2, 9], "sentences": 100, "peak_bytes": 2**20},
        {"name": "theirs", "setting": {}, "seconds": [4, 4, 5], "sentences": 100, "peak_bytes": 2**21},
    ]
    assert harness.table(results, "sentences").splitlines()[2:] == [
        "| ours | 50 | 11 to 100 | 1.00 | 1 MiB | threads 2 |",
        "| theirs | 25 | 20 to 25 | 0.50 | 2 MiB | as it is |",
    ]
    for result in results:
        result["tokens"] = 1000
    head, _, *lines = harness.table(results, "sentences").splitlines()
    assert head == "| | sentences a second | least to most | tokens a second | ratio | peak memory | setting |"
    assert lines[0] == "| ours | 50 | 11 to 100 | 500 | 1.00 | 1 MiB | threads 2 |"
    assert harness.table(results, "tokens").count("tokens a second") == 1


def test_tokens_of_translations_are_counted_up_to_their_end_and_only_once(harness):
    import decoding_peers

    assert [decoding_peers._tokens(ids) for ids in ([2, 7, 8, 3, 0, 0], [2, 7, 8, 9], [2, 3])] == [3, 3, 1]
    counted = []

    def tokens_of(translation):
        counted.append(translation)
        return len(translation)

    work = decoding_peers._counted(lambda texts: [text.upper() for text in texts], ["a", "bcd"], False, tokens_of)
    assert work() == work() == {"sentences": 2, "tokens": 4}
    assert counted == ["A", "BCD"]


def test_marian_as_it_is_loaded_says_what_the_model_says(harness, tmp_path):
    torch = pytest.importorskip("torch", reason="the peer is PyTorch's")
    pytest.importorskip("transformers", reason="the peer is of transformers")
    from marian_model import save_marian

    keras.utils.set_random_seed(1)
    texts = ["a man in a green hat", "two dogs", "a man sleeps on a red couch in a green room"]
    tokenizer = Tokenizer.train(texts, vocabulary_size=300, model_type="bpe")
    model = transformer(TransformerConfig.from_preset("tiny", tokenizer.vocabulary_size))
    save_marian(tmp_path / "marian.pt", model)
    marian = torch.load(tmp_path / "marian.pt", weights_only=False)
    for text in texts:
        (ours,) = Translator(model, tokenizer).translate([text], beam_size=1, max_length=20)
        ids = torch.tensor([[*tokenizer.encode(text), 3]])
        found = marian.generate(ids, num_beams=1, do_sample=False, max_new_tokens=20, suppress_tokens=[0, 1, 2])
        assert found[0, 1:].tolist() == list(ours.token_ids)


def test_results_are_saved_with_a_plot(harness, tmp_path):
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    results = [{"name": "ours", "setting": {}, "seconds": [1.0, 2.0], "sentences": 10, "peak_bytes": 1}]
    harness.save(tmp_path / "to" / "speed.json", "Speed", results, "sentences")
    assert json.loads((tmp_path / "to" / "speed.json").read_text())["results"] == results
    assert (tmp_path / "to" / "speed.svg").read_text().count("<svg") == 1


def test_a_peer_that_fails_is_named_with_its_reason(harness):
    with pytest.raises(RuntimeError, match="nothing failed: ValueError: No such engine."):
        harness.compare([harness.Peer("nothing", "works_of_test:broken")], rounds=1)


PAGE = """# Speed

<!-- speed -->
old
<!-- end -->

<!-- latency -->
<!-- end -->

<!-- other -->
kept
<!-- end -->
"""


def test_page_has_the_tables_of_the_results_and_keeps_what_was_not_measured(harness, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    results = [{"name": "ours", "setting": {}, "seconds": [1.0, 2.0, 2.0], "sentences": 10, "peak_bytes": 2**20}]
    harness.save(tmp_path / "speed.json", "Speed", results, "sentences")
    harness.save(tmp_path / "bare.json", "Bare", results, "sentences", plot=False)
    assert (tmp_path / "bare.json").exists() and not (tmp_path / "bare.svg").exists()
    harness.save(tmp_path / "latency.json", "Latency", [{**results[0], "latencies": [0.001, 0.003]}], "sentences")
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    page.write_text(PAGE)
    import report

    monkeypatch.setattr(sys, "argv", ["report.py", str(tmp_path), "--page", str(page)])
    for _ in range(2):  # Written twice it is the same.
        report.main()
        text = page.read_text()
        assert harness.table(results, "sentences") in text and "old" not in text
        assert "| ours | 2.0 |" in text and "\nkept\n" in text and text.count("| ours |") == 2
        assert text.count("](pictures/performance_speed.svg)") == text.count("](pictures/") - 1 == 1
    assert (page.parent / "pictures" / "performance_speed.svg").exists()
    monkeypatch.setattr(sys, "argv", ["report.py", str(tmp_path), "--page", "absent.md"])
    with pytest.raises(SystemExit, match="2"):
        report.main()
