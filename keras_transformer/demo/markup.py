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
    head = f"<thead><tr><th></th>{head}</tr></thead>"
    return f'<div class="kt-map"><table>{head}<tbody>{"".join(rows)}</tbody></table></div>'
