"""Chinese sentences: templates that set Chinese beside English. The words are in `chinese_words`."""

from __future__ import annotations

from keras_transformer.data.phrasebook import chinese_words as w
from keras_transformer.data.phrasebook import english as e
from keras_transformer.data.phrasebook.chinese_things import FAMILIES, clauses
from keras_transformer.data.phrasebook.grammar import Grammar, turn

_LIKING = (
    ("{s}爱{v}", e.present, "love {v}"),
    ("{s}也爱{v}", e.present, "also love {v}"),
    ("{s}喜欢{v}", e.present, "like {v}"),
    ("{s}不喜欢{v}", e.negative, "like {v}"),
    ("{s}很喜欢{v}", e.present, "really like {v}"),
    ("{s}也喜欢{v}", e.present, "also like {v}"),
    ("{s}不太喜欢{v}", e.negative, "like {v} very much"),
    ("{s}最喜欢{v}", e.present, "like {v} best"),
    ("{s}以前喜欢{v}", e.plain, "used to like {v}"),
    ("{s}讨厌{v}", e.present, "hate {v}"),
    ("{s}喜欢{v}吗？", e.question, "like {v}"),
    ("{s}也喜欢{v}吗？", e.question, "also like {v}"),
    ("{s}为什么喜欢{v}？", e.question, "why like {v}"),
    ("{s}为什么不喜欢{v}？", e.question, "why not like {v}"),
)
_ACTING = (
    ("{s}想{v}", e.present, "want to {v}"),
    ("{s}不想{v}", e.negative, "want to {v}"),
    ("{s}也想{v}", e.present, "also want to {v}"),
    ("{s}喜欢{v}", e.present, "like {ing}"),
    ("{s}不喜欢{v}", e.negative, "like {ing}"),
    ("{s}正在{v}", e.progressive, "{v}"),
    ("{s}没在{v}", e.being, "not {ing}"),
    ("{s}要{v}", e.being, "going to {v}"),
    ("{s}每天都{v}", e.present, "{v} every day"),
    ("{s}常常{v}", e.present, "often {v}"),
    ("{s}有时候{v}", e.present, "sometimes {v}"),
    ("{s}从不{v}", e.present, "never {v}"),
    ("{s}晚上{v}", e.present, "{v} in the evening"),
    ("{s}下午{v}", e.present, "{v} in the afternoon"),
    ("{s}昨天{v}了", e.past, "{v} yesterday"),
    ("{s}昨天没{v}", e.plain, "did not {v} yesterday"),
    ("{s}今天没{v}", e.plain, "did not {v} today"),
    ("{s}明天会{v}", e.plain, "will {v} tomorrow"),
    ("{s}明天不{v}", e.plain, "will not {v} tomorrow"),
    ("{s}可以{v}", e.plain, "can {v}"),
    ("{s}不能{v}", e.plain, "cannot {v}"),
    ("{s}应该{v}", e.plain, "should {v}"),
    ("{s}不应该{v}", e.plain, "should not {v}"),
    ("{s}必须{v}", e.plain, "must {v}"),
    ("{s}打算{v}", e.present, "plan to {v}"),
    ("{s}没有时间{v}", e.negative, "have time to {v}"),
    ("{s}想{v}，但是没有时间", e.present, "want to {v} but {do} not have time"),
    ("{s}想{v}吗？", e.question, "want to {v}"),
    ("{s}每天都{v}吗？", e.question, "{v} every day"),
    ("{s}昨天{v}了吗？", e.past_question, "{v} yesterday"),
    ("{s}正在{v}吗？", e.being_question, "{ing}"),
    ("{s}为什么不想{v}？", e.question, "why not want to {v}"),
    ("{s}什么时候有时间{v}？", e.question, "when have time to {v}"),
)
_SKILL = (
    ("{s}会{v}", e.plain, "can {v}"),
    ("{s}不会{v}", e.plain, "cannot {v}"),
    ("{s}也会{v}", e.plain, "can also {v}"),
    ("{s}在学{v}", e.progressive, "learn to {v}"),
    ("{s}想学{v}", e.present, "want to learn to {v}"),
)
_PLACED = (
    ("{s}{p}{v}", e.present, "{v} {where}"),
    ("{s}常常{p}{v}", e.present, "often {v} {where}"),
    ("{s}想{p}{v}", e.present, "want to {v} {where}"),
    ("{s}喜欢{p}{v}", e.present, "like {ing} {where}"),
    ("{s}昨天{p}{v}了", e.past, "{v} {where} yesterday"),
    ("{s}正{p}{v}", e.progressive, "{v} {where}"),
)
_TRAVEL = (
    ("{s}{m}去{p}", e.progressive, "go to {place} in {month}"),
    ("{s}{m}不去{p}", e.being, "not going to {place} in {month}"),
    ("{s}{m}去{p}旅行", e.progressive, "travel to {place} in {month}"),
    ("{s}{m}去了{p}", e.past, "go to {place} in {month}"),
    ("{s}想{m}去{p}", e.present, "want to go to {place} in {month}"),
    ("{s}打算{m}去{p}", e.present, "plan to go to {place} in {month}"),
    ("{s}{m}去{p}吗？", e.being_question, "going to {place} in {month}"),
)
_ABROAD = (
    ("{s}去过{p}", e.present, "have been to {place}"),
    ("{s}没去过{p}", e.present, "have not been to {place}"),
    ("{s}想去{p}旅行", e.present, "want to travel to {place}"),
    ("{s}去年去了{p}", e.past, "go to {place} last year"),
    ("{s}打算明年去{p}", e.present, "plan to go to {place} next year"),
    ("{s}坐飞机去{p}", e.present, "go to {place} by plane"),
    ("{s}住在{p}", e.present, "live in {place}"),
    ("{s}不住在{p}", e.negative, "live in {place}"),
    ("{s}来自{p}", e.present, "come from {place}"),
    ("{s}在{p}工作", e.present, "work in {place}"),
    ("{s}在{p}学中文", e.present, "study Chinese in {place}"),
    ("{s}在{p}住了三年", e.past, "live in {place} for three years"),
    ("{s}什么时候去{p}？", e.being_question, "when going to {place}"),
    ("{s}住在{p}吗？", e.question, "live in {place}"),
)


