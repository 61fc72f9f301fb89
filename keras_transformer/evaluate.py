"""Scores of translations: BLEU, chrF and TER by sacreBLEU, and the tokenised lower-cased BLEU of older papers.

Needs sacrebleu and sacremoses, which are imported when a score is asked for; the rest of the package does not.
"""

from __future__ import annotations

import dataclasses
import importlib
import re
import reprlib
from collections.abc import Sequence
from typing import Any

from keras_transformer._checks import check_bool, check_choice

_METRICS = ("bleu", "chrf", "ter")
_BLEU_TOKENIZERS = {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab"}

# The three-letter codes of the languages that have rules of their own in sacreBLEU's or Moses' tokenizers.
# "cn" and "jp" are codes of countries, and no language has them: whoever writes them can mean one thing only.
_THREE_LETTERS = (
    "as:asm bn:ben ca:cat cs:ces,cze,cz de:deu,ger el:ell,gre en:eng es:spa et:est fi:fin fr:fra,fre ga:gle gu:guj "
    "hi:hin hu:hun is:isl,ice it:ita ja:jpn,jp kn:kan ko:kor lt:lit lv:lav ml:mal mr:mar nl:nld,dut or:ori,ory pa:pan "
    "pl:pol pt:por ro:ron,rum ru:rus sk:slk,slo sl:slv sv:swe ta:tam te:tel zh:zho,chi,cmn,yue,wuu,lzh,cn"
)
_TWO_LETTERS = {
    other: code for code, others in (row.split(":") for row in _THREE_LETTERS.split()) for other in others.split(",")
}


@dataclasses.dataclass(frozen=True)
class Score:
    """A score, with the signature that says how it was computed and that belongs beside it wherever it is reported.

    Args:
        name: What the score is, such as `"BLEU"`.
        value: The score; BLEU and chrF go from 0 to 100, where 100 is best, and TER is 0 at best.
        signature: The settings and versions, in sacreBLEU's notation.

    Example:
        ```python
        from keras_transformer.evaluate import Score

        print(Score("TER", 41.666, "nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:2.6.0"))
        #> TER 41.67  (nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:2.6.0)
        ```
    """

    name: str
    value: float
    signature: str

    def __str__(self):
        return f"{self.name} {self.value:.2f}  ({self.signature})"


def score_translations(
    *,
    hypotheses: Sequence[str],
    references: Sequence[str],
    target_language: str,
    metrics: Sequence[str] = _METRICS,
    lowercase: bool = False,
) -> dict[str, Score]:
    """BLEU, chrF and TER of a corpus of translations, those of the `sacrebleu` command line.

    The target language chooses BLEU's tokenizer: `zh` for Chinese, `ja-mecab` for Japanese, `ko-mecab` for Korean and
    `13a` for all others. chrF and TER have sacreBLEU's defaults for every language. TER counts words between spaces,
    and so says little about Chinese and Japanese, where a sentence is one such word.

    Text is detokenised, as a reader would see it, and its case counts unless `lowercase` is set. Arguments are by
    keyword only: BLEU of references against hypotheses is another number, and no error would tell.

    Args:
        hypotheses: The translations, one sentence each. An empty one is allowed, and scores nothing.
        references: The reference translations; reference i belongs to hypothesis i.
        target_language: Code of the language of both, such as `"de"`, `"zh-CN"`, `"zh_Hans"` or `"jpn"`.
        metrics: Which scores to compute, of `"bleu"`, `"chrf"` and `"ter"`.
        lowercase: Whether BLEU and chrF ignore the case, for models that write lower case; the signature says so. TER
            ignores it always.

    Returns:
        The scores by the names in `metrics`, in their order.

    Raises:
        ValueError: If the two are no lists of single lines, empty, or of unequal length, if a metric or a language
            code is none, or if `lowercase` is not True or False.
        ImportError: If sacrebleu is missing, or what it needs to tokenise Japanese or Korean.

    Example:
        ```python
        from keras_transformer.evaluate import score_translations

        scores = score_translations(
            hypotheses=["我喜欢喝水。", "他昨天去了北京。"],
            references=["我喜欢喝茶。", "他昨天去了北京。"],
            target_language="zh-CN",
            metrics=("bleu", "chrf"),
        )
        for score in scores.values():
            print(score)
            #> BLEU 82.55  (nrefs:1|case:mixed|eff:no|tok:zh|smooth:exp|version:2.6.0)
            #> chrF2 78.81  (nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0)
        ```
    """
    if isinstance(metrics, str) or not isinstance(metrics, Sequence) or not metrics:
        raise ValueError(f"`metrics` must be a list of names of metrics. Received: metrics={metrics!r}")
    names = [check_choice("metrics", metric, _METRICS) for metric in metrics]
    language = _language(target_language)
    check_bool("lowercase", lowercase)
    _check_sentences(hypotheses, references)
    library = _imported("sacrebleu.metrics")
    scores = {}
    for name in names:
        if name == "bleu":
            metric = _bleu(language, lowercase)
        else:
            metric = library.CHRF(lowercase=lowercase) if name == "chrf" else library.TER()
        result = metric.corpus_score(hypotheses, [references])
        scores[name] = Score(result.name, float(result.score), str(metric.get_signature()))
    return scores


def lowercased_tokenized_bleu(*, hypotheses: Sequence[str], references: Sequence[str], target_language: str) -> Score:
    """Tokenised lower-cased BLEU, comparable with papers that report that only, as many on Multi30k do.

    Both sides are lower-cased, then normalised and tokenised by the rules of Moses, with its escapes such as `&quot;`,
    and BLEU is taken over the tokens that result. Neither case nor the kind of a quotation mark counts, and the score
    depends on the tokenizer: it is mostly above that of `score_translations`, and not to be compared with it. Report
    that one where you have the choice.

    Text is detokenised, as for `score_translations`, and of any case: all of the above happens here.

    Args:
        hypotheses: The translations, one sentence each.
        references: The reference translations; reference i belongs to hypothesis i.
        target_language: Code of the language of both, such as `"de"`, `"de_AT"` or `"deu"`. Languages for which Moses
            has no rules are tokenised by those of English, as it does. Chinese and Japanese are refused, since it does
            not find the words in them.

    Returns:
        The score, whose signature names the steps.

    Raises:
        ValueError: If the two are no lists of single lines, empty, or of unequal length, or if the language code is
            none or that of Chinese or Japanese.
        ImportError: If sacrebleu or sacremoses is missing.

    Example:
        ```python
        from keras_transformer.evaluate import lowercased_tokenized_bleu, score_translations

        sentences = {
            "hypotheses": ['Der mann ruft "Halt", und der Hund bleibt stehen.'],
            "references": ["Der Mann ruft „Halt“, und der Hund bleibt stehen."],
        }
        score = lowercased_tokenized_bleu(**sentences, target_language="de")
        print(score.name, round(score.value, 2))
        #> tokenised lower-cased BLEU 100.0
        print(score_translations(**sentences, target_language="de")["bleu"])
        #> BLEU 50.09  (nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0)
        ```
    """
    language = _language(target_language)
    if not has_spaces(target_language):
        raise ValueError(
            "Moses' tokenizer does not find the words of Chinese and Japanese: use `score_translations`. "
            f"Received: target_language={target_language!r}"
        )
    _check_sentences(hypotheses, references)
    bleu = _imported("sacrebleu.metrics").BLEU(tokenize="none", force=True)  # Tokens are meant: no warning of them.
    tokenize = _moses(language)
    result = bleu.corpus_score([tokenize(line) for line in hypotheses], [[tokenize(line) for line in references]])
    signature = bleu.get_signature()
    steps = {"case": "lc", "norm": f"moses-{language}", "tok": f"moses-{language}-escaped"}
    for key, value in {**steps, "sacremoses": _imported("sacremoses").__version__}.items():
        signature.update(key, value)
    return Score("tokenised lower-cased BLEU", float(result.score), str(signature))


def has_spaces(language: str) -> bool:
    """Whether a language, by its code, is written with spaces between its words. Raises ValueError for no such code."""
    return _language(language) not in ("zh", "ja")


def same_language(one: str, other: str) -> bool:
    """Whether two codes are of one language, "cmn" and "zh-CN" for example. Raises ValueError for no such code."""
    return _language(one) == _language(other)


def _moses(language):
    """The function that makes of a sentence the string of its lower-cased tokens."""
    moses = _imported("sacremoses")
    normalizer, tokenizer = moses.MosesPunctNormalizer(lang=language), moses.MosesTokenizer(lang=language)

    def tokenize(sentence):
        return tokenizer.tokenize(normalizer.normalize(sentence.lower()), escape=True, return_str=True)

    return tokenize


def _bleu(language, lowercase):
    """BLEU of sacreBLEU, with the tokenizer for the language."""
    tokenizer = _BLEU_TOKENIZERS.get(language, "13a")
    try:
        return _imported("sacrebleu.metrics").BLEU(lowercase=lowercase, tokenize=tokenizer)
    except RuntimeError:  # How sacreBLEU says that MeCab or its dictionary is missing.
        extra = f"`pip install 'sacrebleu[{language}]'`"
        raise ImportError(
            f"BLEU of {language!r} needs MeCab and its dictionary, which {extra} brings. "
            f"Received: target_language={language!r} without them"
        ) from None


def _imported(name) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        library = name.partition(".")[0]
        raise ImportError(
            f"Scores need {library}. `pip install 'keras_transformer[train]'` brings it. Received: {error}"
        ) from error


def _language(code) -> str:
    """The language in a code such as "zh_Hans-CN": two letters where the language has such a code."""
    match = re.fullmatch("([a-z]{2,3})([-_][a-z0-9]+)*", code.lower()) if isinstance(code, str) else None
    if match is None:  # "Chinese" would be scored as a language with spaces, which no one would see.
        raise ValueError(
            '`target_language` must be the code of a language, such as "de", "zh-CN" or "jpn". '
            f"Received: target_language={code!r}"
        )
    return _TWO_LETTERS.get(match[1], match[1])


def _check_sentences(hypotheses, references) -> None:
    """Raises ValueError unless both are lists of sentences, one line each, and equally many."""
    for name, sentences in (("hypotheses", hypotheses), ("references", references)):
        if isinstance(sentences, str | bytes) or not isinstance(sentences, Sequence):
            received = f"{name}={reprlib.repr(sentences)} of type {type(sentences).__name__}"
            raise ValueError(f"`{name}` must be a list of sentences. Received: {received}")
        for index, sentence in enumerate(sentences):
            received = f"{name}[{index}]={reprlib.repr(sentence)}"
            if not isinstance(sentence, str):
                raise ValueError(
                    f"`{name}` must be a list of sentences, each a str. "
                    f"Received: {received} of type {type(sentence).__name__}"
                )
            if "\n" in sentence or "\r" in sentence:
                raise ValueError(f"A sentence must be one line, without its line end. Received: {received}")
    if len(hypotheses) != len(references) or not hypotheses:
        raise ValueError(
            "There must be one reference for each hypothesis, and at least one of both. "
            f"Received: {len(hypotheses)} hypotheses and {len(references)} references"
        )
