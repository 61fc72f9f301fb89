"""What a served model promises: its own answer to each request, whatever else arrives and whatever is loaded."""

import base64
import itertools
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import requests

pytest.importorskip("tensorflow_serving", reason="the server needs tensorflow-serving-api")
pytest.importorskip("tensorflow_text", reason="the tokenizer needs tensorflow-text")

import grpc
import tensorflow as tf
from tensorflow_serving.apis import get_model_metadata_pb2, prediction_service_pb2_grpc

from keras_transformer.client import TranslationClient
from keras_transformer.data.phrasebook import phrasebook
from tests.serving.raw import OPTIONS, OUTPUTS, WAIT, grpc_predict, rest_predict, rows, texts_and_scores

CALLERS, REQUESTS_OF_CALLER = 16, 20
CHOICES = (
    {},
    {"length_penalty": 0, "max_length": 7},
    {"n_best": 2, "max_length": 9},
    {"beam_size": 1, "max_length": 6},
    {"beam_size": 4, "n_best": 3, "length_penalty": 1.0, "max_length": 10},
    {"beam_size": 3, "n_best": 2, "max_length": 12, "target_prefix": "I"},
)


@pytest.fixture(scope="module")
def sentences(tokenizer):
    """Two of 1 token, two of 10 and two of 100."""
    corpus = ["".join(source for source, _ in phrasebook("zh", "validation")[start : start + 60]) for start in (0, 60)]

    def cut(text, tokens):
        return next(text[:end] for end in itertools.count(1) if len(tokenizer.encode(text[:end])) >= tokens)

    return [cut(text, tokens) for tokens in (1, 10, 100) for text in corpus]


def test_each_of_sixteen_callers_gets_its_own_answer_from_a_server_that_joins_requests(batching, sentences):
    translator, server = batching
    cases = [(text, options) for options in CHOICES for text in sentences]
    found = (translator.translate(sentences, **options) for options in CHOICES)
    expected = [texts_and_scores(one) for translations in found for one in translations]
    sent = len(server.requests)

    def call(caller):
        rng = np.random.default_rng(caller)
        with TranslationClient(server.address["gRPC" if caller % 4 else "REST"], "small", timeout=WAIT) as client:
            for number in rng.integers(len(cases), size=REQUESTS_OF_CALLER):
                text, options = cases[number]
                yield client.translate(text, **options), expected[number]

    with ThreadPoolExecutor(CALLERS) as pool:
        answers = list(itertools.chain(*pool.map(lambda caller: list(call(caller)), range(CALLERS), timeout=300)))
    assert len(answers) == CALLERS * REQUESTS_OF_CALLER == len(server.requests) - sent
    for found, (texts, scores) in answers:
        assert [one.text for one in found.n_best] == texts
        np.testing.assert_allclose([one.score for one in found.n_best], scores, atol=1e-4)
    joined = [count for count in server.version.batcher.requests_of_batches if count > 1]
    assert sum(joined) > CALLERS


def test_ids_that_the_client_has_padded_are_joined_and_others_are_not(joining_two, tokenizer):
    short, long = ([*tokenizer.encode(text), 3] for text in ("你好", "我们想去北京"))
    padded = short + [0] * (len(long) - len(short))
    with grpc.insecure_channel(joining_two.address["gRPC"]) as channel, ThreadPoolExecutor(2) as pool:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        alone = [grpc_predict(stub, "decode", source_ids=[ids, ids]) for ids in (short, long)]
        found = list(pool.map(lambda ids: grpc_predict(stub, "decode", source_ids=[ids]), (padded, long), timeout=WAIT))
        assert joining_two.version.batcher.requests_of_batches == [1, 1, 2]
        for one, expected in zip(found, alone, strict=True):
            length = expected["length"][0]
            assert one["length"] == [length] and one["target_ids"][0][:length] == expected["target_ids"][0][:length]
            assert one["score"] == pytest.approx(expected["score"][:1], abs=1e-4)
        futures = [pool.submit(grpc_predict, stub, "decode", source_ids=[ids]) for ids in (short, long)]
        codes = [future.exception(timeout=WAIT).code() for future in futures]
        assert codes == [grpc.StatusCode.FAILED_PRECONDITION] * 2


def test_a_bad_request_fails_what_was_joined_with_it_and_nothing_else(joining_two):
    """TensorFlow Serving's rule, and why the client checks options before it sends them."""
    with grpc.insecure_channel(joining_two.address["gRPC"]) as channel, ThreadPoolExecutor(2) as pool:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)

        def send(beam_size):
            return pool.submit(
                grpc_predict, stub, "translate", text=["你好"], **rows({**OPTIONS, "beam_size": beam_size}, 1)
            )

        for future in [send(2), send(9)]:
            error = future.exception(timeout=WAIT)
            assert error.code() == grpc.StatusCode.INVALID_ARGUMENT and "`beam_size`" in error.details()
        for future in [send(2), send(3)]:
            assert future.result(timeout=WAIT)["count"] == [1]


