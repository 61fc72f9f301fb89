"""Decoding: from a model and source ids to target ids."""

from keras_transformer.decoding.greedy import GreedyDecoder

__all__ = ["GreedyDecoder"]
