import pytest
import tensorflow as tf

from keras_transformer.decoding.constraints import RowOptions
from keras_transformer.decoding.walk import best_first, greedy_search
from tests.decoding.models import (
    EOS,
    SEED,
    SOURCES,
    Decoder,
    assert_same,
    divisor,
    padded,
    randomize,
    row_options,
    rows_of,
    slow_beam,
)


def test_greedy_search_takes_the_likeliest_token_of_the_whole_model_at_each_step(decoder):
    """The one that may come: pad, unk and bos are the likeliest at times."""
    outputs, banned = set(), 0
    for seed in (20, 43, 64):
        randomize(decoder.model, seed)
        for source, (found,) in zip(SOURCES, decoder.greedy(SOURCES, max_length=9), strict=True):
            logs = decoder.log_probabilities(source, [found.ids])[0, :-1]
            assert found.ids == tuple(EOS + logs[:, EOS:].argmax(-1))
            assert found.log_probability == pytest.approx(sum(logs[range(len(logs)), found.ids]), abs=1e-4)
            assert found.score == pytest.approx(found.log_probability / divisor(len(logs), 0.6), abs=1e-4)
            assert found.truncated == (found.ids[-1] != EOS) and (not found.truncated or len(found.ids) == 9)
            assert EOS not in found.ids[:-1]
            outputs.add(found.ids)
            banned += (logs.argmax(-1) < EOS).sum()
    randomize(decoder.model, SEED)
    assert len(outputs) >= 6 and banned


def test_row_gets_what_it_would_get_alone_whatever_its_company_place_and_padding(decoder, rng):
    options = {"max_length": [3, 9, 6, 12], "length_penalty": [0.0, 1.0, 0.6, 2.0], "min_length": [0, 4, 0, 2]}
    alone = [
        decoder.greedy([source], **{name: value[row] for name, value in options.items()})[0]
        for row, source in enumerate(SOURCES)
    ]
    for width in (0, 9):
        order = rng.permutation(8) % 4
        mixed = {name: [value[row] for row in order] for name, value in options.items()}
        found = decoder.greedy([SOURCES[row] for row in order], width=width, **mixed)
        for row, place in enumerate(order):
            assert_same(found[row], alone[place])


def test_score_is_that_of_forced_decoding(decoder):
    for options in ({}, {"repetition_penalty": 2.0, "no_repeat_ngram_size": 2, "prefix": [[4, 4], [5], [], [6]]}):
        for source, (found,) in zip(SOURCES, decoder.greedy(SOURCES, **options), strict=True):
            assert found.log_probability == pytest.approx(decoder.forced(source, found.ids), abs=1e-4)


@pytest.mark.parametrize(
    "options",
    [{}, {"repetition_penalty": [1.0, 1.7, 0.5, 1.0]}, {"prefix": [[4, 4], [], [5], [6]], "banned": [5]}],
    ids=str,
)
def test_without_scores_the_same_tokens_are_found(decoder, options):
    options = {"max_length": [3, 9, 6, 12], **options}
    found = decoder.greedy(SOURCES, return_scores=False, **options)
    for (one,), (expected,) in zip(found, decoder.greedy(SOURCES, **options), strict=True):
        assert (one.ids, one.truncated) == (expected.ids, expected.truncated)
        assert one.log_probability == one.score == 0 > expected.log_probability


def test_without_scores_nothing_is_summed_over_the_vocabulary_unless_repetition_is_penalized(monkeypatch):
    decoder, sums = Decoder(), tf.Variable(0)
    normalizer = decoder.ensemble.normalizer

    def counted(logits, maxima):
        with tf.control_dependencies([sums.assign_add(1)]):
            return tf.identity(normalizer(logits, maxima))

    monkeypatch.setattr(decoder.ensemble, "normalizer", counted)
    decoder.greedy(SOURCES, return_scores=False)
    assert sums.numpy() == 0
    decoder.greedy(SOURCES, return_scores=False, repetition_penalty=1.5)
    penalized = sums.numpy()
    assert penalized > 0
    decoder.greedy(SOURCES)
    assert sums.numpy() > penalized


def test_constraints_act_as_on_a_slow_beam_of_one(decoder):
    options = {"max_length": 9, "repetition_penalty": 1.7, "no_repeat_ngram_size": 2, "min_length": 3, "banned": [5]}
    prefixes = [[4, 4], [5, 5], [], [6]]
    found = decoder.greedy(SOURCES, prefix=prefixes, **options)
    for source, prefix, row in zip(SOURCES, prefixes, found, strict=True):
        assert_same(row, slow_beam(decoder, source, beam_size=1, prefix=prefix, **options))


def test_without_a_limit_search_stops_fifty_tokens_past_source_and_prefix(decoder):
    """Eos of the source counts, and each row has a limit of its own."""
    for search in (decoder.greedy, decoder.beam):
        found = search(SOURCES[:2], max_length=0, prefix=[[], [4, 5, 6]], banned=[EOS], beam_size=2)
        assert [len(row[0].ids) for row in found] == [4 + 50, 2 + 3 + 50]
        assert all(row[0].truncated for row in found)


def test_search_stops_where_learned_positions_end():
    decoder = Decoder(max_length=6)
    for limit in (0, 9):
        options = row_options(2, max_length=[limit, 4], banned=[EOS])
        found = rows_of(greedy_search(decoder.ensemble, tf.constant(padded(SOURCES[:2])), options))
        assert [len(row[0].ids) for row in found] == [6, 4] and all(row[0].truncated for row in found)


def test_blank_sources_give_one_blank_hypothesis_and_change_no_other(decoder):
    expected = decoder.greedy(SOURCES)
    found = decoder.greedy([[], *SOURCES, []])
    for row, other in zip(found[1:-1], expected, strict=True):
        assert_same(row, other)
    assert found[0] == found[-1] == [((), 0.0, 0.0, False)]
    assert decoder.greedy([[], []]) == [[((), 0.0, 0.0, False)]] * 2


def test_xla_gives_the_same(decoder):
    function = tf.function(
        lambda ids, *options: greedy_search(decoder.ensemble, ids, RowOptions(*options), length=10),
        jit_compile=True,
        autograph=False,
    )
    options = {"max_length": [9, 3, 7, 10], "repetition_penalty": [1.0, 2.0, 1.0, 1.5]}
    found = function(tf.constant(padded(SOURCES)), *map(tf.constant, row_options(4, **options, prefix=[[0]] * 4)))
    assert found.ids.shape == (4, 1, 10)
    for row, expected in zip(rows_of(found), decoder.greedy(SOURCES, **options), strict=True):
        assert_same(row, expected)


def test_ended_ones_come_before_cut_ones_and_missing_ones_last():
    score = tf.constant([[-1.0, -3.0, float("-inf"), -2.0, -0.5], [-2.0, -1.0, -1.0, 0.0, float("-inf")]])
    truncated = tf.constant([[True, False, False, False, True], [False] * 5])
    assert best_first(score, truncated).numpy().tolist() == [[3, 1, 4, 0, 2], [3, 1, 2, 0, 4]]