def test_rest_takes_rows_and_columns_and_base64(served):
    translator, server = served
    texts = [one.text for one in translator.translate(["你好", "Hello"])]
    encoded = {"b64": base64.b64encode("你好".encode()).decode()}
    for instances in (["你好", "Hello"], [{"text": "你好"}, {"text": "Hello"}], [encoded, "Hello"]):
        status, answer = rest_predict(server, {"instances": instances})
        assert status == 200 and [one["translation"] for one in answer["predictions"]] == texts
        assert all(set(one) == OUTPUTS["serving_default"] for one in answer["predictions"])
    for inputs in (["你好", "Hello"], {"text": ["你好", "Hello"]}, {"text": [encoded, "Hello"]}):
        status, answer = rest_predict(server, {"inputs": inputs})
        assert status == 200 and answer["outputs"]["translation"] == texts
    instances = [{"text": text, **OPTIONS} for text in ("你好", "Hello")]
    status, answer = rest_predict(server, {"signature_name": "translate", "instances": instances})
    expected = translator.translate(["你好", "Hello"], beam_size=2, max_length=8)
    assert [one["translations"] for one in answer["predictions"]] == [[one.text] for one in expected]


def test_signatures_and_versions_are_listed(served, stub):
    request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    request.model_spec.name = "small"
    signatures = get_model_metadata_pb2.SignatureDefMap()
    stub.GetModelMetadata(request, timeout=WAIT).metadata["signature_def"].Unpack(signatures)
    assert {name: set(one.outputs) for name, one in signatures.signature_def.items()} == OUTPUTS
    url = f"{served[1].address['REST']}/v1/models/small"
    metadata = requests.get(f"{url}/metadata", timeout=WAIT).json()["metadata"]["signature_def"]["signature_def"]
    assert {name: set(one["outputs"]) for name, one in metadata.items()} == OUTPUTS
    status = {"version": "1", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}
    for path in (url, f"{url}/versions/1"):
        assert requests.get(path, timeout=WAIT).json() == {"model_version_status": [status]}
    for path in (f"{url}/versions/2", f"{url}er", f"{url}/versions/2/metadata"):
        assert requests.get(path, timeout=WAIT).status_code == 404


def test_warm_up_requests_are_read_and_leave_nothing_to_prepare_for_the_first_request(served, tokenizer):
    version = served[1].version
    sizes, lengths = set(), set()
    for request in version.warmed_up_with:
        assert request.model_spec.name == "small"
        texts = tf.make_ndarray(request.inputs["text"])
        sizes.add((request.model_spec.signature_name, len(texts)))
        lengths.add(len(tokenizer.encode(texts[0].decode("utf-8"))))
    assert sizes >= {(signature, size) for signature in ("serving_default", "translate") for size in (1, 8)}
    assert max(lengths) >= 4 * min(lengths)
    prepared = dict(version.prepared)
    assert set(prepared) >= {"serving_default", "translate"}
    with TranslationClient(served[1].address["gRPC"], "small", timeout=WAIT) as client:
        assert client.translate("你好").text and client.translate("你好", max_length=8).text
    assert version.prepared == prepared


def test_a_new_version_takes_over_and_no_request_fails(start, small_model, tmp_path):
    translator, folder = small_model
    shutil.copytree(folder / "1", tmp_path / "small" / "1")
    server = start(tmp_path / "small", warmup=False)
    options = {1: {}, 2: {"max_length": 3}}
    answers = {version: translator.translate("你好", **options[version]).text for version in options}
    assert answers[1] != answers[2]
    assert translator.export(tmp_path / "small", **options[2], warmup=False).name == "2"
    seen, swapped = [], threading.Event()

    def call(transport):
        with TranslationClient(server.address[transport], "small", retries=0, timeout=WAIT) as client:
            while not swapped.is_set():
                seen.append(client.translate("你好").text)
                time.sleep(0.05)
            return client.translate("你好").text

    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(call, transport) for transport in ("gRPC", "REST")]
        try:
            deadline = time.monotonic() + WAIT
            while len(seen) < 8 and time.monotonic() < deadline:
                time.sleep(0.02)
            server.poll()
        finally:
            swapped.set()
        assert [future.result(timeout=WAIT) for future in futures] == [answers[2]] * 2
    assert set(seen) <= set(answers.values()) and seen[0] == answers[1]
    for version, status in ((1, 404), (2, 200)):
        url = f"{server.address['REST']}/v1/models/small/versions/{version}"
        assert requests.get(url, timeout=WAIT).status_code == status
