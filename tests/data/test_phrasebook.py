import functools
import json
import re

import pytest

from keras_transformer.data.phrasebook import _GRAMMARS, phrasebook
from keras_transformer.data.phrasebook import french_grammar as french
from keras_transformer.data.phrasebook.french_words import SUBJECTS
from keras_transformer.data.phrasebook.grammar import tokens

LANGUAGES = ["zh", "fr"]
SINGULAR = "He|She|Dad|Mum|Xiaoming|Mary|Jane|Paul|My father|The teacher"


def everything(language):
    return phrasebook(language, "train") + phrasebook(language, "validation")


@functools.cache
def composed(language):
    """What the grammar can say, of which the corpus is a part."""
    return [pair for family, _ in _GRAMMARS[language].families for pair in family()]


def key(sentence):
    return sentence.rstrip("。.？? ")


@pytest.mark.parametrize(("language", "least", "most"), [("zh", 15_000, 25_000), ("fr", 8_000, 15_000)])
def test_there_are_thousands_of_pairs_to_train_on_and_500_to_validate_with(language, least, most):
    assert least <= len(phrasebook(language, "train")) <= most
    assert len(phrasebook(language, "validation")) == 500


@pytest.mark.parametrize("language", LANGUAGES)
def test_source_sentence_stands_once_in_one_split_whatever_its_full_stop(language):
    sources = [key(source) for source, _ in everything(language)]
    assert len(set(sources)) == len(sources)


@pytest.mark.parametrize("language", LANGUAGES)
def test_source_sentence_has_one_translation_whatever_composed_it(language):
    known = {}
    for source, target in composed(language):
        assert known.setdefault(source, target) == target, source


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_word_of_validation_occurs_in_training(language):
    known = set().union(*map(tokens, phrasebook(language, "train")))
    for pair in phrasebook(language, "validation"):
        assert tokens(pair) <= known, pair


@pytest.mark.parametrize(
    ("language", "pair", "parts"),
    [
        ("zh", ("我爱水课", "I love easy courses"), ["我爱", "爱水课"]),
        (
            "fr",
            ("Jane visite l'Afrique en septembre", "Jane visits Africa in September"),
            ["Jane visite ", "visite l'Afrique en", "en septembre"],
        ),
    ],
)
def test_famous_pair_is_held_out_while_its_parts_are_trained(language, pair, parts):
    training = phrasebook(language, "train")
    assert pair in phrasebook(language, "validation")
    assert not any(pair[0] in source for source, _ in training)
    for part in parts:
        assert sum(part in source for source, _ in training) >= 5, part


LISTS = """
import json
from keras_transformer.data.phrasebook import phrasebook
print(json.dumps([phrasebook(language, split) for language in ("zh", "fr") for split in ("train", "validation")]))
"""


def test_another_process_composes_the_same_pairs_in_the_same_order(run_python):
    theirs = json.loads(run_python(LISTS, PYTHONHASHSEED="7"))
    ours = [phrasebook(language, split) for language in LANGUAGES for split in ("train", "validation")]
    assert [[tuple(pair) for pair in pairs] for pairs in theirs] == ours


def test_changing_the_list_changes_no_later_one():
    phrasebook("zh", "train").clear()
    assert phrasebook("zh", "train")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("de", "train"), r"`source_language` must be one of 'zh', 'fr'. Received: source_language='de'"),
        (("zh", "test"), r"`split` must be one of 'train', 'validation'. Received: split='test'"),
    ],
)
def test_unknown_language_or_split_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        phrasebook(*arguments)


