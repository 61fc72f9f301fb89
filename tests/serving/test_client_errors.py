"""What the client does, and says, where a server is absent, goes, comes, refuses or is another one."""

import http.server
import sys
import threading
import time

import pytest

pytest.importorskip("tensorflow_serving", reason="the client needs tensorflow-serving-api")

import tensorflow as tf

from keras_transformer.client import TranslationClient, TranslationError
from tests.serving.echo import export_echo


def address_of(ports, transport):
    return f"127.0.0.1:{ports[0]}" if transport == "gRPC" else f"http://127.0.0.1:{ports[1]}"


def failure(address, texts, model="echo", version=None, retries=0, backoff=0.01, timeout=60, batch_size=32, **options):
    """The error in which a client's only call ends."""
    client = TranslationClient(
        address, model, version, retries=retries, backoff=backoff, timeout=timeout, batch_size=batch_size
    )
    with client, pytest.raises(TranslationError) as raised:
        client.translate(texts, **options)
    return raised.value


def test_server_that_stops_midway_leaves_what_was_done_and_the_number_of_what_was_not(echo_folder, start, transport):
    server, stopping = start(echo_folder), []

    def stop_in_the_third(number):
        if number == 3:
            stopping.append(threading.Thread(target=server.stop))
            stopping[0].start()

    server.before_run = stop_in_the_third
    texts = [str(number) for number in range(20_000)]
    error = failure(server.address[transport], iter(texts), retries=1)
    stopping[0].join(timeout=60)
    assert error.status == "UNAVAILABLE"
    assert 64 <= error.first_untranslated == len(error.done) < 20_000
    assert [one.text for one in error.done] == texts[: error.first_untranslated]
    assert f"Text number {error.first_untranslated}, counted from 0, is the first of 20000 without a result" in str(
        error
    )
    assert server.address[transport] in str(error) and "'echo'" in str(error)


def test_server_that_starts_late_is_waited_for(echo_folder, start, transport, free_ports):
    with TranslationClient(address_of(free_ports, transport), "echo", retries=20, backoff=0.1) as client:
        assert not client.is_ready()
        late = threading.Timer(0.3, lambda: start(echo_folder, ports=free_ports))
        late.start()
        assert client.translate("你好").text == "你好"
        late.join(timeout=60)
        assert client.is_ready()


def test_server_that_comes_back_is_found_again_by_the_same_client(echo_folder, start, transport, free_ports):
    with TranslationClient(address_of(free_ports, transport), "echo", retries=20, backoff=0.05) as client:
        for text in ("once", "again"):
            server = start(echo_folder, ports=free_ports)
            assert client.translate(text).text == text
            server.stop()


def test_a_busy_server_is_asked_again(echo, transport):
    def refuse_twice(number):
        if number <= 2:
            raise tf.errors.UnavailableError(None, None, "The batch scheduling queue is full")

    echo.before_run = refuse_twice
    with TranslationClient(echo.address[transport], "echo", retries=2, backoff=0.01) as client:
        assert client.translate("a").text == "a"
        assert len(echo.requests) == 3
    echo.before_run = lambda number: refuse_twice(0)
    error = failure(echo.address[transport], "a", retries=1)
    assert "UNAVAILABLE: The batch scheduling queue is full\nNothing answered in 2 attempts" in str(error)
    assert len(echo.requests) == 5


def test_what_the_server_refuses_is_not_sent_again(echo, transport):
    texts, widths = ["a", "b", "c", "d"], [1, 2, 3, 9]
    error = failure(echo.address[transport], texts, retries=4, batch_size=2, beam_size=widths)
    assert (error.status, error.first_untranslated) == ("INVALID_ARGUMENT", 2)
    assert [one.text for one in error.done] == ["|a|1|1024|0", "|b|2|1024|0"]
    assert "`beam_size` must be at most 8. Received:" in str(error) and "{{" not in str(error)
    assert len(echo.requests) == 2


def test_an_answer_that_takes_too_long_is_not_waited_for_or_asked_for_again(echo, transport):
    done = threading.Event()
    echo.before_run = lambda number: done.wait(20)
    start = time.monotonic()
    error = failure(echo.address[transport], "a", retries=4, timeout=0.3)
    assert time.monotonic() - start < 10
    done.set()
    assert error.status == "DEADLINE_EXCEEDED" and "No answer within 0.3 s" in str(error)
    assert len(echo.requests) == 1


def test_models_versions_and_signatures_that_are_absent_are_named(echo, start, tmp_path, transport):
    address = echo.address[transport]
    for model, version in (("other", None), ("echo", 7), ("e/c h?o", None)):
        with TranslationClient(address, model, version) as client:
            assert not client.is_ready()
        error = failure(address, "a", model, version)
        assert error.status == "NOT_FOUND" and "Is a model served under this name and version?" in str(error)
        assert repr(model) in str(error) and (version is None or "version 7" in str(error))
    with TranslationClient(address, "echo", version=1) as client:
        assert client.is_ready() and client.translate("a").text == "a"
        with pytest.raises(TranslationError, match='"attention" not found'):
            client.attention("a", "b")
    stranger = start(export_echo(tmp_path / "stranger", serving_default=_doubled))
    error = failure(stranger.address[transport], "a", "stranger")
    assert "The outputs must be translation, score, truncated of 1 rows. Received: one of 1, two of 1" in str(error)


def _doubled(text: tf.string):
    return {"one": text, "two": text}


def test_where_nothing_listens_it_says_so(transport, free_ports):
    address = address_of(free_ports, transport)
    with TranslationClient(address, "demo", retries=1, backoff=0) as client:
        assert not client.is_ready()
        with pytest.raises(
            TranslationError, match="Nothing answered in 2 attempts: does a server listen there"
        ) as error:
            client.translate(["a", "b"])
    assert (error.value.status, error.value.first_untranslated, error.value.done) == ("UNAVAILABLE", 0, [])
    assert str(error.value).startswith(f"{address}, model 'demo': UNAVAILABLE: ") and transport in str(error.value)


@pytest.mark.parametrize(
    ("address", "module"), [("localhost:1", "tensorflow_serving.apis.predict_pb2"), ("http://localhost:1", "requests")]
)
def test_what_is_not_installed_is_named_with_the_way_to_get_it(monkeypatch, address, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r"pip install 'keras_transformer\[serving\]'.*" + module):
        TranslationClient(address, "demo")


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (
            200,
            b"<html>Please log in</html>",
            "UNKNOWN: The answer must be JSON with 'outputs'. Received: '<html>Please",
        ),
        (200, b'{"outputs": ["a"]}', "UNKNOWN: The answer must be JSON with 'outputs'"),
        (302, b"", "HTTP 302: Found"),
        (502, b"<html>Bad Gateway</html>", "HTTP 502: Bad Gateway"),
        (413, b"[]", "HTTP 413: "),
        (429, b'{"error": "slow down"}', "RESOURCE_EXHAUSTED: slow down"),
    ],
)
def test_answers_that_are_not_of_tensorflow_serving_are_shown(status, body, expected):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        assert f"model 'demo': {expected}" in str(failure(f"http://127.0.0.1:{server.server_port}/", "a", "demo"))
        server.shutdown()
