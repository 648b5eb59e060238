"""The items of two classes."""

import numpy as np
import pytest


@pytest.fixture(scope="session")
def data():
    """Scores with ties and labels, of 60 positives and 140 negatives."""
    rng = np.random.default_rng(1)
    labels = np.arange(200) % 10 < 3
    return (rng.normal(size=200) + 1.2 * labels).round(1).astype("float32"), labels
