"""Bands of weighted and of clustered items."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from of_bands import GRID, KEY, LIMITS, N, by_corners, draws_of, same
from scipy import stats

import jaxmetrics as jm
from jaxmetrics._base.types import Items
from jaxmetrics._roc.placements import OfTable
from jaxmetrics.inference._bands_by_boxes import LINE, draws_at
from jaxmetrics.inference._intervals import boxes
from jaxmetrics.inference._intervals.local_level import local_level
from jaxmetrics.inference._intervals.numbers import heights_of
from jaxmetrics.inference._intervals.rates import rates_of
from jaxmetrics.inference._intervals.recall import squared_slope


def dependent(data, ties, kind):
    """Scores, labels and weights or units of each of four kinds, and what `roc_band` is given."""
    rng, labels = np.random.default_rng(3), data[1].copy()
    weights, units = np.ones(N), np.arange(N)
    if kind == "weights":  # heavy items have high scores
        weights = np.exp(0.5 * data[0][0] + 0.5 * rng.normal(size=N))
        return data[0][ties], labels, weights, units, {"weights": weights}
    units = units // 6  # of one size, by class as well
    labels = units % 3 == 0 if kind == "one class each" else np.arange(N) % 6 < 2
    effect = rng.normal(size=N // 6 + 1)[units]
    effect = np.where(labels & (kind == "opposite"), -effect, effect)
    scores = effect + rng.normal(size=N) + 1.5 * labels
    return scores.round(ties + 1), labels, weights, units, {"clusters": units}


@pytest.mark.parametrize("ties", [0, 1])
@pytest.mark.parametrize("kind", ["weights", "one class each", "both classes", "opposite"])
def test_boxes_of_draws_by_corners(data, ties, kind):
    scores, labels, weights, units, given = dependent(data, ties, kind)
    found = jm.roc_band(scores, labels, fpr=GRID, **given)
    thresholds = np.append(np.inf, np.unique(scores)[::-1])
    flagged = scores >= thresholds[:, None]
    sizes = [draws_of(weights[x], flagged[:, x], units[x])[1][-1] for x in (~labels, labels)]
    factor = boxes.shrinkage(*sizes)
    levels = [2 * stats.norm.cdf(factor * stats.norm.ppf(local_level(n, 0.95) / 2)) for n in sizes]
    low, high = by_corners(scores, labels, GRID, levels, weights, units)
    low, high = np.maximum.accumulate(low), np.minimum.accumulate(high[::-1])[::-1]
    np.testing.assert_allclose(found.simultaneous_low, low, atol=1e-6)
    np.testing.assert_allclose(found.simultaneous_high, high, atol=1e-6)
    expected = jm.recall_at_fpr(scores, labels, weights=weights, max_fpr=GRID, method="linear")
    np.testing.assert_allclose(found.tpr, expected, atol=1e-6)


@pytest.mark.parametrize("kind", ["weights", "one class each", "both classes", "opposite"])
def test_draws_of_a_point(data, kind):
    """The fewer of those at the ROC points around it, less what opposite classes take."""
    scores, labels, weights, units, given = dependent(data, 1, kind)
    items = Items(scores.astype("float32"), labels, weights.astype(float))
    rates_found = rates_of(items, given.get("clusters"), N, np.float64(0.95))
    placed = OfTable(rates_found.table, constant=True)
    found = draws_at(placed, rates_found, GRID)
    thresholds = np.append(np.inf, np.unique(items.scores)[::-1])
    flagged, rates, draws, sums = items.scores >= thresholds[:, None], [], [], []
    for x in (~labels, labels):
        total, n, k = weights[x].sum(), x.sum(), len(np.unique(units[x]))
        shares, of_class = draws_of(weights[x], flagged[:, x], units[x])
        rates, draws = [*rates, shares], [*draws, of_class]
        influence = weights[x] * (flagged[:, x] - rates[-1][:, None]) / total
        kept = (1 - 1 / k) / (1 - 1 / n)
        sums.append([np.bincount(units[x], row, N) / kept**0.5 for row in influence])
    parts = []
    for i, at in enumerate(GRID):
        last = np.flatnonzero(rates[0] <= at * (1 + 1e-9))[-1]
        n = [x[last : last + 2].min() for x in draws]
        heights = heights_of(placed, n, {"max_fpr": at, **LINE})
        negatives = sums[0][last] * np.sqrt(squared_slope(heights, at, n))
        positives = sums[1][last]
        apart = np.sum(negatives**2) + np.sum(positives**2)
        both = np.sum((positives - negatives) ** 2)
        parts.append(apart / both if both > apart else 1.0)
        np.testing.assert_allclose([x[i] for x in found], np.multiply(n, parts[-1]), rtol=1e-6)
    assert (min(parts) < 0.7) == (kind == "opposite")


def test_clusters_of_one_item_are_none(data, rng):
    """With weights, too; and which item is in which cluster is all that counts."""
    labels, weights = data[1], rng.exponential(size=N)
    for options in ({}, {"weights": weights}):
        alone = jm.roc_band(data[0][1], labels, fpr=GRID, clusters=np.arange(N)[::-1], **options)
        same(alone, jm.roc_band(data[0][1], labels, fpr=GRID, **options), rtol=0)
    order, ids = rng.permutation(N), rng.integers(0, 30, N)
    found = jm.roc_band(data[0][1], labels, fpr=GRID, clusters=ids, weights=weights)
    names = np.array([f"patient {i}" for i in ids])[order]
    moved = np.exp(data[0][1][order]), labels[order]
    same(jm.roc_band(*moved, fpr=GRID, clusters=names, weights=weights[order]), found)


def test_copies_in_a_cluster_count_about_once(data):
    scores, labels = np.tile(data[0][1], 3), np.tile(data[1], 3)
    once = jm.roc_band(data[0][1], data[1], fpr=GRID)
    found = jm.roc_band(scores, labels, fpr=GRID, clusters=np.tile(np.arange(N), 3))
    thrice = jm.roc_band(scores, labels, fpr=GRID)
    for low, high in (LIMITS[:2], LIMITS[2:]):
        widths = [np.mean(getattr(x, high) - getattr(x, low)) for x in (once, found, thrice)]
        assert 1 <= widths[1] / widths[0] < 1.06
        assert widths[1] > 1.4 * widths[2]


def test_one_cluster_with_all_of_a_class_has_no_limits(data):
    scores, labels = data[0][0], data[1]
    clusters = np.where(labels, N, np.arange(N))
    with pytest.warns(UserWarning, match="by clusters rests on an effective number of 1 clusters"):
        found = jm.roc_band(scores, labels, fpr=GRID, clusters=clusters)
    for name in LIMITS:
        assert np.isnan(getattr(found, name)).all()
    assert not np.isnan(found.tpr).any()
    assert np.isnan(jm.roc_band([], [], clusters=[]).high).all()


def test_equal_weights_are_none(data, band):
    """However large, of each class its own, or of no exact sum; a key changes nothing."""
    labels = data[1]
    for weights in (np.ones(N), np.where(labels, 1e200, 1e-200), np.full(N, 0.3)):
        given = {"weights": weights, "key": KEY}
        same(jm.roc_band(data[0][1], labels, fpr=GRID, **given), band, rtol=0)


def test_equal_weights_that_round_count_as_whole_items(rng):
    """3 negatives of weight 0.3 have the effective size 2.999999999999999."""
    recall = partial(jm.recall_at_fpr, max_fpr=[0.5, 0.9], method="linear")
    for n in (5, 7, 12, 40):
        labels = np.arange(n) % 5 > 2
        scores = rng.normal(size=n).round(1) - 3 * labels  # what is likely reaches the last item
        for weight in (0.3, 0.7, 7.10806):
            found = jm.confidence_interval(recall, scores, labels, weights=np.full(n, weight))
            expected = jm.confidence_interval(recall, scores, labels)
            np.testing.assert_allclose(found.high, expected.high, rtol=1e-5)
            np.testing.assert_allclose(found.low, expected.low, rtol=1e-5)


@pytest.mark.parametrize("clusters", [None, np.arange(24) // 2])
def test_shares_of_a_whole_class_that_round(clusters, rng):
    """Sums that end a rounding below their total have no variance, and not fewer draws."""
    scores, labels = rng.normal(size=(60, 24)), np.arange(24) % 3 == 0
    weights = rng.exponential(size=(60, 24))
    call = partial(jm.roc_band, fpr=np.linspace(0, 1, 21), clusters=clusters)
    expected = call(scores, labels, weights=weights)
    same(jax.jit(lambda *x: call(x[0], labels, weights=x[1]))(scores, weights), expected)


def test_no_items_and_few_draws():
    weights = np.append(891.0, np.ones(199))
    with pytest.warns(UserWarning, match=r"weights rests on an effective number of 1\.\d+ neg"):
        jm.roc_band(np.arange(200)[::-1], np.arange(200) > 99, weights=weights)
    assert np.isnan(jm.roc_band([], [], weights=[]).high).all()


@pytest.mark.parametrize("clusters", [None, np.arange(N) // 4])
def test_weighted_items_that_do_not_count_change_nothing(clusters, data, rng):
    scores, labels, weights = data[0][0], data[1], rng.exponential(size=N)
    kept, order = rng.random(N) < 0.7, rng.permutation(N)

    def band(which, scores, weights, **given):
        ids = None if clusters is None else clusters[which]
        options = {"weights": weights[which], "clusters": ids, **given}
        return jm.roc_band(scores[which], labels[which], fpr=GRID, **options)

    found = band(kept, scores, weights)
    masked = np.where(kept, scores, np.nan), np.where(kept, weights, np.nan)
    same(band(slice(None), *masked, where=kept), found)
    same(band(slice(None), scores, weights * kept), found)
    same(band(order, np.exp(scores), weights * kept), found)


@pytest.mark.parametrize(
    "clusters", [np.arange(N) // 4, pytest.param(None, marks=pytest.mark.slow)]
)
def test_a_weighted_band_in_a_program(clusters, data, rng):
    """Of models that share labels; a model with NaN, and a class without items, have none."""
    scores = np.stack([*data[0], np.where(np.arange(N) == 3, np.nan, data[0][0])])
    weights, fpr = rng.exponential(size=N).astype("float32"), [0, *GRID]
    call = partial(jm.roc_band, fpr=fpr, clusters=clusters)
    expected = call(scores, data[1], weights=weights)
    program = jax.jit(lambda *x: call(x[0], x[1], weights=x[2]))
    same(program(scores, data[1], weights), expected)
    for i in range(2):
        alone = call(scores[i], data[1], weights=weights)
        for name in LIMITS:
            found = np.asarray(getattr(expected, name))[i]
            np.testing.assert_allclose(found, getattr(alone, name), atol=1e-6)
    for name in LIMITS:
        assert np.isnan(getattr(expected, name)[2]).all()
        assert np.isnan(getattr(program(scores, data[1] & False, weights), name)).all()
    with pytest.raises(TypeError, match=r"no derivative in the weights: write jax\.lax\.stop_grad"):
        jax.grad(lambda w: call(jnp.asarray(scores[0]), data[1], weights=w).low.sum())(weights)
