"""French sentences: templates that set French beside English. The words are in `french_words`."""

from __future__ import annotations

from keras_transformer.data.phrasebook import english as e
from keras_transformer.data.phrasebook import french_grammar as f
from keras_transformer.data.phrasebook import french_words as w
from keras_transformer.data.phrasebook.french_things import FAMILIES, clauses
from keras_transformer.data.phrasebook.grammar import Grammar, turn

# A French clause and its phrase, an English clause and its phrase.
_LIKING = (
    (f.present, "aimer {v}", e.present, "like {en}"),
    (f.negative, "aimer {v}", e.negative, "like {en}"),
    (f.present, "aimer beaucoup {v}", e.present, "really like {en}"),
    (f.present, "aimer aussi {v}", e.present, "also like {en}"),
    (f.negative, "aimer beaucoup {v}", e.negative, "like {en} very much"),
    (f.present, "adorer {v}", e.present, "love {en}"),
    (f.present, "adorer aussi {v}", e.present, "also love {en}"),
    (f.present, "détester {v}", e.present, "hate {en}"),
    (f.present, "préférer {v}", e.present, "prefer {en}"),
    (f.question, "aimer {v}", e.question, "like {en}"),
    (f.question, "pourquoi aimer {v}", e.question, "why like {en}"),
    (f.question, "pourquoi détester {v}", e.question, "why hate {en}"),
)
_ACTING = (
    (f.present, "{v}", e.present, "{en}"),
    (f.negative, "{v}", e.negative, "{en}"),
    (f.present, "{verb} souvent {rest}", e.present, "often {en}"),
    (f.present, "{verb} parfois {rest}", e.present, "sometimes {en}"),
    (f.never, "{v}", e.present, "never {en}"),
    (f.present, "{v} tous les jours", e.present, "{en} every day"),
    (f.present, "{v} le matin", e.present, "{en} in the morning"),
    (f.present, "{v} le soir", e.present, "{en} in the evening"),
    (f.present, "{v} le {day}", e.present, "{en} on {weekday}s"),
    (f.present, "aller {v}", e.being, "going to {en}"),
    (f.present, "aller {v} demain", e.being, "going to {en} tomorrow"),
    (f.negative, "aller {v} demain", e.being, "not going to {en} tomorrow"),
    (f.past, "{v}", e.past, "{en}"),
    (f.past, "{v} hier", e.past, "{en} yesterday"),
    (f.past_negative, "{v} hier", e.plain, "did not {en} yesterday"),
    (f.present, "vouloir {v}", e.present, "want to {en}"),
    (f.negative, "vouloir {v}", e.negative, "want to {en}"),
    (f.present, "pouvoir {v}", e.plain, "can {en}"),
    (f.negative, "pouvoir {v}", e.plain, "cannot {en}"),
    (f.present, "devoir {v}", e.plain, "must {en}"),
    (f.present, "espérer {v}", e.present, "hope to {en}"),
    (f.present, "aimer {v}", e.present, "like {ing}"),
    (f.present, "adorer {v}", e.present, "love {ing}"),
    (f.present, "avoir envie de {v}", e.present, "feel like {ing}"),
    (f.present, "avoir besoin de {v}", e.present, "need to {en}"),
    (f.negative, "avoir le temps de {v}", e.negative, "have time to {en}"),
    (f.question, "{v}", e.question, "{en}"),
    (f.question, "vouloir {v}", e.question, "want to {en}"),
    (f.question, "pourquoi {v}", e.question, "why {en}"),
    (f.question, "quand {v}", e.question, "when {en}"),
    (f.past_question, "{v} hier", e.past_question, "{en} yesterday"),
)
_NOW = (
    (f.present, "être en train de {v}", e.progressive, "{en}"),
    (f.question, "être en train de {v}", e.being_question, "{ing}"),
)
_SKILL = (
    (f.present, "savoir {v}", e.present, "know how to {en}"),
    (f.negative, "savoir {v}", e.negative, "know how to {en}"),
    (f.present, "apprendre à {v}", e.progressive, "learn to {en}"),
    (f.present, "vouloir apprendre à {v}", e.present, "want to learn to {en}"),
    (f.question, "savoir {v}", e.question, "know how to {en}"),
)
_TRAVEL = (
    (f.negative, "visiter {p.visited} {t}", e.negative, "visit {p.english} {time}"),
    (f.past, "visiter {p.visited} {t}", e.past, "visit {p.english} {time}"),
    (f.present, "aller visiter {p.visited} {t}", e.being, "going to visit {p.english} {time}"),
    (f.present, "vouloir visiter {p.visited} {t}", e.present, "want to visit {p.english} {time}"),
    (f.present, "aller {p.at} {t}", e.present, "go to {p.english} {time}"),
    (f.present, "partir pour {p.visited} {t}", e.present, "leave for {p.english} {time}"),
    (f.past, "aller {p.at} {t}", e.past, "go to {p.english} {time}"),
    (f.past_negative, "aller {p.at} {t}", e.plain, "did not go to {p.english} {time}"),
    (f.question, "visiter {p.visited} {t}", e.question, "visit {p.english} {time}"),
    (f.question, "aller {p.at} {t}", e.question, "go to {p.english} {time}"),
)
_ABROAD = (
    (f.present, "habiter {p.at}", e.present, "live in {p.english}"),
    (f.negative, "habiter {p.at}", e.negative, "live in {p.english}"),
    (f.present, "travailler {p.at}", e.present, "work in {p.english}"),
    (f.present, "étudier le français {p.at}", e.present, "study French in {p.english}"),
    (f.present, "passer l'été {p.at}", e.present, "spend the summer in {p.english}"),
    (f.present, "venir {p.origin}", e.present, "come from {p.english}"),
    (f.negative, "venir {p.origin}", e.negative, "come from {p.english}"),
    (f.present, "rêver de visiter {p.visited}", e.present, "dream of visiting {p.english}"),
    (f.present, "connaître bien {p.visited}", e.present, "know {p.english} well"),
    (f.present, "aimer {p.visited}", e.present, "like {p.english}"),
    (f.present, "adorer {p.visited}", e.present, "love {p.english}"),
    (f.question, "habiter {p.at}", e.question, "live in {p.english}"),
    (f.question, "venir {p.origin}", e.question, "come from {p.english}"),
    (f.question, "pourquoi aller {p.at}", e.question, "why go to {p.english}"),
)
_PEOPLE = (
    (f.present, "aimer {o}", e.present, "love {en}"),
    (f.present, "aimer bien {o}", e.present, "like {en}"),
    (f.present, "connaître {o}", e.present, "know {en}"),
    (f.negative, "connaître {o}", e.negative, "know {en}"),
    (f.present, "attendre {o}", e.progressive, "wait for {en}"),
    (f.present, "chercher {o}", e.progressive, "look for {en}"),
    (f.present, "aider souvent {o}", e.present, "often help {en}"),
    (f.present, "téléphoner à {o}", e.present, "call {en}"),
    (f.past, "téléphoner à {o} hier", e.past, "call {en} yesterday"),
    (f.past_negative, "téléphoner à {o}", e.plain, "did not call {en}"),
    (f.present, "vouloir parler à {o}", e.present, "want to speak to {en}"),
    (f.past, "inviter {o}", e.past, "invite {en}"),
    (f.present, "jouer au football avec {o}", e.present, "play football with {en}"),
    (f.present, "jouer du piano avec {o}", e.present, "play the piano with {en}"),
    (f.present, "prendre un café avec {o}", e.present, "have a coffee with {en}"),
    (f.present, "aller au cinéma avec {o}", e.present, "go to the cinema with {en}"),
    (f.question, "connaître {o}", e.question, "know {en}"),
    (f.past_question, "inviter {o}", e.past_question, "invite {en}"),
)


