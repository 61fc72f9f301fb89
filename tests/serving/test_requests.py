"""Requests of every kind, odd and wrong ones: each has its answer, or an error that names what is wrong with it."""

import base64

import numpy as np
import pytest
import requests

pytest.importorskip("tensorflow_serving", reason="the server needs tensorflow-serving-api")
pytest.importorskip("tensorflow_text", reason="the tokenizer needs tensorflow-text")

import grpc

from keras_transformer.client import TranslationClient
from tests.serving.raw import OPTIONS, OUTPUTS, WAIT, decoded, grpc_predict, rest_predict, rows, texts_and_scores

BLANK = ["", " ", "\n", "\u200b", "-", "Hello"]
ODD = ["a\0b", "</s>", "<unk>", "<pad> <s>", "▁", "\ufffd", "水" * 30_000, "a " * 50_000, "\r", "x\ry\r\nz"]


def test_a_served_translator_says_what_it_says_in_python(served, transport):
    translator, server = served
    texts = ["我爱水课。", "", "你好\n\r\n我们想去北京。", "Hello </s>"]
    options = {
        "beam_size": [3, 1, 4, 2],
        "n_best": [2, 1, 4, 1],
        "max_length": 9,
        "target_prefix": ["I", "", "", "a b"],
    }
    with TranslationClient(server.address[transport], "small", timeout=WAIT) as client:
        assert client.is_ready()
        for found, expected in (
            (client.translate(texts), translator.translate(texts)),
            (client.translate(texts, **options), translator.translate(texts, **options)),
        ):
            assert [[one.text for one in row.n_best] for row in found] == [
                [one.text for one in row.n_best] for row in expected
            ]
            assert [row.truncated for row in found] == [row.truncated for row in expected]
            np.testing.assert_allclose([row.score for row in found], [row.score for row in expected], atol=1e-4)
        score = client.score(texts[0], "I like")
        assert score.log_probability == pytest.approx(translator.score(texts[0], "I like").log_probability, abs=1e-4)
        attention, expected = client.attention(texts[0], "I like"), translator.attention(texts[0], "I like")
        assert (attention.source_tokens, attention.target_tokens) == (expected.source_tokens, expected.target_tokens)
        assert attention.weights.shape == (score.length, len(attention.source_tokens))
        np.testing.assert_allclose(attention.weights, expected.weights[-1].mean(axis=0), atol=1e-5)


def test_blank_texts_have_blank_translations(served, stub, transport):
    translator, server = served
    expected = translator.translate(BLANK)
    assert [one.text for one in expected[:4]] == ["", "", "\n", ""] and expected[5].text
    with TranslationClient(server.address[transport], "small", timeout=WAIT) as client:
        for options in ({}, {"beam_size": 2, "n_best": 2, "max_length": 8}):
            expected = [texts_and_scores(one) for one in translator.translate(BLANK, **options)]
            for text, (texts, scores) in zip(BLANK, expected, strict=True):
                assert texts_and_scores(client.translate(text, **options)) == (texts, pytest.approx(scores, abs=1e-4))
            found = client.translate(["", "Hello", ""], **options)
            assert [texts_and_scores(one)[0] for one in found] == [expected[number][0] for number in (0, 5, 0)]


@pytest.mark.parametrize("signature", OUTPUTS)
def test_a_request_of_no_rows_has_an_answer_of_no_rows(served, stub, signature):
    inputs = {
        "serving_default": {"text": []},
        "translate": {"text": [], **rows(OPTIONS, 0)},
        "decode": {"source_ids": np.zeros([0, 0], "int32")},
    }.get(signature, {"text": [], "target": []})
    outputs = grpc_predict(stub, signature, **inputs)
    assert outputs == {name: [] for name in OUTPUTS[signature]}
    columns = {name: value if isinstance(value, list) else value.tolist() for name, value in inputs.items()}
    if signature != "decode":  # JSON has no empty matrix.
        assert rest_predict(served[1], {"signature_name": signature, "inputs": columns}) == (200, {"outputs": outputs})
    status, answer = rest_predict(served[1], {"signature_name": signature, "instances": []})
    assert status == 400 and "No values in 'instances'" in answer["error"]


def wrong_option(message=None, **options):
    message = message or f"`{next(iter(options))}`"
    return pytest.param("translate", {"text": ["你好"], **rows(OPTIONS, 1), **options}, message, id=str(options))


