import dataclasses
import gzip
import json
import logging
import math
import subprocess
import sys
from collections import Counter

import pytest

from keras_transformer.evaluate import Score, has_spaces, lowercased_tokenized_bleu, score_translations

WHO = ("我", "他的妹妹", "汤姆", "那位老师", "我们")
WHAT = ("喜欢喝水", "昨天去了北京", "不想吃苹果", "在图书馆看书")
WHEN = ("。", "，因为今天很热。", "，你知道吗？", "，但是没有时间。", "！")
CHINESE = [who + what + when for who in WHO for what in WHAT for when in WHEN]
CHINESE_HYPOTHESES = [CHINESE[i - 1] if i % 3 == 0 else line.replace("的", "") for i, line in enumerate(CHINESE)]
GERMAN = [
    f"{who} {what}{end}"
    for who in ("Ein Mann mit Hut", "Die „große“ Frau", "Ein 2,5-jähriges Mädchen", "Toms Hund")
    for what in ("läuft über das saftig-grüne Gras", "isst ein Stück vom Käse & Brot", "steht (allein) im Schnee")
    for end in (".", ", weil es regnet.", "!")
]
GERMAN_HYPOTHESES = [
    GERMAN[i - 1] if i % 4 == 0 else line.replace("das", "ein").replace("im Schnee", "hier").replace("Mann", "mann")
    for i, line in enumerate(GERMAN)
]


def by_command_line(tmp_path, hypotheses, references, *options):
    """Scores by name as a sacrebleu process gives them, with their signatures."""
    for name, lines in (("hypotheses", hypotheses), ("references", references)):
        (tmp_path / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", tmp_path / "references", "-i", tmp_path / "hypotheses"]
    command += ["-m", "bleu", "chrf", "ter", "-w", "4", "-f", "json", *options]
    process = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120)
    assert process.returncode == 0, process.stderr
    return {score["name"]: score for score in json.loads(process.stdout)}


@pytest.mark.parametrize(
    ("language", "hypotheses", "references", "options"),
    [
        ("zh", CHINESE_HYPOTHESES, CHINESE, ["-tok", "zh"]),
        ("de", GERMAN_HYPOTHESES, GERMAN, []),
        ("de", [line.lower() for line in GERMAN_HYPOTHESES], GERMAN, ["-lc", "--chrf-lowercase"]),
    ],
)
def test_scores_and_signatures_are_those_of_the_command_line(tmp_path, language, hypotheses, references, options):
    expected = by_command_line(tmp_path, hypotheses, references, *options)
    sides = {"hypotheses": hypotheses, "references": references, "target_language": language}
    scores = score_translations(**sides, lowercase="-lc" in options)
    assert [*scores] == ["bleu", "chrf", "ter"]
    for score in scores.values():
        command_line = expected.pop(score.name)
        assert score.value == pytest.approx(command_line["score"], abs=0.01)
        assert score.signature == command_line["signature"]
        assert 5 < score.value < 95
    assert not expected


def test_hundred_chinese_lines_against_themselves_are_perfect():
    assert len(set(CHINESE)) == 100
    scores = score_translations(hypotheses=CHINESE, references=CHINESE, target_language="zh")
    assert {name: score.value for name, score in scores.items()} == pytest.approx({"bleu": 100, "chrf": 100, "ter": 0})


@pytest.mark.parametrize(
    ("codes", "tokenizer"),
    [
        (("zh", "ZH", "zh-CN", "zh_Hans", "zh-Hant-TW", "cmn", "cmn_Hans", "zho", "chi", "yue", "cn"), "zh"),
        (("de", "deu", "de_AT", "en-US", "fr", "pt-BR", "th", "kmr"), "13a"),
    ],
)
def test_language_chooses_the_tokenizer_of_bleu(codes, tokenizer):
    for code in codes:
        scores = score_translations(hypotheses=["水"], references=["水"], target_language=code, metrics=["bleu"])
        assert f"|tok:{tokenizer}|" in scores["bleu"].signature, code


@pytest.mark.parametrize(
    ("code", "language", "module"),
    [("ja", "ja", "MeCab"), ("jpn", "ja", "MeCab"), ("ko-KR", "ko", "mecab_ko"), ("kor", "ko", "mecab_ko")],
)
def test_japanese_and_korean_are_scored_by_mecab(code, language, module):
    pytest.importorskip(module, reason=f"needs sacrebleu[{language}]")
    lines = ["東京に行きました。", "저는 물을 마십니다."]
    bleu = score_translations(hypotheses=lines, references=lines, target_language=code)["bleu"]
    assert bleu.value == pytest.approx(100)
    assert f"|tok:{language}-mecab" in bleu.signature


