"""Chinese sentences about how people and things are: templates as in `chinese`."""

from __future__ import annotations

from collections.abc import Iterator

from keras_transformer.data.phrasebook import chinese_words as w
from keras_transformer.data.phrasebook import english as e
from keras_transformer.data.phrasebook.grammar import Pair, turn, words

_FEELING = (
    ("{s}很{x}", e.being, "very {state}"),
    ("{s}不{x}", e.being, "not {state}"),
    ("{s}今天很{x}", e.being, "very {state} today"),
    ("{s}昨天很{x}", e.been, "very {state} yesterday"),
    ("{s}有点儿{x}", e.being, "a little {state}"),
    ("{s}{x}吗？", e.being_question, "{state}"),
    ("{s}为什么这么{x}？", e.being_question, "why so {state}"),
)
_NATURE = (
    ("{s}很{x}", e.being, "very {trait}"),
    ("{s}非常{x}", e.being, "extremely {trait}"),
    ("{s}不太{x}", e.being, "not very {trait}"),
    ("{s}{x}吗？", e.being_question, "{trait}"),
)
_WORK = (
    ("{s}是{x}", e.being, "{job}"),
    ("{s}不是{x}", e.being, "not {job}"),
    ("{s}想当{x}", e.present, "want to become {job}"),
    ("{s}以前是{x}", e.plain, "used to be {job}"),
    ("{s}是{x}吗？", e.being_question, "{job}"),
    ("{s}为什么想当{x}？", e.question, "why want to become {job}"),
)
_WEATHER = (
    ("今天{p}很{x}", "It is very {weather} in {place} today"),
    ("今天{p}不{x}", "It is not {weather} in {place} today"),
    ("昨天{p}很{x}", "It was very {weather} in {place} yesterday"),
    ("明天{p}会很{x}", "It will be very {weather} in {place} tomorrow"),
    ("{p}今天{x}吗？", "Is it {weather} in {place} today?"),
)
_FALLING = (
    ("今天{p}在{x}", "It is {ing} in {place} today"),
    ("昨天{p}{x}了", "It {past} in {place} yesterday"),
    ("昨天{p}没{x}", "It did not {fall} in {place} yesterday"),
    ("明天{p}会{x}", "It will {fall} in {place} tomorrow"),
    ("{p}常常{x}吗？", "Does it often {fall} in {place}?"),
)
_FALLS = words("下雨=rain, 下雪=snow")
_IF = words("下雨=it rains, 下雪=it snows, 不下雨=it does not rain, 很冷=it is very cold, 很热=it is very hot")
_COLOURS = words("红色=red, 蓝色=blue, 黑色=black, 白色=white, 绿色=green")


def clauses(subjects, sentences, **slots) -> Iterator[Pair]:
    """Every subject with every template, whose English may begin with a question word.

    There are no questions about oneself.
    """
    for subject in subjects:
        for source, clause, english in sentences:
            if source.endswith("？") and subject.source.startswith("我"):
                continue
            phrase = english.format(do="does" if subject.singular else "do", **slots)
            asked, _, rest = phrase.partition(" ")
            target = clause(subject, rest, asked) if asked in ("why", "when") else clause(subject, phrase)
            yield source.format(s=subject.source, **slots), target


def _states():
    for x, state in w.STATES.items():
        yield from clauses(w.SUBJECTS, _FEELING, x=x, state=state)
    for x, trait in w.TRAITS.items():
        yield from clauses(w.SUBJECTS, _NATURE, x=x, trait=trait)
        if "有" not in x:
            for o, whom in w.OBJECTS.items():
                subjects = [subject for subject in w.SUBJECTS if subject.source[0] != o[0]]
                yield from clauses(subjects, [(f"{{s}}比{o}{x}", e.being, f"{e.comparative(trait)} than {whom}")])
    for x, job in w.JOBS.items():
        for subject in w.SUBJECTS:
            if subject.source not in ("老师", "学生们"):
                one = not subject.source.endswith("们")
                yield from clauses([subject], _WORK, x=x, job=e.a(job) if one else e.plural(job))


