"""Differences of recalls whose limit lies within a tie."""

from functools import partial

import numpy as np
import pytest

import jaxmetrics as jm


@pytest.mark.parametrize(
    ("method", "levels", "warns"),
    [("step", 2, True), ("quantile", 2, True), ("linear", 2, False), ("step", 50, False)],
)
def test_a_limit_within_a_tie_of_many_negatives(method, levels, warns, rng, recwarn):
    """Errors do not know of the jump there."""
    labels = np.arange(400) < 200
    scores = np.round((rng.normal(size=(2, 400)) + labels) * levels) / levels
    jm.compare(partial(jm.recall_at_fpr, max_fpr=0.1, method=method), scores, labels)
    assert any("within a tie of" in str(x.message) for x in recwarn) == warns


def test_a_tie_at_the_limit_counts_weights(rng, recwarn):
    labels = np.arange(400) < 200
    scores, some = rng.normal(size=(2, 400)) + labels, np.flatnonzero(~labels)[:60]
    metric = partial(jm.recall_at_fpr, max_fpr=0.1)
    for value, weight, warns in ((2, 1, True), (2, 0, False), (-3, 1, False), (-3, 99, True)):
        weights = np.ones(400)
        scores[:, some], weights[some] = value, weight
        jm.compare(metric, scores, labels, weights=weights)
        assert any("within a tie of" in str(x.message) for x in recwarn.list) == warns
        recwarn.clear()


@pytest.mark.parametrize(("limit", "warns"), [(0.29, True), (0.28, False)])
def test_a_tie_just_beyond_the_limit(limit, warns, recwarn):
    """Of 100 negatives 29 are within .29, though .29 times 100 is less."""
    scores = np.concatenate([np.arange(100.0, 128), [50], np.full(71, -1.0), np.arange(200.0, 250)])
    labels = np.arange(150) >= 100
    jm.compare(partial(jm.recall_at_fpr, max_fpr=limit), np.stack([scores] * 2), labels)
    assert any("within a tie of 71" in str(x.message) for x in recwarn) == warns


def test_a_tie_at_the_limit_of_every_other_of_many_negatives(rng):
    """Not every second one is looked at."""
    n = 1 << 17
    negatives = rng.normal(size=n)
    negatives[1::2] = 1.0
    scores, labels = np.append(negatives, rng.normal(size=500)), np.arange(n + 500) >= n
    with pytest.warns(UserWarning, match="within a tie of 6.... negatives"):
        jm.compare(partial(jm.recall_at_fpr, max_fpr=0.3), np.stack([scores] * 2), labels)


def test_a_tie_at_the_limit_of_another_rate(rng):
    labels = np.arange(200) < 100
    scores = np.stack([rng.normal(size=200).round(), rng.normal(size=200).round()]) + labels
    with pytest.warns(UserWarning, match="the sensitivity, 0.9, is within a tie of .* positives"):
        jm.compare(partial(jm.specificity_at_sensitivity, min_sensitivity=0.9), scores, labels)
