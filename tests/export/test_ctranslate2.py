"""CTranslate2, an engine that shares no code with ours, runs the same weights."""

import pytest

pytest.importorskip("ctranslate2", reason="`make peers` brings it")
pytest.importorskip("tensorflow_text", reason="the tokenizer needs tensorflow-text")

import ctranslate2
import keras

from keras_transformer.decoding import Translator
from keras_transformer.export import export_ctranslate2
from keras_transformer.losses import MaskedCrossentropy
from keras_transformer.text import Tokenizer
from tests.decoding.models import padded, random_model

TEXTS = [
    "I love easy courses",
    "我爱水课",
    "Jane visits Africa in September",
    "water",
    "He drinks water and eats fruit; what does that mean?",
]
KINDS = {
    "post-norm": {},
    "pre-norm, gated, learned, separate vocabularies, without biases": {
        "normalize_first": True,
        "encoder_layers": 2,
        "gated": True,
        "activation": "silu",
        "positions": "learned",
        "max_length": 90,
        "tie_embeddings": "none",
        "target_vocabulary_size": 300,
        "use_bias": False,
    },
}


@pytest.fixture(scope="module")
def tokenizers():
    return [Tokenizer.train([*TEXTS, *TEXTS], size, "bpe") for size in (310, 300)]


def trained_model(tokenizers, fields):
    """It has learnt to say the texts backwards, more or less: with random weights it would never end."""
    model = random_model(310, **fields)
    sides = (tokenizers[0], tokenizers["target_vocabulary_size" in fields])
    source, target = (
        [[*side.encode(text), 3] for text in texts] for side, texts in zip(sides, (TEXTS, TEXTS[::-1]), strict=True)
    )
    labels = padded(target)
    inputs = {"source_ids": padded(source), "target_ids": padded([[2, *ids[:-1]] for ids in target])}
    model.compile(keras.optimizers.Adam(0.01), MaskedCrossentropy())
    model.fit(inputs, labels, batch_size=5, epochs=120, verbose=0)
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_other_engine_finds_the_same_translations_with_the_same_scores(tokenizers, tmp_path, kind):
    fields = KINDS[kind]
    model = trained_model(tokenizers, fields)
    sides = tokenizers[: 1 + ("target_vocabulary_size" in fields)]
    export_ctranslate2(tmp_path / "model", model, *sides)
    engine = ctranslate2.Translator(str(tmp_path / "model"), intra_threads=1)
    ours = Translator(model, *sides)
    pieces = [sides[0].pieces(sides[0].encode(text)) for text in TEXTS]
    for beam_size in (1, 4):
        found = engine.translate_batch(
            pieces,
            beam_size=beam_size,
            length_penalty=0,
            min_decoding_length=0,
            max_decoding_length=80,
            return_scores=True,
        )
        translations = ours.translate(TEXTS, beam_size=beam_size, length_penalty=0, max_length=81)
        for theirs, one in zip(found, translations, strict=True):
            assert theirs.hypotheses[0] == [piece for piece in sides[-1].pieces(one.token_ids)[:80] if piece != "</s>"]
            if not one.truncated:
                assert theirs.scores[0] == pytest.approx(one.score, abs=1e-3)
        assert len({one.text for one in translations if not one.truncated}) >= 4


def test_quantised_weights_take_a_quarter_of_the_space(tokenizers, tmp_path):
    model = random_model(310)
    for quantization in (None, "int8"):
        export_ctranslate2(
            tmp_path / str(quantization), model, tokenizers[0], quantization=quantization, max_positions=16
        )
    sizes = [(tmp_path / name / "model.bin").stat().st_size for name in ("None", "int8")]
    assert sizes[1] < 0.5 * sizes[0]
    assert ctranslate2.Translator(str(tmp_path / "int8")).translate_batch([["▁", "I"]], max_decoding_length=3)


def test_models_that_the_engine_cannot_run_are_refused_and_nothing_is_left(tokenizers, tmp_path):
    for fields, message in (
        ({"key_dim": 4}, "`key_dim`.*Received: key_dim=4"),
        ({"activation": "elu"}, "activations .*relu.*Received: activation='elu'"),
    ):
        with pytest.raises(ValueError, match=message):
            export_ctranslate2(tmp_path / "model", random_model(310, **fields), tokenizers[0])
    assert not list(tmp_path.iterdir())
    export_ctranslate2(tmp_path / "model", random_model(310), tokenizers[0])
    with pytest.raises(ValueError, match="must not exist yet. Received: .*model"):
        export_ctranslate2(tmp_path / "model", random_model(310), tokenizers[0])
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
