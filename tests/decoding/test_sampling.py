import numpy as np
import pytest

pytest.importorskip("keras_nlp")

from keras_transformer.decoding.options import SearchOptions
from keras_transformer.decoding.searches import Searches
from tests.decoding.models import padded, row_options, rows_of, shared_decoder

SOURCES = [[4, 5, 6, 3], [5, 3], [6, 6, 4, 3], []]


@pytest.fixture(scope="module")
def decoder():
    return shared_decoder()


@pytest.fixture(scope="module")
def draw(decoder):
    """One trace for each sampler."""
    searches = Searches(decoder.ensemble)

    def draw(sources, sampler="random", seed=0, top_k=2, top_p=0.6, **options):
        run = searches.begin(SearchOptions(sampler=sampler, seed=seed, top_k=top_k, top_p=top_p))
        return rows_of(run(padded(sources), row_options(len(sources), **options)))

    return draw


def probabilities(decoder, temperature=1.0):
    """Of the first token of the first source."""
    logs = decoder.log_probabilities(SOURCES[0], [()])[0, 0] / temperature
    logs[:3] = -np.inf
    return np.exp(logs) / np.exp(logs).sum()


def frequencies(draw, **options):
    found = draw(SOURCES[:1], n_best=2000, max_length=1, **options)[0]
    assert len(found) == 2000
    return np.bincount([one.ids[0] for one in found], minlength=7) / 2000


def test_seed_decides_what_is_drawn(draw):
    found = [draw(SOURCES, seed=seed, n_best=3) for seed in (5, 5, 6, 2**40, 2**40)]
    assert found[0] == found[1] != found[2] != found[3] == found[4] != found[0]


@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_tokens_come_as_often_as_the_model_says(decoder, draw, temperature):
    expected = probabilities(decoder, temperature)
    np.testing.assert_allclose(frequencies(draw, temperature=temperature), expected, atol=0.05)
    assert np.sort(expected)[-2] > 0.1


def test_top_k_draws_among_the_likeliest_only(decoder, draw):
    expected = probabilities(decoder)
    expected[np.argsort(expected)[:-2]] = 0
    np.testing.assert_allclose(frequencies(draw, sampler="top_k"), expected / expected.sum(), atol=0.05)


def test_top_p_draws_among_the_likeliest_that_have_that_probability_together(decoder, draw):
    order = np.argsort(-probabilities(decoder))
    among = order[: 1 + np.searchsorted(np.cumsum(probabilities(decoder)[order]), 0.6)]
    found = frequencies(draw, sampler="top_p")
    assert set(np.flatnonzero(found)) == set(among)


def test_low_temperature_is_greedy_search(decoder, draw):
    found = draw(SOURCES, temperature=1e-4)
    assert [row[0].ids for row in found] == [row[0].ids for row in decoder.greedy(SOURCES)]


def test_several_are_drawn_of_each_source_the_best_first(decoder, draw):
    found = draw(SOURCES, n_best=8)
    for source, row in zip(SOURCES[:3], found[:3], strict=True):
        assert len(row) == 8 and len({one.ids for one in row}) > 3
        order = [(one.truncated, -one.score) for one in row]
        assert order == sorted(order)
        for one in row[:2]:
            assert one.log_probability == pytest.approx(decoder.forced(source, one.ids), abs=1e-4)
    assert {one.ids for one in found[3]} == {()}


def test_forbidden_tokens_are_never_drawn(draw):
    found = draw(SOURCES[:3], n_best=50, banned=[4], min_length=3, temperature=5.0)
    assert {token for row in found for one in row for token in one.ids} == {3, 5, 6}
    assert all(len(one.ids) >= 3 for row in found for one in row)