def _reasons():
    """Sentences of two parts; Chinese says the subject once."""
    for subject in w.PRONOUNS:
        source, who, be = subject.source, subject.english, e.be(subject)
        wants, does = ("wants", "does") if subject.singular else ("want", "do")
        for v, english in w.LEISURE.items():
            for x, state in w.STATES.items():
                although = f"Although {who} {be} very {state}, {who} still {wants} to {english}"
                yield f"虽然{source}很{x}，但是还想{v}", although
                because = f"Because {who} {be} very {state}, {who} {does} not want to {english}"
                yield f"因为{source}很{x}，所以不想{v}", because
    for number, (v, english) in enumerate(w.ACTIONS.items()):
        for x, weather in _IF.items():
            number += 1
            for subject in turn(w.SUBJECTS, number, 5):
                yield f"如果明天{x}，{subject.source}就{v}", f"If {weather} tomorrow, {subject.english} will {english}"
                yield (
                    f"如果明天{x}，{subject.source}就不{v}",
                    f"If {weather} tomorrow, {subject.english} will not {english}",
                )


def _described():
    for adjectives, things in w.DESCRIBED:
        for this, that in (("这", "this"), ("那", "that")):
            for thing, english in things.items():
                for x in adjectives.split():
                    yield from _said_of(this + thing, f"{that} {english}", x)
                    if x not in ("没意思", "有名"):
                        other, one = ("那", "that") if this == "这" else ("这", "this")
                        more = e.comparative(w.ADJECTIVES[x])
                        yield (
                            f"{this}{thing}比{other}{thing}{x}",
                            f"{e.capital(that)} {english} is {more} than {one} one",
                        )


def _said_of(thing, english, x):
    """有 and 没 make 有意思 and its like, which 不 cannot deny."""
    adjective = w.ADJECTIVES[x]
    yield f"{thing}很{x}", f"{e.capital(english)} is very {adjective}"
    yield f"{thing}真{x}", f"{e.capital(english)} is really {adjective}"
    yield f"{thing}{x}吗？", f"Is {english} {adjective}?"
    if x != "没意思":
        yield f"{thing}不太{x}", f"{e.capital(english)} is not very {adjective}"
        yield f"{thing}非常{x}", f"{e.capital(english)} is extremely {adjective}"
    if x[0] not in "有没":
        yield f"{thing}不{x}", f"{e.capital(english)} is not {adjective}"
    if x in "贵大小旧难长":
        yield f"{thing}太{x}了", f"{e.capital(english)} is too {adjective}"


def _counted():
    owned = w.BOOKS | w.CLOTHES | w.GOODS | w.PICTURES | w.ANIMALS
    bought = w.BOOKS | w.CLOTHES | w.GOODS | w.PICTURES | w.BOTTLES
    for sentences, things in (
        ([("{s}有{n}", e.present, "have {things}"), ("{s}只有{n}", e.present, "only have {things}")], owned),
        ([("{s}买了{n}", e.past, "buy {things}"), ("{s}想买{n}", e.present, "want to buy {things}")], bought),
        ([("{s}吃了{n}", e.past, "eat {things}"), ("{s}想吃{n}", e.present, "want to eat {things}")], w.SNACKS),
        ([("{s}喝了{n}", e.past, "drink {things}"), ("{s}想喝{n}", e.present, "want to drink {things}")], w.CUPS),
    ):
        for thing, english in things.items():
            for numeral, number in list(w.COUNTS.items())[:5]:
                slots = {"n": numeral + thing, "things": e.count(number, english)}
                yield from clauses(w.SUBJECTS, sentences, **slots)
    for thing, english in (w.CUPS | w.SNACKS | w.BOTTLES | w.BOOKS).items():
        for numeral, number in w.COUNTS.items():
            yield f"请给我{numeral}{thing}", f"Please give me {e.count(number, english)}"
            are = "is" if number == 1 else "are"
            yield f"桌子上有{numeral}{thing}", f"There {are} {e.count(number, english)} on the table"


