"""Trains a model by a recipe: `python training/train.py RECIPE [OPTIONS]` is `keras-transformer train`."""

import sys

from keras_transformer.cli import main

if __name__ == "__main__":
    sys.argv.insert(1, "train")
    main()