@pytest.mark.parametrize(("code", "language"), [("ja_JP", "ja"), ("jpn", "ja"), ("ko", "ko"), ("kor", "ko")])
def test_missing_mecab_is_one_message_that_names_the_extra(code, language, monkeypatch):
    monkeypatch.setattr(f"sacrebleu.tokenizers.tokenizer_{language}_mecab.MeCab", None)
    sentences = {"hypotheses": ["水"], "references": ["水"], "target_language": code}
    with pytest.raises(ImportError, match=rf"pip install 'sacrebleu\[{language}\]'.*Received: ") as error:
        score_translations(**sentences)
    assert error.value.__suppress_context__
    assert score_translations(**sentences, metrics=("chrf",))["chrf"].value == pytest.approx(100)


@pytest.mark.parametrize("library", ["sacrebleu", "sacremoses"])
def test_missing_library_is_a_message_that_says_what_brings_it(library, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf"{library}.*pip install 'keras_transformer\[train\]'"):
        lowercased_tokenized_bleu(hypotheses=["a"], references=["a"], target_language="de")


def test_module_imports_without_sacrebleu_and_sacremoses(run_python):
    code = "import sys; sys.modules['sacrebleu'] = sys.modules['sacremoses'] = None; import keras_transformer.evaluate"
    assert run_python(code) == ""


def test_metrics_chooses_scores_and_their_order():
    scores = score_translations(hypotheses=["a"], references=["a"], target_language="en", metrics=("ter", "bleu"))
    assert [*scores] == ["ter", "bleu"]


def test_score_prints_its_signature_and_cannot_be_changed():
    score = Score("BLEU", 36.523, "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0")
    assert str(score) == "BLEU 36.52  (nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        score.value = 40.0


@pytest.mark.parametrize("score", [score_translations, lowercased_tokenized_bleu])
def test_hypotheses_and_references_cannot_be_exchanged_by_their_order(score):
    with pytest.raises(TypeError, match="positional"):
        score(["a"], ["a"], "de")
    with pytest.raises(TypeError, match="positional"):
        score(["a"], references=["a"], target_language="de")


FAULTS = [
    ({"references": ["a", "b"]}, "one reference for each hypothesis.*Received: 3 hypotheses and 2 references"),
    ({"hypotheses": ["a"]}, "Received: 1 hypotheses and 3 references"),
    ({"hypotheses": []}, "Received: 0 hypotheses and 3 references"),
    ({"hypotheses": [], "references": []}, "at least one.*Received: 0 hypotheses and 0 references"),
    ({"hypotheses": "abc"}, "`hypotheses` must be a list of sentences. Received: hypotheses='abc' of type str"),
    ({"references": "abc"}, "`references` must be a list.*Received: references='abc' of type str"),
    ({"references": b"abc"}, "`references` must be a list.*Received: references=b'abc' of type bytes"),
    ({"hypotheses": None}, "`hypotheses` must be a list.*Received: hypotheses=None of type NoneType"),
    ({"hypotheses": {"a": 1}}, "`hypotheses` must be a list.*Received: hypotheses=.* of type dict"),
    ({"hypotheses": ["a", None, "c"]}, r"each a str. Received: hypotheses\[1\]=None of type NoneType"),
    ({"references": [["a", "b", "c"]]}, r"each a str. Received: references\[0\]=\['a', 'b', 'c'\] of type list"),
    ({"hypotheses": ["a", "b", "c\nd"]}, r"one line.*Received: hypotheses\[2\]='c\\nd'"),
    ({"hypotheses": ["a\r", "b", "c"]}, r"one line.*Received: hypotheses\[0\]='a\\r'"),
    ({"references": ["a", "b\n", "c"]}, r"one line.*Received: references\[1\]='b\\n'"),
    ({"target_language": "Chinese"}, "must be the code of a language.*Received: target_language='Chinese'"),
    ({"target_language": ""}, "Received: target_language=''"),
    ({"target_language": None}, "Received: target_language=None"),
]


@pytest.mark.parametrize("score", [score_translations, lowercased_tokenized_bleu])
@pytest.mark.parametrize(("arguments", "message"), FAULTS)
def test_faulty_arguments_are_refused_with_what_was_received(score, arguments, message):
    sentences = {"hypotheses": ["a", "b", "c"], "references": ["a", "b", "c"], "target_language": "de"}
    with pytest.raises(ValueError, match=message):
        score(**sentences | arguments)


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        (("bleu", "comet"), "`metrics` must be one of 'bleu', 'chrf', 'ter'. Received: metrics='comet'"),
        ("bleu", "`metrics` must be a list of names of metrics. Received: metrics='bleu'"),
        ((), r"Received: metrics=\(\)"),
    ],
)
def test_unknown_metrics_and_cases_are_refused(metrics, message):
    with pytest.raises(ValueError, match="`lowercase` must be True or False. Received: lowercase='no'"):
        score_translations(hypotheses=["a"], references=["a"], target_language="de", lowercase="no")
    with pytest.raises(ValueError, match=message):
        score_translations(hypotheses=["a"], references=["a"], target_language="de", metrics=metrics)