BAD_REQUESTS = [
    pytest.param("serving_default", {"text": np.array(b"a", object)}, "`text` must be of shape [batch]", id="rank 0"),
    pytest.param("serving_default", {"text": [["a", "b"]]}, "`text` must be of shape [batch]", id="rank 2"),
    pytest.param(
        "translate", {"text": [["a"]], **rows(OPTIONS, 1)}, "`text` must be of shape [batch]", id="rank 2, options"
    ),
    pytest.param("serving_default", {"text": np.array([1, 2])}, "to be string but int64", id="int64 for text"),
    pytest.param("serving_default", {"text": ["a"], "beam_size": [2]}, "Sent extra: {'beam_size'}", id="extra input"),
    pytest.param("translate", {"text": ["a"], "beam_size": [2]}, "Missing but required: {", id="missing inputs"),
    pytest.param(
        "translate", {"text": ["a", "b"], **rows(OPTIONS, 1)}, "must have one entry for each text", id="1 for 2"
    ),
    pytest.param("translate", {"text": [], **rows(OPTIONS, 1)}, "must have one entry for each text", id="1 for 0"),
    pytest.param(
        "translate", {"text": ["a"], **rows(OPTIONS, 1), "beam_size": np.array([2.0])}, "to be int32", id="float"
    ),
    wrong_option(beam_size=[0]),
    wrong_option(beam_size=[-1]),
    wrong_option(beam_size=[9]),
    wrong_option(beam_size=[10**6]),
    wrong_option("`beam_size` must be of shape [batch]", beam_size=np.array(2, "int32")),
    wrong_option(n_best=[0]),
    wrong_option(n_best=[-1]),
    wrong_option(n_best=[3]),
    wrong_option(n_best=[10**6]),
    wrong_option(length_penalty=[float("nan")]),
    wrong_option(length_penalty=[float("inf")]),
    wrong_option(length_penalty=[-0.5]),
    wrong_option(length_penalty=[10**6]),
    wrong_option(max_length=[0]),
    wrong_option(max_length=[-1]),
    wrong_option(max_length=[129]),
    wrong_option(max_length=[10**6]),
    wrong_option(target_prefix=["a\nb"]),
    wrong_option("`target_prefix` must be of shape [batch]", target_prefix=[["a"]]),
    pytest.param(
        "score", {"text": ["a\nb"], "target": ["a"]}, "`text` must be text of one line", id="score, two lines"
    ),
    pytest.param("score", {"text": ["a"], "target": ["a " * 200]}, "`target` must have at most 128", id="score, long"),
    pytest.param("score", {"text": ["a"], "target": []}, "`target` must have one entry", id="score, no target"),
    pytest.param(
        "attention", {"text": ["a " * 200], "target": ["a"]}, "`text` must have at most 128", id="attention, long"
    ),
    pytest.param("decode", {"source_ids": [[700, 3]]}, "`source_ids` must be at least 0 and below 700", id="id 700"),
    pytest.param("decode", {"source_ids": [[-1, 3]]}, "`source_ids` must be at least 0", id="id -1"),
    pytest.param("decode", {"source_ids": [[0, 5, 3]]}, "Padding of `source_ids`", id="padding before"),
    pytest.param("decode", {"source_ids": [[5] * 129]}, "`source_ids` must have at most 128", id="129 ids"),
    pytest.param("decode", {"source_ids": [5, 3]}, "`source_ids` must be of shape [batch, length]", id="ids of rank 1"),
]


@pytest.mark.parametrize(("signature", "inputs", "message"), BAD_REQUESTS)
def test_bad_requests_are_invalid_arguments_and_the_next_request_works(served, stub, signature, inputs, message):
    with pytest.raises(grpc.RpcError) as raised:
        grpc_predict(stub, signature, **inputs)
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert message in raised.value.details()
    columns = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in inputs.items()}
    columns = {name: value.decode() if isinstance(value, bytes) else value for name, value in columns.items()}
    status, answer = rest_predict(served[1], {"signature_name": signature, "inputs": columns})
    if "Sent extra" not in message:  # REST passes over what a signature does not have.
        assert status == 400 and answer["error"]
    assert decoded(grpc_predict(stub, "serving_default", text=["-"])["translation"])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "JSON Parse error"),
        (b"\xff", "JSON Parse error"),
        (b"{}", "Expecting one of 'inputs' or 'instances'"),
        (b'{"inputs": {"texts": ["a"]}}', "Missing named input: text"),
        (b'{"inputs": {"text": [1]}}', "is not of expected type: string"),
        (b'{"inputs": {"text": [null]}}', "is not of expected type: string"),
        (b'{"inputs": {"text": [["a"], "b"]}}', "found at incorrect level"),
        (b'{"signature_name": "absent", "inputs": ["a"]}', 'Serving signature key "absent" not found'),
        (b'{"signature_name": "translate", "instances": ["a"]}', "expecting list of objects"),
    ],
)
def test_bad_json_is_refused(served, body, message):
    answer = requests.post(f"{served[1].address['REST']}/v1/models/small:predict", data=body, timeout=WAIT)
    assert answer.status_code == 400 and message in answer.json()["error"]


@pytest.fixture(scope="module")
def odd_translations(served):
    return served[0].translate(ODD, beam_size=2, max_length=8)


def test_odd_texts_are_translated_as_in_python(served, odd_translations, transport):
    with TranslationClient(served[1].address[transport], "small", timeout=WAIT) as client:
        for text, expected in zip(ODD, odd_translations, strict=True):
            found = client.translate(text, beam_size=2, max_length=8)
            assert (found.text, found.score) == (expected.text, pytest.approx(expected.score, abs=1e-4)), text[:20]
            assert found.truncated == (expected.truncated or len(text) > 1000)


def test_bytes_that_are_no_utf8_are_replaced(served, stub):
    broken = np.array([b"\xff\xfe", b"ab\xe6\xb0", "\ud800".encode("utf-8", "surrogatepass")], object)
    replaced = [text.decode("utf-8", "replace") for text in broken]
    outputs = grpc_predict(stub, "translate", text=broken, **rows(OPTIONS, 3))
    expected = grpc_predict(stub, "translate", text=replaced, **rows(OPTIONS, 3))
    assert [decoded(row) for row in outputs["translations"]][:2] == [decoded(row) for row in expected["translations"]][
        :2
    ]
    outputs = grpc_predict(stub, "translate", text=["你好"] * 3, **{**rows(OPTIONS, 3), "target_prefix": broken})
    assert all(decoded(row) for row in outputs["translations"])
    encoded = [{"b64": base64.b64encode(text).decode()} for text in broken]
    status, answer = rest_predict(served[1], {"inputs": {"text": encoded}})
    assert status == 200 and len(answer["outputs"]["translation"]) == 3
