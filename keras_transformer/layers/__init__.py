"""The boxes of the paper's Figure 1 as Keras layers, in its order."""

from keras_transformer.layers.positional_embedding import PositionalEmbedding
from keras_transformer.layers.multi_head_attention import AttentionCache, MultiHeadAttention
from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.layers.add_norm import AddNorm
from keras_transformer.layers.encoder_block import EncoderBlock
from keras_transformer.layers.decoder_block import DecoderBlock, DecoderCache

__all__ = [
    "PositionalEmbedding",
    "MultiHeadAttention",
    "AttentionCache",
    "FeedForward",
    "AddNorm",
    "EncoderBlock",
    "DecoderBlock",
    "DecoderCache",
]
