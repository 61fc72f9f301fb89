import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.decoding.constraints import constrain
from keras_transformer.decoding.top_k import block_maxima
from tests.decoding.models import (
    EOS,
    SOURCES,
    assert_same,
    divisor,
    every_hypothesis,
    padded,
    row_options,
    slow_beam,
)


def constrained(logits, ids, index, **options):
    """One hypothesis for each row, over the log-probabilities of a vocabulary of 7."""
    logits = tf.constant(np.broadcast_to(logits, (len(ids), 1, 7)), tf.float32)
    options = row_options(len(ids), **options)
    maxima, past = block_maxima(logits), tf.constant(padded(ids, 8))[:, None]
    allowed = constrain(logits, maxima, tf.reduce_logsumexp(logits, -1, True), past, index, options)
    np.testing.assert_array_equal(allowed.maxima, block_maxima(allowed.logits))
    np.testing.assert_array_equal(allowed.end(), allowed.dense()[..., EOS])
    return allowed.dense()[:, 0].numpy()


def never(result):
    return [set(np.flatnonzero(row == -np.inf).tolist()) for row in result]


def test_pad_unk_bos_and_banned_tokens_never_come(decoder):
    assert never(constrained(0, [[4], [5]], 1)) == [{0, 1, 2}] * 2
    assert never(constrained(0, [[4], [5]], 1, banned=[5])) == [{0, 1, 2, 5}] * 2
    options = {"n_best": 4, "max_length": 5}
    said = {token for row in decoder.beam(SOURCES, **options) for one in row for token in one.ids}
    assert said == {3, 4, 5, 6}
    for row in decoder.beam(SOURCES, banned=[5, 6], **options):
        assert len(row) == 4
        assert all(set(one.ids) <= {3, 4} for one in row)


def test_end_does_not_come_before_the_fewest_tokens():
    result = constrained(0, [[4, 5]] * 4, 2, min_length=[0, 2, 3, 4])
    assert never(result) == [{0, 1, 2}] * 3 + [{0, 1, 2, 3}]


def test_token_that_would_make_an_ngram_come_twice_is_forbidden():
    ids = [4, 5, 4, 6, 4]
    result = constrained(0, [ids] * 5, 5, no_repeat_ngram_size=[0, 1, 2, 3, 4])
    assert never(result) == [{0, 1, 2}, {0, 1, 2, 4, 5, 6}, {0, 1, 2, 5, 6}, {0, 1, 2}, {0, 1, 2}]
    overlapping = constrained(0, [[4, 4], [4, 4, 4]], 2, no_repeat_ngram_size=2)
    assert never(overlapping)[0] == {0, 1, 2, 4}
    assert never(constrained(0, [[4, 5, 6, 4, 5]], 5, no_repeat_ngram_size=3)) == [{0, 1, 2, 6}]
    assert never(constrained(0, [[], []], 0, no_repeat_ngram_size=[1, 3])) == [{0, 1, 2}] * 2


def test_no_ngram_comes_twice_in_any_hypothesis(decoder):
    sizes, repeated = [1, 2, 3, 0], 0
    found = decoder.beam([SOURCES[0]] * 4, no_repeat_ngram_size=sizes, max_length=20, min_length=12, n_best=4)
    for size, row in zip(sizes, found, strict=True):
        for one in row:
            ngrams = [one.ids[i : i + (size or 2)] for i in range(len(one.ids) - (size or 2) + 1)]
            if size:
                assert len(set(ngrams)) == len(ngrams)
            else:
                repeated += len(set(ngrams)) < len(ngrams)
    assert repeated == 4


@pytest.mark.parametrize("limits", [{}, {"min_length": 9}])
def test_hypothesis_with_nothing_left_to_say_ends(decoder, limits):
    """After three words that do not come twice, even before the fewest tokens. Its rank is that of its tokens."""
    options = {"no_repeat_ngram_size": 1, "max_length": 12, "n_best": 4, **limits}
    for source, row in zip(SOURCES, decoder.beam(SOURCES, **options), strict=True):
        assert not any(one.truncated for one in row)
        assert max(len(one.ids) for one in row) <= 4
        assert [one.score for one in row] == sorted([one.score for one in row], reverse=True)
        assert_same(row, slow_beam(decoder, source, **options))
    for (one,) in decoder.greedy(SOURCES, no_repeat_ngram_size=1, max_length=12, min_length=9):
        assert sorted(one.ids[:3]) == [4, 5, 6] and one.ids[3:] == (EOS,)


def test_repetition_penalty_multiplies_log_probabilities_of_tokens_that_came():
    logits = np.array([0.0, 0.0, 0.0, 1.0, 2.0, -1.0, 0.5])
    logs = logits - np.log(np.exp(logits).sum())
    result = constrained(logits, [[4, 4, 5], [6], [4]], 3, repetition_penalty=[2.0, 0.5, 1.0])
    np.testing.assert_allclose(np.diff(result[0, 3:]), np.diff(logs[3:] * [1, 2, 2, 1]), atol=1e-5)
    np.testing.assert_allclose(np.diff(result[1, 3:]), np.diff(logs[3:] * [1, 1, 1, 0.5]), atol=1e-5)
    np.testing.assert_allclose(result[2, 3:], logits[3:], atol=1e-6)


def test_repetition_penalty_changes_the_order_but_not_the_scores(decoder):
    """The best of all by penalised log-probability."""
    source, alpha, penalty = SOURCES[0], 0.6, 2.5
    targets = [ids for ids, _ in every_hypothesis(decoder, source, 4)]
    logs, ranks = decoder.log_probabilities(source, targets), []
    for ids, row in zip(targets, logs, strict=True):
        rank = sum(row[i, token] * (penalty if token in ids[:i] else 1) for i, token in enumerate(ids))
        ranks.append((ids[-1] != EOS, -rank / divisor(len(ids), alpha), ids))
    options = {"beam_size": 81, "n_best": 20, "max_length": 4}
    found = decoder.beam([source], repetition_penalty=penalty, **options)[0]
    assert [one.ids for one in found] == [ids for *_, ids in sorted(ranks)[:20]]
    plain = {one.ids: one.score for one in decoder.beam([source], **options)[0]}
    both = [one for one in found if one.ids in plain]
    assert len(both) > 5 and list(plain) != [one.ids for one in found]
    np.testing.assert_allclose([one.score for one in both], [plain[one.ids] for one in both], atol=1e-4)


def test_prefix_is_said_first_whatever_is_forbidden_and_search_goes_on_freely(decoder):
    prefixes = [[5, 5, 5], [4], [], [6, 4, 6, 4]]
    options = {"banned": [5], "no_repeat_ngram_size": 2, "repetition_penalty": 1.5, "n_best": 3, "max_length": 7}
    found = decoder.beam(SOURCES, prefix=prefixes, **options)
    for source, prefix, row in zip(SOURCES, prefixes, found, strict=True):
        assert len({one.ids[len(prefix) :] for one in row}) == len(row) >= 2
        assert all(one.ids[: len(prefix)] == tuple(prefix) and 5 not in one.ids[len(prefix) :] for one in row)
        assert_same(row, slow_beam(decoder, source, prefix=prefix, **options))


def test_limit_cuts_a_longer_prefix(decoder):
    for search in (decoder.beam, decoder.greedy):
        (one,) = search(SOURCES[:1], prefix=[[4, 5, 6, 6]], max_length=3)[0]
        assert one.ids == (4, 5, 6) and one.truncated
