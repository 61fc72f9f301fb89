"""The page in a real browser, and the engines behind it: a model that says nothing sensible will do."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import numpy as np
import pytest

pytest.importorskip("tensorflow_text", reason="the tokenizer needs tensorflow-text")

import keras_transformer.demo.page as page_module
from keras_transformer.decoding import Hypothesis, Translator
from keras_transformer.demo import engine_of
from keras_transformer.text import Tokenizer
from tests.decoding.models import random_model

TEXTS = ["I love easy courses", "我爱水课", "Jane visits Africa in September"]
OPTIONS = {"beam_size": 4, "n_best": 3, "length_penalty": 0.6, "max_length": 9, "target_prefix": ""}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("preset")
    tokenizer = Tokenizer.train([*TEXTS, *TEXTS], 300, "bpe")
    Translator(random_model(300, seed=3), tokenizer).save_to_preset(folder)
    return folder


@pytest.fixture(scope="module")
def exported(preset, tmp_path_factory):
    pytest.importorskip("tensorflow_serving", reason="the export needs tensorflow-serving-api")
    folder = tmp_path_factory.mktemp("saved_models") / "courses"
    Translator.from_preset(preset).export(folder, card={"license": "none", "examples": TEXTS})
    return folder


def test_translations_and_looks_of_a_run_are_those_of_its_translator(preset):
    engine, translator = engine_of(preset), Translator.from_preset(preset)
    found, expected = engine.translate("我爱水课", **OPTIONS), translator.translate("我爱水课", **OPTIONS).n_best
    assert [(one.text, one.score, one.truncated) for one in found] == [
        (one.text, one.score, one.truncated) for one in expected
    ]
    look, attention = engine.look("我爱水课", found[0].text), translator.attention("我爱水课", found[0].text)
    np.testing.assert_allclose(look.attention["mean"], attention.weights.mean((0, 1)), atol=1e-6)
    np.testing.assert_allclose(look.attention["layer 1"], attention.weights[0].mean(0), atol=1e-6)
    score = translator.score("我爱水课", found[0].text)
    np.testing.assert_allclose(np.log(look.probabilities), score.token_log_probabilities, atol=1e-5)
    assert np.log(look.confidence) == pytest.approx(score.log_probability / len(score.tokens), rel=1e-5)


def test_an_exported_model_says_what_its_run_says(preset, exported):
    one, other = engine_of(exported), engine_of(preset)
    assert (one.title, one.examples, one.card["license"]) == ("courses", TEXTS, "none")
    found, expected = one.translate("我爱水课", **OPTIONS), other.translate("我爱水课", **OPTIONS)
    assert [(a.text, a.truncated) for a in found] == [(a.text, a.truncated) for a in expected]
    assert [a.score for a in found] == pytest.approx([a.score for a in expected], abs=1e-4)
    look, wanted = one.look("我爱水课", found[0].text), other.look("我爱水课", found[0].text)
    assert (list(look.source_tokens), list(look.target_tokens)) == (
        list(wanted.source_tokens),
        list(wanted.target_tokens),
    )
    last = list(wanted.attention.values())[-1]
    np.testing.assert_allclose(look.attention["mean"], last, atol=1e-5)
    assert look.confidence == pytest.approx(wanted.confidence, rel=1e-4) and look.probabilities is None
    with pytest.raises(ValueError, match="`beam_size` must be .* Received: 99$") as raised:
        one.translate("a", **{**OPTIONS, "beam_size": 99, "n_best": 1})
    assert "\n" not in str(raised.value) and "node" not in str(raised.value)


def test_folders_without_a_model_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"There must be a saved_model.pb.* Received: "):
        engine_of(tmp_path)


@pytest.fixture
def page(preset):
    """The address of a page that the command line opened."""
    pytest.importorskip("gradio", reason="the page needs Gradio")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "keras_transformer", "demo", str(preset), "--port", str(port)]
    process = subprocess.Popen(command, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}, stdout=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            assert process.poll() is None
            try:
                urllib.request.urlopen(address, timeout=5)
                break
            except (urllib.error.URLError, OSError):
                time.sleep(0.3)
        yield address
    finally:
        process.terminate()
        process.wait(timeout=30)


def test_visitor_translates_points_at_a_word_and_sees_the_map_change(page, preset):
    playwright = pytest.importorskip("playwright.sync_api", reason="the browser is driven by Playwright")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium")
    expected = (
        Translator.from_preset(preset).translate("我爱水课", n_best=4, max_length=12, target_prefix="I love").n_best
    )
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for width in (1200, 390):
            tab, hosts, errors = browser.new_page(viewport={"width": width, "height": 900}), set(), []
            tab.on("request", lambda request: hosts.add(request.url.split("/")[2]))  # noqa: B023
            tab.on("pageerror", lambda error: errors.append(error))  # noqa: B023
            tab.goto(page)
            tab.get_by_text("How to search").click()
            tab.get_by_label("number input for Most tokens").fill("12")
            tab.get_by_label("Begin the translation with").fill("I love")
            tab.fill("#kt-text textarea", "我爱水课")
            tab.click("#kt-translate")
            tab.wait_for_selector(".kt-look")
            shown = " ".join(tab.inner_text("#kt-best").split())
            for one in expected:
                assert " ".join(one.text.split()) in shown and f"{one.score:.3f}" in shown
            colours = "nodes => nodes.map(node => node.style.backgroundColor)"
            before = tab.eval_on_selector_all(".kt-source", colours)
            tab.hover(".kt-target >> nth=0")
            first = tab.eval_on_selector_all(".kt-source", colours)
            tab.hover(".kt-target >> nth=1")
            second = tab.eval_on_selector_all(".kt-source", colours)
            assert set(before) == {""} and len({*map(tuple, (before, first, second))}) == 3
            assert tab.get_attribute(".kt-map tr.kt-on", "data-number") == "1"
            assert tab.evaluate("document.documentElement.scrollWidth") <= width  # Nothing hangs over at the side.
            assert hosts == {page.removeprefix("http://")} and not errors
        browser.close()


def test_a_port_that_is_taken_is_one_line(preset, run_anything):
    pytest.importorskip("gradio", reason="the page needs Gradio")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        status, _, error = run_anything("demo", preset, "--port", taken.getsockname()[1])
    assert status == 2 and "Could not listen at 127.0.0.1:" in error
    assert run_anything("demo", preset, "--host", "no.such.host.invalid")[0] == 2


def test_looks_are_of_the_lines_that_the_translator_sees():
    """LF and CRLF end a line, and nothing else; blank lines are not looked at."""

    class Engine:
        def look(self, source, target):
            return source, target

    for text, expected in (
        ("a\u2028b\x0bc", {"X": ("a\u2028b\x0bc", "X")}),
        ("\n\na\n", {"X": ("a", "X")}),
        ("a\r\n\nb", {"1. X": ("a", "X"), "3. Y": ("b", "Y")}),
    ):
        found = text.replace("a\u2028b\x0bc", "X").replace("a", "X").replace("b", "Y")
        assert page_module._looks(Engine(), text, [Hypothesis(found, 0.0, False)]) == expected
