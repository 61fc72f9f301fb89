import re

import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow_text", reason="the tokenizer needs tensorflow-text")

import tensorflow as tf

from keras_transformer.data.phrasebook import phrasebook
from keras_transformer.text import Tokenizer

SENTENCES = [
    "I love easy courses.",
    "我爱水课。",
    "Jane visits Africa in September, doesn't she?",
    "Jane visite l'Afrique en septembre.",
    "喝水，吃水果。这是什么意思？",
    "He drinks water and eats fruit; what does that mean?",
] * 5
TEXTS = [
    "I love fruit.",
    "我爱水果，你呢？",
    "👍🏽 family: 👨‍👩‍👧",
    "𠮷野家",
    "مرحبا بالعالم",
    "cafe\u0301 naïve",
    "a\tb\nc\r\nd",
    "NUL \0 inside",
    "\u200b",
    "-",
    "",
    "</s> <s> <pad> <unk> <0x41> [MASK]",
]


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def tokenizer(request):
    return Tokenizer.train(SENTENCES, vocabulary_size=320, model_type=request.param)


def test_every_character_comes_back_from_its_ids(tokenizer):
    """F22, F23: no unknown token, no control token, byte fallback for what was never seen."""
    for text in TEXTS:
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        assert all(3 < token < tokenizer.vocabulary_size for token in ids), text


def test_ids_and_texts_are_the_same_in_graph_and_in_python(tokenizer):
    """F22."""
    ids = tf.function(tokenizer.tokenize)(tf.constant(TEXTS))
    assert ids.dtype == tf.int32
    assert ids.to_list() == [tokenizer.encode(text) for text in TEXTS]
    assert [text.decode() for text in tf.function(tokenizer.detokenize)(ids).numpy()] == TEXTS


def test_pieces_are_the_same_in_graph_and_in_python(tokenizer):
    ids = tokenizer.tokenize(["我爱水课 🦁", "", "a b"])
    found = [[piece.decode() for piece in row] for row in tokenizer.to_pieces(ids).numpy()]
    longest = max(map(len, ids.to_list()))
    assert found == [tokenizer.pieces(row) + [""] * (longest - len(row)) for row in ids.to_list()]


def test_tokenizer_and_its_graphs_outlive_a_new_random_seed(tokenizer):
    """Seeding clears TensorFlow's kernels, and with them resources that have no name."""
    tokenize = tf.function(tokenizer.tokenize)
    expected = tokenize(["I love fruit."]).to_list()
    keras.utils.set_random_seed(5)
    assert tokenize(["I love fruit."]).to_list() == tokenizer.tokenize(["I love fruit."]).to_list() == expected
    dataset = tf.data.Dataset.from_tensors(["I love fruit."]).map(tokenizer.tokenize)
    keras.utils.set_random_seed(6)
    assert next(iter(dataset)).to_list() == expected


def test_white_space_changes_as_documented_and_in_no_other_way(tokenizer):
    """F23."""
    for text, expected in (("A    B", "A B"), (" A ", "A"), ("\tA", "\tA"), ("A\n\nB", "A\n\nB"), ("x▁y", "x y")):
        assert tokenizer.decode(tokenizer.encode(text)) == expected
        assert tokenizer.detokenize(tokenizer.tokenize([text])).numpy()[0].decode() == expected


def test_special_ids_are_fixed_and_say_nothing(tokenizer):
    assert (tokenizer.pad_id, tokenizer.unk_id, tokenizer.bos_id, tokenizer.eos_id) == (0, 1, 2, 3)
    ids = [2, *tokenizer.encode("I love fruit."), 3, 0, 0]
    assert tokenizer.decode(ids) == "I love fruit."
    assert tokenizer.detokenize([ids]).numpy()[0] == b"I love fruit."
    assert tokenizer.pieces([0, 1, 2, 3]) == ["<pad>", "<unk>", "<s>", "</s>"]


def test_cut_byte_sequence_gives_replacement_characters(tokenizer):
    """F22: the first two of the three bytes of 鱼, alone and before other text."""
    cut = tokenizer.encode("x鱼")[:-1]
    assert tokenizer.pieces(cut)[-2:] == ["<0xE9>", "<0xB1>"]
    for ids in (cut, cut + tokenizer.encode("fruit")):
        text = tokenizer.decode(ids)
        assert "\ufffd" in text and "<0x" not in text
        assert tokenizer.detokenize([ids]).numpy()[0].decode() == text


def test_text_that_is_no_utf8_becomes_replacement_characters(tokenizer):
    """F19: neighbours are unaffected, and Python's lone surrogates are treated alike."""
    ids = tokenizer.tokenize([b"caf\xe9 au lait", b"\xed\xa0\x80", "I love fruit."])
    texts = [text.decode() for text in tokenizer.detokenize(ids).numpy()]
    assert texts[0] == "caf\ufffd au lait" and set(texts[1]) == {"\ufffd"} and texts[2] == "I love fruit."
    assert tokenizer.decode(tokenizer.encode("a\ud800b")) == "a\ufffdb"


