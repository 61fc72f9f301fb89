"""A model that says nothing sensible, but something else for each source."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

pytest.importorskip("tensorflow_text", reason="the tokenizer needs tensorflow-text")

import keras_transformer.decoding.translator as translator_module
from keras_transformer.decoding import Hypothesis, SearchOptions, Translation, Translator
from keras_transformer.text import Tokenizer
from tests.decoding.models import random_model

TEXTS = [
    "I love easy courses",
    "我爱水课",
    "1.",
    "Jane visits Africa in September",
    "water",
    "He drinks water and eats fruit; what does that mean? " * 4,
]


@pytest.fixture(scope="module")
def tokenizers():
    return [Tokenizer.train([*TEXTS, *TEXTS], size, "bpe") for size in (310, 300)]


@pytest.fixture(scope="module")
def translator(tokenizers):
    return Translator(random_model(310, seed=3), tokenizers[0])


def texts_of(translations):
    return [translation.text for translation in translations]


@pytest.mark.parametrize("beam_size", [1, 4])
def test_translation_is_the_same_alone_and_in_any_company_order_and_batch(translator, rng, beam_size):
    """F26."""
    expected = translator.translate(TEXTS, beam_size=beam_size)
    assert len({one.text for one in expected}) >= 5
    for text, together in zip(TEXTS, expected, strict=True):
        alone = translator.translate(text, beam_size=beam_size)
        assert (alone.text, alone.truncated) == (together.text, together.truncated)
        assert alone.score == pytest.approx(together.score, abs=1e-4)
    for batch_tokens in (1, 300, 10**6):
        order = rng.permutation(24) % 6
        found = translator.translate([TEXTS[i] for i in order], beam_size=beam_size, batch_tokens=batch_tokens)
        assert texts_of(found) == [expected[i].text for i in order]
        np.testing.assert_allclose([one.score for one in found], [expected[i].score for i in order], atol=1e-4)


@pytest.mark.parametrize("options", [{"beam_size": 1}, {"beam_size": 3, "n_best": 2}, {"sampler": "random"}], ids=str)
def test_without_scores_translations_are_the_same_and_their_scores_are_nan(translator, options):
    texts = [*TEXTS, "", "water\nwater"]
    for one, expected in zip(
        translator.translate(texts, return_scores=False, **options), translator.translate(texts, **options), strict=True
    ):
        for other, hypothesis in zip(one.n_best, expected.n_best, strict=True):
            assert math.isnan(other.score) and math.isfinite(hypothesis.score)
            assert dataclasses.replace(other, score=hypothesis.score) == hypothesis
        assert math.isnan(one.score) and one.text == expected.text


def test_one_text_a_list_and_an_endless_iterator_are_translated(translator, monkeypatch):
    monkeypatch.setattr(translator_module, "_WINDOW", 5)
    first, second = translator.translate(TEXTS[:2])
    assert isinstance(translator.translate(TEXTS[0]), Translation) and str(first) == first.text
    assert translator.translate([]) == [] and list(translator.translate(iter([]))) == []
    endless = translator.translate(itertools.cycle(TEXTS[:2]))
    assert texts_of(itertools.islice(endless, 3)) == [first.text, second.text, first.text]


def test_blank_texts_give_blank_ones_and_change_no_neighbour(translator):
    """F30."""
    first = translator.translate(TEXTS[0]).text
    blank = ["", " ", "\t\u3000", "\u200b", "\ufeff"]
    for beam_size in (1, 4):
        found = translator.translate([*blank, TEXTS[0], *blank], beam_size=beam_size)
        assert [one.text for one in found if one.text] == [translator.translate(TEXTS[0], beam_size=beam_size).text]
        assert found[0] == Translation("", 0.0, False, n_best=(Hypothesis("", 0.0, False),))
    assert first and texts_of(translator.translate(blank)) == [""] * 5
    assert translator.translate("\n\r\n").text == "\n\r\n"


def test_lines_of_a_text_are_translated_one_by_one_and_keep_their_ends(translator):
    a, b = translator.translate(TEXTS[:2], n_best=2)
    text = f"{TEXTS[0]}\r\n\n{TEXTS[1]}\n"
    found = translator.translate(["water", text], n_best=2)[1]
    assert found.text == f"{a.text}\r\n\n{b.text}\n"
    assert found.n_best[1].text == f"{a.n_best[1].text}\r\n\n{b.n_best[1].text}\n"
    assert found.score == pytest.approx(a.score + b.score, abs=1e-4)
    assert found.truncated == (a.truncated or b.truncated)
    separators = "water\u2028water\x0b\x0c\x85"  # No ends of lines here.
    assert "\n" not in translator.translate(separators).text


def test_options_may_differ_from_text_to_text(translator):
    """Every text gets what it would get alone."""
    options = {
        "beam_size": [1, 2, 4, 4, 3, 2],
        "n_best": [1, 2, 1, 3, 1, 1],
        "length_penalty": [0.0, 1.0, 0.6, 0.0, 2.0, 0.6],
        "max_length": [None, 5, 1, 12, None, 4],
        "target_prefix": ["", "I ", "", "Jane", "", "我"],
    }
    together = translator.translate(TEXTS, **options, batch_tokens=10**6)
    for i, (text, one) in enumerate(zip(TEXTS, together, strict=True)):
        alone = translator.translate(text, **{name: values[i] for name, values in options.items()})
        assert texts_of(one.n_best) == texts_of(alone.n_best) and len(one.n_best) == options["n_best"][i]
        assert one.text.startswith(options["target_prefix"][i].strip()) and one.n_best[0].text == one.text
        np.testing.assert_allclose([k.score for k in one.n_best], [k.score for k in alone.n_best], atol=1e-4)
    assert together[2].truncated


def test_every_search_is_traced_once_whatever_the_texts_and_options(translator):
    for beam_size, count, max_length in ((1, 1, 3), (1, 5, 9), (2, 2, None), (5, 4, 7), (8, 6, 2)):
        translator.translate(TEXTS[:count], beam_size=beam_size, max_length=max_length, batch_tokens=count * 40)
        translator.translate(TEXTS[:count], beam_size=beam_size, length_penalty=1.0, no_repeat_ngram_size=2)
        translator.translate(TEXTS[:count], beam_size=beam_size, return_scores=False)
        translator.translate(TEXTS[:count], n_best=beam_size, sampler="random", temperature=0.5 + beam_size)
        translator.score(TEXTS[:count], TEXTS[:count])
    translator.attention(TEXTS[:3], TEXTS[:3])
    traces = {name: f.experimental_get_tracing_count() for name, f in translator._searches.functions.items()}
    assert len(traces) >= 5 and set(traces.values()) == {1}, traces


def test_score_of_a_translation_is_the_one_that_its_search_reported(translator):
    for options in ({"beam_size": 1}, {"beam_size": 4, "n_best": 4}):
        for text, one in zip(TEXTS[:4], translator.translate(TEXTS[:4], length_penalty=0.0, **options), strict=True):
            for hypothesis in (one, *one.n_best):
                forced = translator.score(text, hypothesis)
                assert forced.log_probability == pytest.approx(hypothesis.score, abs=1e-4)
                assert forced.tokens == tuple(translator._target.pieces(hypothesis.token_ids))
    pairs = [list(side) for side in zip(*itertools.product(TEXTS[:3], ["I love", "water", ""]), strict=True)]
    together = translator.score(*pairs, batch_tokens=60)
    for source, target, one in zip(*pairs, together, strict=True):
        alone = translator.score(source, target)
        assert one.tokens == alone.tokens and one.tokens[-1] == "</s>"
        np.testing.assert_allclose(one.token_log_probabilities, alone.token_log_probabilities, atol=1e-4)
        assert one.log_probability == pytest.approx(one.token_log_probabilities.sum(), abs=1e-4)
        assert len(one.token_log_probabilities) == len(one.tokens)


def test_attention_has_a_row_for_each_target_token_and_a_column_for_each_source_token(translator):
    pair = translator.attention("我爱水课", "I love")
    assert pair.source_tokens[-1] == pair.target_tokens[-1] == "</s>"
    assert pair.weights.shape == (2, 2, len(pair.target_tokens), len(pair.source_tokens))
    np.testing.assert_allclose(pair.weights.sum(-1), 1, atol=1e-5)
    first, second = translator.attention(TEXTS[:2], beam_size=2, max_length=6)
    translation = translator.translate(TEXTS[0], beam_size=2, max_length=6)
    assert first.target_tokens == tuple(translator._target.pieces(translation.token_ids)) != second.target_tokens
    assert first.weights.shape[2] == len(first.target_tokens) <= 6
    np.testing.assert_allclose(translator.attention(TEXTS[0], translation).weights, first.weights, atol=1e-5)


def test_separate_tokenizers_and_an_ensemble_translate(tokenizers):
    fields = {"tie_embeddings": "none", "target_vocabulary_size": 300}
    models = [random_model(310, seed=seed, **fields) for seed in (1, 2)]
    options = {"beam_size": 1, "max_length": 10}
    alone = [Translator(model, *tokenizers).translate(TEXTS[:4], **options) for model in models]
    same = Translator([models[0], models[0]], *tokenizers).translate(TEXTS[:4], **options)
    assert texts_of(same) == texts_of(alone[0]) != texts_of(alone[1])
    np.testing.assert_allclose([one.score for one in same], [one.score for one in alone[0]], atol=1e-4)
    assert texts_of(Translator(models, *tokenizers).translate(TEXTS[:4], **options)) != texts_of(same)
    ensemble = Translator(models, *tokenizers)
    with pytest.raises(ValueError, match="Attention is of one model. Received: an ensemble of 2"):
        ensemble.attention("water", "water")
    with pytest.raises(ValueError, match="one vocabulary. Received"):
        Translator([models[0], random_model(310)], *tokenizers)


def test_translator_lowers_the_case_where_its_target_tokenizer_does(tokenizers):
    lowering = Tokenizer.train(TEXTS * 5, 300, "bpe", normalization="lower")
    model = random_model(310, tie_embeddings="none", target_vocabulary_size=300)
    assert Translator(model, tokenizers[0], lowering).lowers_case
    assert not Translator(model, *tokenizers).lowers_case


def test_preset_translates_as_the_translator_that_saved_it(translator, tmp_path):
    translator.save_to_preset(tmp_path / "preset")
    again = Translator.from_preset(tmp_path / "preset")
    assert texts_of(again.translate(TEXTS, beam_size=1)) == texts_of(translator.translate(TEXTS, beam_size=1))


def test_source_longer_than_the_learned_positions_is_cut_and_its_translation_flagged(tokenizers):
    """F31."""
    translator = Translator(random_model(310, positions="learned", max_length=24), tokenizers[0])
    long, short = translator.translate([TEXTS[5], "I"], beam_size=1)
    assert long.truncated and long.text and short.text
    assert translator.translate("I", beam_size=1).text == short.text
    assert len(translator.translate([TEXTS[5]] * 10, beam_size=1)) == 10
    assert translator.attention(TEXTS[5], "I").weights.shape[-1] == 24


def test_progress_goes_to_standard_error_and_only_if_asked_for(translator, capsys):
    translator.translate(TEXTS, beam_size=1, max_length=3)
    assert capsys.readouterr() == ("", "")
    translator.translate(["", *TEXTS], beam_size=1, max_length=3, verbose=True)
    output, errors = capsys.readouterr()
    assert not output and "7/7" in errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_sizes": 4}, "no option 'beam_sizes'. Did you mean 'beam_size'.*Received: beam_sizes=4"),
        ({"beam_size": 0}, "`beam_size`.*Received: beam_size=0"),
        ({"beam_size": [4, 2.5]}, "`beam_size`.*Received: beam_size=2.5"),
        ({"beam_size": [4]}, "`beam_size` must have 2 entries.*Received: 1"),
        ({"n_best": 5}, "`n_best` must be at most `beam_size`. Received: n_best=5, beam_size=4"),
        ({"n_best": [1, 2], "beam_size": [2, 1]}, "Received: n_best=2, beam_size=1"),
        ({"length_penalty": 1e30}, "`length_penalty`.*from 0 to 10.*Received: length_penalty=1e"),
        ({"max_length": 2**31}, "`max_length` must be at most 10000. Received: max_length=2147483648"),
        ({"no_repeat_ngram_size": 10**6}, "`no_repeat_ngram_size`.*Received"),
        ({"banned_tokens": None}, "`banned_tokens` must be a list.*Received: banned_tokens=None"),
        ({"target_prefix": "a\nb"}, "`target_prefix` must be text of one line.*Received"),
        ({"temperature": 1e39}, "`temperature`.*Received: temperature=1e"),
        ({"seed": 2**64}, "`seed`.*Received"),
        ({"length_penalty": float("nan")}, "`length_penalty`.*Received: length_penalty=nan"),
        ({"length_penalty": -1}, "`length_penalty`.*Received: length_penalty=-1"),
        ({"length_penalty_form": "wu"}, "`length_penalty_form`.*'gnmt', 'power'.*Received"),
        ({"max_length": 0}, "`max_length`.*Received: max_length=0"),
        ({"min_length": -1}, "`min_length`.*Received: min_length=-1"),
        ({"target_prefix": 3}, "`target_prefix`.*Received: target_prefix=3"),
        ({"no_repeat_ngram_size": 1.5}, "`no_repeat_ngram_size`.*Received"),
        ({"repetition_penalty": 0}, "`repetition_penalty`.*Received"),
        ({"banned_tokens": [310]}, "`banned_tokens` must be below 310.*Received: 310"),
        ({"banned_tokens": [3]}, "`banned_tokens`.*eos"),
        ({"beam_groups": 3}, "`beam_size` must be a multiple of `beam_groups`. Received: beam_size=4, beam_groups=3"),
        ({"diversity_penalty": float("inf")}, "`diversity_penalty`.*Received"),
        ({"early_stopping": 1}, "`early_stopping`.*Received"),
        ({"return_scores": None}, "`return_scores`.*Received: return_scores=None"),
        ({"sampler": "greedy"}, "`sampler`.*'random', 'top_k', 'top_p'.*Received"),
        ({"temperature": 0}, "`temperature`.*Received"),
        ({"top_p": 1.5}, "`top_p`.*Received"),
        ({"seed": -1}, "`seed`.*Received"),
        ({"batch_tokens": 0}, "`batch_tokens`.*Received: batch_tokens=0"),
    ],
    ids=str,
)
def test_bad_options_are_named(translator, options, message):
    with pytest.raises(ValueError, match=message):
        translator.translate(TEXTS[:2], **options)


def test_arguments_that_do_not_fit_are_refused(translator, tokenizers):
    for texts, received in (([1], "1 as number 1"), (["a", None], "None as number 2"), ([b"a"], "b'a' as number 1")):
        with pytest.raises(ValueError, match=f"Texts must be of type str. Received: {received}"):
            translator.translate(texts)
    for texts in (None, 5, b"a"):
        with pytest.raises(ValueError, match=f"Texts are a str, a list or an iterator.*Received: {texts}"):
            translator.translate(texts)
        with pytest.raises(ValueError, match="Sources and targets are texts.*Received"):
            translator.score(texts, "a")
    with pytest.raises(ValueError, match="`beam_size` must have one value.*Received: 1"):
        translator.translate(iter(TEXTS), beam_size=[4])
    with pytest.raises(ValueError, match="Each source needs one target. Received: 2 and 1"):
        translator.score(["a", "b"], ["a"])
    with pytest.raises(ValueError, match="A text goes with a text"):
        translator.score("a", ["a"])
    with pytest.raises(ValueError, match="texts of one line. Received: 'b\\\\nc'"):
        translator.score("a", "b\nc")
    with pytest.raises(ValueError, match=r"Options are for translations.*\['beam_size'\]"):
        translator.attention("a", "b", beam_size=2)
    with pytest.raises(ValueError, match=r"as many ids as the model, \(310, 310\). Received: \(310, 300\)"):
        Translator(random_model(310), *tokenizers)
    with pytest.raises(ValueError, match="one Transformer or more. Received"):
        Translator([], *tokenizers)


def test_options_are_values():
    assert SearchOptions(beam_size=np.int64(4)) == SearchOptions()
    assert hash(SearchOptions(beam_size=[1, 2]))


@pytest.mark.parametrize("beam_size", [1, 3])
def test_compiled_search_of_a_single_text_gives_the_same(tokenizers, beam_size):
    """Also of one that is longer than what was compiled, of a prefix, of other options, and of several texts."""
    translator = Translator(random_model(310, seed=3), tokenizers[0])
    kinds = [{}, {"max_length": 5}, {"max_length": 300}, {"target_prefix": "water"}, {"no_repeat_ngram_size": 2}]
    kinds.append({"return_scores": False})
    options = [{"beam_size": beam_size, "n_best": beam_size, **kind} for kind in kinds]
    asked = [(text, one) for text in TEXTS[:3] for one in options] + [(TEXTS[5], options[0]), (TEXTS[:3], options[0])]
    expected = [translator.translate(text, **one) for text, one in asked]
    translator.jit_compile([6, 20], beam_size=beam_size)
    searches = translator._compiled[beam_size]
    used = []
    find = searches.find
    searches.find = lambda ids, rows: used.append(find(ids, rows)) or used[-1]
    for (text, one), before in zip(asked, expected, strict=True):
        after = translator.translate(text, **one)
        for old, new in zip(*([found] if isinstance(text, str) else found for found in (before, after)), strict=True):
            assert texts_of(new.n_best) == texts_of(old.n_best) and new.truncated == old.truncated
            np.testing.assert_allclose([k.score for k in new.n_best], [k.score for k in old.n_best], atol=1e-4)
    assert sum(map(bool, used)) >= 8 and used[-1] is None is used[-2]
    assert len(set(used)) == 3
    with pytest.raises(ValueError, match=r"`source_lengths` must be a list of lengths. Received: source_lengths=\[\]"):
        translator.jit_compile([])
    with pytest.raises(ValueError, match="`source_lengths` must be a whole number of at least 1. Received: "):
        translator.jit_compile([0])
