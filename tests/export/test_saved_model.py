"""The exported folder: what is in it, what it says, and that it says what `Translator` says."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.data.phrasebook import phrasebook
from keras_transformer.decoding import Translator
from keras_transformer.export import ServingLimits
from keras_transformer.export.card import read_card
from keras_transformer.export.inspect import read_meta_graph
from keras_transformer.models import TransformerConfig, transformer
from keras_transformer.text import Tokenizer
from keras_transformer.training.recipe import load_recipe
from tests.decoding.models import randomize
from tests.memory import resident_bytes

REQUESTS = int(os.environ.get("KERAS_TRANSFORMER_REQUESTS", "300"))
TEXTS = ["我爱水课。", "", "你好\n\r\n我们想去北京。\r\n", " ​", "Hello </s> <unk> 🦁", "-", "水" * 40, "a\r\n", "x\ry"]
CONTRACT = {
    "serving_default": ({"text": "string 1"}, {"translation": "string 1", "score": "float32 1", "truncated": "bool 1"}),
    "translate": (
        {
            "text": "string 1",
            "beam_size": "int32 1",
            "n_best": "int32 1",
            "length_penalty": "float32 1",
            "max_length": "int32 1",
            "target_prefix": "string 1",
        },
        {"translations": "string 2", "scores": "float32 2", "truncated": "bool 2", "count": "int32 1"},
    ),
    "decode": ({"source_ids": "int32 2"}, {"target_ids": "int32 2", "length": "int32 1", "score": "float32 1"}),
    "score": ({"text": "string 1", "target": "string 1"}, {"log_probability": "float32 1", "length": "int32 1"}),
    "attention": (
        {"text": "string 1", "target": "string 1"},
        {"source_tokens": "string 2", "target_tokens": "string 2", "attention": "float32 3"},
    ),
}


@pytest.fixture(scope="module")
def signatures(exported):
    """The signatures of the loaded export. The object that was loaded must live as long as they do."""
    loaded = tf.saved_model.load(str(exported[1]))
    signatures = dict(loaded.signatures)
    signatures["loaded"] = loaded
    return signatures


def call(function, **inputs):
    return {name: part.numpy() for name, part in function(**{k: tf.constant(v) for k, v in inputs.items()}).items()}


def decoded(strings):
    return [text.decode() for text in strings]


def request(texts, **options):
    """The inputs of `translate`; one value for all texts, or a list."""
    defaults = {"beam_size": 4, "n_best": 1, "length_penalty": 0.6, "max_length": 128, "target_prefix": ""}
    dtypes = {"length_penalty": "float32", "target_prefix": object}
    columns = {
        name: np.array(np.broadcast_to(np.array(value, dtypes.get(name, "int32")), len(texts)))
        for name, value in {**defaults, **options}.items()
    }
    return {"text": texts, **columns}


def small_translator(dim=16, vocabulary=None, tokenizer=None, **fields):
    sizes = {"encoder_layers": 1, "decoder_layers": 1, "model_dim": dim, "intermediate_dim": 32, "num_heads": 2}
    model = transformer(TransformerConfig(vocabulary or tokenizer.vocabulary_size, **{**sizes, **fields}))
    randomize(model, 4)
    return Translator(model, tokenizer)


def assert_same(one, other):
    for name, part in one.items():
        if part.dtype == "float32":
            np.testing.assert_allclose(part, other[name], atol=1e-4)
        else:
            assert part.tolist() == other[name].tolist()


def assert_equals_translator(signatures, translator, texts, **options):
    got = call(signatures["translate"], **request(texts, **options))
    python = {**options, "max_length": [None if x == 128 else x for x in request(texts, **options)["max_length"]]}
    expected = translator.translate(texts, **{"n_best": 1, **python})
    for row, one in enumerate(expected):
        count = got["count"][row]
        assert decoded(got["translations"][row, :count]) == [hypothesis.text for hypothesis in one.n_best]
        assert got["truncated"][row, :count].tolist() == [hypothesis.truncated for hypothesis in one.n_best]
        np.testing.assert_allclose(got["scores"][row, :count], [hyp.score for hyp in one.n_best], atol=1e-4)
        assert not got["scores"][row, count:].any() and not got["truncated"][row, count:].any()
        assert set(got["translations"][row, count:]) <= {b""}


def test_signatures_are_those_of_the_contract(exported):
    """Names, dtypes and ranks; nothing ends in `_bytes`, every first dimension is the batch."""
    definitions = read_meta_graph(exported[1]).signature_def
    assert {name for name in definitions if not name.startswith("__")} == set(CONTRACT)
    for name, sides in CONTRACT.items():
        for expected, found in zip(sides, (definitions[name].inputs, definitions[name].outputs), strict=True):
            specs = {key: (tf.dtypes.as_dtype(one.dtype).name, one.tensor_shape.dim) for key, one in found.items()}
            assert {key: f"{dtype} {len(dims)}" for key, (dtype, dims) in specs.items()} == expected
            assert {size.size for _, dims in specs.values() for size in dims} == {-1}


def test_serving_default_gives_what_translator_gives(exported, signatures):
    expected = exported[0].translate(TEXTS)
    got = call(signatures["serving_default"], text=TEXTS)
    assert decoded(got["translation"]) == [one.text for one in expected]
    np.testing.assert_allclose(got["score"], [one.score for one in expected], atol=1e-4)
    assert got["truncated"].tolist() == [one.truncated for one in expected]
    assert len(set(got["translation"])) > 4


@pytest.mark.parametrize(
    "options",
    [
        {"beam_size": 1},
        {"beam_size": 8, "n_best": 8, "length_penalty": 0.0},
        {
            "beam_size": [1, 2, 3, 4, 5, 6, 7, 8, 1],
            "n_best": [1, 2, 1, 3, 5, 1, 7, 2, 1],
            "length_penalty": [0, 0.6, 1, 1.5, 2, 0, 0.3, 1, 0.6],
            "max_length": [3, 128, 5, 4, 128, 2, 128, 1, 9],
            "target_prefix": ["I do", "", "We", "", "Jane", "", "", "a b c", ""],
        },
    ],
    ids=["greedy", "all of a beam", "each row its own"],
)
def test_translate_gives_what_translator_gives_with_the_options_of_each_row(exported, signatures, options):
    assert_equals_translator(signatures, exported[0], TEXTS, **options)


def test_row_does_not_depend_on_its_company(signatures):
    options = {"beam_size": [1, 3, 8, 2, 4, 5, 1, 2, 8], "n_best": [1, 2, 8, 1, 3, 1, 1, 2, 1]}
    together = call(signatures["translate"], **request(TEXTS, **options))
    for row, text in enumerate(TEXTS):
        alone = call(signatures["translate"], **request([text], **{key: value[row] for key, value in options.items()}))
        count = alone["count"][0]
        assert count == together["count"][row]
        assert alone["translations"][0, :count].tolist() == together["translations"][row, :count].tolist()
        np.testing.assert_allclose(alone["scores"][0, :count], together["scores"][row, :count], atol=1e-4)


def test_score_and_attention_are_those_of_translator(exported, signatures):
    sources, targets = ["我爱水课。", "", "你好"], ["I love easy courses.", "x", ""]
    scores = exported[0].score(sources, targets)
    got = call(signatures["score"], text=sources, target=targets)
    np.testing.assert_allclose(got["log_probability"], [one.log_probability for one in scores], atol=1e-4)
    assert got["length"].tolist() == [len(one.tokens) for one in scores]
    got = call(signatures["attention"], text=sources, target=targets)
    for row, one in enumerate(exported[0].attention(sources, targets)):
        rows, columns = len(one.target_tokens), len(one.source_tokens)
        assert decoded(got["source_tokens"][row]) == [*one.source_tokens] + [""] * (
            got["source_tokens"].shape[1] - columns
        )
        assert decoded(got["target_tokens"][row, :rows]) == [*one.target_tokens]
        np.testing.assert_allclose(got["attention"][row, :rows, :columns], one.weights[-1].mean(0), atol=1e-4)
        assert not got["attention"][row, rows:].any() and not got["attention"][row, :, columns:].any()


def test_decode_gives_the_ids_of_the_same_translations(exported, signatures):
    translator, tokenizer = exported[0], exported[0]._source
    ids = [[*tokenizer.encode(text), 3] if text else [] for text in ("我爱水课。", "", "你好")]
    padded = np.array([row + [0] * (12 - len(row)) for row in ids], "int32")
    got = call(signatures["decode"], source_ids=padded)
    for row, one in enumerate(translator.translate(["我爱水课。", "", "你好"])):
        length = got["length"][row]
        assert tuple(got["target_ids"][row, :length]) == one.token_ids
        assert not got["target_ids"][row, length:].any()
        np.testing.assert_allclose(got["score"][row], one.score, atol=1e-4)
    for wrong, message in (
        ([[0, 5, 3]], "must stand behind"),
        ([[5, 0, 3]], "must stand behind"),
        ([[5, 700, 3]], "below 700"),
        ([[-1, 3, 3]], "at least 0"),
        ([[5] * 129], "at most 128 tokens"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"source_ids.*{message}"):
            call(signatures["decode"], source_ids=np.array(wrong, "int32"))


def test_empty_batches_give_empty_results(signatures):
    for name, (inputs, outputs) in CONTRACT.items():
        dtypes = {key: spec.split() for key, spec in inputs.items()}
        empty = {key: tf.zeros([0] * int(rank), dtype) for key, (dtype, rank) in dtypes.items()}
        got = signatures[name](**empty)
        assert {key: part.shape[0] for key, part in got.items()} == dict.fromkeys(outputs, 0)


BAD_OPTIONS = [
    *(("beam_size", value) for value in (0, -1, 17, 10**6)),
    *(("n_best", value) for value in (0, -1, 5)),
    *(("length_penalty", value) for value in (float("nan"), -0.1, 11.0, float("inf"))),
    *(("max_length", value) for value in (0, -1, 129)),
    ("target_prefix", "two\nlines"),
]


@pytest.mark.parametrize(("name", "value"), BAD_OPTIONS)
def test_bad_option_is_named_and_the_next_request_works(signatures, name, value):
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"`{name}` must be"):
        call(signatures["translate"], **request(["我爱水课。", "你好"], **{name: [request([""])[name][0], value]}))
    assert call(signatures["translate"], **request(["我爱水课。"]))["count"].tolist() == [1]


def test_options_of_another_length_than_the_texts_are_named(signatures):
    for name in ("beam_size", "target_prefix"):
        inputs = request(["a", "b"])
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"`{name}` must have one entry for each text"):
            call(signatures["translate"], **{**inputs, name: inputs[name][:1]})
    for name in ("score", "attention"):
        with pytest.raises(tf.errors.InvalidArgumentError, match="`target` must have one entry for each text"):
            call(signatures[name], text=["a", "b"], target=["c"])


def test_lines_that_the_answer_would_have_no_room_for_are_refused(signatures):
    """Blank ones: they cost no search, but a place for each of the `n_best`."""
    assert call(signatures["serving_default"], text=["\n" * 20_000])["translation"][0] == b"\n" * 20_000
    with pytest.raises(tf.errors.InvalidArgumentError, match="`text` must have at most 1048576 lines"):
        call(signatures["translate"], **request(["\n" * 70_000], beam_size=16, n_best=16))


def test_score_and_attention_refuse_several_lines_and_what_is_too_long(signatures):
    for name in ("score", "attention"):
        for text, target, message in (
            ("a\nb", "c", "`text` must be text of one line"),
            ("a", "b\nc", "`target` must be text of one line"),
            ("水" * 500, "c", "`text` must have at most 128 tokens"),
            ("a", "水" * 500, "`target` must have at most 128 tokens"),
        ):
            with pytest.raises(tf.errors.InvalidArgumentError, match=message):
                call(signatures[name], text=[text], target=[target])


def test_long_text_is_cut_and_marked_and_bytes_that_are_no_text_are_replaced(exported, signatures):
    texts = [("水课 " * 12_000).encode(), b"\xff\xfe\x80", b"NUL \x00 here", "我".encode()[:2]]
    got = call(signatures["serving_default"], text=texts)
    assert got["truncated"][0]
    for text in got["translation"]:
        text.decode("utf-8")
    assert decoded(got["translation"])[1:] == [
        one.text for one in exported[0].translate([text.decode("utf-8", "replace") for text in texts[1:]])
    ]


def test_one_row_at_a_time_gives_the_same_as_all_at_once(exported, signatures, tmp_path):
    texts = TEXTS * 3
    options = {"beam_size": [1, 3, 2] * 9, "n_best": [1, 3, 1] * 9}
    folder = exported[0].export(tmp_path / "model", limits=ServingLimits(cells=1), warmup=False)
    assert_same(
        call(tf.saved_model.load(str(folder)).signatures["translate"], **request(texts, **options)),
        call(signatures["translate"], **request(texts, **options)),
    )


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="the memory of a process is read from /proc")
def test_memory_is_flat_over_many_mixed_requests(signatures, rng):
    """Good ones and bad ones, of all signatures that take text."""
    sizes = []
    for number in range(REQUESTS):
        texts = [
            "我爱水课" * int(rng.integers(0, 8)) + "\n" * int(rng.integers(0, 2)) for _ in range(rng.integers(1, 9))
        ]
        options = {"beam_size": rng.integers(1, 9, len(texts)), "max_length": int(rng.integers(1, 20))}
        call(signatures["translate"], **request(texts, **options))
        with pytest.raises(tf.errors.InvalidArgumentError):
            call(signatures["translate"], **request(texts, beam_size=0))
        pairs = {"text": ["你好"] * len(texts), "target": ["Hello " * int(rng.integers(1, 9))] * len(texts)}
        call(signatures[("score", "attention")[number % 2]], **pairs)
        if number % (REQUESTS // 10) == 0:
            sizes.append(resident_bytes())
    assert max(sizes) - sizes[3] < 16e6, sizes


WITHOUT_US = """
import json, sys
sys.modules["keras_transformer"] = None  # An import of it fails.
import numpy as np
import tensorflow as tf
import tensorflow_text