@pytest.mark.parametrize(
    ("word", "senses"),
    [
        (
            "水",
            {
                "喝水": r"dr(i|a)nk(s|ing)? water",
                "水果": "fruit",
                "水课": "easy course",
                "水平": "level",
                "香水": "perfume",
                "水手": "sailor",
            },
        ),
        (
            "意思",
            {"的意思": "meaning", "很有意思": "interesting", "没意思": "boring", "不好意思": "[Ss]orry|embarrassed"},
        ),
        (
            "打",
            {
                "打电话": "call|phone",
                "打篮球": "play(s|ed|ing)? basketball",
                "打车": "(took|tak(e|es|ing)) a taxi",
                "打人": "hit",
                "打开": "open|turn",
                "打折": "on sale",
                "打扫": "clean",
                "打算": "plan",
            },
        ),
    ],
)
def test_word_means_what_its_neighbours_make_of_it(word, senses):
    pairs = phrasebook("zh", "train")
    for phrase, english in senses.items():
        assert word in phrase
        targets = [target for source, target in pairs if phrase in source]
        assert len(targets) >= 10, phrase
        assert all(re.search(english, target) for target in targets), phrase


@pytest.mark.parametrize("language", LANGUAGES)
def test_sentences_are_well_formed(language):
    for pair in everything(language):
        for sentence in pair:
            assert sentence == " ".join(sentence.split())
            assert not re.search(r"[{}_=/·]", sentence), sentence
        source, target = pair
        assert target[0].isupper(), target
        assert source[-1] in "？?" if target[-1] == "?" else source[-1] not in "？?", pair
        assert (source[-1] in "。.") == (target[-1] == "."), pair


@pytest.mark.parametrize("language", LANGUAGES)
def test_english_agrees(language):
    wrong = re.compile(
        rf"""\ba\ [aeiou] | \ban\ [^aeiouE] | ^(I|You|We|They)\ (is|has|does|goes|visits|\w+[^s]s\ to)\b
        | ^({SINGULAR})\ (visit|have|do|go|like|love|want|are|eat|drink)\b | \bI\ (is|are)\b | \b(\w+)\ \4\b
        | \b(eated|drinked|goed|buyed|takeing|swiming|onlies|oftens)\b""",
        re.VERBOSE,
    )
    for _, target in everything(language):
        assert not wrong.search(target), target


def test_french_elides_and_contracts():
    wrong = re.compile(r"\b(je|ne|le|la|de|que|se) [aeiouéèêh]|\b(à|de) les? |\ben (Japon|Canada|Maroc|Paris)", re.I)
    for source, _ in everything("fr"):
        assert not wrong.search(source), source


@pytest.mark.parametrize(
    ("clause", "subject", "phrase", "sentence"),
    [
        (french.present, "je", "habiter à les États-Unis", "J'habite aux États-Unis"),
        (french.present, "nous", "manger du pain", "Nous mangeons du pain"),
        (french.present, "mes cousins", "se coucher à dix heures", "Mes cousins se couchent à dix heures"),
        (french.negative, "il", "aimer le thé", "Il n'aime pas le thé"),
        (french.negative, "tu", "se lever tôt", "Tu ne te lèves pas tôt"),
        (french.negative, "vous", "avoir une voiture", "Vous n'avez pas de voiture"),
        (french.negative, "je", "vouloir boire de l'eau", "Je ne veux pas boire d'eau"),
        (french.negative, "Paul", "jouer du piano", "Paul ne joue pas du piano"),
        (french.never, "elle", "boire du thé", "Elle ne boit jamais de thé"),
        (french.past, "elles", "aller au cinéma", "Elles sont allées au cinéma"),
        (french.past_negative, "ils", "écouter la radio", "Ils n'ont pas écouté la radio"),
        (french.question, "elle", "venir de Italie", "Est-ce qu'elle vient d'Italie ?"),
    ],
)
def test_french_clause_conjugates_denies_and_asks(clause, subject, phrase, sentence):
    [subject] = [candidate for candidate in SUBJECTS if candidate.source == subject]
    assert clause(subject, phrase) == sentence


def test_chinese_denies_as_it_should():
    wrong = re.compile("不有|不没|没.*了$|二[本个杯张只门]|在在|的的|了了| ")
    for source, _ in everything("zh"):
        assert not wrong.search(key(source)), source
