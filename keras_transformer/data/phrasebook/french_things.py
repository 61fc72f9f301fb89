"""French sentences about how people and things are: templates as in `french`."""

from __future__ import annotations

from collections.abc import Iterator

from keras_transformer.data.phrasebook import english as e
from keras_transformer.data.phrasebook import french_grammar as f
from keras_transformer.data.phrasebook import french_words as w
from keras_transformer.data.phrasebook.grammar import Pair, turn

_BEING = (
    (f.present, "être {x}", e.being, "{en}"),
    (f.negative, "être {x}", e.being, "not {en}"),
    (f.present, "être très {x}", e.being, "very {en}"),
    (f.present, "être trop {x}", e.being, "too {en}"),
    (f.question, "être {x}", e.being_question, "{en}"),
)
_FEELING = (
    (f.present, "être un peu {x}", e.being, "a little {en}"),
    (f.present, "être souvent {x}", e.being, "often {en}"),
    (f.present, "être {x} aujourd'hui", e.being, "{en} today"),
    (f.question, "pourquoi être {x}", e.being_question, "why {en}"),
)
_WORKING = (
    (f.present, "être {x}", e.being, "{en}"),
    (f.negative, "être {x}", e.being, "not {en}"),
    (f.present, "vouloir devenir {x}", e.present, "want to become {en}"),
    (f.question, "être {x}", e.being_question, "{en}"),
)
_HAVING = (
    (f.present, "avoir {x}", e.being, "{en}"),
    (f.negative, "avoir {x}", e.being, "not {en}"),
    (f.present, "avoir très {x}", e.being, "very {en}"),
    (f.present, "avoir souvent {x}", e.being, "often {en}"),
    (f.question, "avoir {x}", e.being_question, "{en}"),
)
_OWNING = (
    (f.present, "avoir {x}", e.present, "have {en}"),
    (f.negative, "avoir {x}", e.negative, "have {en}"),
    (f.present, "chercher {x}", e.progressive, "look for {en}"),
    (f.present, "vouloir acheter {x}", e.present, "want to buy {en}"),
    (f.past, "acheter {x}", e.past, "buy {en}"),
    (f.question, "avoir {x}", e.question, "have {en}"),
)
_RISING = (
    ("se lever", "get up", "du matin", "in the morning", ["cinq", "six", "sept", "huit"]),
    ("prendre une douche", "have a shower", "du matin", "in the morning", ["six", "sept", "huit"]),
    ("se reposer", "rest", "du soir", "in the evening", ["six", "sept", "huit"]),
    ("se coucher", "go to bed", "du soir", "in the evening", ["huit", "neuf", "dix", "onze"]),
)
_PAST_THE_HOUR = {"": "", " et demie": "half past ", " et quart": "a quarter past "}


def clauses(subjects, sentences, **slots) -> Iterator[Pair]:
    """Every subject with every template, whose English may begin with a question word.

    There are no questions about oneself.
    """
    for subject in subjects:
        for french, phrase, english, meaning in sentences:
            ours, theirs = phrase.format(**slots), meaning.format(**slots)
            if english not in (e.question, e.past_question, e.being_question):
                yield french(subject, ours), english(subject, theirs)
            elif subject.english not in ("I", "we"):
                asked, _, rest = theirs.partition(" ")
                if asked in ("why", "when"):
                    before, _, ours = ours.partition(" ")
                    yield french(subject, ours, before), english(subject, rest, asked)
                else:
                    yield french(subject, ours), english(subject, theirs)


def _states():
    for table, sentences in ((w.STATES, _BEING + _FEELING), (w.TRAITS, _BEING), (w.JOBS, _WORKING)):
        for forms, english in table.items():
            for subject in w.SUBJECTS:
                if table is w.JOBS and subject.source == "le professeur":
                    continue  # He is a teacher.
                many = subject.person > 2
                job = (e.plural if many else e.a)(english) if table is w.JOBS else english
                yield from clauses([subject], sentences, x=subject.agree(forms), en=job)
    for forms, english in w.TRAITS.items():
        for subject in w.SUBJECTS:
            for o, than in w.THAN.items():
                if o != subject.source and (subject.person > 1 or o not in ("moi", "toi")):
                    comparison = f"être plus {subject.agree(forms)} que {o}"
                    more = f"{e.comparative(english)} than {than}"
                    yield from clauses([subject], [(f.present, comparison, e.being, more)])


