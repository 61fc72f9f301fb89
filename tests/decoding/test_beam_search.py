import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.decoding import beam_search as module
from keras_transformer.decoding.beam_search import beam_search
from keras_transformer.decoding.constraints import RowOptions
from tests.decoding.models import (
    EOS,
    SEED,
    SOURCES,
    Decoder,
    assert_same,
    divisor,
    every_hypothesis,
    padded,
    randomize,
    ranked,
    row_options,
    rows_of,
    slow_beam,
)

# Of strangers in one batch, row by row.
MIXED = {
    "beam_size": [4, 1, 3, 2],
    "n_best": [2, 1, 3, 1],
    "length_penalty": [0.0, 1.0, 0.6, 2.0],
    "max_length": [5, 9, 3, 7],
    "min_length": [0, 3, 0, 2],
    "no_repeat_ngram_size": [2, 0, 0, 1],
    "repetition_penalty": [1.0, 1.5, 1.0, 0.7],
    "prefix": [[], [4, 6], [5], []],
}


@pytest.fixture
def reseed(decoder):
    yield lambda seed: randomize(decoder.model, seed)
    randomize(decoder.model, SEED)


def every_row(options, rows):
    return [{name: value[row] for name, value in options.items()} for row in rows]


def alone(decoder, source, options, **others):
    options = {name: [value] if name == "prefix" else value for name, value in options.items()}
    return decoder.beam([source], **options, **others)[0]


@pytest.mark.parametrize("gnmt", [True, False])
def test_beam_as_wide_as_the_space_finds_the_best_of_all(decoder, gnmt):
    """And the length penalty divides by each hypothesis' own length: rankings change with it."""
    sources, best = SOURCES[:2], []
    every = [every_hypothesis(decoder, source, 4) for source in sources]
    for alpha in (0.0, 0.6, 1.0, 2.0):
        found = decoder.beam(sources, beam_size=81, n_best=5, max_length=4, length_penalty=alpha, gnmt=gnmt)
        for row, hypotheses in zip(found, every, strict=True):
            assert_same(row, ranked(hypotheses, alpha, gnmt)[:5])
            for one in row:
                assert one.score == pytest.approx(one.log_probability / divisor(len(one.ids), alpha, gnmt), abs=1e-5)
        best.append([one.ids for one in found[0]])
    assert best[0] != best[2] and len({len(ids) for ids in best[2]}) > 1


def test_hypotheses_that_the_limit_cut_come_after_all_that_ended(decoder):
    every = ranked(every_hypothesis(decoder, SOURCES[0], 2), 0.6)
    found = decoder.beam(SOURCES[:1], beam_size=16, n_best=13, max_length=2)[0]
    assert_same(found, every)
    assert [one.truncated for one in found] == [False] * 4 + [True] * 9
    assert max(one.score for one in found[4:]) > found[3].score


def test_beam_wider_than_the_vocabulary_equals_a_slow_one():
    decoder = Decoder(6)
    options = row_options(2, 6, beam_size=8, n_best=8, max_length=4)
    sources = [[4, 5, 5, 3], [5, 3]]
    found = rows_of(beam_search(decoder.ensemble, tf.constant(padded(sources)), options))
    for source, row in zip(sources, found, strict=True):
        assert_same(row, slow_beam(decoder, source, beam_size=8, n_best=8, max_length=4))
        assert len({one.ids for one in row}) == 8


@pytest.mark.parametrize("alpha", [0.0, 1.0, 2.0])
def test_search_stops_when_it_is_over_and_no_sooner(decoder, reseed, alpha):
    """A beam that goes on to the limit has the same n best. With `early_stopping` the best may only be worse."""
    worse = 0
    for seed in (6, 20, 22, 43, 59, 64):
        reseed(seed)
        for size, source in ((2, SOURCES[0]), (3, SOURCES[1])):
            options = {"beam_size": size, "n_best": size, "max_length": 7, "length_penalty": alpha}
            found = decoder.beam([source], **options)[0]
            assert_same(found, slow_beam(decoder, source, **options))
            early = decoder.beam([source], **options, early_stopping=True)[0]
            assert len(early) == size
            if early[0].truncated == found[0].truncated:
                assert early[0].score <= found[0].score + 1e-5
            worse += early != found
    assert worse or alpha < 2


