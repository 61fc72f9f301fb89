"""Figures, and fonts that have the characters to be drawn."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterable

from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.ft2font import FT2Font

# Asked first where several fonts have the characters, so that Chinese is not drawn with a font for one old script.
_PREFERRED = (
    "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "PingFang SC", "Hiragino Sans GB", "Microsoft YaHei",
    "SimHei", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "Droid Sans Fallback", "Arial Unicode MS",
)  # fmt: skip


def figure(width: float, height: float) -> Figure:
    """An empty figure of a size in inches, at least 3 x 2 and at most 30 x 30, whose parts leave each other room."""
    return Figure(figsize=(min(max(width, 3.0), 30.0), min(max(height, 2.0), 30.0)), layout="constrained")


def font_families(texts: Iterable[str]) -> list[str]:
    """Names of fonts that have all characters of some texts, matplotlib's own first.

    A UserWarning tells what to install where no font has some of them; these are drawn as boxes.
    """
    own = "DejaVu Sans"
    missing = {c for text in texts for c in text if not c.isspace()} - _characters(font_manager.findfont(own))
    families = [own]
    for name, path in _fonts() if missing else ():
        found = missing & _characters(path)
        if found:
            families.append(name)
            missing -= found
        if not missing:
            break
    if missing:
        shown = " ".join(sorted(missing)[:10])
        warnings.warn(
            f"No font on this machine has these characters: {shown}. Install one that does: for Chinese, Japanese and "
            "Korean the package fonts-noto-cjk of Debian and Ubuntu, google-noto-sans-cjk-fonts of Fedora, or Noto "
            "Sans SC from fonts.google.com.",
            stacklevel=3,
        )
    return families


@functools.lru_cache(maxsize=256)
def _characters(path: str) -> frozenset[str]:
    try:
        return frozenset(map(chr, FT2Font(path).get_charmap()))
    except (OSError, RuntimeError):  # A broken file, or a kind that matplotlib does not read.
        return frozenset()


def _fonts():
    """Names and paths of all fonts, the preferred first; with those that were installed after matplotlib looked."""
    manager = font_manager.fontManager
    known = {font.fname for font in manager.ttflist}
    for path in font_manager.findSystemFonts():
        if path not in known:
            try:
                manager.addfont(path)
            except (OSError, RuntimeError):
                continue
    rank = {name: number for number, name in enumerate(_PREFERRED)}
    fonts = sorted(manager.ttflist, key=lambda font: (rank.get(font.name, len(rank)), font.name, font.fname))
    return [(font.name, font.fname) for font in fonts]
