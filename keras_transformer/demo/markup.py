"""The HTML of a look at a translation: words with their confidence, and the map of attention."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence

import numpy as np

from keras_transformer.demo.engines import Look
from keras_transformer.demo.words import Word, words

STYLE = """
.kt-line { line-height: 2.2; font-size: 1.15rem; overflow-wrap: anywhere; }
.kt-word { padding: .15em .2em; border-radius: .25em; }
.kt-target { cursor: pointer; border-bottom: .2em solid transparent; }
.kt-target:focus { outline: 2px solid currentColor; }
.kt-map { overflow-x: auto; margin-top: 1em; }
.kt-map table { border-collapse: collapse; width: auto; }
.kt-map td { width: 2.2em; min-width: 2.2em; height: 1.7em; padding: 0; border: 1px solid transparent; }
.kt-map th { font-weight: normal; text-align: right; padding: 0 .4em; white-space: nowrap; }
.kt-map thead th { writing-mode: vertical-rl; text-align: right; padding: .3em 0; }
.kt-map tr.kt-on td, .kt-map tr.kt-on th { border-top: 2px solid currentColor; border-bottom: 2px solid currentColor; }
.kt-note { opacity: .75; font-size: .9rem; }
"""
# A word under the pointer, under a finger, or reached by the tabulator: its source words are coloured by attention.
SCRIPT = """
() => {
  const show = (event) => {
    const word = event.target.closest && event.target.closest('.kt-target, .kt-map tbody tr');
    if (!word) return;
    const look = word.closest('.kt-look'), number = word.dataset.number;
    const weights = JSON.parse(look.dataset.weights)[number];
    look.querySelectorAll('.kt-source').forEach((source, i) => {
      source.style.backgroundColor = `rgba(255, 140, 0, ${weights[i]})`;
    });
    look.querySelectorAll('.kt-target, .kt-map tbody tr').forEach((one) => {
      one.classList.toggle('kt-on', one.dataset.number === number);
    });
  };
  for (const kind of ['mouseover', 'focusin', 'click']) document.addEventListener(kind, show);
}
"""


def look_as_html(look: Look, layer: str = "mean") -> str:
    """Source and translation word by word, and the attention between them.

    Args:
        look: What an engine says of a translation.
        layer: Name of the map to show.
    """
    sources, targets = words(look.source_tokens), words(look.target_tokens)
    weights = word_weights(look.attention.get(layer, look.attention["mean"]), sources, targets)
    data = html.escape(json.dumps(np.round(weights, 3).tolist()))
    source = "".join(_word(word, "kt-source") for word in sources)
    target = "".join(
        _word(word, "kt-target", f'tabindex="0" data-number="{number}" {_confidence(look, word)}')
        for number, word in enumerate(targets)
    )
    return (
        f'<div class="kt-look" data-weights="{data}"><div class="kt-line" lang="und">{source}</div>'
        f'<div class="kt-line" lang="und">{target}</div>{_note(look)}{_map(weights, sources, targets)}</div>'
    )


def word_weights(attention: np.ndarray, sources: Sequence[Word], targets: Sequence[Word]) -> np.ndarray:
    """Attention between words: the sum over the tokens of a source word, the mean over those of a target word.

    Args:
        attention: [T,S], of tokens.
        sources: The source words.
        targets: The target words.

    Returns:
        float32 [target words, source words].
    """
    cells = [
        [attention[target.start : target.end, source.start : source.end].sum(1).mean() for source in sources]
        for target in targets
    ]
    return np.array(cells, "float32").reshape(len(targets), len(sources))


def _word(word, kind, attributes=""):
    space = " " if word.spaced else ""
    return f'{space}<span class="kt-word {kind}" {attributes}>{html.escape(word.text)}</span>'


def _confidence(look, word):
    """The least probable token of a word counts: a word is as sure as its weakest part."""
    if look.probabilities is None:
        return ""
    probability = float(look.probabilities[word.start : word.end].min())
    # From red for 0 over yellow to green for 1.
    return f'title="{100 * probability:.0f} %" style="border-bottom-color: hsl({120 * probability:.0f} 80% 45%)"'


def _note(look):
    words_too = (
        " The line under a word is green where the model is sure of it, red where not."
        if look.probabilities is not None
        else " An exported model tells no confidence of single words."
    )
    text = f"Confidence {100 * look.confidence:.0f} % a token.{words_too} Point at a word to see what it attends to."
    return f'<p class="kt-note">{text}</p>'


def _map(weights, sources, targets):
    head = "".join(f"<th>{html.escape(word.text)}</th>" for word in sources)
    rows = []
    for number, (word, row) in enumerate(zip(targets, weights, strict=True)):
        cells = "".join(
            f'<td title="{weight:.2f}" style="background-color: rgba(255, 140, 0, {weight:.3f})"></td>'
            for weight in row
        )
        rows.append(f'<tr data-number="{number}"><th>{html.escape(word.text)}</th>{cells}</tr>')
    head = f"<thead><tr><th></th>{head}</tr></thead>"
    return f'<div class="kt-map"><table>{head}<tbody>{"".join(rows)}</tbody></table></div>'
