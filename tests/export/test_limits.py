import pytest

from keras_transformer.export import ServingLimits


@pytest.mark.parametrize("name", ["max_beam_size", "max_source_length", "max_length", "cells"])
@pytest.mark.parametrize("value", [0, -1, 2.5, "8", True, None])
def test_limits_are_whole_numbers_of_at_least_1(name, value):
    with pytest.raises(ValueError, match=f"`{name}` must be a whole number of at least 1. Received: {name}="):
        ServingLimits(**{name: value})


def test_limits_have_limits():
    for limits in ({"max_beam_size": 10_001}, {"max_length": 10**9}, {"cells": 2**31}):
        with pytest.raises(ValueError, match=f"`{next(iter(limits))}` must be at most .* Received: "):
            ServingLimits(**limits)
