"""Draws the pictures of the guide: `.venv/bin/python docs/draw_pictures.py`, and docs/pictures/ has them anew.

Each function draws one file. What a picture shows is computed by the package's own layers and schedules; numbers that
were chosen by hand, to show an idea, stand at the top.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle

from keras_transformer.decoding import Attention
from keras_transformer.layers import MultiHeadAttention, PositionalEmbedding
from keras_transformer.schedules import NoamSchedule
from keras_transformer.visualize import attention_map, positional_encoding

FOLDER = Path(__file__).parent / "pictures"
TOKENS = ("我", "爱", "水", "课")
# Vectors of the four tokens, by hand: 水 and 课 look the same way, 课 is the longer one.
WORDS = np.array([[[3.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 2.5], [0.0, 0.0, 3.0]]])
# What a model might say next, by hand: probabilities of tokens after each beginning.
NEXT = {
    (): {"I": 0.55, "We": 0.45},
    ("I",): {"like": 0.4, "love": 0.35, "do": 0.25},
    ("We",): {"love": 0.9, "like": 0.1},
}
BLUE, GREEN, ORANGE, GREY, RED = "#c7d7f5", "#cfe8cf", "#fbe0bf", "#e6e6e6", "#f5cfcf"


def figure_1() -> Figure:
    """The boxes of Figure 1 with the names of our classes."""
    picture = Figure(figsize=(8.2, 7.6), layout="constrained")
    axes = picture.subplots()
    sides = {
        2.0: [
            ("Inputs: source_ids [B,S]", GREY),
            ("PositionalEmbedding\nInput Embedding + Positional Encoding", RED),
            ("MultiHeadAttention", ORANGE),
            ("AddNorm", GREEN),
            ("FeedForward", BLUE),
            ("AddNorm", GREEN),
        ],
        6.6: [
            ("Outputs, shifted right: target_ids [B,T]", GREY),
            ("PositionalEmbedding\nOutput Embedding + Positional Encoding", RED),
            ("MultiHeadAttention, causal\nMasked Multi-Head Attention", ORANGE),
            ("AddNorm", GREEN),
            ("MultiHeadAttention over memory", ORANGE),
            ("AddNorm", GREEN),
            ("FeedForward", BLUE),
            ("AddNorm", GREEN),
            ("PositionalEmbedding, reverse=True\nLinear", RED),
            ("logits [B,T,V]", GREY),
        ],
    }
    for x, boxes in sides.items():
        for row, (text, color) in enumerate(boxes):
            _box(axes, x, row, text, color, width=3.6)
            if row:
                _arrow(axes, (x, row - 0.67), (x, row - 0.33))
    for x, lowest, highest, name in ((2.0, 2, 5, "EncoderBlock, N times"), (6.6, 2, 7, "DecoderBlock, N times")):
        axes.add_patch(
            Rectangle((x - 2.1, lowest - 0.48), 4.2, highest - lowest + 0.96, fill=False, ls="--", ec="grey")
        )
        axes.text(x + 2.15, (lowest + highest) / 2, name, rotation=90, va="center", fontsize=10, style="italic")
    axes.plot([2.0, 2.0], [5.33, 6.25], color="black", lw=1)
    axes.plot([2.0, 4.45], [6.25, 6.25], color="black", lw=1)
    axes.plot([4.45, 4.45], [6.25, 4.0], color="black", lw=1)
    _arrow(axes, (4.45, 4.0), (4.8, 4.0))
    axes.text(2.1, 6.33, "memory [B,S,D]", fontsize=9)
    axes.set(xlim=(-0.3, 9.2), ylim=(-0.5, 9.5))
    axes.set_axis_off()
    return picture


def positions() -> Figure:
    """The sinusoids of 50 positions in 128 dimensions."""
    picture = positional_encoding(PositionalEmbedding(input_dim=1, output_dim=128, name="sinusoids, D = 128"), 50)
    picture.set_size_inches(7, 3)
    return picture


def attention() -> Figure:
    """The weights of formula (1) between four vectors that were chosen by hand."""
    tokens = tuple(TOKENS)
    picture = attention_map(Attention(tokens, tokens, weights_by_hand()[:, None]))
    picture.set_size_inches(3.6, 3)
    picture.axes[0].set(title="softmax(Q Kᵀ / √K)", xlabel="key", ylabel="query")
    return picture


def weights_by_hand() -> np.ndarray:
    """The weights, [1,4,4], from a layer whose projections leave the vectors as they are."""
    layer = MultiHeadAttention(num_heads=1, key_dim=3, use_bias=False)
    layer.build((1, 4, 3))
    layer.set_weights([np.tile(np.eye(3), 3), np.eye(3)])
    return np.asarray(layer(WORDS, return_attention_scores=True)[1])[:, 0]


def heads() -> Figure:
    """How 4 x 512 becomes 8 heads of 4 x 64 and 4 x 512 again."""
    picture = Figure(figsize=(9, 3), layout="constrained")
    axes = picture.subplots()
    _matrix(axes, 0.0, 0.0, 2.4, 1.2, "x\n4 × 512", BLUE)
    for row, token in enumerate(TOKENS):
        axes.text(-0.15, 1.05 - 0.3 * row, token, ha="right", va="center", fontsize=9, family=_FAMILIES)
    for head in range(8):
        x = 3.4 + 0.42 * head
        _matrix(axes, x, 0.0, 0.34, 1.2, "", ORANGE)
        axes.text(x + 0.17, 0.6, f"head {head + 1}: 4 × 64", ha="center", va="center", rotation=90, fontsize=8)
    _matrix(axes, 7.8, 0.0, 2.4, 1.2, "Concat\n4 × 512", ORANGE)
    _matrix(axes, 11.2, 0.0, 2.4, 1.2, "output\n4 × 512", BLUE)
    for start, text in ((2.45, "Wᵢ"), (6.85, ""), (10.25, "Wᴼ")):
        _arrow(axes, (start, 0.6), (start + 0.85, 0.6))
        axes.text(start + 0.4, 0.68, text, ha="center", fontsize=9)
    axes.text(5.05, -0.35, "each head attends by itself: weights 8 × 4 × 4", ha="center", fontsize=9)
    axes.set(xlim=(-0.6, 13.8), ylim=(-0.6, 1.4))
    axes.set_axis_off()
    return picture


def masks() -> Figure:
    """What a query may attend to: the padding mask, the causal mask, both."""
    labels = ("I", "love", "easy", "courses", "0", "0")
    real = np.array([True] * 4 + [False] * 2)
    causal = np.tril(np.ones((6, 6), bool))
    maps = {"padding": np.tile(real, (6, 1)), "causal": causal, "both": causal & real}
    picture = Figure(figsize=(8.4, 3.1), layout="constrained")
    for axes, (title, allowed) in zip(picture.subplots(1, 3), maps.items(), strict=True):
        axes.pcolormesh(allowed[::-1], cmap="Blues", vmin=0, vmax=1.6, edgecolors="white", linewidth=1)
        axes.set_xticks(np.arange(6) + 0.5, labels, rotation=60)
        axes.set_yticks(np.arange(6) + 0.5, labels[::-1])
        axes.set(title=title, xlabel="key", ylabel="query", aspect="equal")
    return picture


def rates() -> Figure:
    """Formula (3) for several widths and warm-ups."""
    schedules = {
        "D = 512, 4,000 updates of warm-up": NoamSchedule(512, 4000),
        "D = 512, 8,000": NoamSchedule(512, 8000),
        "D = 1,024, 4,000": NoamSchedule(1024, 4000),
    }
    updates = np.arange(1, 20_001, 100)
    picture = Figure(figsize=(6.5, 3.2), layout="constrained")
    axes = picture.subplots()
    for name, schedule in schedules.items():
        axes.plot(updates, np.asarray(schedule(updates - 1)), label=name)
    axes.set(xlabel="update", ylabel="learning rate")
    axes.legend()
    return picture


def beam() -> Figure:
    """A beam of two finds what greedy search misses."""
    places = {(): (0, 1.5), ("I",): (1.6, 2.5), ("We",): (1.6, 0.4)}
    for row, token in enumerate(NEXT[("I",)]):
        places[("I", token)] = (3.4, 3.2 - 0.75 * row)
    for row, token in enumerate(NEXT[("We",)]):
        places[("We", token)] = (3.4, 0.7 - 0.75 * row)
    greedy, best = {("I",), ("I", "like")}, {("We",), ("We", "love")}
    picture = Figure(figsize=(7, 3.4), layout="constrained")
    axes = picture.subplots()
    for path, (x, y) in places.items():
        text = path[-1] if path else "begin"
        if path:
            from_x, from_y = places[path[:-1]]
            color = "tab:orange" if path in greedy else "tab:blue" if path in best else "grey"
            style = "-" if path in greedy | best else ":"
            axes.plot([from_x + 0.35, x - 0.35], [from_y, y], color=color, ls=style, lw=2)
            axes.text((from_x + x) / 2, (from_y + y) / 2 + 0.08, f"{NEXT[path[:-1]][path[-1]]:g}", fontsize=8)
            if len(path) == 2:
                axes.text(x + 0.45, y, f"{probability(path):.3f}", va="center", fontsize=9)
        axes.text(x, y, text, ha="center", va="center", fontsize=10)
    axes.text(4.6, 3.2, "greedy search", color="tab:orange", va="center")
    axes.text(4.6, 0.7, "a beam of 2", color="tab:blue", va="center")
    axes.set(xlim=(-0.5, 5.8), ylim=(-0.4, 3.6))
    axes.set_axis_off()
    return picture


def probability(path: tuple[str, ...]) -> float:
    """The product of the probabilities of a path's tokens."""
    return float(np.prod([NEXT[path[:place]][token] for place, token in enumerate(path)]))


