"""What the tests of searches share."""

import pytest

from tests.decoding.models import shared_decoder


@pytest.fixture(scope="module")
def decoder():
    return shared_decoder()
