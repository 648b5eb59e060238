"""The study of comparisons computes what `compare` does, and sees when its rule is broken."""

import jax.numpy as jnp
import numpy as np
import pytest
from fast import marked
from scipy import stats

import jaxmetrics as jm
from benchmarks import clusters, comparisons, model_pairs
from jaxmetrics.inference import _pairs

SIZES = (14, 30)
LEVEL = 0.9


@pytest.fixture
def fresh():
    comparisons.errors_of_pairs.clear_cache()
    yield
    comparisons.errors_of_pairs.clear_cache()


def test_limits_are_those_of_compare():
    n1, n0 = SIZES
    labels = np.arange(n1 + n0) < n1
    pairs = {**model_pairs.TUNED, **model_pairs.HELD_OUT}
    names = ["binormal 0.9, 0.8; r = 0.5", "whole numbers; 0.9, 0.9", "one misses 5 %"]
    scores = [pairs[name].draw(np.random.default_rng(3), (2, n1, n0)) for name in names]
    scores = np.concatenate([*scores, np.broadcast_to(labels * [[1], [2]], (1, 2, n1 + n0))])
    difference, methods = comparisons.limits_of(scores, n1)
    error, df = methods["compare"]
    margin = comparisons.quantile(LEVEL, df) * error
    for i, models in enumerate(scores):
        found = jm.compare(jm.roc_auc, models, labels, confidence_level=LEVEL)
        limits = difference[i] - margin[i], difference[i] + margin[i]
        expected = found.low[0, 1], found.high[0, 1]
        np.testing.assert_allclose(limits, expected, rtol=1e-5, atol=1e-6)
        delong = methods["DeLong"][0][i]
        np.testing.assert_allclose(delong, found.standard_error[0, 1], rtol=1e-5, atol=1e-6)


def test_perfect_models_may_differ():
    labels = np.arange(44) < 14
    found = jm.compare(jm.roc_auc, np.stack([labels * 1, labels * 2]), labels)
    np.testing.assert_array_equal(found.difference, 0)
    np.testing.assert_array_equal(found.p_value, 1)
    assert 0.05 < found.high[0, 1] < 0.5
    np.testing.assert_array_equal(np.diagonal(found.high), 0)
    np.testing.assert_allclose(found.low, -found.high)


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("overlap, one misses 10 %", 0.1),
        marked("overlap, one flags 5 % of negatives", 0.05, fast=False),
    ],
)
def test_alarms_and_misses_have_their_truth(name, share):
    # Scores of the classes that differ by N(2, 1); a share of them by N(-4, 1).
    auc = stats.norm.cdf(2 / np.sqrt(2))
    other = (1 - share) * auc + share * stats.norm.cdf(-4 / np.sqrt(2))
    truth = model_pairs.HELD_OUT[name].truth()
    np.testing.assert_allclose(truth, auc - other, atol=1e-3)


def coverage_of(pair, sizes, level, simulations=400):
    cells = comparisons.cells_of("seed", pair, (sizes,), simulations)
    return next(c.coverage for c in cells if (c.level, c.method) == (level, "compare"))


CASES = {
    "disagreements": (model_pairs.TUNED["binormal 0.99, 0.9; r = 0.5"], (20, 100), 0.95),
    # Models that disagree in all items leave no room for more disagreements.
    "degrees": (model_pairs.binormal((0.5, 0.5), -0.95), (5, 5), 0.99),
}


@pytest.mark.parametrize("part", [marked(x, fast=x == "degrees") for x in CASES])
def test_the_study_fails_without(part, fresh, monkeypatch):
    case = CASES[part]
    lowest = comparisons.LOWEST[case[-1]]
    assert coverage_of(*case) > lowest
    comparisons.errors_of_pairs.clear_cache()
    if part == "degrees":
        monkeypatch.setattr(_pairs, "degrees_of_clusters", lambda found: jnp.inf + found.total)
    else:
        monkeypatch.setattr(_pairs, "_largest_variances", lambda share, of_class, *_: 0 * of_class)
    assert coverage_of(*case) < lowest


def test_limits_before_are_those_of_mixed_clusters_now(rng):
    labels = clusters.labels_of_clusters("mixed", 8)
    scores = clusters.clustered_scores(rng, labels, (3,), 1.0)
    flat, ids = scores.reshape(3, -1), np.arange(80) // 10
    found = jm.confidence_interval(jm.roc_auc, flat, labels.ravel(), clusters=ids)
    before = clusters.limits_before(scores, labels, np.float64(0.95))
    np.testing.assert_allclose(before, (found.low, found.high), rtol=1e-5)
