"""The French side: conjugation, agreement and elision, for subjects and phrases such as "boire du thé"."""

from __future__ import annotations

import re
from dataclasses import dataclass

from keras_transformer.data.phrasebook.english import Subject, capital

# The present of je, tu, il, nous, vous, ils, and the past participle.
_VERBS = {
    "acheter": "achète achètes achète achetons achetez achètent acheté",
    "aller": "vais vas va allons allez vont allé",
    "avoir": "ai as a avons avez ont eu",
    "boire": "bois bois boit buvons buvez boivent bu",
    "connaître": "connais connais connaît connaissons connaissez connaissent connu",
    "courir": "cours cours court courons courez courent couru",
    "devoir": "dois dois doit devons devez doivent dû",
    "dormir": "dors dors dort dormons dormez dorment dormi",
    "écrire": "écris écris écrit écrivons écrivez écrivent écrit",
    "espérer": "espère espères espère espérons espérez espèrent espéré",
    "être": "suis es est sommes êtes sont été",
    "faire": "fais fais fait faisons faites font fait",
    "lever": "lève lèves lève levons levez lèvent levé",
    "lire": "lis lis lit lisons lisez lisent lu",
    "nettoyer": "nettoie nettoies nettoie nettoyons nettoyez nettoient nettoyé",
    "ouvrir": "ouvre ouvres ouvre ouvrons ouvrez ouvrent ouvert",
    "partir": "pars pars part partons partez partent parti",
    "pouvoir": "peux peux peut pouvons pouvez peuvent pu",
    "préférer": "préfère préfères préfère préférons préférez préfèrent préféré",
    "prendre": "prends prends prend prenons prenez prennent pris",
    "apprendre": "apprends apprends apprend apprenons apprenez apprennent appris",
    "savoir": "sais sais sait savons savez savent su",
    "sortir": "sors sors sort sortons sortez sortent sorti",
    "venir": "viens viens vient venons venez viennent venu",
    "vouloir": "veux veux veut voulons voulez veulent voulu",
}
_ENDINGS = {
    "er": "e es e ons ez ent é",
    "ir": "is is it issons issez issent i",
    "re": "s s  ons ez ent u",
}
_WITH_ETRE = {"aller", "partir", "rentrer", "rester", "sortir", "venir"}
_CONTRACTED = {"à le ": "au ", "à les ": "aux ", "de le ": "du ", "de les ": "des "}
_ONESELF = ["me", "te", "se", "nous", "vous", "se"]


@dataclass(frozen=True)
class FrenchSubject(Subject):
    """A subject with its person, 0 for je to 5 for ils, and its gender."""

    person: int
    feminine: bool = False

    def agree(self, forms: str) -> str:
        """The form that agrees with the subject, of an adjective or a profession such as "grand/grande"."""
        return inflect(forms, self.feminine, self.person > 2)


def inflect(forms: str, feminine: bool, plural: bool) -> str:
    """The feminine or masculine form of "grand/grande", in the plural or the singular."""
    form = forms.split("/")[feminine]
    return form + "s" if plural and form[-1] not in "sx" else form


def clause(subject: FrenchSubject, phrase: str) -> str:
    """The present as part of a sentence, before elision: "je aime le thé"."""
    oneself, verb, rest = _parts(subject, phrase)
    return f"{subject.source} {oneself} {_form(verb, subject.person)} {rest}"


def present(subject: FrenchSubject, phrase: str) -> str:
    """The present: "Il boit du thé"."""
    return sentence(clause(subject, phrase))


def negative(subject: FrenchSubject, phrase: str, no: str = "pas") -> str:
    """The present denied: "Il ne boit pas de thé"."""
    oneself, verb, rest = _parts(subject, phrase)
    return sentence(f"{subject.source} ne {oneself} {_form(verb, subject.person)} {no} {_of_none(verb, rest)}")


def never(subject: FrenchSubject, phrase: str) -> str:
    """The present denied for ever: "Il ne boit jamais de thé"."""
    return negative(subject, phrase, "jamais")


def past(subject: FrenchSubject, phrase: str) -> str:
    """The past: "Il a bu du thé", "Elle est allée au cinéma"."""
    return sentence(_past(subject, phrase))


def past_negative(subject: FrenchSubject, phrase: str) -> str:
    """The past denied: "Il n'a pas bu de thé"."""
    auxiliary, participle, verb, rest = _perfect(subject, phrase)
    return sentence(f"{subject.source} ne {auxiliary} pas {participle} {_of_none(verb, rest)}")


def question(subject: FrenchSubject, phrase: str, before: str = "") -> str:
    """A question about the present: "Est-ce qu'il boit du thé ?"."""
    return sentence(f"{before} est-ce que {clause(subject, phrase)} ?")


def past_question(subject: FrenchSubject, phrase: str) -> str:
    """A question about the past: "Est-ce qu'il a bu du thé ?"."""
    return sentence(f"est-ce que {_past(subject, phrase)} ?")


def sentence(text: str) -> str:
    """The words as they are written: "je ai" is "J'ai", "à le" is "au"."""
    text = " ".join(text.split())
    text = re.sub(r"(?<![\w'])(je|[dlmnst]e|la|que) (?=[aeiouéèêhAEIOUÉ])(?!huit|onze)", _elide, text)
    return capital(re.sub(r"(?<!\w)(?:à|de) les? ", lambda match: _CONTRACTED[match[0]], text))


def _elide(match):
    return match[1][:-1] + "'"


def _past(subject, phrase):
    auxiliary, participle, _, rest = _perfect(subject, phrase)
    return f"{subject.source} {auxiliary} {participle} {rest}"


def _parts(subject, phrase):
    """What stands before the verb of a reflexive phrase, the verb and the rest."""
    verb, _, rest = phrase.partition(" ")
    if verb != "se":
        return "", verb, rest
    verb, _, rest = rest.partition(" ")
    return _ONESELF[subject.person], verb, rest


def _perfect(subject, phrase):
    verb, _, rest = phrase.partition(" ")
    participle = _form(verb, 6)
    if verb in _WITH_ETRE:
        return _form("être", subject.person), subject.agree(f"{participle}/{participle}e"), verb, rest
    return _form("avoir", subject.person), participle, verb, rest


def _form(verb, index):
    if verb in _VERBS:
        return _VERBS[verb].split(" ")[index]
    stem, ending = verb[:-2], _ENDINGS[verb[-2:]].split(" ")[index]
    if ending == "ons":
        stem = re.sub("g$", "ge", re.sub("c$", "ç", stem))
    return stem + ending


def _of_none(verb, rest):
    """The object of a denied verb: of "du thé" "de thé". In "jouer du piano" no object is meant."""
    if verb in ("être", "jouer") or rest.startswith("jouer"):
        return rest
    return re.sub(r"^((?:\w+(?:er|ir|re) )?)(?:(?:du|de la|des|une?) |de l')", r"\1de ", rest)
