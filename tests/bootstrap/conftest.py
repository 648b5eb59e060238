"""The items that are resampled."""

import pytest
from resamples import problem


@pytest.fixture(scope="session")
def data():
    return problem()