def test_error_about_a_long_sentence_stays_short():
    with pytest.raises(ValueError, match="Received: ") as error:
        score_translations(hypotheses=["Wort " * 1000 + "\n"], references=["Wort"], target_language="de")
    assert len(str(error.value)) < 200


def test_empty_hypothesis_is_scored():
    scores = score_translations(hypotheses=["", "b"], references=["a", "b"], target_language="de")
    assert scores["ter"].value == 50


def moses(sentences, language):
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    normalizer, tokenizer = MosesPunctNormalizer(lang=language), MosesTokenizer(lang=language)
    return [tokenizer.tokenize(normalizer.normalize(sentence.lower()), escape=True) for sentence in sentences]


def plain_bleu(hypotheses, references):
    """BLEU of lists of tokens by its definition, without smoothing."""
    log_precision = 0.0
    for order in range(1, 5):
        matches = total = 0
        for pair in zip(hypotheses, references, strict=True):
            grams, known = (Counter(tuple(s[i : i + order]) for i in range(len(s) - order + 1)) for s in pair)
            matches, total = matches + (grams & known).total(), total + grams.total()
        log_precision += math.log(matches / total) / 4
    lengths = [sum(map(len, side)) for side in (hypotheses, references)]
    return 100 * math.exp(log_precision + min(0.0, 1 - lengths[1] / lengths[0]))


def check_against_plain_bleu(hypotheses, references, code, language):
    score = lowercased_tokenized_bleu(hypotheses=hypotheses, references=references, target_language=code)
    expected = plain_bleu(moses(hypotheses, language), moses(references, language))
    assert score.value == pytest.approx(expected, abs=1e-6)
    assert 5 < score.value < 95


@pytest.mark.parametrize("code", ["de", "deu", "ger", "de-CH"])
def test_tokenised_lower_cased_bleu_is_bleu_over_moses_tokens(code):
    check_against_plain_bleu(GERMAN_HYPOTHESES, GERMAN, code, "de")


@pytest.mark.parametrize(("code", "language"), [("fra", "fr"), ("en_GB", "en"), ("sv", "sv"), ("tr", "tr")])
def test_tokenised_lower_cased_bleu_has_the_rules_of_the_language(code, language):
    references = ["L'homme n'a pas d'eau, et l'enfant s'en va.", "It's Tom's dog, isn't it?", "USA:s 3 hundar."]
    check_against_plain_bleu([line[:-8] + " là." for line in references], references, code, language)


def test_tokenised_lower_cased_bleu_of_multi30k_is_bleu_over_moses_tokens(request):
    path = request.config.rootpath.parent / "shared/data/multi30k/test_2016_flickr.de.gz"
    if not path.exists():
        pytest.skip(f"needs {path}")
    references = gzip.decompress(path.read_bytes()).decode("utf-8").split("\n")[:200]
    hypotheses = [line.upper().replace("EINEM", "DEM") if i % 3 else line[:-10] for i, line in enumerate(references)]
    check_against_plain_bleu(hypotheses, references, "de", "de")


def test_case_and_quotation_marks_count_in_13a_bleu_only():
    sentences = {
        "hypotheses": ['EIN Schild, auf dem "halt" steht; er hält an…', "Tom isst Käse & Brot."],
        "references": ["Ein Schild, auf dem „Halt“ steht; er hält an...", "tom isst Käse & Brot."],
        "target_language": "de",
    }
    assert score_translations(**sentences)["bleu"].value < 60
    assert lowercased_tokenized_bleu(**sentences).value == pytest.approx(100)


def test_tokenised_lower_cased_bleu_says_what_it_is():
    from importlib.metadata import version

    score = lowercased_tokenized_bleu(hypotheses=["Ein Hund"], references=["Ein Hund"], target_language="deu")
    assert score.name == "tokenised lower-cased BLEU"
    steps = "nrefs:1|case:lc|eff:no|tok:moses-de-escaped|smooth:exp|norm:moses-de"
    assert score.signature == f"{steps}|sacremoses:{version('sacremoses')}|version:{version('sacrebleu')}"


def test_tokenised_lower_cased_bleu_does_not_warn_of_tokens(caplog):
    with caplog.at_level(logging.WARNING):
        lowercased_tokenized_bleu(
            hypotheses=["Ein Hund ."] * 200, references=["Ein Hund ."] * 200, target_language="de"
        )
    assert not caplog.records


@pytest.mark.parametrize("code", ["zh", "cmn", "ja-JP"])
def test_tokenised_lower_cased_bleu_refuses_languages_without_spaces(code):
    with pytest.raises(ValueError, match=f"score_translations.*Received: target_language='{code}'"):
        lowercased_tokenized_bleu(hypotheses=["水"], references=["水"], target_language=code)


def test_languages_without_spaces_are_known_by_any_of_their_codes():
    for code, expected in (("zh", False), ("zh-CN", False), ("cmn", False), ("jpn", False), ("de", True), ("ko", True)):
        assert has_spaces(code) is expected
