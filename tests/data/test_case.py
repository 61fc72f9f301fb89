import keras
import pytest

from keras_transformer.data import TokenBatches, TokenizedCorpus, with_case_variants
from keras_transformer.data.phrasebook import phrasebook
from keras_transformer.decoding import Translator
from keras_transformer.losses import MaskedCrossentropy
from keras_transformer.models import TransformerConfig, transformer
from keras_transformer.schedules import InverseSquareRootSchedule
from keras_transformer.text import Tokenizer


@pytest.mark.parametrize(("share", "added"), [(0, 0), (0.1, 10), (0.25, 25), (0.333, 33), (1, 100)])
def test_variants_are_the_share_asked_for_in_both_cases_and_pairs_keep_their_order(share, added):
    pairs = [(f"le mot {i}", f"the word {i}") for i in range(100)]
    result = list(with_case_variants(pairs, share))
    variants = [pair for pair in result if pair not in pairs]
    assert [pair for pair in result if pair in pairs] == pairs
    assert len(variants) == added
    assert sum(source.isupper() and target.isupper() for source, target in variants) == (added + 1) // 2
    assert all(pair == tuple(" ".join(map(str.capitalize, text.split())) for text in pair) for pair in variants[1::2])


def test_text_without_case_has_no_variant_and_words_with_an_apostrophe_stay_words():
    assert list(with_case_variants([("我爱水课", "I love easy courses")], 1.0)) == [("我爱水课", "I love easy courses")]
    pairs = [("a", "b"), ("j'aime", "i don't")]
    assert list(with_case_variants(pairs, 1.0))[2:] == [("j'aime", "i don't"), ("J'aime", "I Don't")]


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan"), "all"])
def test_share_out_of_range_is_refused(share):
    with pytest.raises(ValueError, match="`share`.*Received"):
        list(with_case_variants([("a", "b")], share))


def test_model_trained_with_variants_translates_capitals_without_running_away():
    """F25."""
    pairs = [pair for pair in phrasebook("fr", "train") if len(pair[0]) < 30][:120]
    tokenizer = Tokenizer.train([text for pair in pairs for text in pair], 700, "bpe", character_coverage=1.0)
    # Every second pair is in capitals, and then the others: whether a model of this size says what it never saw in
    # capitals is chance.
    variants = [*with_case_variants(pairs, 1.0), *with_case_variants(pairs[1:], 1.0)]
    corpus = TokenizedCorpus.from_pairs(variants, tokenizer)
    batches = TokenBatches(corpus, 1024, seed=1)
    model = transformer(
        TransformerConfig.from_preset("tiny", 700, encoder_layers=1, decoder_layers=1, dropout=0.0, model_dim=64)
    )
    model.compile(keras.optimizers.Adam(InverseSquareRootSchedule(4e-3, 50)), MaskedCrossentropy())
    model.fit(batches.dataset(), steps_per_epoch=600, verbose=0, shuffle=False)
    translator = Translator(model, tokenizer)

    def translate(texts):
        return [one.text for one in translator.translate(texts, beam_size=1)]

    sources = [source for source, _ in pairs[:20]]
    usual = translate(sources)
    assert sum(text == target for text, (_, target) in zip(usual, pairs, strict=False)) > 15
    for text, normal in zip(translate([source.upper() for source in sources]), usual, strict=True):
        words = text.split()
        grams = [tuple(words[i : i + 4]) for i in range(len(words) - 3)]
        assert max(map(grams.count, grams), default=0) < 4, text
        assert len(words) <= 2 * len(normal.split()), text
    capitals = translate([source.upper() for source, _ in pairs[:40:2]])
    assert sum(text.isupper() for text in capitals) > 15
