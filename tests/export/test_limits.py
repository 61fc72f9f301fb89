import pytest

from keras_transformer.decoding.step import Ensemble
from keras_transformer.export import ServingLimits
from keras_transformer.export.fixed_shapes import FixedShapes
from keras_transformer.models import TransformerConfig, transformer


@pytest.mark.parametrize("name", ["max_beam_size", "max_source_length", "max_length", "cells", "rows"])
@pytest.mark.parametrize("value", [0, -1, 2.5, "8", True, None])
def test_limits_are_whole_numbers_of_at_least_1(name, value):
    with pytest.raises(ValueError, match=f"`{name}` must be a whole number of at least 1. Received: {name}="):
        ServingLimits(**{name: value})


def test_limits_have_limits():
    for limits in ({"max_beam_size": 10_001}, {"max_length": 10**9}, {"cells": 2**31}):
        with pytest.raises(ValueError, match=f"`{next(iter(limits))}` must be at most .* Received: "):
            ServingLimits(**limits)


@pytest.mark.parametrize(("cells", "of_a_batch"), [(4000, 1000), (1, 1)])
def test_batches_of_fixed_shapes_have_a_quarter_of_the_cells(cells, of_a_batch):
    ensemble = Ensemble([transformer(TransformerConfig.from_preset("tiny", 300, encoder_layers=1, decoder_layers=1))])
    assert FixedShapes(ensemble, ServingLimits(cells=cells), (32,)).cells == of_a_batch