@pytest.mark.parametrize("wrong", [-1, 320, 2**31 - 1])
def test_id_outside_the_vocabulary_is_an_error_and_no_crash(tokenizer, wrong):
    """F24: in Python, eagerly and in a graph; the next call works."""
    with pytest.raises(ValueError, match=f"below 320. Received: {wrong}"):
        tokenizer.decode([5, wrong])
    for detokenize in (tokenizer.detokenize, tf.function(tokenizer.detokenize)):
        for ids in ([[5, wrong]], tf.ragged.constant([[5, wrong], [5]])):
            with pytest.raises(tf.errors.InvalidArgumentError, match="below 320"):
                detokenize(tf.cast(ids, tf.int32) if isinstance(ids, tf.RaggedTensor) else tf.constant(ids))
    assert tokenizer.detokenize([tokenizer.encode("fruit")]).numpy()[0] == b"fruit"


def test_empty_batch_gives_an_empty_result(tokenizer):
    """F30."""
    ids = tokenizer.tokenize(tf.zeros((0,), tf.string))
    assert ids.nrows() == 0
    assert tokenizer.detokenize(ids).shape == (0,)


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_sampling_varies_the_pieces_keeps_the_text_and_repeats_by_seed(model_type):
    english = [target for _, target in phrasebook("fr", "train")[:500]]
    tokenizer = Tokenizer.train(english, vocabulary_size=600, model_type=model_type)
    text = " ".join(english[:4])  # In a short one there is little to vary, and processes draw differently.
    ids = tokenizer.sample([text] * 30, alpha=0.3, seed=1)
    assert len({tuple(row) for row in ids}) > 5
    assert {tokenizer.decode(row) for row in ids} == {text}
    assert tokenizer.sample([text] * 30, alpha=0.3, seed=1) == ids
    assert tokenizer.sample([text] * 30, alpha=0.3, seed=2) != ids
    assert tokenizer.sample([text], alpha=0.3, seed=-1)
    assert tokenizer.encode(text) == tokenizer.encode(text)


@pytest.mark.parametrize("alpha", [0, 1.5, float("nan"), "0.1"])
def test_sampling_refuses_an_alpha_out_of_range(tokenizer, alpha):
    with pytest.raises(ValueError, match="`alpha`.*Received"):
        tokenizer.sample(["I love fruit."], alpha=alpha, seed=1)


def test_training_twice_gives_the_same_tokenizer_and_another_text_another(tokenizer):
    again = Tokenizer.train(iter(SENTENCES), vocabulary_size=320)
    assert again.checksum == Tokenizer.train(SENTENCES, vocabulary_size=320).checksum
    assert again.checksum != Tokenizer.train(SENTENCES[:-6] + ["water"] * 9, vocabulary_size=320).checksum
    assert re.fullmatch("[0-9a-f]{64}", again.checksum)


def test_identity_keeps_full_width_punctuation_and_nfkc_does_not():
    text = "我爱水课，你呢？"
    kept = Tokenizer.train(SENTENCES, 320)
    replaced = Tokenizer.train(SENTENCES, 320, normalization="nfkc")
    assert kept.decode(kept.encode(text)) == text
    assert replaced.decode(replaced.encode(text)) == "我爱水课,你呢?"


def test_lower_makes_every_letter_lower_case_and_keeps_all_else(tmp_path):
    tokenizer = Tokenizer.train(SENTENCES, 320, normalization="lower")
    texts = [*TEXTS, "STRASSE Straße ẞ", "ΟΔΟΣ", "Ａ，？", "CAFE\u0301", "İ"]
    expected = ["".join(letter.lower() for letter in text) for text in texts]
    assert [tokenizer.decode(tokenizer.encode(text)) for text in texts] == expected
    assert [text.decode() for text in tokenizer.detokenize(tokenizer.tokenize(texts)).numpy()] == expected
    tokenizer.save(tmp_path / "tokenizer.model")
    assert Tokenizer.from_file(tmp_path / "tokenizer.model").encode("JANE") == tokenizer.encode("jane")


@pytest.mark.parametrize(
    ("normalization", "lowers"), [("identity", False), ("nfkc", False), ("lower", True), ("nfkc_cf", True)]
)
def test_tokenizer_knows_whether_it_lowers_the_case(normalization, lowers):
    assert Tokenizer.train(SENTENCES, 310, normalization=normalization).lowers_case is lowers


def test_saved_file_gives_the_same_tokenizer(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "tokenizer.model")
    (tmp_path / "usual").touch()
    assert (tmp_path / "tokenizer.model").stat().st_mode == (tmp_path / "usual").stat().st_mode
    (tmp_path / "usual").unlink()
    loaded = Tokenizer.from_file(tmp_path / "tokenizer.model")
    assert loaded.checksum == tokenizer.checksum
    assert [path.name for path in tmp_path.iterdir()] == ["tokenizer.model"]


