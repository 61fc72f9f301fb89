import builtins
import importlib
import sys
import warnings

import pytest
from matplotlib import font_manager

from keras_transformer.visualize import canvas


def test_own_font_is_enough_for_what_it_has():
    assert canvas.font_families(["▁Où est l'élève ?", "Straße"]) == ["DejaVu Sans"]


def test_a_font_that_has_the_other_characters_is_found_or_what_to_install_is_said():
    path = canvas._characters(font_manager.findfont("DejaVu Sans"))
    assert "我" not in path
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        families = canvas.font_families(["我爱水课"])
    if len(families) > 1:
        paths = [font.fname for font in font_manager.fontManager.ttflist if font.name in families]
        assert set("我爱水课") <= set().union(*map(canvas._characters, paths))
    else:
        assert "fonts-noto-cjk" in str(caught[0].message)


def test_characters_that_no_font_has_are_named(monkeypatch):
    monkeypatch.setattr(canvas, "_fonts", lambda: [])
    with pytest.warns(
        UserWarning, match="No font on this machine has these characters: 我 爱. Install .*fonts-noto-cjk"
    ):
        assert canvas.font_families(["我爱", "abc"]) == ["DejaVu Sans"]


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    real = builtins.__import__

    def refuse(name, *arguments, **options):
        if name.split(".")[0] == "matplotlib":
            raise ImportError("No module named 'matplotlib'")
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)
    monkeypatch.delitem(sys.modules, "keras_transformer.visualize")
    with pytest.raises(ImportError, match=r"pip install 'keras_transformer\[visualize\]'"):
        importlib.import_module("keras_transformer.visualize")
