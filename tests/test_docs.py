"""The guide in docs/ says everything that is public, and nothing that is not so."""

import importlib
import re
import sys
from pathlib import Path

import pytest

from keras_transformer.models import TransformerConfig
from keras_transformer.training.recipe import RECIPES, Recipe

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(path.name for path in DOCS.glob("*.md"))
MODULES = (
    "layers", "models", "losses", "metrics", "schedules", "callbacks", "checkpoints", "data", "data.phrasebook",
    "data.public", "data.tensorflow_datasets", "text", "decoding", "evaluate", "export", "client", "training",
    "visualize", "demo", "benchmark",
)  # fmt: skip
LARGEST_PICTURE = 60_000


def public_names(module):
    """What `__all__` names, or else what the module defines without an underscore."""
    given = getattr(module, "__all__", None)
    return given or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


@pytest.fixture(scope="module")
def config():
    mkdocs_config = pytest.importorskip("mkdocs.config", reason="mkdocs, which builds the guide, is not installed.")
    return mkdocs_config.load_config(str(ROOT / "mkdocs.yml"))


@pytest.fixture
def docs_module(monkeypatch):
    """Imports a Python file of docs/, which is no package."""
    monkeypatch.syspath_prepend(str(DOCS))

    def load(name):
        monkeypatch.delitem(sys.modules, name, raising=False)
        return importlib.import_module(name)

    return load


@pytest.fixture(scope="module")
def shown():
    """What the page of the interface shows, as Python objects."""
    names = re.findall(r"^::: (\S+)$", (DOCS / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(set(names)) == len(names)
    return [
        getattr(importlib.import_module(module), name) for module, _, name in (one.rpartition(".") for one in names)
    ]


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_is_on_the_page_of_the_interface(name, shown):
    module = importlib.import_module(f"keras_transformer.{name}")
    values = {public: getattr(module, public) for public in public_names(module)}
    # By identity: a package shows what it takes from its modules.
    assert not [public for public, value in values.items() if not any(value is one for one in shown)]


def test_the_package_has_no_public_module_that_the_tests_above_leave_out():
    import keras_transformer

    assert {name for name in keras_transformer.__all__ if name != "__version__"} <= set(MODULES)


def test_every_page_is_in_the_contents(config):
    in_contents = [page for entry in config["nav"] for page in entry.values()]
    assert sorted(in_contents) == sorted([*PAGES, "recipe.md"])


def test_pages_ask_nothing_of_other_hosts(config):
    assert config["theme"]["font"] is False
    for name in (*config["extra_css"], *config["extra_javascript"]):
        assert (DOCS / name).exists()
    for page in PAGES:
        text = (DOCS / page).read_text(encoding="utf-8")
        assert not re.search(r"!\[[^]]*\]\(https?:|<(script|img|iframe|link)\b", text), page


def test_page_of_recipe_options_has_every_option_and_every_recipe(docs_module):
    pytest.importorskip("griffe", reason="mkdocstrings, which builds the guide, is not installed.")
    page = docs_module("hooks").recipe_page()
    for section, field in Recipe.model_fields.items():
        if section != "model":
            for option in field.annotation.model_fields:
                assert re.search(rf"^ +(# )?{option}:", page, re.MULTILINE), f"{section}.{option}"
    for option in TransformerConfig(vocabulary_size=1).to_dict():
        if not option.endswith("vocabulary_size"):
            assert f"  # {option}: " in page, option
    for name in RECIPES:
        assert f"### {name}\n" in page


def test_pictures_are_those_that_the_script_draws_and_small(docs_module, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib, which draws the pictures, is not installed.")
    script = docs_module("draw_pictures")
    script.draw(tmp_path)
    of_benchmarks = ("performance_", "why_attention_")  # Which measured what they show.
    committed = sorted(path.name for path in script.FOLDER.iterdir() if not path.name.startswith(of_benchmarks))
    assert committed == sorted(path.name for path in tmp_path.iterdir()) == sorted(script.PICTURES)
    for name in committed:
        assert (script.FOLDER / name).stat().st_size < LARGEST_PICTURE
        if name.endswith(".svg"):  # Coordinates differ with matplotlib's version, what is written there does not.
            drawn, kept = (_texts(folder / name) for folder in (tmp_path, script.FOLDER))
            assert drawn == kept and drawn


def _texts(path):
    return re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text(encoding="utf-8"))


def test_every_picture_is_shown_and_described():
    texts = [(DOCS / page).read_text(encoding="utf-8") for page in PAGES]
    shown = [picture for text in texts for picture in re.findall(r"!\[([^]]+)\]\(pictures/([^)]+)\)", text)]
    assert {name for _, name in shown} == {path.name for path in (DOCS / "pictures").iterdir()}


def test_the_page_in_chinese_has_the_headings_formulas_and_examples_of_the_one_in_english(docs_module):
    english, chinese = ((DOCS / name).read_text(encoding="utf-8") for name in ("paper.md", "paper.zh.md"))
    blocks = re.compile(r"^```(?:python|text)\n.*?^```", re.MULTILINE | re.DOTALL)
    assert blocks.findall(chinese) == blocks.findall(english)
    assert chinese.count("\n## ") == english.count("\n## ")
    assert re.findall(r"\]\(([^)]+)\)", chinese) == re.findall(r"\]\(([^)]+)\)", english)


@pytest.mark.parametrize("page", PAGES)
def test_files_and_commands_that_a_page_names_are_there(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    for path in re.findall(r"`((?:keras_transformer|training|tests|saved_models|docs)/[\w./-]+)`", text):
        assert (ROOT / path).exists() or path.startswith(("saved_models/mine", "saved_models/demo")), path
    from keras_transformer.cli.app import app

    names = {command.name or command.callback.__name__ for command in app.registered_commands}
    names |= {group.name for group in app.registered_groups}
    assert set(re.findall(r"keras-transformer ([a-z]+)", text)) <= names
