"""Runs an export under the TensorFlow of TensorFlow Serving 2.20, and compares its answers with those of this one.

    make check-serving-version                                      # a small model, exported for the purpose
    .venv/bin/python training/check_serving_version.py exports/3    # a version of yours, once make has run
    .venv/bin/python training/check_serving_version.py --record     # writes anew which operations 2.20 knows

Needs `.venv-serving`, which make makes: tensorflow and tensorflow-text 2.20, and nothing of ours.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# Both environments run this file: whatever is not in the other one is imported where it is used.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

ROOT = Path(__file__).resolve().parent.parent
SERVING_PYTHON = Path(".venv-serving") / "bin" / "python"
OPERATIONS_FILE = Path("tests") / "export" / "serving_ops_2_20.json"
# Operations that no server runs (Python's, and those of TensorFlow's own use), and that no translation is made of: for
# training, data sets, images, sound, other devices. The file would be three times as large.
NOT_RECORDED = (
    r"^_|PyFunc|>Test|Apply|Grad(V\d|With|$)|Loss|Sdca|Boosted|Candidate|Minibatch|Tpu|TPU|Embedding|Collective|Mkl"
    "|Cudnn|Risc|Xla(?!Dynamic)|Quantiz|Dataset|Iterator|Optional|Stage|Queue|Barrier|Reader|Record|Bigquery|Debug|Summary|Example"
    "|CSV|Image|Jpeg|Png|BoundingBox|NonMax|Conv|Pool|Dilation|Audio|LSTM|GRU|RNN|CTC|FFT|LRN"
)
TOLERANCE = 1e-4
TEXTS = [
    "我爱水课",
    "Jane visite l'Afrique en septembre",
    "",
    " \u3000\t",
    "水\r\n\n我喝水。\nJ'aime les cours faciles.",
    "👍 water, 1.",
    "他喝水，吃水果。" * 6,
]
OPTIONS = {
    "beam_size": [1, 2, 3, 4, 8, 16, 5],
    "n_best": [1, 2, 1, 2, 3, 4, 5],
    "length_penalty": [0.0, 0.6, 1.0, 1.0, 2.5, 0.6, 10.0],
    "max_length": [5, 1, 10, 10, 20, 1024, 30],
    "target_prefix": ["I", "", "", "", "We love", "water", "他 "],
}
LINES = [text.replace("\r", "").replace("\n", " ") for text in TEXTS]
# Every vocabulary has 4 special tokens and 256 bytes.
IDS = [[70, 80, 90, 259, 3], [0, 0, 0, 0, 0], [100, 3, 0, 0, 0]]
REQUESTS = [
    ("serving_default", {"text": TEXTS}),
    ("serving_default", {"text": TEXTS[:1]}),
    ("serving_default", {"text": []}),
    ("translate", {"text": TEXTS, **OPTIONS}),
    ("translate", {"text": TEXTS, **OPTIONS, "beam_size": [1] * 7, "n_best": [1] * 7}),
    ("translate", {"text": TEXTS, **OPTIONS, "beam_size": [4] * 6 + [0]}),
    ("translate", {"text": TEXTS, **OPTIONS, "length_penalty": [math.nan] * 7}),
    ("translate", {"text": TEXTS, **OPTIONS, "target_prefix": ["one\ntwo"] * 7}),
    ("decode", {"source_ids": IDS}),
    ("decode", {"source_ids": [[70, 0, 80]]}),
    ("score", {"text": LINES, "target": LINES[::-1]}),
    ("score", {"text": TEXTS, "target": TEXTS}),
    ("attention", {"text": LINES, "target": LINES[::-1]}),
]


def main():
    """Checks an export, or records the operations."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", help="a version folder; without it a small model is exported")
    parser.add_argument("--record", action="store_true", help=f"write {OPERATIONS_FILE}")
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)  # What the other process does.
    parser.add_argument("--print-operations", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.answer:
        print(json.dumps(answer(arguments.folder)))
    elif arguments.print_operations:
        print_operations()
    elif arguments.record:
        (ROOT / OPERATIONS_FILE).write_text(_run(_serving_python(), "--print-operations"), encoding="utf-8")
    elif arguments.folder:
        check(arguments.folder)
    else:
        with tempfile.TemporaryDirectory() as folder:
            check(export_small(Path(folder) / "small"))


def check(folder):
    """Prints what was compared; ends with status 1 and a line that says what differs, if anything does."""
    ours, theirs = (
        json.loads(_run(python, "--answer", folder)) for python in (Path(sys.executable), _serving_python())
    )
    if theirs["importable"]:
        sys.exit(f"keras_transformer must not be in {SERVING_PYTHON.parent.parent}: the check would prove nothing.")
    print(f"{ours['versions']} against {theirs['versions']}, {folder}")
    different = []
    for (name, inputs), mine, other in zip(REQUESTS, ours["answers"], theirs["answers"], strict=True):
        found, summary = compare(mine, other)
        print(f"  {name:<15} {len(next(iter(inputs.values())))} rows: {found[0] if found else summary}")
        different += [f"`{name}`: {one}" for one in found]
    if different:
        sys.exit(f"The answers differ in {len(different)} places, first in {different[0]}")
    print("All answers are equal.")


def compare(ours, theirs):
    """The differences of two answers to a request, as lines, and in a few words what was compared."""
    if isinstance(ours, str) or isinstance(theirs, str) or set(ours) != set(theirs):
        return ([] if ours == theirs else [f"{_short(ours)} against {_short(theirs)}"]), f"refused, {ours}"
    found, counts, largest = [], {"string": 0, "number": 0}, 0.0
    for name, mine in ours.items():
        other = theirs[name]
        if any(mine[key] != other[key] for key in ("dtype", "shape")):
            found.append(f"{name}, {mine['dtype']} {mine['shape']} against {other['dtype']} {other['shape']}")
            continue
        for place, (one, two) in enumerate(zip(mine["values"], other["values"], strict=True)):
            is_float = mine["dtype"] == "float32"
            counts["string" if isinstance(one, str) else "number"] += 1
            largest = max(largest, abs(one - two)) if is_float else largest
            if not (abs(one - two) <= TOLERANCE if is_float else one == two):
                found.append(f"{name}, value {place}: {one!r} against {two!r}")
    return found, f"{counts['string']} strings and {counts['number']} numbers, which differ by at most {largest:.1e}"


def answer(folder):
    """What the signatures answer in this process, with TensorFlow and tensorflow-text alone; ready for JSON."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  Has the operations.

    signatures, answers = tf.saved_model.load(folder).signatures, []
    for name, inputs in REQUESTS:
        specs = signatures[name].structured_input_signature[1]
        tensors = {key: tf.constant(value, specs[key].dtype) for key, value in inputs.items()}
        try:
            outputs = signatures[name](**tensors)
        except tf.errors.InvalidArgumentError as error:
            # Our words begin with the name of an input; TensorFlow's around them may change with its version.
            answers.append("".join(re.findall("`.*", error.message)[:1]) or error.message)
        else:
            answers.append({key: _plain(tensor) for key, tensor in outputs.items()})
    return {
        "versions": _versions(),
        "importable": importlib.util.find_spec("keras_transformer") is not None,
        "answers": answers,
    }


def export_small(folder):
    """Exports a model that says nothing sensible, but something else for each source; returns the version folder."""
    import numpy as np

    from keras_transformer.data.phrasebook import phrasebook
    from keras_transformer.decoding import Translator
    from keras_transformer.models import TransformerConfig, transformer
    from keras_transformer.text import Tokenizer

    pairs = phrasebook("zh", "train")[:300] + phrasebook("fr", "train")[:300]
    tokenizer = Tokenizer.train([text for pair in pairs for text in pair], vocabulary_size=800, model_type="bpe")
    sizes = {"encoder_layers": 2, "decoder_layers": 2, "tie_embeddings": "none"}
    model, rng = transformer(TransformerConfig.from_preset("tiny", 800, **sizes)), np.random.default_rng(1)
    for weight in model.weights:  # With Keras' initial weights a token would be followed by itself.
        if weight.path.endswith("kernel"):
            weight.assign(rng.normal(size=weight.shape) / np.sqrt(weight.shape[0]))
        elif "embedding" in weight.path:
            weight.assign(rng.normal(size=weight.shape) * 0.4)
    return Translator(model, tokenizer).export(folder)


def print_operations():
    """Prints the operations that this TensorFlow and tensorflow-text's SentencePiece know, as JSON, one a line."""
    import tensorflow as tf
    from google.protobuf.json_format import MessageToDict
    from tensorflow.python.framework.c_api_util import ApiDefMap

    text = Path(importlib.util.find_spec("tensorflow_text").origin).parent / "python" / "ops"
    tf.load_op_library(str(text / "_sentencepiece_tokenizer.so"))
    known, lines = ApiDefMap(), []
    for name in sorted(known.op_names()):
        if not re.search(NOT_RECORDED, name):
            definition = MessageToDict(known.get_op_def(name), use_integers_for_enums=True)
            used = {key: definition[key] for key in ("name", "inputArg", "outputArg", "attr") if key in definition}
            lines.append(json.dumps(used, separators=(",", ":")))
    print(f'{{"versions":"{_versions()}","op":[\n' + ",\n".join(lines) + "\n]}")


def _plain(tensor):
    values = tensor.numpy().ravel().tolist()
    if tensor.dtype.name == "string":
        values = [value.decode("utf-8") for value in values]
    return {"dtype": tensor.dtype.name, "shape": list(tensor.shape), "values": values}


def _run(python, *arguments):
    """What this file prints in another process, which sees nothing of the checkout it lies in."""
    command = [str(python), "-I", str(Path(__file__).resolve()), *map(str, arguments)]
    process = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8")
    if process.returncode:
        sys.exit(f"{python} could not do it, for the reason above: {' '.join(map(str, arguments))}")
    return process.stdout


def _serving_python():
    if not (ROOT / SERVING_PYTHON).exists():
        sys.exit(f"There is no {SERVING_PYTHON}: `make check-serving-version` makes it.")
    return ROOT / SERVING_PYTHON


def _versions():
    return " and ".join(f"{name} {importlib.metadata.version(name)}" for name in ("tensorflow", "tensorflow-text"))


def _short(answer):
    return answer if isinstance(answer, str) else f"outputs {sorted(answer)}"


if __name__ == "__main__":
    main()
