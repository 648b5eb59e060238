"""The items that are resampled."""

import pytest
from resamples import problem


@pytest.fixture(scope="module")
def data():
    return problem()
