"""The reckoning past this machine counts what the models have."""

import sys
from pathlib import Path

import pytest

from keras_transformer.models import TransformerConfig, transformer


@pytest.fixture
def reckoning(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "training" / "benchmarks"))
    monkeypatch.delitem(sys.modules, "reckoning", raising=False)
    import reckoning

    return reckoning


def test_parameters_are_those_of_the_model(reckoning, monkeypatch):
    monkeypatch.setattr(reckoning, "VOCABULARY", 50)
    assert reckoning.parameters("base") == transformer(TransformerConfig.from_preset("base", 50)).count_params()


def test_the_papers_own_steps_reach_a_plausible_share(reckoning):
    for size in ("base", "big"):
        assert 0.2 < reckoning.share_of_paper(size) < 0.6


def test_more_gpus_compute_less_each_and_wait_longer_for_the_others(reckoning):
    machine = reckoning.Machine(launch=0.0)
    one, eight, many = (reckoning.step("base", gpus, reckoning.BATCH, machine) for gpus in (1, 8, 64))
    assert one["all_reduce"] == 0 and one["compute"] == pytest.approx(8 * eight["compute"])
    assert 0 < eight["all_reduce"] < many["all_reduce"] and eight["bytes"] > many["bytes"]
    assert one["hours"] == pytest.approx(100_000 * one["compute"] / 3600)
    assert len(reckoning.table(machine).splitlines()) == 2 + 2 * 3 * 2