signatures = tf.saved_model.load(sys.argv[1]).signatures
requests = json.loads(sys.argv[2])
for name, inputs in requests:
    dtypes = {key: spec.dtype for key, spec in signatures[name].structured_input_signature[1].items()}
    got = signatures[name](**{key: tf.constant(value, dtypes[key]) for key, value in inputs.items()})
    print(json.dumps({key: part.numpy().tolist() for key, part in got.items()}, default=bytes.decode))
"""


def test_moved_folder_works_where_the_package_and_the_run_are_not(exported, signatures, tmp_path, run_python):
    shutil.copytree(exported[1], tmp_path / "elsewhere" / "7")
    inputs = {key: np.array(value).tolist() for key, value in request(TEXTS, beam_size=3, n_best=3).items()}
    pairs = {"text": ["我爱水课。", "你好"], "target": ["I love easy courses.", ""]}
    requests = [("serving_default", {"text": TEXTS}), ("translate", inputs), ("score", pairs), ("attention", pairs)]
    output = run_python(WITHOUT_US, tmp_path / "elsewhere" / "7", json.dumps(requests))
    lines = [line for line in output.splitlines() if line.startswith("{")]
    for (name, values), line in zip(requests, lines, strict=True):
        dtypes = {"length_penalty": "float32"}
        columns = {k: v if isinstance(v[0], str) else np.array(v, dtypes.get(k, "int32")) for k, v in values.items()}
        here = call(signatures[name], **columns)
        for key, there in json.loads(line).items():
            if here[key].dtype == object:
                assert np.vectorize(bytes.decode, otypes=[object])(here[key]).tolist() == there
            else:
                np.testing.assert_allclose(here[key], there, atol=1e-5)


def test_weights_are_stored_once_and_the_graph_is_small(tmp_path):
    """At most 1.1 times weights and tokenizer, for the smallest model of the recipes; again and again the same."""
    texts = [text for language in ("zh", "fr") for pair in phrasebook(language, "train") for text in pair]
    tokenizer = Tokenizer.train(texts, load_recipe("demo").tokenizer.vocabulary_size, "bpe")
    model = transformer(load_recipe("demo").transformer_config(tokenizer.vocabulary_size, tokenizer.vocabulary_size))
    translator = Translator(model, tokenizer)
    folders = [translator.export(tmp_path / "model") for _ in range(2)]
    assert [folder.name for folder in folders] == ["1", "2"]
    sizes = [sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) for folder in folders]
    weights = 4 * model.count_params()
    data = (folders[0] / "variables" / "variables.data-00000-of-00001").stat().st_size
    assert weights <= data < weights * 1.01
    assert sizes[0] <= 1.1 * (weights + len(tokenizer.model)) and abs(sizes[0] - sizes[1]) < 1000


def test_a_model_whose_activation_has_a_gradient_of_its_own_is_loaded_and_says_the_same(exported, tmp_path):
    translator = small_translator(tokenizer=exported[0]._source, activation="silu", gated=True)
    loaded = tf.saved_model.load(str(translator.export(tmp_path / "model", warmup=False)))
    assert_equals_translator(
        {"translate": loaded.signatures["translate"]}, translator, TEXTS, beam_size=3, max_length=20
    )


def test_nothing_of_the_machine_is_in_the_folder(exported):
    traces = [
        str(Path(__file__).parents[2]),
        sys.prefix,
        str(Path.home()),
        os.path.dirname(exported[1]),
        "site-packages",
    ]
    for file in exported[1].rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            assert not [trace for trace in traces if len(trace) > 3 and trace.encode() in content], file


def test_killed_export_leaves_no_version(exported, tmp_path):
    """The process is killed once it has begun to write."""
    exported[0].save_to_preset(tmp_path / "preset")
    code = (
        "import sys; from keras_transformer.decoding import Translator;"
        "Translator.from_preset(sys.argv[1]).export(sys.argv[2])"
    )
    folder = tmp_path / "model"
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "preset"), str(folder)])
    deadline = time.monotonic() + 120
    while not list(folder.glob(".unfinished-*/*")) and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=60)
    assert [path.name[:12] for path in folder.iterdir()] == [".unfinished-"]


def test_versions_are_numbered_and_none_is_overwritten(exported, tmp_path):
    folder = tmp_path / "model"
    for name in ("not a version", "9", "10", str(2**64)):  # The last is no number of the server's.
        (folder / name).mkdir(parents=True)
    with pytest.raises(ValueError, match="must not exist yet. Received: .*9"):
        exported[0].export(folder, version=9)
    assert exported[0].export(folder, warmup=False) == folder / "11"
    assert sorted(path.name for path in folder.iterdir()) == ["10", "11", str(2**64), "9", "not a version"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"version": 0}, "`version` must be a whole number of at least 1"),
        ({"dtype": "int8"}, "`dtype` must be one of 'float32', 'bfloat16', 'float16'"),
        ({"attention_layer": 1}, "`attention_layer` must be one of 1 layers. Received: attention_layer=1"),
        ({"version": 2**63}, "`version` must be at most"),
        ({"sampler": "top_k"}, "no sampler. Received: sampler='top_k'"),
        ({"return_scores": False}, "scores. Received: return_scores=False"),
        ({"beam_groups": 2}, "one beam. Received: beam_groups=2"),
        ({"target_prefix": "I"}, "no prefix; it comes with a request. Received: target_prefix='I'"),
        ({"beam_size": [1, 2]}, r"one value for each option. Received: beam_size=\(1, 2\)"),
        ({"beam_size": 32}, "`beam_size` must be at most the export's `max_beam_size`, 16. Received: beam_size=32"),
        ({"max_length": 500}, "`max_length` must be at most the export's `max_length`, 128. Received: max_length=500"),
        ({"beam_sise": 3}, "Did you mean 'beam_size'"),
        ({"card": ["CC0"]}, "`card` must be a dict. Received: \\['CC0'\\]"),
        ({"card": {"license": object()}}, "`card` must be made of text, numbers, lists and dicts"),
        ({"xla_buckets": (8, 4)}, "`xla_buckets` must ascend to at most 128"),
        ({"xla_buckets": (8, 256)}, "`xla_buckets` must ascend to at most 128"),
    ],
)
def test_arguments_out_of_range_are_named_and_nothing_is_written(exported, tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        exported[0].export(tmp_path / "model", **arguments)
    assert not (tmp_path / "model").exists()


def test_folder_that_cannot_be_written_is_named(exported, tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "model"):
        with pytest.raises(ValueError, match="Could not write a version to .*file is no folder"):
            exported[0].export(folder)


def test_card_says_what_the_model_is(exported):
    card = read_card(exported[1])
    assert card["name"] == "small" and card["dtype"] == "float32"
    assert card["parameters"] == exported[0]._ensemble.models[0].count_params()
    lengths = {"max_source_length": 128, "max_length": 128}
    assert card["limits"] == {"max_beam_size": 16, **lengths, "cells": 65536, "rows": 128}
    assert card["tokenizers"]["source"] == exported[0]._source.checksum
    assert set(card["signatures"]) == set(CONTRACT) and set(card["versions"]) >= {"tensorflow", "keras_transformer"}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_takes_half_the_space_and_gives_what_such_a_model_gives(exported, tmp_path, dtype):
    folder = exported[0].export(tmp_path / "model", dtype=dtype, warmup=False)
    data, whole = (path / "variables" / "variables.data-00000-of-00001" for path in (folder, exported[1]))
    assert data.stat().st_size < 0.51 * whole.stat().st_size
    config = exported[0]._ensemble.models[0].config
    model = transformer(config, dtype=dtype)
    model.set_weights(exported[0]._ensemble.models[0].get_weights())
    expected = Translator(model, exported[0]._source).translate(TEXTS[:3])
    got = call(tf.saved_model.load(str(folder)).signatures["serving_default"], text=TEXTS[:3])
    assert decoded(got["translation"]) == [one.text for one in expected]
    assert read_card(folder)["dtype"] == dtype


def test_fixed_shapes_for_xla_give_the_same_and_compile(exported, signatures, tmp_path):
    limits = ServingLimits(max_beam_size=3, max_source_length=64, max_length=32, cells=512)
    fixed = exported[0].export(tmp_path / "fixed", limits=limits, warmup=False, beam_size=3, xla_buckets=(8, 24))
    names = {
        key for function in read_meta_graph(fixed).graph_def.library.function for key in function.attr if "Xla" in key
    }
    assert "_XlaMustCompile" in names
    loaded = tf.saved_model.load(str(fixed))
    for n_best in ([1, 1, 1, 1, 1], [1, 2, 1, 1, 3]):  # Fewer than the beam gives, and as many.
        options = {"beam_size": [1, 3, 2, 1, 3], "n_best": n_best, "max_length": [20, 31, 3, 30, 9]}
        inputs = request(["我爱水课。", "", "你好\n我们", "Hello </s> 🦁", "水课水课水课"], **options)
        assert_same(call(loaded.signatures["translate"], **inputs), call(signatures["translate"], **inputs))
    assert call(loaded.signatures["serving_default"], text=["我爱水课。"])["translation"].shape == (1,)
