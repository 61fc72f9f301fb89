"""Attention between a sentence and its translation, as heat maps and as lines."""

from __future__ import annotations

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from keras_transformer._checks import check_rate
from keras_transformer.decoding.results import Attention
from keras_transformer.visualize.canvas import figure, font_families


def attention_map(attention: Attention, layer: int | str = "mean", head: int | str = "mean") -> Figure:
    """Heat maps of what each target token attends to: a row for each target token, a column for each source token.

    Args:
        attention: What `Translator.attention` gives for one pair of texts, with weights [N,H,T,S].
        layer: Number of a decoder block from 0, or from the last as -1; `"mean"` over them; `"each"` for a row of maps
            of each.
        head: Number of a head; `"mean"` over them; `"each"` for a column of maps of each.

    Returns:
        A matplotlib figure. The tokens are as SentencePiece writes them: `▁` is the space before a word.

    Raises:
        ValueError: If there is no such layer or head.

    Example:
        ```python
        import numpy as np
        from keras_transformer.decoding import Attention
        from keras_transformer.visualize import attention_map

        attention = Attention(("▁a", "▁dog", "</s>"), ("▁ein", "▁Hund", "</s>"), np.full((4, 8, 3, 3), 1 / 3))
        attention_map(attention, layer=-1, head="each").savefig("attention.png")
        ```
    """
    maps = _selected(attention, layer, head)
    rows, columns = len(maps), len(maps[0])
    targets, sources = len(attention.target_tokens), len(attention.source_tokens)
    width, height = columns * (0.35 * sources + 1.2), rows * (0.3 * targets + 1.2)
    picture = figure(width, height)
    families = font_families([*attention.source_tokens, *attention.target_tokens])
    grid = picture.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for axes, (title, weights) in zip(grid.flat, (one for row in maps for one in row), strict=True):
        image = axes.imshow(weights, vmin=0.0, vmax=1.0, cmap="viridis", aspect="auto")
        axes.set_title(title, fontsize=9)
        axes.set_xticks(range(sources), attention.source_tokens, rotation=90)
        axes.set_yticks(range(targets), attention.target_tokens)
        for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
            label.set(family=families, parse_math=False)  # A dollar sign is a token as any other.
    picture.colorbar(image, ax=grid, label="weight", fraction=0.05)
    return picture


def alignment(
    attention: Attention, layer: int | str = "mean", head: int | str = "mean", threshold: float = 0.1
) -> Figure:
    """The sentence above, its translation below, and lines between tokens, the darker the more attention.

    Args:
        attention: What `Translator.attention` gives for one pair of texts.
        layer: Number of a decoder block from 0, or from the last as -1; `"mean"` over them.
        head: Number of a head; `"mean"` over them.
        threshold: Weights below it, of 0 to 1, have no line.

    Returns:
        A matplotlib figure.

    Raises:
        ValueError: If there is no such layer or head, or `threshold` is out of range.
    """
    check_rate("threshold", threshold)
    for name, value in (("layer", layer), ("head", head)):
        if value == "each":
            raise ValueError(f'Lines are drawn of one map: `{name}` must be a number or "mean". Received: "each"')
    [[(title, weights)]] = _selected(attention, layer, head)
    sides = ((attention.source_tokens, 1.0, "bottom"), (attention.target_tokens, 0.0, "top"))
    most = max(len(attention.source_tokens), len(attention.target_tokens))
    picture = figure(0.8 * most + 1, 3.0)
    axes = picture.subplots()
    families = font_families([*attention.source_tokens, *attention.target_tokens])
    places = [(np.arange(len(tokens)) + 0.5) * most / len(tokens) for tokens, _, _ in sides]
    for (tokens, y, anchor), xs in zip(sides, places, strict=True):
        for token, x in zip(tokens, xs, strict=True):
            axes.text(x, y, token, ha="center", va=anchor, family=families, parse_math=False)
    kept = np.argwhere(weights >= threshold)
    lines = [[(places[0][source], 0.98), (places[1][target], 0.02)] for target, source in kept]
    strengths = np.clip([weights[target, source] for target, source in kept], 0.0, 1.0)
    axes.add_collection(LineCollection(lines, colors=[(0.1, 0.3, 0.7, s) for s in strengths], linewidths=2.5))
    axes.set(xlim=(0, most), ylim=(-0.15, 1.15), title=title)
    axes.set_axis_off()
    return picture


def _selected(attention, layer, head):
    """Rows of pairs of a title and a map [T,S], as the choices of layers and heads ask for."""
    if not isinstance(attention, Attention):
        raise ValueError(f"`attention` must be what `Translator.attention` gives for one text. Received: {attention!r}")
    weights = np.asarray(attention.weights, "float32")
    expected = (len(attention.target_tokens), len(attention.source_tokens))
    if weights.ndim != 4 or weights.shape[2:] != expected or 0 in expected:
        raise ValueError(
            "`attention` must have weights [layers, heads, target tokens, source tokens] beside its tokens. Received: "
            f"weights of shape {weights.shape} beside {expected[0]} target and {expected[1]} source tokens"
        )
    layers, heads = _choice("layer", layer, weights.shape[0]), _choice("head", head, weights.shape[1])
    return [[(f"{row}, {column}", weights[i][:, j].mean((0, 1))) for column, j in heads] for row, i in layers]


def _choice(name, value, count):
    """Titles and slices of the numbers that are asked for."""
    if isinstance(value, str) and value == "mean":
        return [(f"mean of {count} {name}s", slice(None))]
    if isinstance(value, str) and value == "each":
        return [(f"{name} {number}", slice(number, number + 1)) for number in range(count)]
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not -count <= value < count:
        raise ValueError(
            f'`{name}` must be a number from {-count} to {count - 1}, "mean" or "each". Received: {name}={value!r}'
        )
    number = int(value) % count
    return [(f"{name} {number}", slice(number, number + 1))]
