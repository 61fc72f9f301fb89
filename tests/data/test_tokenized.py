import dataclasses
import itertools
import json
import tracemalloc

import numpy as np
import pytest

from keras_transformer.data import TokenizedCorpus

FILES = ["corpus.json", "source_ends.bin", "source_ids.bin", "target_ends.bin", "target_ids.bin"]


@dataclasses.dataclass
class Numbers:
    """A tokenizer of texts that are ids already."""

    offset: int = 0
    eos_id: int = 3

    def encode(self, text):
        return [int(word) + self.offset for word in text.split()]


def texts(rng, count, longest=12):
    return [" ".join(map(str, rng.integers(4, 2**31 - 99, rng.integers(1, longest)))) for _ in range(count)]


@pytest.fixture
def pairs(rng):
    return list(zip(texts(rng, 40), texts(rng, 40), strict=True))


def ids(pairs, offset=0):
    """What a corpus of `pairs` holds."""
    return [
        tuple([*Numbers(add).encode(text), 3] for text, add in zip(pair, (0, offset), strict=True)) for pair in pairs
    ]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_corpus_has_the_same_ids_in_memory_and_in_a_folder(pairs, tmp_path):
    folder = tmp_path / "not yet" / "there"
    in_memory = TokenizedCorpus.from_pairs(iter(pairs), Numbers())
    in_folder = TokenizedCorpus.from_pairs(iter(pairs), Numbers(), folder=folder)
    again = TokenizedCorpus.from_folder(str(folder))
    for corpus in (in_memory, in_folder, again):
        assert [corpus[i] for i in range(len(corpus))] == ids(pairs)
        assert corpus.lengths.tolist() == [[len(source), len(target)] for source, target in ids(pairs)]
        assert corpus.lengths.dtype == "int32" and corpus.left_out == 0
    assert names(folder) == FILES and names(folder.parent) == ["there"]
    assert (in_memory.folder, in_folder.folder, again.folder) == (None, folder, str(folder))


def test_each_side_has_its_own_tokenizer(pairs):
    corpus = TokenizedCorpus.from_pairs(pairs, Numbers(), Numbers(offset=50))
    assert list(corpus) == ids(pairs, offset=50)
    assert list(TokenizedCorpus.from_pairs([("7", "7")], Numbers(), Numbers(eos_id=9))) == [([7, 3], [7, 9])]


@pytest.mark.parametrize("in_folder", [False, True])
def test_pairs_too_long_on_a_side_are_counted_and_left_out(in_folder, tmp_path):
    """Eos counts: of 1 to 4 tokens on either side, 3 fit with it."""
    pairs = [(" ".join("5" * source), " ".join("6" * target)) for source in range(1, 5) for target in range(1, 5)]
    folder = tmp_path / "ids" if in_folder else None
    corpus = TokenizedCorpus.from_pairs(pairs, Numbers(), max_length=4, folder=folder)
    assert list(corpus) == [pair for pair in ids(pairs) if max(map(len, pair)) <= 4]
    assert len(corpus) == 9 and corpus.left_out == 7


@pytest.mark.parametrize("in_folder", [False, True])
def test_corpus_without_a_pair_is_refused(in_folder, tmp_path):
    folder = tmp_path / "ids" if in_folder else None
    with pytest.raises(ValueError, match="no pair to train on. Received: 0 pairs .*, 0 longer"):
        TokenizedCorpus.from_pairs([], Numbers(), folder=folder)
    with pytest.raises(ValueError, match="Received: 0 pairs of at most max_length=2 tokens, 2 longer"):
        TokenizedCorpus.from_pairs([("5", "5 5"), ("5 5", "5")], Numbers(), max_length=2, folder=folder)
    with pytest.raises(ValueError, match="`max_length`.*Received: max_length=0"):
        TokenizedCorpus.from_pairs([("5", "5")], Numbers(), max_length=0, folder=folder)
    assert names(tmp_path) == []