def steps_of(monkeypatch, decoder, options, limit=12):
    count, step = [], module.EncodedSources.step

    def counted(*arguments):
        count.append(1)
        return step(*arguments)

    monkeypatch.setattr(module.EncodedSources, "step", counted)
    hypotheses = beam_search(
        decoder.ensemble, tf.constant(padded(SOURCES)), row_options(len(SOURCES), max_length=limit, **options)
    )
    monkeypatch.undo()
    return rows_of(hypotheses), len(count)


def test_batch_takes_as_many_steps_as_its_longest_output(decoder, monkeypatch):
    found, steps = steps_of(monkeypatch, decoder, {"beam_size": 1})
    assert steps == max(len(row[0].ids) for row in found)


def test_sure_model_is_done_a_step_after_its_longest_output(decoder, monkeypatch, reseed):
    """All else is so unlikely that the bound ends the search."""
    reseed(43)
    projection = decoder.model.output_projection.kernel
    projection.assign(20 * projection)
    found, steps = steps_of(monkeypatch, decoder, {"beam_size": 4})
    longest = max(len(row[0].ids) for row in found)
    assert longest == 6 and steps <= 7


def test_score_is_that_of_forced_decoding(decoder):
    sources = SOURCES[:3]
    for options in (
        {},
        {"length_penalty": 1.5, "max_length": 4},
        {"repetition_penalty": 2.0, "no_repeat_ngram_size": 2, "prefix": [[4, 4], [5], []]},
        {"diversity_penalty": 1.0, "groups": 2, "beam_size": 2},
    ):
        found = decoder.beam(sources, **{"n_best": 4, **options})
        for source, row in zip(sources, found, strict=True):
            assert len(row) >= 2
            for one in row:
                assert one.log_probability == pytest.approx(decoder.forced(source, one.ids), abs=1e-4)
                lengths = divisor(len(one.ids), options.get("length_penalty", 0.6))
                assert one.score == pytest.approx(one.log_probability / lengths, abs=1e-4)


def test_beam_of_one_is_greedy_search(decoder, reseed):
    """Also in a batch with wider ones."""
    for seed, alpha in ((4, 0.0), (43, 0.6), (64, 2.0)):
        reseed(seed)
        options = {"length_penalty": alpha, "max_length": 12}
        greedy = decoder.greedy(SOURCES, **options)
        for sizes in (1, [1, 4, 1, 4]):
            found = decoder.beam(SOURCES, **options, beam_size=sizes)
            for row in range(0, 4, 1 if sizes == 1 else 2):
                assert_same(found[row], greedy[row])


def test_row_gets_what_it_would_get_alone_whatever_its_company_place_and_padding(decoder, rng):
    expected = [alone(decoder, *row) for row in zip(SOURCES, every_row(MIXED, range(4)), strict=True)]
    assert [len(row) for row in expected] == MIXED["n_best"]
    for width in (0, 9):
        order = rng.permutation(8) % 4
        options = {name: [value[row] for row in order] for name, value in MIXED.items()}
        found = decoder.beam([SOURCES[row] for row in order], width=width, **options)
        for row, place in enumerate(order):
            assert_same(found[row], expected[place])


def test_every_option_at_once_gives_what_a_slow_search_does(decoder):
    found = decoder.beam(SOURCES, **MIXED)
    for source, options, row in zip(SOURCES, every_row(MIXED, range(4)), found, strict=True):
        assert_same(row, slow_beam(decoder, source, **options))


def test_best_does_not_depend_on_how_many_are_wanted(decoder):
    found = [decoder.beam(SOURCES, n_best=count, max_length=10) for count in (1, 2, 4)]
    for one, two, four in zip(*found, strict=True):
        assert_same(two, four[:2])
        assert_same(one, two[:1])


