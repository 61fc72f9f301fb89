"""The client against a real server, over both ways: what arrives, and what comes back."""

import numpy as np
import pytest

pytest.importorskip("tensorflow_serving", reason="the client needs tensorflow-serving-api")

from keras_transformer.client import ServedHypothesis, ServedScore, TranslationClient

TEXTS = ["你好，世界", "", "a\nb\r\n", "zero \0 byte", '"quotes" \\ and \u2028', "🦁"]


@pytest.fixture
def client(echo, transport):
    with TranslationClient(echo.address[transport], "echo", retries=0) as client:
        yield client


def test_a_text_a_list_and_an_iterator_come_back_in_their_order(client, echo):
    one = client.translate("你好")
    assert (one.text, one.score, one.truncated) == ("你好", -6.0, False)
    assert one.n_best == (ServedHypothesis("你好", -6.0, False),) and str(one) == "你好"
    for texts in (TEXTS, tuple(TEXTS), iter(TEXTS)):
        assert [one.text for one in client.translate(texts)] == TEXTS
    assert echo.requests == ["serving_default"] * 4


def test_no_text_is_no_request(client, echo):
    assert client.translate([]) == client.translate([], beam_size=2) == client.score([], []) == []
    assert not echo.requests


def test_options_of_each_text_arrive_and_n_best_has_no_padding(client, echo):
    found = client.translate(
        ["a", "b", "c"],
        beam_size=[4, 2, 8],
        n_best=np.array([2, 1, 3]),
        length_penalty=[0, 0.5, 1],
        max_length=7,
        target_prefix=("x", "", "是"),
    )
    assert [[one.text for one in row.n_best] for row in found] == [
        ["x|a|4|7|0", "x|a|4|7|1"],
        ["|b|2|7|0"],
        ["是|c|8|7|0", "是|c|8|7|1", "是|c|8|7|2"],
    ]
    assert [row.n_best[-1].score for row in found] == [-1.0, -0.5, -3.0]
    assert [one.truncated for one in found[2].n_best] == [False, True, False]
    assert [(row.text, row.score, row.truncated) for row in found] == [
        (row.n_best[0].text, row.n_best[0].score, row.n_best[0].truncated) for row in found
    ]
    assert echo.requests == ["translate"]


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ({"beam_size": 2}, "|a|2|1024|0"),
        ({"max_length": 9}, "|a|4|9|0"),
        ({"n_best": 2}, "|a|4|1024|0"),
        ({"target_prefix": "x"}, "x|a|4|1024|0"),
        ({"length_penalty": 0}, "|a|4|1024|0"),
    ],
    ids=str,
)
def test_options_that_are_not_given_have_their_defaults(client, option, expected):
    assert client.translate("a", **option).text == expected


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        (["a", b"b"], {}, "`texts` must be of type str. Received: b'b' as number 1, counted from 0"),
        (["a", None], {}, "must be of type str"),
        (b"a", {}, "`texts` must be a str"),
        (3, {}, "`texts` must be a str"),
        ("a", {"beam_size": 0}, "`beam_size` must be a whole number of at least 1. Received: beam_size=0"),
        ("a", {"beam_size": True}, "`beam_size` must be"),
        ("a", {"beam_size": 2**31}, "`beam_size` must be at most"),
        (["a", "b"], {"beam_size": [1, 2, 3]}, "`beam_size` must have one entry for each text, 2. Received: 3"),
        ("a", {"n_best": 5}, "`n_best` must be at most the `beam_size`. Received: n_best=5, beam_size=4"),
        ("a", {"max_length": 1.5}, "`max_length` must be"),
        ("a", {"length_penalty": float("nan")}, "`length_penalty` must be a number from 0 to 10. Received: .*nan"),
        ("a", {"length_penalty": "1"}, "`length_penalty` must be"),
        ("a", {"target_prefix": "a\nb"}, "`target_prefix` must be text of one line"),
        ("a", {"target_prefix": [b"a"]}, "`target_prefix` must be text of one line"),
    ],
    ids=str,
)
def test_mistakes_are_found_before_anything_is_sent(client, echo, texts, options, message):
    with pytest.raises(ValueError, match=message):
        client.translate(texts, **options)
    assert not echo.requests


def test_half_a_character_becomes_the_replacement_character(client):
    assert [one.text for one in client.translate(["a\ud800b", "\udfff", "\ud83e\udd81"])] == [
        "a\ufffdb",
        "\ufffd",
        "🦁",
    ]
    assert client.translate("a", target_prefix="\ud800").text.startswith("\ufffd|a|")


def test_pairs_are_scored_and_must_fit_together(client, echo):
    assert client.score("ab", "xyz") == ServedScore(-2.0, 3)
    assert client.score(["a", "你好"], ["", "x"]) == [ServedScore(-1.0, 0), ServedScore(-6.0, 1)]
    sent = len(echo.requests)
    for texts, targets, message in (
        ("a", ["b"], "A text goes with a text"),
        (["a"], ["b", "c"], "Each text needs one target. Received: 1 texts, 2 targets"),
        (["a"], [None], "`targets` must be of type str"),
    ):
        with pytest.raises(ValueError, match=message):
            client.score(texts, targets)
    with pytest.raises(ValueError, match="`attention` is of one text"):
        client.attention(["a"], ["b"])
    assert len(echo.requests) == sent


def test_twenty_thousand_sentences_go_in_requests_and_keep_their_order(client, echo):
    texts = [f"{number} {'水' * 100}" for number in range(20_000)]
    assert [one.text for one in client.translate(texts)] == texts
    assert len(echo.requests) == 625


def test_long_texts_go_in_requests_of_a_megabyte(client, echo):
    texts = [str(number) * 300_000 for number in range(7)]
    assert [one.text for one in client.translate(texts)] == texts
    assert len(echo.requests) == 3
    too_long = ["a" * 5_000_000, "b"]
    assert [one.text for one in client.translate(too_long)] == too_long
    assert len(echo.requests) == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"address": "localhost"}, "`address` must be host:port for gRPC or http://host:port for REST"),
        ({"address": "ftp://localhost:1"}, "`address` must be"),
        ({"address": 8500}, "`address` must be"),
        ({"address": "http://localhost:1", "credentials": "ours"}, "`credentials` are those of gRPC"),
        ({"model": ""}, "`model` must be"),
        ({"version": -1}, "`version` must be"),
        ({"timeout": 0}, "`timeout` must be"),
        ({"batch_size": 0}, "`batch_size` must be"),
        ({"retries": -1}, "`retries` must be"),
        ({"backoff": float("inf")}, "`backoff` must be"),
    ],
    ids=str,
)
def test_arguments_out_of_range_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        TranslationClient(**{"address": "localhost:1", "model": "demo", **arguments})
