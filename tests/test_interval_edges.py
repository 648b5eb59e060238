"""Intervals of samples at an edge hold the truths that such samples come from.

A perfect sample may lack the rare positives that lie below all negatives, and likewise a reversed
one, or one whose scores all tie. A share of rare items is missing from a sample of n with the
probability (1 - share)^n: where that is 0.11, the interval must hold the true value.
"""

import warnings
from functools import partial

import numpy as np
import pytest
from scipy import integrate

import jaxmetrics as jm
from benchmarks import setups
from benchmarks.populations import Continuous, Mixture, Population

LIMIT, MISSING = 0.1, 0.11
METRICS = {
    "auc": jm.roc_auc,
    "partial area": partial(jm.partial_auc, max_fpr=LIMIT, scale="range"),
    "average precision": jm.average_precision,
    "recall": partial(jm.recall_at_fpr, max_fpr=LIMIT),
}
SIZES = [(3, 3), (5, 50), (10, 10), (20, 20), (50, 50), (200, 200), (20, 2000), (200, 10), (200, 3)]
SAMPLES = ("perfect", "reversed", "tied")


def precision_of(odds, start=0.0):
    """The mean of t / (t + odds) over t from `start` to 1."""
    return integrate.quad(lambda t: t / (t + odds), start, 1)[0]


def truths(name, kind, sizes):
    """Where a share e of the positives, or d of the negatives, is the other way round."""
    n1, n0 = sizes
    e, d = (1 - MISSING ** (1 / n) for n in sizes)
    odds = n0 / n1
    if name == "recall":  # of few negatives above all positives it does not depend
        return {"perfect": [1 - e], "reversed": [e], "tied": [e]}[kind]
    if name == "auc":
        tied = [0.5 + x / 2 for x in (e, -e, d, -d)]
        return {"perfect": [1 - e, 1 - d], "reversed": [e, d], "tied": tied}[kind]
    if name == "partial area":
        perfect = [1 - e, max(1 - d / LIMIT, 0)]
        perfect = perfect if n0 * LIMIT >= 3 else perfect[:1]  # with fewer a warning is given
        return {"perfect": perfect, "reversed": [e], "tied": [e + (1 - e) * LIMIT / 2]}[kind]
    if kind == "perfect":
        return [1 - e + precision_of(odds, 1 - e), precision_of(odds * d)]
    if kind == "reversed":
        return [e + precision_of(odds, e), precision_of(odds * (1 - d))]
    share = 1 / (1 + odds)
    below = (1 - e) * (1 - e) / (1 - e + odds) + e * share
    return [e + (1 - e) * share, below, 1 / (1 + odds * (1 - d)), share]


@pytest.mark.parametrize("kind", SAMPLES)
@pytest.mark.parametrize("name", METRICS)
def test_what_a_sample_may_lack_is_within(name, kind):
    for n1, n0 in SIZES:
        labels = np.arange(n1 + n0) < n1
        scores = {"perfect": -1.0, "reversed": 1.0, "tied": 0.0}[kind] * np.arange(n1 + n0)
        with warnings.catch_warnings(action="ignore"):
            found = jm.confidence_interval(METRICS[name], scores.astype("float32"), labels)
        for value in truths(name, kind, (n1, n0)):
            assert found.low - 1e-6 <= value <= found.high + 1e-6, (n1, n0, value, str(found))


def test_ranges_of_average_precision():
    """It is never below that of reversed scores, whatever the sample."""
    rng = np.random.default_rng(0)
    for n1, n0 in SIZES[3:]:
        labels = np.arange(n1 + n0) < n1
        scores = rng.normal(size=(20, n1 + n0)).astype("float32") - labels
        with warnings.catch_warnings(action="ignore"):
            low = jm.confidence_interval(jm.average_precision, scores, labels).low
        assert low.min() >= precision_of(n0 / n1) - 1e-6


def _uniform(start):
    return Continuous(setups.stats.uniform(start, 0.9))


class _Negatives(Mixture):
    not_below = Mixture.upper


# A few of one class above, or below, all of the other one.
REVERSED = Population("reversed", Mixture(0.02, _uniform(0), _uniform(2)), _uniform(1), False)
PERFECT = Population("perfect", _uniform(1), _Negatives(0.02, _uniform(0), _uniform(2)), False)


@pytest.mark.parametrize("population", [REVERSED, PERFECT])
def test_coverage_of_average_precision_near_its_ends(population):
    e, n = 0.02, 50
    truth = e + precision_of(1, e) if population is REVERSED else precision_of(e)
    data = setups.Runs(*population.draw(np.random.default_rng(0), 1000, n, n))
    with np.errstate(all="ignore"):
        moments, numbers = setups.curve_moments.of_average_precision(data)
        low, high = setups.precision.average_precision(moments, np.float64(0.95), numbers)
    assert np.mean((low <= truth) & (truth <= high)) > 0.93


def test_positives_without_an_amount_do_not_change_recall_by_amount():
    """The command counts a missing amount as 0, which leaves its positive out of this metric."""
    rng = np.random.default_rng(3)
    labels = np.arange(200) % 4 == 0
    scores = rng.normal(size=(2, 200)) + labels
    amounts = np.where(labels, rng.lognormal(size=200), 0)
    amounts[:60] = 0
    kept = ~labels | (amounts > 0)
    recall = partial(jm.recall_at_fpr, max_fpr=0.1)
    for ask in (jm.confidence_interval, jm.compare):
        found = ask(recall, scores, labels, amounts=amounts)
        alone = ask(recall, scores[:, kept], labels[kept], amounts=amounts[kept])
        for name in ("estimate", "low", "high", "standard_error"):
            np.testing.assert_allclose(getattr(found, name), getattr(alone, name), rtol=1e-5)