def test_limits_hold_exactly(decoder):
    for limit in (1, 2):
        for search in (decoder.beam, decoder.greedy):
            for row in search(SOURCES, max_length=limit, banned=[EOS]):
                assert len(row[0].ids) == limit and row[0].truncated
    found = decoder.beam(SOURCES, max_length=[1, 2, 4, 7], banned=[EOS])
    assert [len(row[0].ids) for row in found] == [1, 2, 4, 7]


def test_fewest_tokens_hold(decoder):
    for row in decoder.beam(SOURCES, min_length=5, n_best=4):
        assert all(len(one.ids) >= 5 for one in row)
    found = decoder.beam(SOURCES, min_length=[0, 3, 6, 8])
    assert all(len(row[0].ids) >= fewest for row, fewest in zip(found, (0, 3, 6, 8), strict=True))
    assert len(found[0][0].ids) < 3


def test_blank_sources_give_one_blank_hypothesis_and_change_no_other(decoder):
    expected = decoder.beam(SOURCES, n_best=2)
    found = decoder.beam([[], SOURCES[0], [], *SOURCES[1:]], n_best=2)
    for row in (found[0], found[2]):
        assert row == [((), 0.0, 0.0, False)]
    for one, other in zip([found[1], *found[3:]], expected, strict=True):
        assert_same(one, other)
    assert decoder.beam([[], []]) == [[((), 0.0, 0.0, False)]] * 2


def test_xla_gives_the_same(decoder):
    options = {name: value for name, value in MIXED.items() if name not in ("no_repeat_ngram_size", "prefix")}
    function = tf.function(
        lambda ids, *options: beam_search(decoder.ensemble, ids, RowOptions(*options), width=4, length=10),
        jit_compile=True,
        autograph=False,
    )
    found = function(tf.constant(padded(SOURCES)), *map(tf.constant, row_options(4, **options, prefix=[[0]] * 4)))
    assert found.ids.shape == (4, 4, 10)
    for row, expected in zip(rows_of(found), decoder.beam(SOURCES, **options), strict=True):
        assert_same(row, expected)


def test_groups_without_a_penalty_find_what_one_does(decoder):
    plain = decoder.beam(SOURCES, beam_size=2, n_best=2)
    for row, expected in zip(decoder.beam(SOURCES, groups=2, beam_size=2, n_best=4), plain, strict=True):
        assert_same(row, expected)


def test_group_avoids_what_the_group_before_says_in_the_same_step(decoder):
    """By 100 each: greedy search in the first, the best of the others in the second."""
    options = {"max_length": 4, "min_length": 4, "banned": [EOS]}
    first = decoder.greedy(SOURCES, **options)
    found = decoder.beam(SOURCES, groups=2, beam_size=1, n_best=2, diversity_penalty=100.0, **options)
    for source, row, greedy in zip(SOURCES, found, first, strict=True):
        said, other = greedy[0].ids, []
        for token in said:
            logs = decoder.log_probabilities(source, [other])[0, -1]
            logs[[0, 1, 2, EOS, token]] = -np.inf
            other.append(int(logs.argmax()))
        assert {one.ids for one in row} == {said, tuple(other)}
        assert row[0].score >= row[1].score


def test_no_hypothesis_of_groups_comes_twice(decoder):
    for penalty in (0.0, 0.2, 5.0):
        for row in decoder.beam(SOURCES, groups=2, beam_size=3, n_best=6, diversity_penalty=penalty):
            assert len({one.ids for one in row}) == len(row) >= 3
            scores = [(one.truncated, -one.score) for one in row]
            assert scores == sorted(scores)


def test_groups_of_several_sizes_in_a_batch_find_what_each_does_alone(decoder):
    options = {"beam_size": [1, 3, 2, 1], "n_best": [2, 6, 4, 1], "length_penalty": [0.0, 1.0, 0.6, 2.0]}
    found = decoder.beam(SOURCES, groups=2, diversity_penalty=1.0, **options)
    for source, row, own in zip(SOURCES, found, every_row(options, range(4)), strict=True):
        assert_same(row, alone(decoder, source, own, groups=2, diversity_penalty=1.0))
