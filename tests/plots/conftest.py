"""Axes, and what is drawn into them."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.metrics import roc_curve

import jaxmetrics as jm


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture
def problem(rng):
    labels = rng.random(300) < 0.3
    return np.round(rng.normal(size=(2, 300)) + labels * [[1.0], [2.0]], 1), labels


@pytest.fixture
def band(problem):
    scores, labels = problem
    grid = np.array([0.001, 0.05, 0.1, 0.5, 1.0])
    curves = [roc_curve(labels, x, drop_intermediate=False)[:2] for x in scores]
    tpr = np.array([np.interp(grid, *curve) for curve in curves])
    low, high = np.round(tpr - 0.1, 9), np.round(np.minimum(tpr + 0.1, 1), 9)
    return jm.RocBand(grid, tpr, low, high, low, high, 0.9)


@pytest.fixture
def rankings(rng):
    """Scores of two models, grades and queries, of which the last has nothing relevant."""
    query = rng.permutation(np.repeat(np.arange(6), 7))
    grades = rng.integers(0, 4, 42) * (query < 5)
    return rng.normal(size=(2, 42)) + grades * [[0.5], [2.0]], grades, query
