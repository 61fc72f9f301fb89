import threading

import numpy as np
import pytest

pytest.importorskip("tensorflow_text", reason="the tokenizer needs tensorflow-text")

from keras_transformer.data import SubwordSampling
from keras_transformer.text import Tokenizer

PAIRS = [
    ("我爱水课。", "I love easy courses."),
    (
        "Il boit de l’eau et mange des fruits ; qu’est-ce que cela veut dire ?",
        "He drinks water and eats fruit; what does that mean?",
    ),
    ("Jane visite l’Afrique en septembre, n’est-ce pas ?", "Jane visits Africa in September, doesn't she?"),
    ("", "water"),
]


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def tokenizers(request):
    return [
        Tokenizer.train([pair[side] for pair in PAIRS] * 5, size, request.param) for side, size in ((0, 306), (1, 300))
    ]


@pytest.fixture
def ids(tokenizers):
    return [
        tuple([*tokenizer.encode(text), 3] for tokenizer, text in zip(tokenizers, pair, strict=True)) for pair in PAIRS
    ]


def resample(sampling, ids, seed):
    return [side.tolist() for side in sampling.resample(ids, [seed] * len(ids))]


def test_pieces_vary_and_texts_stay(tokenizers, ids):
    sampling = SubwordSampling(*tokenizers, alpha=0.3)
    samples = [sampling.resample(ids, range(i, i + 4)) for i in range(30)]
    for side, tokenizer in enumerate(tokenizers):
        for rows in (sample[side] for sample in samples):
            assert rows.dtype == "int32" and (rows[:, -1] != 0).any()
            assert [tokenizer.decode(row) for row in rows] == [pair[side] for pair in PAIRS]
            for row in rows.tolist():
                end = row.index(3)
                assert not any(row[end + 1 :]) and not {0, 1, 2} & set(row[:end])
        assert len({str(sample[side][1]) for sample in samples}) > 10
    assert samples[0][0][3].tolist()[:2] == [3, 0]  # No text, no pieces.


def test_sides_share_a_tokenizer_unless_there_are_two(tokenizers, ids):
    english = [(target, target) for _, target in ids]
    sides = SubwordSampling(tokenizers[1], alpha=0.3).resample(english, [1, 2, 3, 4])
    for rows in sides:
        assert [tokenizers[1].decode(row) for row in rows] == [target for _, target in PAIRS]
    assert not np.array_equal(*sides)


def test_sample_of_a_pair_depends_on_its_seed_and_not_on_its_company(tokenizers, ids):
    sampling = SubwordSampling(*tokenizers, alpha=0.3)
    sample = sampling.resample(ids, [5, 6, 7, 2**32 - 3])
    assert resample(sampling, ids, 5) == resample(sampling, ids, 5) != resample(sampling, ids, 6)
    for i, seed in ((0, 5), (1, 6), (2, 7), (3, 2**32 - 3)):
        for side, rows in enumerate(sampling.resample([ids[i]], np.array([seed], "uint32"))):
            assert sample[side][i, : rows.shape[1]].tolist() == rows[0].tolist()
            assert not sample[side][i, rows.shape[1] :].any()
    assert [rows.shape for rows in sampling.resample([], [])] == [(0, 0), (0, 0)]


def test_sample_is_repeatable_while_other_threads_sample(tokenizers, ids):
    """SentencePiece encodes a list in threads of its own, with whichever seed was set last."""
    sampling = SubwordSampling(*tokenizers, alpha=0.3)
    expected = resample(sampling, ids, 5)
    threads = [threading.Thread(target=lambda: [resample(sampling, ids, i) for i in range(50)]) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert all(resample(sampling, ids, 5) == expected for _ in range(50))
    for thread in threads:
        thread.join()


def test_sentences_that_come_out_too_long_keep_their_usual_pieces(tokenizers, ids):
    free = SubwordSampling(*tokenizers, alpha=0.3)
    limit = len(ids[1][1]) + 2
    limited = SubwordSampling(*tokenizers, alpha=0.3, max_length=limit)
    kept = 0
    for seed in range(20):
        seeds = [seed] * 4
        for samples in (limited.resample(ids, seeds), free.resample(ids, seeds, longest=limit)):
            for side, sample in enumerate(samples):
                for row, long, usual in zip(sample, free.resample(ids, seeds)[side], ids, strict=True):
                    expected = long[long != 0] if np.count_nonzero(long) <= limit else usual[side]
                    assert row[row != 0].tolist() == list(expected)
                    kept += np.count_nonzero(long) > limit
    assert 20 < kept < 300
    assert resample(limited, ids, 1) == [side.tolist() for side in limited.resample(ids, [1] * 4, longest=limit + 99)]


@pytest.mark.parametrize("alpha", [0, -0.1, 1, 1.5, float("nan"), float("inf"), "0.1", True])
def test_alpha_out_of_range_is_refused_at_once(tokenizers, alpha):
    with pytest.raises(ValueError, match="`alpha`.*Received: alpha="):
        SubwordSampling(*tokenizers, alpha=alpha)


def test_bad_max_length_is_refused(tokenizers):
    with pytest.raises(ValueError, match="`max_length`.*Received"):
        SubwordSampling(*tokenizers, max_length=0)