def broken(pairs):
    yield from pairs[:20]
    raise OSError("disk gone")


def test_folder_appears_whole_or_not_at_all(pairs, tmp_path):
    folder = tmp_path / "ids"
    for _ in range(2):
        with pytest.raises(OSError, match="disk gone"):
            TokenizedCorpus.from_pairs(broken(pairs), Numbers(), folder=folder)
        assert names(tmp_path) == []

    def look(pairs):
        for pair in pairs:
            assert not folder.exists()
            yield pair

    TokenizedCorpus.from_pairs(look(pairs), Numbers(), folder=folder)
    assert names(tmp_path) == ["ids"]


def test_earlier_corpus_stays_until_a_new_one_is_whole(pairs, tmp_path):
    folder = tmp_path / "ids"
    earlier = TokenizedCorpus.from_pairs(pairs[:5], Numbers(), folder=folder)
    with pytest.raises(OSError, match="disk gone"):
        TokenizedCorpus.from_pairs(broken(pairs), Numbers(), folder=folder)
    with pytest.raises(ValueError, match="no pair"):
        TokenizedCorpus.from_pairs([], Numbers(), folder=folder)
    assert list(TokenizedCorpus.from_folder(folder)) == ids(pairs[:5])
    assert list(TokenizedCorpus.from_pairs(pairs[5:], Numbers(), folder=folder)) == ids(pairs[5:])
    assert list(earlier) == ids(pairs[:5])  # Open files outlive their names.
    assert names(tmp_path) == ["ids"]


def test_left_over_of_a_killed_process_of_the_same_number_is_no_obstacle(pairs, tmp_path, monkeypatch):
    """In a container every run may have the number 1."""
    monkeypatch.setattr("os.getpid", lambda: 1)
    left_over = tmp_path / ".ids.1"
    left_over.mkdir()
    (left_over / "source_ids.bin").write_bytes(b"half")
    assert list(TokenizedCorpus.from_pairs(pairs, Numbers(), folder=tmp_path / "ids")) == ids(pairs)
    assert names(tmp_path) == ["ids"] and names(tmp_path / "ids") == FILES


def test_folder_that_holds_anything_else_is_left_alone(pairs, tmp_path):
    (tmp_path / "train.de").write_text("the only copy")
    TokenizedCorpus.from_pairs(pairs, Numbers(), folder=tmp_path / "ids")
    (tmp_path / "ids" / "notes.txt").touch()
    for folder in (tmp_path, tmp_path / "ids", tmp_path / "train.de"):
        with pytest.raises(ValueError, match=f"`folder`.*Received: {folder}"):
            TokenizedCorpus.from_pairs(pairs, Numbers(), folder=folder)
    assert (tmp_path / "train.de").read_text() == "the only copy"
    assert names(tmp_path) == ["ids", "train.de"] and len(TokenizedCorpus.from_folder(tmp_path / "ids")) == 40
    (tmp_path / "empty").mkdir()
    assert len(TokenizedCorpus.from_pairs(pairs, Numbers(), folder=tmp_path / "empty")) == 40


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("bytes_left", [None, 0, 1, -1, -4, -8])
def test_folder_with_a_file_missing_or_cut_is_named(pairs, tmp_path, name, bytes_left):
    TokenizedCorpus.from_pairs(pairs, Numbers(), folder=tmp_path / "ids")
    path = tmp_path / "ids" / name
    if bytes_left is None:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:bytes_left])
    with pytest.raises(ValueError, match=f"okenized corpus.*{tmp_path / 'ids'}"):
        TokenizedCorpus.from_folder(tmp_path / "ids")