def _priced():
    for thing, english in (w.BOOKS | w.CLOTHES | w.GOODS | w.BOTTLES | w.PICTURES).items():
        for this, that in (("这", "this"), ("那", "that")):
            it = f"{that} {english}"
            yield f"{this}{thing}多少钱？", f"How much is {it}?"
            yield f"{this}{thing}在打折", f"{e.capital(it)} is on sale"
            yield f"{this}{thing}在打折吗？", f"Is {it} on sale?"
            yield f"{this}{thing}不打折", f"{e.capital(it)} is not on sale"
            for cut, percent in words("九=ten, 八=twenty, 七=thirty, 六=forty").items():
                yield f"{this}{thing}打{cut}折", f"{e.capital(it)} is {percent} percent off"
            for tens, money in w.TENS.items():
                yield f"{this}{thing}{tens}块钱", f"{e.capital(it)} costs {money} yuan"


def _owned():
    for owner, whose in w.OWNERS.items():
        whose_ = e.capital(whose)
        for n, english in w.BELONGINGS.items():
            yield f"这是{owner}{n}", f"This is {whose} {english}"
            yield f"这不是{owner}{n}", f"This is not {whose} {english}"
            yield f"这是{owner}{n}吗？", f"Is this {whose} {english}?"
            yield f"{owner}{n}在哪儿？", f"Where is {whose} {english}?"
            for spot, where in w.SPOTS.items():
                yield f"{owner}{n}{spot}", f"{whose_} {english} is {where}"
        for n, english in words("车=car, 雨伞=umbrella, 帽子=hat, 包=bag, 自行车=bicycle").items():
            for x, colour in _COLOURS.items():
                yield f"{owner}{n}是{x}的", f"{whose_} {english} is {colour}"
        for language, english in w.LANGUAGES.items():
            yield f"{owner}{language}水平很高", f"{whose_} level of {english} is very high"
            yield f"{owner}{language}水平不高", f"{whose_} level of {english} is not high"
            yield f"{owner}{language}水平越来越高", f"{whose_} level of {english} is getting higher and higher"
        yield f"{owner}薪水很高", f"{whose_} salary is very high"
        yield f"{owner}薪水不高", f"{whose_} salary is not high"
        for month, name in w.MONTHS.items():
            yield f"{owner}生日在{month}", f"{whose_} birthday is in {name}"


def _weather():
    for p, place in (w.TOWNS | w.LANDS).items():
        for x, weather in w.WEATHER.items():
            for source, english in _WEATHER:
                yield source.format(p=p, x=x), english.format(place=place, weather=weather)
        for season, (name, weathers) in w.SEASONS.items():
            for x, weather in weathers.items():
                yield f"{p}的{season}很{x}", f"{e.capital(name)} in {place} is very {weather}"
        for x, fall in _FALLS.items():
            if x == "下雪" and p in w.NO_SNOW:
                continue
            for source, english in _FALLING:
                forms = {"fall": fall, "ing": f"{fall}ing", "past": f"{fall}ed"}
                yield source.format(p=p, x=x), english.format(place=place, **forms)
            for month, name in list(w.MONTHS.items())[: 3 if x == "下雪" else 12]:
                yield f"{p}{month}常常{x}", f"It often {fall}s in {place} in {name}"
    for day, name in w.WEEKDAYS.items():
        yield f"今天{day}", f"Today is {name}"
        yield f"昨天是{day}", f"Yesterday was {name}"
        yield f"明天是{day}吗？", f"Is tomorrow {name}?"


FAMILIES = (
    (_states, 1200),
    (_reasons, 800),
    (_described, 1400),
    (_counted, 1200),
    (_priced, 500),
    (_owned, 800),
    (_weather, 800),
)
