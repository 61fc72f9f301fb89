"""Compares translations with those of CTranslate2 from the same weights, line by line, greedy and with a beam of 4.

    python training/benchmarks/other_engine.py runs/multi30k-en-de --source test_2016_flickr.en.gz

Needs ctranslate2. Length penalties are off, whose definitions differ. Where two lines differ, their log-probabilities
by our model tell whether it was noise.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import ctranslate2

from keras_transformer.checkpoints import load_preset
from keras_transformer.data.lines import read_lines
from keras_transformer.decoding import Translator
from keras_transformer.export import export_ctranslate2

LIMIT = 200


def main():
    """Translates with both and prints what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="folder of a run or a preset")
    parser.add_argument("--source", required=True, help="file to translate, plain or gzip")
    arguments = parser.parse_args()
    model, source, target = load_preset(arguments.run)
    texts = [line.decode("utf-8") for line in read_lines(arguments.source)]
    with tempfile.TemporaryDirectory() as folder:
        export_ctranslate2(Path(folder) / "model", model, source, target)
        engine = ctranslate2.Translator(str(Path(folder) / "model"))
        for beam_size in (1, 4):
            compare(Translator(model, source, target), engine, texts, source, target, beam_size)


def compare(translator, engine, texts, source, target, beam_size):
    """Prints how many translations are equal, and those that are not with their log-probabilities."""
    pieces = [source.pieces(source.encode(text)) for text in texts]
    options = {"beam_size": beam_size, "length_penalty": 0}
    results = engine.translate_batch(pieces, max_batch_size=64, max_decoding_length=LIMIT, disable_unk=True, **options)
    ours = translator.translate(texts, max_length=LIMIT, **options)
    ids = {piece: number for number, piece in enumerate(target.pieces(range(target.vocabulary_size)))}
    theirs = [target.decode([ids[piece] for piece in result.hypotheses[0]]) for result in results]
    differing = [i for i, text in enumerate(theirs) if text != ours[i].text]
    equal = len(texts) - len(differing)
    print(f"beam {beam_size}: {equal} of {len(texts)} translations are equal ({100 * equal / len(texts):.2f} %)")
    for i in differing:
        scores = [translator.score(texts[i], text).log_probability for text in (ours[i].text, theirs[i])]
        print(f"  line {i + 1}: {scores[0]:.4f} {ours[i].text}\n{'':9}{scores[1]:.4f} {theirs[i]}")


if __name__ == "__main__":
    sys.exit(main())
