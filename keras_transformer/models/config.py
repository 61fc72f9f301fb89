"""The shape of a model: every column of Table 3 of "Attention Is All You Need", and a little more."""

from __future__ import annotations

import dataclasses
import difflib
from typing import Any

import keras

from keras_transformer._checks import (
    check_above_zero,
    check_bool,
    check_choice,
    check_learned_positions,
    check_positive,
    check_rate,
)
from keras_transformer.layers.positional_embedding import POSITIONS, SINUSOID_LAYOUTS

TIE_EMBEDDINGS = ("all", "target", "none")

# The sizes that people ask for by name. Everything else has the paper's values.
PRESETS: dict[str, dict[str, Any]] = {
    # The Multi30k baseline of Wu et al. (2021), "Good for Misconceived Reasons".
    "tiny": {
        "encoder_layers": 4,
        "decoder_layers": 4,
        "model_dim": 128,
        "intermediate_dim": 256,
        "num_heads": 4,
        "dropout": 0.3,
    },
    "small": {"model_dim": 256, "intermediate_dim": 1024, "num_heads": 4},
    "base": {},
    "big": {"model_dim": 1024, "intermediate_dim": 4096, "num_heads": 16, "dropout": 0.3},
}


@dataclasses.dataclass(frozen=True)
class TransformerConfig:
    """What `transformer` builds a model from. The defaults are the paper's base model.

    Attributes:
        vocabulary_size: Token ids of the source language, or of both where `target_vocabulary_size` is None, V. Id 0
            is padding.
        target_vocabulary_size: Token ids of the target language, where it has a vocabulary of its own.
        encoder_layers: Number of encoder blocks, N.
        decoder_layers: Number of decoder blocks, N.
        model_dim: Width of the model, D.
        intermediate_dim: Width of the feed-forward networks, F.
        num_heads: Attention heads, H.
        key_dim: Width of queries and keys in each head, K. None means D / H.
        value_dim: Width of values in each head. None means `key_dim`.
        dropout: Share dropped of each sub-layer's output and of the sums of embeddings and positions (section 5.4).
        attention_dropout: Share of attention weights dropped.
        activation_dropout: Share of the feed-forward networks' activations dropped.
        activation: Name of a Keras activation, for the feed-forward networks.
        gated: Whether the feed-forward networks are gated, see `FeedForward`.
        use_bias: Whether attention and feed-forward networks have biases.
        normalize_first: Pre-norm instead of the paper's post-norm, with one more normalisation after each stack.
        layer_norm_epsilon: Added to the variance in layer normalisation.
        positions: `"sinusoidal"` or `"learned"`.
        max_length: Number of learned positions; None for sinusoids, which have no end.
        sinusoid_layout: `"interleaved"` or `"halves"`, see `PositionalEmbedding`.
        tie_embeddings: `"all"`: source embedding, target embedding and output projection are one matrix (section 3.4);
            needs one vocabulary for both languages. `"target"`: the latter two are. `"none"`: none are. Embeddings
            that are tied share learned positions as well.

    Raises:
        ValueError: If a field is out of range or fields do not fit together; the message names the field.

    Example:
        ```python
        from keras_transformer.models import TransformerConfig

        config = TransformerConfig.from_preset("tiny", vocabulary_size=8000, dropout=0.1)
        assert TransformerConfig.from_dict(config.to_dict()) == config
        ```
    """

    vocabulary_size: int
    target_vocabulary_size: int | None = None
    encoder_layers: int = 6
    decoder_layers: int = 6
    model_dim: int = 512
    intermediate_dim: int = 2048
    num_heads: int = 8
    key_dim: int | None = None
    value_dim: int | None = None
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    activation: str = "relu"
    gated: bool = False
    use_bias: bool = True
    normalize_first: bool = False
    layer_norm_epsilon: float = 1e-6
    positions: str = "sinusoidal"
    max_length: int | None = None
    sinusoid_layout: str = "interleaved"
    tie_embeddings: str = "all"

    def __post_init__(self):
        for field in dataclasses.fields(self):
            name, value = field.name, getattr(self, field.name)
            if field.type == "int" or (field.type == "int | None" and value is not None):
                value = check_positive(name, value)
            elif name.endswith("dropout"):
                value = check_rate(name, value)
            elif name == "layer_norm_epsilon":
                value = check_above_zero(name, value)
            elif field.type == "bool":
                value = check_bool(name, value)
            object.__setattr__(self, name, value)  # NumPy's numbers are Python's from here on, and fit for JSON.
        check_choice("positions", self.positions, POSITIONS)
        check_choice("sinusoid_layout", self.sinusoid_layout, SINUSOID_LAYOUTS)
        check_choice("tie_embeddings", self.tie_embeddings, TIE_EMBEDDINGS)
        self._check_activation()
        check_learned_positions(self.positions, self.max_length)
        self._check_fit()

    def _check_activation(self):
        try:
            known = isinstance(self.activation, str) and keras.activations.get(self.activation) is not None
        except ValueError:
            known = False
        if not known:
            raise ValueError(
                f"`activation` must be the name of a Keras activation. Received: activation={self.activation!r}"
            )

    def _check_fit(self):
        if self.key_dim is None and self.model_dim % self.num_heads:
            raise ValueError(
                "Without `key_dim`, `model_dim` must be a multiple of `num_heads`. "
                f"Received: model_dim={self.model_dim}, num_heads={self.num_heads}"
            )
        if self.tie_embeddings == "all" and self.target_vocabulary_size is not None:
            raise ValueError(
                '`tie_embeddings="all"` needs one vocabulary for both languages: leave `target_vocabulary_size` out '
                f'or say tie_embeddings="target". Received: target_vocabulary_size={self.target_vocabulary_size!r}'
            )

    @classmethod
    def from_preset(cls, preset: str, vocabulary_size: int, **overrides) -> TransformerConfig:
        """The config of a named size.

        Args:
            preset: `"tiny"`, `"small"`, `"base"` or `"big"`. The latter two are the paper's, which counts 65M and 213M
                parameters; 40,500 tokens give 65M and 218M.
            vocabulary_size: V.
            **overrides: Any other field.

        Raises:
            ValueError: If there is no such preset, or as the class says.
        """
        check_choice("preset", preset, tuple(PRESETS))
        return cls.from_dict({**PRESETS[preset], "vocabulary_size": vocabulary_size, **overrides})

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> TransformerConfig:
        """The config with these fields, what `to_dict` gave.

        Raises:
            ValueError: If a field is unknown (the message names the nearest one) or `vocabulary_size` is missing, or as
                the class says.
        """
        known = [field.name for field in dataclasses.fields(cls)]
        for name in fields:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f" Did you mean {near[0]!r}?" if near else ""
                raise ValueError(f"TransformerConfig has no field {name!r}.{hint} Received: {name}={fields[name]!r}")
        if "vocabulary_size" not in fields:
            raise ValueError(f"TransformerConfig needs `vocabulary_size`. Received: fields {sorted(fields)}")
        return cls(**fields)

    def to_dict(self) -> dict[str, Any]:
        """All fields, ready for JSON."""
        return dataclasses.asdict(self)
