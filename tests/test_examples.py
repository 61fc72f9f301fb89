"""Every Python example in the README and in the docstrings runs, and prints what it says it prints."""

import inspect
from pathlib import Path

import keras
import pytest
from pytest_examples import CodeExample, EvalExample, find_examples

import keras_transformer
import keras_transformer.benchmark
import keras_transformer.callbacks
import keras_transformer.checkpoints
import keras_transformer.client
import keras_transformer.data
import keras_transformer.data.phrasebook
import keras_transformer.data.public
import keras_transformer.data.tensorflow_datasets
import keras_transformer.decoding
import keras_transformer.demo
import keras_transformer.evaluate
import keras_transformer.export
import keras_transformer.text
import keras_transformer.training
import keras_transformer.visualize

ROOT = Path(__file__).parent.parent
PLACES = (ROOT / "README.md", ROOT / "training" / "README.md", ROOT / "docs", ROOT / "keras_transformer")
# The examples of the page in Chinese are those of the one in English: see test_docs.py.
EXAMPLES = [example for example in find_examples(*PLACES) if example.path.name != "paper.zh.md"]
SUBPACKAGES = (
    keras_transformer.benchmark,
    keras_transformer.callbacks,
    keras_transformer.checkpoints,
    keras_transformer.client,
    keras_transformer.data,
    keras_transformer.data.phrasebook,
    keras_transformer.data.public,
    keras_transformer.data.tensorflow_datasets,
    keras_transformer.decoding,
    keras_transformer.demo,
    keras_transformer.evaluate,
    keras_transformer.export,
    keras_transformer.text,
    keras_transformer.training,
    keras_transformer.visualize,
)


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_example_runs_and_prints_what_it_says(example: CodeExample, eval_example: EvalExample, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if example.prefix == "python":
        eval_example.run_print_check(example)
    else:
        assert example.prefix in ("sh", "json", "yaml", "text")


def public_objects():
    modules = [getattr(keras_transformer, name) for name in keras_transformer.__all__ if name != "__version__"]
    for module in (*modules, *SUBPACKAGES):
        assert module.__doc__
        for name, value in vars(module).items():
            if not name.startswith("_") and getattr(value, "__module__", "").startswith(module.__name__):
                yield f"{module.__name__}.{name}", value


@pytest.mark.parametrize(
    ("name", "value"), [*public_objects()], ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_public_name_is_documented(name, value):
    doc = inspect.getdoc(value)
    assert doc, name
    if isinstance(value, type) and issubclass(value, keras.layers.Layer) and not issubclass(value, keras.Model):
        for heading in ("Args:", "Call arguments:", "Returns:", "Raises:", "Example:"):
            assert heading in doc, (name, heading)
    for method_name, method in vars(value).items() if isinstance(value, type) else ():
        overrides = any(hasattr(base, method_name) for base in value.__mro__[1:])
        if inspect.isfunction(method) and not method_name.startswith("_") and not overrides:
            assert method.__doc__ or method_name == "call", f"{name}.{method_name}"
