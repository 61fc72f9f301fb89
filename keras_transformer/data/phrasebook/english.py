"""The English side: what makes a clause out of a subject and a verb phrase such as "drink tea"."""

from __future__ import annotations

import re
from dataclasses import dataclass

from keras_transformer.data.phrasebook.grammar import words

_ADVERBS = {"also", "always", "never", "often", "only", "really", "sometimes", "still", "usually"}
_PAST = words(
    """be=was, become=became, buy=bought, choose=chose, come=came, do=did, draw=drew, drink=drank, drive=drove,
    eat=ate, find=found, forget=forgot, get=got, give=gave, go=went, have=had, hit=hit, know=knew, leave=left,
    lose=lost, make=made, meet=met, read=read, ride=rode, run=ran, see=saw, sell=sold, send=sent, sing=sang,
    sleep=slept, speak=spoke, spend=spent, swim=swam, take=took, teach=taught, understand=understood, wear=wore,
    win=won, write=wrote"""
)
_DOUBLED = {"chat", "get", "hit", "plan", "put", "run", "shop", "sit", "stop", "swim", "travel", "win"}
_COMPARATIVE = words(
    """big=bigger, cheap=cheaper, clean=cleaner, clever=cleverer, cute=cuter, fast=faster, good=better,
    heavy=heavier, hot=hotter, kind=kinder, long=longer, new=newer, old=older, rich=richer, short=shorter,
    simple=simpler, small=smaller, strong=stronger, sweet=sweeter, tall=taller, tasty=tastier, young=younger"""
)
_PLURAL = {"child": "children", "fish": "fish", "knife": "knives", "man": "men", "person": "people", "woman": "women"}
NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
MONTHS = [
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
]


@dataclass(frozen=True)
class Subject:
    """Who does something: the word of the source language, the English in mid-sentence, and whether it is he or she."""

    source: str
    english: str
    singular: bool


def capital(sentence: str) -> str:
    """The sentence with its first letter in upper case."""
    return sentence[:1].upper() + sentence[1:]


def plain(subject: Subject, phrase: str) -> str:
    """The subject and a phrase that does not agree with it, as after "can": "He can swim"."""
    return capital(f"{subject.english} {phrase}")


def present(subject: Subject, phrase: str) -> str:
    """The present: "He drinks tea"."""
    return plain(subject, _inflect(phrase, _third) if subject.singular else phrase)


def negative(subject: Subject, phrase: str) -> str:
    """The present denied: "He does not drink tea"."""
    return plain(subject, f"{_do(subject)} not {phrase}")


def question(subject: Subject, phrase: str, before: str = "") -> str:
    """A question about the present: "Does he drink tea?", or with "why" before it "Why does he drink tea?"."""
    return capital(f"{before} {_do(subject)} {subject.english} {phrase}?".lstrip())


def past(subject: Subject, phrase: str) -> str:
    """The past: "He drank tea"."""
    return plain(subject, _inflect(phrase, _past))


def past_question(subject: Subject, phrase: str) -> str:
    """A question about the past: "Did he drink tea?"."""
    return f"Did {subject.english} {phrase}?"


def being(subject: Subject, rest: str) -> str:
    """A state: "He is at home"."""
    return plain(subject, f"{be(subject)} {rest}")


def been(subject: Subject, rest: str) -> str:
    """A state that was: "He was at home"."""
    return plain(subject, f"{'was' if subject.singular or subject.english == 'I' else 'were'} {rest}")


def being_question(subject: Subject, rest: str, before: str = "") -> str:
    """A question about a state: "Is he at home?"."""
    return capital(f"{before} {be(subject)} {subject.english} {rest}?".lstrip())


def progressive(subject: Subject, phrase: str) -> str:
    """What happens now: "He is drinking tea"."""
    return being(subject, gerund(phrase))


def gerund(phrase: str) -> str:
    """The phrase as a noun: "drinking tea"."""
    return _inflect(phrase, _ing)


def be(subject: Subject) -> str:
    """What agrees with the subject: "am", "is" or "are"."""
    return "is" if subject.singular else "am" if subject.english == "I" else "are"


def a(noun: str) -> str:
    """The noun with "a" or "an"."""
    return f"{'an' if re.match(r'(?!uni|use|euro)[aeiou]', noun, re.IGNORECASE) else 'a'} {noun}"


def plural(noun: str) -> str:
    """The plural: "books"; of "cup of tea" "cups of tea"."""
    noun, of, rest = noun.partition(" of ")
    *before, last = noun.split(" ")
    many = _PLURAL.get(last) or _third(last) if last not in ("photo", "piano") else last + "s"
    return " ".join([*before, many]) + of + rest


def count(number: int, noun: str) -> str:
    """The noun with its number: "a book" or "three books"."""
    return a(noun) if number == 1 else f"{NUMBERS[number - 1]} {plural(noun)}"


def comparative(adjective: str) -> str:
    """The comparative: "taller" or "more expensive"."""
    return _COMPARATIVE.get(adjective, f"more {adjective}")


def _do(subject):
    return "does" if subject.singular else "do"


def _inflect(phrase, form):
    """The phrase with its verb, the first word that is no adverb, in another form."""
    before = []
    verb, _, rest = phrase.partition(" ")
    while verb in _ADVERBS:
        before.append(verb)
        verb, _, rest = rest.partition(" ")
    return " ".join([*before, form(verb), rest]).rstrip()


def _third(verb):
    if verb in ("be", "have"):
        return {"be": "is", "have": "has"}[verb]
    if re.search(r"[^aeiou]y$", verb):
        return verb[:-1] + "ies"
    return verb + ("es" if re.search(r"(s|x|z|ch|sh|o)$", verb) else "s")


def _past(verb):
    if verb in _PAST:
        return _PAST[verb]
    if re.search(r"[^aeiou]y$", verb):
        return verb[:-1] + "ied"
    if verb in _DOUBLED:
        verb += verb[-1]
    return verb + ("d" if verb.endswith("e") else "ed")


def _ing(verb):
    if verb in _DOUBLED:
        verb += verb[-1]
    return (verb[:-1] if re.search(r"[^eoy]e$", verb) and verb != "be" else verb) + "ing"