LOAD_EXPORTED = """
import sys, tensorflow as tf, tensorflow_text
assert "keras_transformer" not in sys.modules
module = tf.saved_model.load("exported")
print(module.round_trip(tf.constant(["我爱水课 👍", "I love fruit."]))[0].numpy().decode() == "我爱水课 👍")
"""


def test_tokenizer_goes_into_a_saved_model_whole(tokenizer, tmp_path, run_python):
    """F33: a process without the file and the package detokenizes what it has tokenized."""
    module = tf.Module()
    module.tokenizer = tokenizer
    signature = [tf.TensorSpec([None], tf.string)]
    module.round_trip = tf.function(lambda texts: tokenizer.detokenize(tokenizer.tokenize(texts)), signature)
    tf.saved_model.save(module, str(tmp_path / "exported"))
    assert run_python(LOAD_EXPORTED) == "True\n"


def test_long_sentences_are_left_out_and_counted(caplog):
    """F21."""
    long = ["x" * 5_001] * 3 + ["x" * 300_000]
    tokenizer = Tokenizer.train([*SENTENCES, *long], 320, max_sentence_bytes=5_000)
    assert "4 of 34 sentences are longer than max_sentence_bytes=5000 (11.8 %)" in caplog.text
    assert tokenizer.checksum == Tokenizer.train(SENTENCES, 320, max_sentence_bytes=5_000).checksum
    with pytest.raises(ValueError, match="No sentence is left.*4 of 4 sentences are longer than max_sentence_bytes"):
        Tokenizer.train(long, 320, max_sentence_bytes=5_000)


def test_training_errors_say_what_was_expected_and_received(tmp_path):
    with pytest.raises(ValueError, match=r"trained: Vocabulary size too high.*Received: vocabulary_size=9000"):
        Tokenizer.train(SENTENCES, 9_000)
    with pytest.raises(ValueError, match=r"Received: vocabulary_size=100"):
        Tokenizer.train(SENTENCES, 100)
    with pytest.raises(ValueError, match="No sentence is left"):
        Tokenizer.train(["", " "], 320)
    with pytest.raises(ValueError, match="Received: b'bytes' as number 2"):
        Tokenizer.train(["text", b"bytes"], 320)
    with pytest.raises(ValueError, match="Received: one str"):
        Tokenizer.train("one text", 320)
    for name, value in (
        ("vocabulary_size", 0),
        ("model_type", "word"),
        ("normalization", "nfc"),
        ("character_coverage", 1.1),
        ("character_coverage", True),
        ("max_sentence_bytes", -1),
    ):
        with pytest.raises(ValueError, match=f"`{name}`.*Received"):
            Tokenizer.train(SENTENCES, **{"vocabulary_size": 320, name: value})


def test_loading_errors_name_the_file(tmp_path):
    """F24."""
    (tmp_path / "broken.model").write_bytes(b"no model")
    for name in ("broken.model", "missing.model"):
        with pytest.raises(ValueError, match=f"Could not load a tokenizer from '.*{name}'"):
            Tokenizer.from_file(tmp_path / name)
    with pytest.raises(ValueError, match="must be the bytes"):
        Tokenizer("tokenizer.model")


def test_foreign_model_with_other_ids_or_without_bytes_is_refused():
    import io

    import sentencepiece

    for options, message in (
        ({}, "special ids must be"),
        ({"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3}, "byte"),
    ):
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(SENTENCES), model_writer=model, vocab_size=60, minloglevel=2, **options
        )
        with pytest.raises(ValueError, match=message):
            Tokenizer(model.getvalue())


WITHOUT_LIBRARY = """
import sys
sys.modules["tensorflow_text"] = None
import keras_transformer
try:
    import keras_transformer.text
except ImportError as error:
    print(error)
"""


def test_missing_library_gives_one_clear_message(run_python):
    """F42: with the versions that are needed and those that are there."""
    message = run_python(WITHOUT_LIBRARY)
    assert "needs tensorflow-text and sentencepiece" in message
    assert "keras_transformer[text]" in message and "tensorflow-text 2.21.1" in message
    assert re.search(r"Received: tensorflow 2\.21\.\d+, tensorflow-text \S+, sentencepiece \S+", message)
    assert np.char.count(message, "\n") == 1


def test_error_in_reading_the_text_comes_out_as_it_is():
    def read():
        yield "I love easy courses"
        raise ValueError("corpus.en:2: the line must be valid UTF-8.")

    with pytest.raises(ValueError, match="^corpus.en:2: the line must be valid UTF-8.$"):
        Tokenizer.train(read(), 280, "bpe")