def _liking():
    for v, english in w.LIKED.items():
        yield from clauses(w.SUBJECTS, _LIKING, v=v, en=english)


def _acting():
    days = list(w.WEEKDAYS.items())
    for number, (v, english) in enumerate((w.ACTIONS | w.MOVES).items()):
        verb, _, rest = v.partition(" ")
        day, weekday = days[number % 7]
        slots = {"v": v, "verb": verb, "rest": rest, "en": english, "ing": e.gerund(english)}
        for sentence in _ACTING + _NOW if v in w.ACTIONS else _ACTING:
            number += 1
            some = turn(w.SUBJECTS, number, 2)
            yield from clauses(some, [sentence], day=day, weekday=weekday, **slots)


def _skills():
    for v, english in w.SKILLS.items():
        yield from clauses(w.SUBJECTS, _SKILL, v=v, en=english)


def _travel():
    for number, place in enumerate(w.PLACES):
        for t, time in w.WHEN.items():
            number += 1
            yield from clauses(turn(w.SUBJECTS, number, 5), _TRAVEL, p=place, t=t, time=time)


def _visiting():
    for place in w.PLACES:
        for t, time in w.WHEN.items():
            sentence = (f.present, "visiter {p.visited} {t}", e.present, "visit {p.english} {time}")
            yield from clauses(w.SUBJECTS, [sentence], p=place, t=t, time=time)


def _abroad():
    for place in w.PLACES:
        yield from clauses(w.SUBJECTS, _ABROAD, p=place)


def _people():
    for o, english in w.OBJECTS.items():
        subjects = [subject for subject in w.SUBJECTS if subject.source != o]
        yield from clauses(subjects, _PEOPLE, o=o, en=english)


def _if():
    for v, english in (w.ACTIONS | w.MOVES).items():
        for subject in w.SUBJECTS:
            ours, theirs = f.clause(subject, f"aller {v}"), f"{subject.english} {e.be(subject)} going to {english}"
            yield f.sentence(f"s'il pleut demain, {ours}"), f"If it rains tomorrow, {theirs}"
            yield f.sentence(f"s'il fait beau demain, {ours}"), f"If the weather is nice tomorrow, {theirs}"


GRAMMAR = Grammar(
    families=(
        (_liking, 1600),
        (_acting, 3200),
        (_skills, 400),
        (_visiting, 900),
        (_travel, 1400),
        (_abroad, 1100),
        (_people, 1000),
        (_if, 300),
        *FAMILIES,
    ),
    full_stop=".",
    held_out=(("Jane visite l'Afrique en septembre", "Jane visits Africa in September"),),
)