_HITTING = (
    ("{s}从不打人", e.present, "never hit people"),
    ("{s}没打人", e.plain, "did not hit anyone"),
    ("{s}打人了", e.past, "hit someone"),
    ("{s}不会打人", e.plain, "will not hit anyone"),
    ("{s}为什么打人？", e.question, "why hit people"),
)
_TOWARDS = (
    ("{s}给{o}打电话", e.present, "call {whom}"),
    ("{s}常常给{o}打电话", e.present, "often call {whom}"),
    ("{s}想给{o}打电话", e.present, "want to call {whom}"),
    ("{s}昨天给{o}打电话了", e.past, "call {whom} yesterday"),
    ("{s}没给{o}打电话", e.plain, "did not call {whom}"),
    ("{s}昨天给{o}打电话了吗？", e.past_question, "call {whom} yesterday"),
    ("{s}给{o}写了一封信", e.past, "write {whom} a letter"),
    ("{s}跟{o}一起打球", e.present, "play ball with {whom}"),
    ("{s}跟{o}一起喝茶", e.present, "drink tea with {whom}"),
    ("{s}在等{o}", e.progressive, "wait for {whom}"),
    ("{s}认识{o}", e.present, "know {whom}"),
    ("{s}不认识{o}", e.negative, "know {whom}"),
    ("{s}认识{o}吗？", e.question, "know {whom}"),
)
_LOVING = (
    ("{s}爱{o}", e.present, "love {whom}"),
    ("{s}不爱{o}", e.negative, "love {whom}"),
    ("{s}想{o}", e.present, "miss {whom}"),
    ("{s}很想{o}", e.present, "miss {whom} very much"),
)
_LOVED = ["我", "你", "他", "她", "爸爸", "妈妈"]
_MEANING = (
    ("{s}知道{x}的意思", e.present, "know the meaning of {saying}"),
    ("{s}不知道{x}的意思", e.negative, "know the meaning of {saying}"),
    ("{s}明白{x}的意思", e.present, "understand the meaning of {saying}"),
    ("{s}不明白{x}的意思", e.negative, "understand the meaning of {saying}"),
    ("{s}忘了{x}的意思", e.past, "forget the meaning of {saying}"),
    ("{s}想知道{x}是什么意思", e.present, "want to know what {saying} means"),
    ("{s}知道{x}是什么意思吗？", e.question, "know what {saying} means"),
)
_OPINION = (
    ("{s}觉得{x}很有意思", e.present, "find {topic} very interesting"),
    ("{s}觉得{x}有意思", e.present, "find {topic} interesting"),
    ("{s}觉得{x}没意思", e.present, "find {topic} boring"),
    ("{s}觉得{x}很没意思", e.present, "find {topic} very boring"),
    ("{s}觉得{x}有意思吗？", e.question, "find {topic} interesting"),
)


def _actions(table, sentences, parts=1, **slots):
    for number, (v, english) in enumerate(table.items()):
        for source, clause, meaning in sentences:
            number += 1
            meaning = meaning.replace("{v}", english).replace("{ing}", e.gerund(english))
            yield from clauses(turn(w.SUBJECTS, number, parts), [(source, clause, meaning)], v=v, **slots)


def _liking():
    yield from _actions(w.DRINKS | w.FOOD | w.SPORTS | w.STUDIES | w.LIKED, _LIKING, parts=2)


