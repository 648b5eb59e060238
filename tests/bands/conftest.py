"""The items, and their bands."""

import numpy as np
import pytest
from of_bands import GRID, KEY, N

import jaxmetrics as jm


@pytest.fixture(scope="session")
def data():
    """Scores with and without ties, `[2, n]`, and labels."""
    rng = np.random.default_rng(2)
    labels = np.arange(N) % 10 < 4
    scores = rng.normal(size=N) + 1.2 * labels
    return np.stack([scores, scores.round()]), labels


@pytest.fixture(scope="session")
def band(data):
    return jm.roc_band(data[0][1], data[1], fpr=GRID)


@pytest.fixture(scope="session")
def resampled(data):
    return jm.roc_band(data[0][1], data[1], fpr=GRID, method="bootstrap", key=KEY)