def _having():
    for x, english in w.HAD.items():
        sentences = _HAVING if english not in ("right", "wrong") else _HAVING[:2] + _HAVING[3:]
        yield from clauses(w.SUBJECTS, sentences, x=x, en=english)
    for tens, english in list(w.TENS.items())[:-1]:
        yield from clauses(w.SUBJECTS, [(f.present, f"avoir {tens} ans", e.being, f"{english} years old")])
    for x, english in w.FAMILY.items():
        yield from clauses(w.SUBJECTS, [*_OWNING[:2], _OWNING[5]], x=x, en=english)


def _owning():
    """Colours follow the noun, sizes precede it: "une voiture rouge" but "une petite voiture"."""
    for number, (thing, english) in enumerate(w.THINGS.items()):
        article, noun = thing.split(" ")
        some = turn(w.SUBJECTS, number, 3)
        yield from clauses(w.SUBJECTS, _OWNING, x=thing, en=e.a(english))
        for forms, colour in w.COLOURS.items():
            if english not in ("dog", "cat", "house"):
                form = f.inflect(forms, article == "une", False)
                yield from clauses(some, _OWNING, x=f"{thing} {form}", en=e.a(f"{colour} {english}"))
        for forms, size in w.SIZES.items():
            form = f.inflect(forms, article == "une", False)
            yield from clauses(w.SUBJECTS, _OWNING, x=f"{article} {form} {noun}", en=e.a(f"{size} {english}"))


def _owners(thing) -> Iterator[Pair]:
    """The thing with its owners: "ma voiture", but "mon écharpe" before a vowel; "la voiture de Paul".

    Without "sa voiture", which is his car or hers.
    """
    article, noun = thing.split(" ")
    feminine = article == "une"
    first = "a" if feminine and noun[0] not in "aeiouéh" else "on"
    yield from {f"m{first} {noun}": "my", f"t{first} {noun}": "your"}.items()
    yield from {f"notre {noun}": "our", f"votre {noun}": "your", f"leur {noun}": "their"}.items()
    for name in ("Paul", "Pierre", "Jane", "Marie", "Sophie"):
        yield f"{'la' if feminine else 'le'} {noun} de {name}", f"{name}'s"


def _described():
    for thing, english in w.THINGS.items():
        feminine = thing.startswith("une ")
        for ours, whose in _owners(thing):
            it = f"{whose} {english}"
            yield f.sentence(f"c'est {ours}"), f"This is {it}"
            yield f.sentence(f"ce n'est pas {ours}"), f"This is not {it}"
            yield f.sentence(f"où est {ours} ?"), f"Where is {it}?"
            for forms, colour in (w.COLOURS | w.SIZES).items():
                form = f.inflect(forms, feminine, False)
                yield f.sentence(f"{ours} est {form}"), e.capital(f"{it} is {colour}")
                yield f.sentence(f"{ours} n'est pas {form}"), e.capital(f"{it} is not {colour}")


def _priced():
    for thing, english in (w.THINGS | w.SMALL_THINGS).items():
        article, noun = thing.split(" ")
        this = "cette" if article == "une" else "cet" if noun[0] in "aeiouéh" else "ce"
        yield f.sentence(f"combien coûte {this} {noun} ?"), f"How much is this {english}?"
        yield f.sentence(f"{this} {noun} coûte cher"), f"This {english} is expensive"
        yield f.sentence(f"{this} {noun} est en solde"), f"This {english} is on sale"
        for tens, money in w.TENS.items():
            yield f.sentence(f"{this} {noun} coûte {tens} euros"), f"This {english} costs {money} euros"


