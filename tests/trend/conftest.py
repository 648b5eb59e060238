"""Items of six months, and the trend over them."""

import jax
import numpy as np
import pytest
from months import MONTHS, N

import jaxmetrics as jm


@pytest.fixture(scope="session")
def data():
    """Model 1 gets worse, and model 0 does not."""
    rng = np.random.default_rng(1)
    labels, month = rng.random(N) < 0.3, np.arange(N) % 6
    scores = rng.normal(size=(2, N)) + np.stack([1.5 + 0 * month, 2.5 - 0.5 * month]) * labels
    return scores, labels, np.array(MONTHS)[month]


@pytest.fixture(scope="session")
def found(data):
    with jax.enable_x64(True):
        slices = jm.slices(jm.roc_auc, *data)
        return slices, jm.trend(slices)
