"""Bands of the ROC curve by boxes of order statistics."""

from functools import partial

import jax
import numpy as np
import pytest
from of_bands import GRID, by_corners
from scipy import stats

import jaxmetrics as jm
from benchmarks import local_levels
from jaxmetrics._roc.host_placements import OneClass, placements_of
from jaxmetrics.inference._intervals import boxes
from jaxmetrics.inference._intervals.local_level import local_level


@pytest.mark.parametrize(
    ("scores", "low", "high"),
    [
        # Positive above negative. With t the tail of one class, the box at the positive's score is
        # FPR 0 to 1 - t and TPR t to 1.
        ([2, 1], [0, 0, 0.1, 1], [1, 1, 1, 1]),
        ([1, 2], [0, 0, 0, 1], [0.9, 1, 1, 1]),
        # Tied: from (0, 1 - t) to (t, 1), and from (1 - t, 0) to (1, t).
        ([1, 1], [0, 0, 0.05, 1], [0.95, 1, 1, 1]),
    ],
)
def test_two_items_by_hand(scores, low, high):
    """Both classes have one item: the tail t is half of 1 - sqrt(level), here 0.1."""
    found = jm.roc_band(
        scores, [1, 0], fpr=[0.05, 0.5, 0.95, 1], method="exact", confidence_level=0.64
    )
    np.testing.assert_allclose(found.simultaneous_low, low, atol=1e-6)
    np.testing.assert_allclose(found.simultaneous_high, high, atol=1e-6)


@pytest.mark.parametrize("row", [0, 1])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_against_corners_one_by_one(data, row, level):
    scores, labels = data[0][row], data[1]
    fpr = np.sort(np.random.default_rng(1).random(40))
    found = jm.roc_band(scores, labels, fpr=fpr, method="exact", confidence_level=level)
    sizes = (~labels).sum(), labels.sum()
    levels = [float(local_level(np.float64(n), level**0.5)) for n in sizes]
    low, high = by_corners(scores, labels, fpr, levels)
    np.testing.assert_allclose(found.simultaneous_low, low, atol=1e-6)
    np.testing.assert_allclose(found.simultaneous_high, high, atol=1e-6)


def test_the_default_shortens_quantiles(data):
    """By sqrt(n0 + n1) / (sqrt(n0) + sqrt(n1)) or 0.95 - 0.3 / m^(1/3), the larger one."""
    scores, labels = data[0][0], data[1]
    found = jm.roc_band(scores, labels, fpr=GRID)
    factor = max(120**0.5 / (72**0.5 + 48**0.5), 0.95 - 0.3 / 48 ** (1 / 3))
    assert factor == pytest.approx(0.8674, abs=1e-3)
    chances = [float(local_level(np.float64(n), 0.95)) for n in (72, 48)]
    levels = [2 * stats.norm.cdf(factor * stats.norm.ppf(x / 2)) for x in chances]
    low, high = by_corners(scores, labels, GRID, levels)
    np.testing.assert_allclose(found.simultaneous_low, low, atol=1e-5)
    np.testing.assert_allclose(found.simultaneous_high, high, atol=1e-5)


@pytest.mark.parametrize("row", [0, 1])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_pointwise_limits_are_those_of_a_recall(data, row, level):
    scores, labels = data[0][row], data[1]
    found = jm.roc_band(scores, labels, fpr=GRID, confidence_level=level)
    recall = partial(jm.recall_at_fpr, max_fpr=GRID, method="linear")
    each = jm.confidence_interval(recall, scores, labels, confidence_level=level)
    np.testing.assert_allclose(found.tpr, each.estimate, atol=1e-6)
    low = np.maximum.accumulate(each.low)
    high = np.minimum.accumulate(each.high[::-1])[::-1]
    np.testing.assert_allclose(found.low, np.maximum(low, found.simultaneous_low), atol=1e-6)
    np.testing.assert_allclose(found.high, np.minimum(high, found.simultaneous_high), atol=1e-6)
    if row == 0:
        assert np.mean(found.simultaneous_low[:-1] < found.low[:-1]) > 0.9
    ties = row == 1  # a box has oblique sides where scores tie, and a recall a step
    assert np.mean((found.low > low + 1e-6) | (found.high < high - 1e-6)) < (0.6 if ties else 0.1)


@pytest.mark.parametrize("n", [1, 2, 5, 40, 300])
@pytest.mark.parametrize("chance", [0.6, 0.95])
def test_limits_of_all_order_statistics_hold_at_once(n, chance):
    rng, k = np.random.default_rng(n), np.arange(1, n + 1)
    tail = local_level(np.float64(n), chance) / 2
    low = stats.beta.ppf(tail, k, n - k + 1)
    draws = 10_000
    drawn = np.sort(rng.random((draws, n)), axis=1)
    held = ((drawn >= low) & (drawn <= 1 - low[::-1])).all(axis=1).mean()
    assert abs(held - chance) < 3 * (chance * (1 - chance) / draws) ** 0.5


def test_local_levels_of_traced_and_large_classes():
    sizes = np.array([1.0, 3.0, 77.0, 1e4, 1e7])
    expected = local_level(sizes, 0.9)
    np.testing.assert_allclose(jax.jit(partial(local_level, chance=0.9))(sizes), expected, 1e-4)
    assert (np.diff(expected) < 0).all()
    assert expected[0] == pytest.approx(0.1)
    assert 150 < np.log(0.9) / np.log1p(-expected[-1]) < 157
    for n in (3000, 20_000):
        found = local_levels.chance(n, float(local_level(np.float64(n), 0.9)))
        assert found == pytest.approx(0.9, abs=1e-4)


def coverage(curve, draw, *, draws=400, exact=False):
    """Of the curve at points that are dense at both ends."""
    fpr = np.unique(np.concatenate([np.linspace(0, 1, 60), np.geomspace(1e-4, 0.1, 20)]))
    rng, held, width, truth = np.random.default_rng(5), 0, 0.0, curve(fpr)
    for _ in range(draws):
        positives, negatives = draw(rng)
        placed = placements_of(OneClass(positives), OneClass(negatives))
        low, high = boxes.simultaneous(placed, fpr, 0.9, exact=exact)
        held += bool(((low <= truth + 1e-9) & (truth <= high + 1e-9)).all())
        width += np.mean(high - low) / draws
    return held / draws, width


def normal_curve(fpr):
    return stats.norm.sf(stats.norm.isf(fpr) - 1.2)


def steep_curve(fpr):
    """Positives in five clusters that are narrow beside the negatives."""
    at = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    return np.mean(np.clip((fpr[:, None] - at + 0.004) / 0.008, 0, 1), axis=1)


@pytest.mark.slow
def test_coverage_of_the_whole_curve():
    """Of curves that need limits of nearly this length; with the chance of one class it fails."""

    def steep(rng):
        at = rng.choice([0.1, 0.3, 0.5, 0.7, 0.9], 100) + rng.uniform(-0.004, 0.004, 100)
        return -at, -rng.random(100)

    def ratio(rng):
        return rng.normal(1.2, size=20), rng.normal(size=2000)

    for curve, draw in ((steep_curve, steep), (normal_curve, ratio)):
        held, width = coverage(curve, draw)
        assert 0.88 < held < 0.97
        exact, exact_width = coverage(curve, draw, draws=200, exact=True)
        assert exact > 0.93
        assert width < 0.93 * exact_width
