"""A C program runs the exported model, as a server does: TensorFlow, one library of tensorflow-text, and no Python."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tensorflow_text", reason="the tokenizer needs tensorflow-text")

import tensorflow as tf
import tensorflow_text

from keras_transformer.data.phrasebook import phrasebook
from keras_transformer.export.inspect import read_meta_graph

SOURCE = Path(__file__).with_name("without_python.c")
LIBRARY = Path(tensorflow_text.__file__).parent / "python" / "ops" / "_sentencepiece_tokenizer.so"
TEXTS = [source for source, _ in phrasebook("zh", "validation")[:5]]
TEXTS += ["Jane visite l'Afrique", "", "\u3000", "水 👍 1."]
OPTIONS = {
    "beam_size": "int:3",
    "n_best": "int:2",
    "length_penalty": "float:1",
    "max_length": "int:12",
    "target_prefix": "string:I",
}
INVALID_ARGUMENT = 3


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    folder = Path(tf.sysconfig.get_lib())
    libraries = [folder / f"libtensorflow_{name}.so.2" for name in ("cc", "framework")]
    if not compiler:
        pytest.skip("there is no C compiler")
    if sys.platform != "linux" or not all(library.exists() for library in libraries):
        pytest.skip("this TensorFlow has no libraries for C programs")
    program = tmp_path_factory.mktemp("c") / "without_python"
    command = [compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", "-isystem", tf.sysconfig.get_include(), SOURCE]
    subprocess.run([*command, "-o", program, *libraries, f"-Wl,-rpath,{folder}"], check=True, timeout=100)
    return program


@pytest.fixture(scope="module")
def run(program, exported):
    """Runs requests, (signature, inputs, outputs), for the same texts in one process.

    Gives the exit status, a line for each error, and the values that were printed.
    """
    _, folder = exported
    signatures = read_meta_graph(folder).signature_def

    def run(texts, *requests):
        words = []
        for signature, inputs, outputs in requests:
            definition = signatures[signature]
            words += [f"{definition.inputs[name].name}={value}" for name, value in inputs.items()]
            words += [definition.outputs[name].name for name in outputs]
            words.append("run")
        process = subprocess.run(
            [program, folder, LIBRARY, *words],
            input="".join(f"{text}\n" for text in texts).encode(),
            env={"TF_CPP_MIN_LOG_LEVEL": "3"},  # Nothing of this environment, where Python would be found.
            capture_output=True,
            timeout=300,
        )
        log = process.stderr.decode()
        assert process.returncode in (0, INVALID_ARGUMENT), log
        errors = [line for line in log.splitlines() if line.startswith("request ")]  # TensorFlow writes there, too.
        return process.returncode, errors, process.stdout.decode().split("\n")[:-1]

    return run


def test_translations_are_those_of_python(run, exported):
    expected = exported[0].translate(TEXTS)
    assert len({one.text for one in expected}) >= 6
    request = "serving_default", {"text": "lines"}, ("translation", "score", "truncated")
    status, errors, values = run(TEXTS, request)
    assert (status, errors) == (0, [])
    assert values[::3] == [one.text for one in expected]
    assert [float(value) for value in values[1::3]] == pytest.approx([one.score for one in expected], abs=1e-4)
    assert values[2::3] == [str(int(one.truncated)) for one in expected]


def test_translations_with_options_are_those_of_python(run, exported):
    expected = exported[0].translate(
        TEXTS[:3], beam_size=3, n_best=2, length_penalty=1, max_length=12, target_prefix="I"
    )
    request = "translate", {"text": "lines", **OPTIONS}, ("translations", "scores", "count")
    status, errors, values = run(TEXTS[:3], request)
    assert (status, errors) == (0, [])
    for row, one in enumerate(expected):
        *texts, first, second, count = values[5 * row : 5 * row + 5]
        assert texts == [hypothesis.text for hypothesis in one.n_best]
        assert [float(first), float(second)] == pytest.approx([one.score for one in one.n_best], abs=1e-4)
        assert count == "2"


def refusals(run, expected, requests):
    """The errors of bad requests, each followed by a good one in the same session."""
    good = "serving_default", {"text": "lines"}, ["translation"]
    status, errors, values = run(TEXTS[:2], *[request for bad in requests for request in (bad, good)])
    assert status == INVALID_ARGUMENT
    numbers = [error.partition(": code 3: ")[0] for error in errors]
    assert numbers == [f"request {number}" for number in range(0, 2 * len(requests), 2)]
    assert values == [one.text for one in expected] * len(requests)
    return errors


def test_bad_options_are_refused_by_name_and_the_session_lives_on(run, exported):
    """F36."""
    wrong = {
        "beam_size": ("int:0", "int:-1", "int:17", "int:1000000"),
        "n_best": ("int:0", "int:4"),
        "length_penalty": ("float:nan", "float:-1", "float:inf"),
        "max_length": ("int:0", "int:-5", "int:1000000"),
        "target_prefix": ("string:one\ntwo",),
    }
    pairs = [(name, value) for name, values in wrong.items() for value in values]
    requests = [("translate", {"text": "lines", **OPTIONS, name: value}, ["translations"]) for name, value in pairs]
    errors = refusals(run, exported[0].translate(TEXTS[:2]), requests)
    for (name, value), error in zip(pairs, errors, strict=True):
        assert re.search(f"`{name}` must .*Received:", error), (value, error)


def test_texts_of_another_rank_are_refused_by_name_and_the_session_lives_on(run, exported):
    """Python would refuse them itself; a server feeds what came."""
    kinds = [
        ("serving_default", {}, "translation", "text"),
        ("translate", {"text": "lines", **OPTIONS}, "translations", "text"),
        ("translate", {"text": "lines", **OPTIONS}, "translations", "target_prefix"),
        ("score", {"text": "lines"}, "log_probability", "target"),
    ]
    names = [name for *_, name in kinds]
    requests = [
        (signature, {**inputs, name: value}, [output])
        for value in ("line", "matrix")
        for signature, inputs, output, name in kinds
    ]
    errors = refusals(run, exported[0].translate(TEXTS[:2]), requests)
    for name, error in zip(names * 2, errors, strict=True):
        assert re.search(f"`{name}` must .*Received: rank", error), error
