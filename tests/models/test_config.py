import dataclasses
import json

import keras
import numpy as np
import pytest

from keras_transformer.models import TransformerConfig, transformer

VOCABULARY = 40_500  # One size that fits every row of Table 3; the paper says "about 37,000" for English-German.


@pytest.fixture(autouse=True)
def zeros(monkeypatch):
    """Weights that are counted only: of "big" there are 213 million, which take seconds to draw."""
    for initializer in (keras.initializers.GlorotUniform, keras.initializers.RandomNormal):
        monkeypatch.setattr(initializer, "__call__", lambda self, shape, dtype=None: keras.ops.zeros(shape, dtype))


def parameters(preset="base", **fields):
    return transformer(TransformerConfig.from_preset(preset, VOCABULARY, **fields)).count_params() / 1e6


@pytest.mark.parametrize(
    ("fields", "millions"),
    [
        ({}, 65),
        ({"num_heads": 1, "key_dim": 512}, 65),
        ({"num_heads": 4, "key_dim": 128}, 65),
        ({"num_heads": 16, "key_dim": 32}, 65),
        ({"num_heads": 32, "key_dim": 16}, 65),
        ({"key_dim": 16, "value_dim": 64}, 58),
        ({"key_dim": 32, "value_dim": 64}, 60),
        ({"encoder_layers": 2, "decoder_layers": 2}, 36),
        ({"encoder_layers": 4, "decoder_layers": 4}, 50),
        ({"encoder_layers": 8, "decoder_layers": 8}, 80),
        ({"model_dim": 256, "key_dim": 32}, 28),
        ({"model_dim": 1024, "key_dim": 128}, 168),
        ({"intermediate_dim": 1024}, 53),
        ({"intermediate_dim": 4096}, 90),
        ({"dropout": 0.0}, 65),
        ({"positions": "learned", "max_length": 256}, 65),
        ({"preset": "big"}, 213),
    ],
    ids=str,
)
def test_every_row_of_table_3_has_the_papers_number_of_parameters(fields, millions):
    assert parameters(**fields) == pytest.approx(millions, rel=0.03)


def test_presets_are_the_documented_sizes():
    tiny = TransformerConfig.from_preset("tiny", 10_000)
    assert (tiny.encoder_layers, tiny.decoder_layers, tiny.model_dim, tiny.intermediate_dim, tiny.num_heads) == (
        *(4, 4, 128, 256, 4),
    )
    assert parameters("tiny") < parameters("small") < parameters("base") < parameters("big")
    assert TransformerConfig.from_preset("base", 100) == TransformerConfig(100)


def test_config_round_trip_through_json():
    config = TransformerConfig.from_preset("small", 100, target_vocabulary_size=90, tie_embeddings="target")
    assert TransformerConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_numbers_of_numpy_become_pythons():
    config = TransformerConfig(np.int64(100), dropout=np.float32(0.5), layer_norm_epsilon=np.float32(1e-5))
    assert json.loads(json.dumps(config.to_dict()))["vocabulary_size"] == 100
    assert transformer(dataclasses.replace(config, model_dim=8, encoder_layers=1, decoder_layers=1)).built


def test_config_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        TransformerConfig(100).dropout = 0.5


BAD_FIELDS = [
    ("vocabulary_size", 0),
    ("vocabulary_size", None),
    ("target_vocabulary_size", -1),
    ("encoder_layers", 0),
    ("decoder_layers", 1.5),
    ("model_dim", "512"),
    ("model_dim", 30),
    ("intermediate_dim", True),
    ("num_heads", 0),
    ("key_dim", 0),
    ("value_dim", -3),
    ("dropout", 1.0),
    ("attention_dropout", float("nan")),
    ("activation_dropout", "0.1"),
    ("activation", "reluu"),
    ("activation", None),
    ("gated", "yes"),
    ("use_bias", 1),
    ("normalize_first", None),
    ("layer_norm_epsilon", 0),
    ("positions", "rotary"),
    ("max_length", 100),
    ("sinusoid_layout", ""),
    ("tie_embeddings", True),
]


@pytest.mark.parametrize(("name", "value"), BAD_FIELDS)
def test_bad_value_gets_an_error_that_names_the_field(name, value):
    with pytest.raises(ValueError, match=f"`{name}`.*Received: .*{name}="):
        TransformerConfig(**{"vocabulary_size": 100, name: value})


def test_every_field_has_a_bad_value_above():
    assert {name for name, _ in BAD_FIELDS} == {field.name for field in dataclasses.fields(TransformerConfig)}


def test_fields_that_do_not_fit_together_are_refused():
    with pytest.raises(ValueError, match="`max_length` is needed.*Received"):
        TransformerConfig(100, positions="learned")
    with pytest.raises(ValueError, match="needs one vocabulary for both languages.*Received"):
        TransformerConfig(100, target_vocabulary_size=90)


def test_unknown_names_are_refused_with_the_nearest_one():
    with pytest.raises(ValueError, match="no field 'modle_dim'. Did you mean 'model_dim'"):
        TransformerConfig.from_preset("base", 100, modle_dim=4)
    with pytest.raises(ValueError, match="'tiny', 'small', 'base', 'big'. Received: preset='huge'"):
        TransformerConfig.from_preset("huge", 100)
    with pytest.raises(ValueError, match="needs `vocabulary_size`"):
        TransformerConfig.from_dict({"model_dim": 8})
