"""The models that are compared."""

import numpy as np
import pytest
from comparing import N

import jaxmetrics as jm
from jaxmetrics.inference import _comparison
from jaxmetrics.inference._influence.covariance import Covariance


@pytest.fixture(scope="session")
def data():
    """Four models, of which the last says the same as the first in another unit, and labels."""
    rng = np.random.default_rng(2)
    labels = np.arange(N) % 10 < 3
    common = rng.normal(size=N) + 1.2 * labels
    scores = common + np.array([0.2, 0.6, 4.0])[:, None] * rng.normal(size=(3, N))
    scores = scores.round(1)
    return np.stack([*scores, np.exp(scores[0])]), labels


@pytest.fixture(scope="session")
def compared(data):
    return jm.compare(jm.roc_auc, *data)


@pytest.fixture
def from_moments(data, monkeypatch):
    """The comparison of models whose metrics have these values and are equally correlated."""
    covariance = 0.3 * np.eye(4) + 0.7

    def compare(estimate, **options):
        # Of so many items that t is normal.
        sizes = (np.float64(1e12),) * 3
        parts = np.stack([covariance, covariance * 0])
        known = Covariance(covariance, parts, sizes, np.float64(0))
        found = np.asarray(estimate, float), known
        monkeypatch.setattr(_comparison, "covariance_of", lambda *_: found)
        return jm.compare(jm.roc_auc, *data, **options)

    return compare