PICTURES = {
    "figure_1.svg": figure_1,
    "positions.png": positions,
    "attention.svg": attention,
    "heads.svg": heads,
    "masks.svg": masks,
    "rates.svg": rates,
    "beam.svg": beam,
}
# Text stays text in an SVG: the reader's browser has the characters. These names are asked in this order.
_FAMILIES = ["DejaVu Sans", "Noto Sans CJK SC", "Noto Sans CJK JP"]


def draw(folder: Path) -> None:
    """Writes all pictures to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"svg.fonttype": "none", "svg.hashsalt": "keras_transformer", "font.sans-serif": ["DejaVu Sans"]}
    with matplotlib.rc_context(settings):
        for name, function in PICTURES.items():
            metadata = {"Date": None} if name.endswith(".svg") else {"Software": None}
            function().savefig(folder / name, dpi=100, metadata=metadata)


def _box(axes, x, y, text, color, width):
    corner = (x - width / 2, y - 0.3)
    axes.add_patch(FancyBboxPatch(corner, width, 0.6, boxstyle="round,pad=0.02", fc=color, ec="black", lw=0.8))
    axes.text(x, y, text, ha="center", va="center", fontsize=8.5)


def _matrix(axes, x, y, width, height, text, color):
    axes.add_patch(Rectangle((x, y), width, height, fc=color, ec="black", lw=0.8))
    axes.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=9)


def _arrow(axes, start, end):
    axes.annotate("", xy=end, xytext=start, arrowprops={"arrowstyle": "->", "lw": 1})


if __name__ == "__main__":
    draw(FOLDER)
    sys.exit()
