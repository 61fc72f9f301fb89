"""`python -m keras_transformer` is `keras-transformer`."""

from keras_transformer.cli import main

main()