def test_folder_that_holds_no_corpus_is_named(pairs, tmp_path):
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(ValueError, match=f"tokenized corpus in {folder}"):
            TokenizedCorpus.from_folder(folder)
    folder = tmp_path / "ids"
    TokenizedCorpus.from_pairs(pairs, Numbers(), folder=folder)
    for content in (["left_out"], {}, None):
        (folder / "corpus.json").write_text(json.dumps(content))
        with pytest.raises(ValueError, match=f"tokenized corpus in {folder}"):
            TokenizedCorpus.from_folder(folder)
    TokenizedCorpus.from_pairs(pairs, Numbers(), folder=folder)
    for side in ("source", "target"):  # Two files cut alike.
        (folder / f"{side}_ends.bin").write_bytes(b"")
    with pytest.raises(ValueError, match=f"incomplete. Received: {folder}"):
        TokenizedCorpus.from_folder(folder)


@pytest.mark.parametrize("in_folder", [False, True])
def test_padded_rows_are_the_sentences_in_order_with_zeros_behind(pairs, tmp_path, rng, in_folder):
    corpus = TokenizedCorpus.from_pairs(pairs, Numbers(), folder=tmp_path / "ids" if in_folder else None)
    for indices in (rng.integers(0, 40, 60), np.arange(40), np.array([39, 0, 39]), np.zeros(0, "int64")):
        for side in (0, 1):
            sentences = [corpus[i][side] for i in indices]
            longest = max(map(len, sentences), default=0)
            for width in (longest, longest + 7):
                rows = corpus.padded(side, indices, width)
                assert type(rows) is np.ndarray and rows.dtype == "int32" and rows.shape == (len(indices), width)
                assert rows.tolist() == [sentence + [0] * (width - len(sentence)) for sentence in sentences]


@pytest.mark.parametrize("in_folder", [False, True])
def test_corpus_of_more_pairs_than_are_kept_in_memory_at_once(tmp_path, in_folder):
    """200,003 pairs, where 100,000 are written at a time."""

    class Short:
        eos_id = 3

        def encode(self, text):
            return [text] * (text % 3)

    pairs = ((i, 2 * i) for i in range(200_003))
    corpus = TokenizedCorpus.from_pairs(pairs, Short(), folder=tmp_path / "ids" if in_folder else None)
    assert len(corpus) == 200_003
    for i in (0, 99_999, 100_000, 100_001, 199_999, 200_000, 200_002):
        assert corpus[i] == ([i] * (i % 3) + [3], [2 * i] * (2 * i % 3) + [3])
    expected = np.arange(200_003)
    assert np.array_equal(corpus.lengths, np.stack([expected % 3, 2 * expected % 3], axis=-1) + 1)


def test_corpus_of_exactly_as_many_pairs_as_are_written_at_a_time(tmp_path):
    pairs = itertools.repeat(("7", "8"), 100_000)
    assert len(TokenizedCorpus.from_pairs(pairs, Numbers(), folder=tmp_path / "ids")) == 100_000


def test_corpus_in_a_folder_is_read_as_it_goes_and_not_held_in_memory(tmp_path):
    """8 MB of ids in less than 400 kB of memory."""

    class Long:
        eos_id = 3

        def encode(self, text):
            return [text] * 9_999

    corpus = TokenizedCorpus.from_pairs(
        ((i, i) for i in range(4, 104)), Long(), max_length=10_000, folder=tmp_path / "x"
    )
    tracemalloc.start()
    corpus = TokenizedCorpus.from_folder(tmp_path / "x")
    assert corpus.padded(1, np.array([99]), 10_000)[0, -2:].tolist() == [103, 3]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert corpus.lengths.sum() * 4 == 8e6 and peak < 4e5


def test_pairs_are_counted_from_either_end_and_no_other_exists(pairs):
    corpus = TokenizedCorpus.from_pairs(pairs, Numbers())
    assert corpus[-1] == corpus[39] == corpus[np.int64(39)] == ids(pairs)[-1] and corpus[-40] == corpus[0]
    for index in (40, -41):
        with pytest.raises(IndexError, match=f"has 40 pairs. Received: index {index}"):
            corpus[index]