def _courses():
    yield from _actions(w.COURSES, _LIKING)
    for number, count in list(w.COUNTS.items())[:5]:
        for course, english in w.CLASSES.items():
            slots = {"n": number + course, "courses": e.count(count, english)}
            yield from clauses(
                w.SUBJECTS,
                [
                    ("{s}这学期有{n}", e.present, "have {courses} this term"),
                    ("{s}选了{n}", e.past, "choose {courses}"),
                ],
                **slots,
            )
    for course, english in w.CLASSES.items():
        if "水课" not in course:
            yield f"这{course}是水课", f"This {english} is an easy course"
            yield f"这{course}不是水课", f"This {english} is not an easy course"
            yield f"这{course}是水课吗？", f"Is this {english} an easy course?"


def _acting():
    yield from _actions(w.ACTIONS, _ACTING, parts=2)


def _together():
    for v, english in w.ACTIONS.items():
        yield f"别{v}", f"Do not {english}"
        yield f"请{v}", f"Please {english}"
        yield f"我可以{v}吗？", f"May I {english}?"
        yield f"不好意思，我不能{v}", f"Sorry, I cannot {english}"
        yield f"不好意思，我没有时间{v}", f"Sorry, I do not have time to {english}"
    for v, english in w.LEISURE.items():
        yield f"我们一起{v}吧", f"Let us {english} together"
        yield f"你想跟我们一起{v}吗？", f"Do you want to {english} with us?"
        for day, name in w.WEEKDAYS.items():
            yield from clauses(w.PRONOUNS, [(f"{{s}}每个{day}都{v}", e.present, f"{english} every {name}")])


def _skills():
    yield from _actions(w.SKILLS, _SKILL)
    for v, english in w.SKILLS.items():
        for subject in w.SUBJECTS:
            if not subject.source.startswith("我"):
                yield f"{subject.source}会{v}吗？", f"Can {subject.english} {english}?"


def _placed():
    for (place, where), table in w.PLACES.items():
        yield from _actions(table, _PLACED, p=place, where=where)


def _clock():
    for part, (english, hours, table) in w.CLOCK.items():
        for hour in hours:
            for half, before in (("", ""), ("半", "half past ")):
                time = f"at {before}{w.NUMERALS[hour]} {english}"
                for v, phrase in table.items():
                    sentence = (f"{{s}}{part}{hour}点{half}{v}", e.present, f"{phrase} {time}")
                    yield from clauses(w.SUBJECTS, [sentence])
    for hour, english in w.NUMERALS.items():
        hour = "两" if hour == "二" else hour
        yield f"现在{hour}点", f"It is {english} o'clock"
        yield f"现在{hour}点半", f"It is half past {english}"
        yield f"现在{hour}点一刻", f"It is a quarter past {english}"


def _travel():
    for number, (p, place) in enumerate((w.TOWNS | w.LANDS).items()):
        for m, month in w.MONTHS.items():
            number += 1
            yield from clauses(turn(w.SUBJECTS, number, 5), _TRAVEL, p=p, place=place, m=m, month=month)


def _abroad():
    for p, place in (w.TOWNS | w.LANDS).items():
        yield from clauses(w.SUBJECTS, _ABROAD, p=p, place=place)


def _hitting():
    yield "别打人", "Do not hit people"
    yield from clauses(w.SUBJECTS, _HITTING)


def _people():
    for o, whom in w.OBJECTS.items():
        for subject in w.SUBJECTS:
            if subject.source[0] != o[0]:  # Nobody calls himself.
                sentences = _TOWARDS + _LOVING if o in _LOVED else _TOWARDS
                yield from clauses([subject], sentences, o=o, whom=whom)


def _meaning():
    for x, saying in w.SAYINGS.items():
        yield f"{x}是什么意思？", f"What does {saying} mean?"
        yield f"{x}的意思很简单", f"The meaning of {saying} is very simple"
        yield f"{x}有很多意思", f"{e.capital(saying)} has many meanings"
        yield from clauses(w.SUBJECTS, _MEANING, x=x, saying=saying)
    for x, topic in w.TOPICS.items():
        yield f"{x}真有意思", f"{e.capital(topic)} is really interesting"
        yield f"{x}真没意思", f"{e.capital(topic)} is really boring"
        yield from clauses(w.SUBJECTS, _OPINION, x=x, topic=topic)
    for x, building in w.BUILDINGS.items():
        yield f"不好意思，{x}在哪儿？", f"Sorry, where is {building}?"
        yield f"{x}在哪儿？", f"Where is {building}?"
    yield from clauses(w.SUBJECTS, [("{s}觉得很不好意思", e.present, "feel very embarrassed")])


GRAMMAR = Grammar(
    families=(
        (_liking, 3200),
        (_courses, 1500),
        (_acting, 4800),
        (_together, 1000),
        (_skills, 900),
        (_placed, 800),
        (_clock, 500),
        (_travel, 1400),
        (_abroad, 1200),
        (_hitting, 200),
        (_people, 1000),
        (_meaning, 900),
        *FAMILIES,
    ),
    full_stop="。",
    held_out=(("我爱水课", "I love easy courses"),),
)
