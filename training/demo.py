"""Trains a model on the embedded phrasebook, Chinese and French to English, and translates what it never saw.

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

RUN = Path("runs") / "demo"
FAMOUS = ("我爱水课", "Jane visite l'Afrique en septembre")


def main():
    """Trains, unless it is done, and prints."""
    # A process of its own, as a user would start it: the command sets its memory up before TensorFlow starts.
    command = [sys.executable, "-m", "keras_transformer", "train", "demo", "--to", str(RUN)]
    status = subprocess.run(command).returncode
    if status:
        sys.exit(status)
    held_out = [pair for language in ("zh", "fr") for pair in phrasebook(language, "validation")]
    seen = {source for language in ("zh", "fr") for source, _ in phrasebook(language, "train")}
    famous = [pair for pair in held_out if pair[0] in FAMOUS]
    examples = [pair for pair in famous + held_out[::97] if pair[0] not in seen]
    translations = Translator.from_preset(RUN).translate([source for source, _ in examples])
    print(f"\nHeld-out {read_json(RUN / 'scores.json')['validation']['bleu']['value']:.1f} BLEU. Never in training:")
    for (source, reference), translation in zip(examples, translations, strict=True):
        remark = "" if translation.text == reference else f"   (reference: {reference})"
        print(f"  {source}  ->  {translation}{remark}")


if __name__ == "__main__":
    main()
