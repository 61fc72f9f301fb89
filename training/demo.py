"""Trains a model on the embedded phrasebook, exports it, translates what it never saw, and draws what it attends to.

Run it with `make demo`: a few minutes on two cores, nothing to download. Run it again, and it translates at once.
"""

import os
import subprocess
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from keras_transformer.checkpoints import read_json
from keras_transformer.data.phrasebook import phrasebook
from keras_transformer.decoding import Translator
from keras_transformer.visualize import attention_map

RUN, EXPORT = Path("runs") / "demo", Path("saved_models") / "demo"
FAMOUS = ("我爱水课", "Jane visite l'Afrique en septembre")
# All that a program needs which uses the export; TensorFlow Serving needs no program at all.
CLIENT = """
import sys
import tensorflow as tf
import tensorflow_text

translator = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
for translation in translator(text=tf.constant(sys.argv[2:]))["translation"].numpy():
    print(translation.decode())
"""


def main():
    """Trains and exports, unless it is done, and prints."""
    # Processes of their own, as a user would start them: `train` sets its memory up before TensorFlow starts.
    _run("train", "demo", "--to", RUN)
    weights, versions = RUN / "model.weights.h5", sorted(EXPORT.glob("[0-9]*"), key=lambda path: int(path.name))
    if not versions or versions[-1].stat().st_mtime < weights.stat().st_mtime:
        print(f"\nExporting to {EXPORT}", flush=True)
        _run("export", RUN, "--to", EXPORT, "--license", "Apache-2.0")
        versions = sorted(EXPORT.glob("[0-9]*"), key=lambda path: int(path.name))
    held_out = [pair for language in ("zh", "fr") for pair in phrasebook(language, "validation")]
    seen = {source for language in ("zh", "fr") for source, _ in phrasebook(language, "train")}
    famous = [pair for pair in held_out if pair[0] in FAMOUS]
    examples = [pair for pair in famous + held_out[::97] if pair[0] not in seen]
    translations = _translate(versions[-1], [source for source, _ in examples])
    print(f"\nHeld-out {read_json(RUN / 'scores.json')['validation']['bleu']['value']:.1f} BLEU. Never in training,")
    print(f"translated by {versions[-1]} in a process that has TensorFlow and tensorflow-text alone:")
    for (source, reference), translation in zip(examples, translations, strict=True):
        remark = "" if translation == reference else f"   (reference: {reference})"
        print(f"  {source}  ->  {translation}{remark}")
    picture = RUN / "attention.png"
    attention_map(Translator.from_preset(RUN).attention(FAMOUS[0])).savefig(picture)
    print(f"\nWhat {FAMOUS[0]} was translated by: {picture}. A page to try more: keras-transformer demo {RUN}")
    print("Your own two files next: keras-transformer recipe > mine.yaml, name them in it, train mine.yaml.")


def _run(*arguments):
    status = subprocess.run([sys.executable, "-m", "keras_transformer", *map(str, arguments)]).returncode
    if status:
        sys.exit(status)


def _translate(version, sources):
    command = [sys.executable, "-c", CLIENT, str(version), *sources]
    environment = {**os.environ, "PYTHONUTF8": "1"}
    process = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", env=environment)
    if process.returncode:
        sys.exit(process.returncode)
    return process.stdout.splitlines()


if __name__ == "__main__":
    main()