def _places():
    for thing, english in w.SMALL_THINGS.items():
        noun = thing.split(" ")[1]
        for spot, where in w.SPOTS.items():
            yield f.sentence(f"il n'y a pas de {noun} {spot}"), f"There is no {english} {where}"
            for number, count in enumerate(w.NUMBERS[:6], start=1):
                some = thing if number == 1 else f"{count} {noun}s"
                are = "is" if number == 1 else "are"
                yield f.sentence(f"il y a {some} {spot}"), f"There {are} {e.count(number, english)} {where}"
    for building, english in w.BUILDINGS.items():
        yield f.sentence(f"où est {building} ?"), f"Where is {english}?"
        sentences = [
            (f.present, f"chercher {building}", e.progressive, f"look for {english}"),
            (f.present, f"habiter près de {building}", e.present, f"live near {english}"),
        ]
        if building != "l'école":  # Whoever "va à l'école" goes to school.
            sentences.append((f.present, f"aller à {building}", e.present, f"go to {english}"))
        yield from clauses(w.SUBJECTS, sentences)
        for other, name in w.BUILDINGS.items():
            for near, preposition in w.NEAR.items() if other != building else ():
                yield f.sentence(f"{building} est {near} {other}"), e.capital(f"{english} is {preposition} {name}")


def _times():
    for verb, english, part, time, hours in _RISING:
        for hour in hours:
            for past, before in _PAST_THE_HOUR.items():
                end = f"at {before}{w.HOURS[hour]} {time}"
                sentence = (f.present, f"{verb} à {hour} heures{past} {part}", e.present, f"{english} {end}")
                yield from clauses(w.SUBJECTS, [sentence])
    for hour, english in w.HOURS.items():
        hour += " heure" if hour == "une" else " heures"
        for past, before in _PAST_THE_HOUR.items():
            yield f"Il est {hour}{past}", f"It is {before}{english}" + ("" if before else " o'clock")
    for day, english in w.WEEKDAYS.items():
        yield f"Aujourd'hui, c'est {day}", f"Today is {english}"
        yield f"Demain, c'est {day}", f"Tomorrow is {english}"
    for month, english in w.MONTHS.items():
        for owner, whose in {"mon": "my", "ton": "your", "notre": "our", "votre": "your"}.items():
            yield f.sentence(f"{owner} anniversaire est en {month}"), e.capital(f"{whose} birthday is in {english}")
        for name in ("Paul", "Jane", "Marie", "Sophie", "Pierre"):
            yield f"L'anniversaire de {name} est en {month}", f"{name}'s birthday is in {english}"


def _weather():
    for place in w.PLACES:
        where = f"in {place.english}"
        yield f.sentence(f"il pleut {place.at}"), f"It is raining {where}"
        yield f.sentence(f"il ne pleut pas {place.at}"), f"It is not raining {where}"
        yield f.sentence(f"est-ce qu'il pleut {place.at} ?"), f"Is it raining {where}?"
        yield f.sentence(f"il fait beau {place.at}"), f"The weather is nice {where}"
        yield f.sentence(f"est-ce qu'il fait beau {place.at} ?"), f"Is the weather nice {where}?"
        for x, weather in w.WEATHER.items():
            yield f.sentence(f"il fait très {x} {place.at}"), f"It is very {weather} {where}"
            yield f.sentence(f"il ne fait pas {x} {place.at}"), f"It is not {weather} {where}"
        for t, time in w.WHEN.items():
            yield f.sentence(f"il pleut souvent {place.at} {t}"), f"It often rains {where} {time}"
            for x, weather in w.WEATHER.items():
                yield f.sentence(f"il fait {x} {place.at} {t}"), f"It is {weather} {where} {time}"


FAMILIES = (
    (_states, 1100),
    (_having, 500),
    (_owning, 900),
    (_described, 800),
    (_priced, 160),
    (_places, 700),
    (_times, 500),
    (_weather, 500),
)
