"""Bands of the ROC curve: by boxes of order statistics, and by the bootstrap."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxmetrics as jm
from benchmarks import local_levels
from jaxmetrics._base.types import Items
from jaxmetrics._roc.host_placements import OneClass, placements_of
from jaxmetrics._roc.limits import limit_of_fpr
from jaxmetrics._roc.placements import OfTable
from jaxmetrics.inference._bands_by_boxes import LINE, draws_at
from jaxmetrics.inference._intervals import boxes
from jaxmetrics.inference._intervals.draws import rates_of
from jaxmetrics.inference._intervals.local_level import local_level
from jaxmetrics.inference._intervals.numbers import heights_of
from jaxmetrics.inference._intervals.recall import squared_slope

KEY = jax.random.key(31)
N = 120
GRID = np.arange(1, 21) / 20
LIMITS = ("low", "high", "simultaneous_low", "simultaneous_high")


@pytest.fixture(scope="module")
def data():
    """Scores with and without ties, `[2, n]`, and labels."""
    rng = np.random.default_rng(2)
    labels = np.arange(N) % 10 < 4
    scores = rng.normal(size=N) + 1.2 * labels
    return np.stack([scores, scores.round()]), labels


@pytest.fixture(scope="module")
def band(data):
    return jm.roc_band(data[0][1], data[1], fpr=GRID)


@pytest.fixture(scope="module")
def resampled(data):
    return jm.roc_band(data[0][1], data[1], fpr=GRID, method="bootstrap", key=KEY)


def same(a, b, rtol=1e-5, *, names=("tpr", *LIMITS)):
    for name in names:
        found, expected = (np.asarray(getattr(x, name)) for x in (a, b))
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-6, err_msg=name)


def share_limits(count, n, level):
    """Those of Clopper and Pearson."""
    low = stats.beta.ppf(level / 2, count, n - count + 1) if count >= 0.5 else 0.0
    return low, stats.beta.ppf(1 - level / 2, count + 1, n - count) if n - count >= 0.5 else 1.0


def kish(weights):
    return np.float64(weights.sum() ** 2 / (weights**2).sum())


def draws_of(weights, flagged, units, level=0.95):
    """The share that is flagged at each threshold `[rows, n]`, and the draws that it varies as.

    Units are clusters of one weight each, or the items themselves.
    """
    whole = np.bincount(units, weights)
    n, k = kish(weights), np.count_nonzero(whole)
    shares, draws = (flagged * weights).sum(axis=1) / weights.sum(), []
    for row, share in zip(flagged, shares, strict=True):
        sums = np.bincount(units, weights * (row - share))
        variance = (sums**2).sum() / weights.sum() ** 2
        if k < len(units):
            variance /= (1 - 1 / k) / (1 - 1 / n)
        draws.append(min(share * (1 - share) / variance, n) if variance > 1e-15 else n)
    draws = np.array(draws)
    if k < len(units):
        assert np.ptp(whole[whole > 0]) == np.ptp(weights) == 0
        fewer = np.minimum(shares, 1 - shares) * draws
        most = max((fewer * n / draws + 3) / (fewer + 3))
        times = (fewer * n / draws + 3 * np.sqrt(most * n / k)) / (fewer + 3)
        items, clusters = stats.t.ppf((1 + level) / 2, (n - 1, k - 1))
        draws = np.minimum(n / times, draws) * (items / clusters) ** 2
    return shares, draws


def by_corners(scores, labels, fpr, levels, weights=None, units=None):
    """The lines through the corners of the box of each threshold, one by one."""
    weights = np.ones(len(scores)) if weights is None else weights
    units = np.arange(len(scores)) if units is None else units
    thresholds = np.append(np.inf, np.unique(scores)[::-1])
    sides = []
    for mask, level in zip((~labels, labels), levels, strict=True):
        shares, draws = draws_of(weights[mask], scores[mask] >= thresholds[:, None], units[mask])
        limits = [share_limits(p * n, n, level) for p, n in zip(shares, draws, strict=True)]
        sides.append(np.transpose(limits))
    (fpr_low, fpr_high), (tpr_low, tpr_high) = sides
    upper, lower = ([*zip(*x, strict=True)] for x in ((fpr_low, tpr_high), (fpr_high, tpr_low)))

    def height(points, at):
        """The highest point of the line at an FPR; 0 before its start."""
        found = 0.0
        for (x0, y0), (x1, y1) in zip(points, [*points[1:], (2.0, points[-1][1])], strict=True):
            if x0 <= at < x1:
                found = y0 + (y1 - y0) * (at - x0) / (x1 - x0)
        return found

    return [[height(points, at) if at < 1 else 1.0 for at in fpr] for points in (lower, upper)]


# ---- boxes


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


# ---- the function


def test_a_band_is_around_the_curve(data, band, resampled):
    curve = jm.roc_curve(data[0][1], data[1])
    # Linear between the points; on a step, its upper end.
    expected = np.interp(GRID + 1e-9, np.asarray(curve.fpr, float), curve.tpr)
    for found, share in ((band, 0.5), (resampled, 0.99)):
        np.testing.assert_allclose(found.tpr, expected, atol=1e-5)
        np.testing.assert_allclose(found.fpr, GRID, rtol=1e-6)
        assert (found.simultaneous_low <= found.low).all()
        assert (found.low <= found.tpr).all()
        assert (found.tpr <= found.high).all()
        assert (found.high <= found.simultaneous_high).all()
        assert np.mean(found.simultaneous_low[:-1] < found.low[:-1]) > share
        for name in LIMITS:
            limit = getattr(found, name)
            assert (np.diff(limit) >= 0).all()
            assert (limit >= 0).all()
            assert (limit <= 1).all()


def test_the_curve_of_a_band_is_the_linear_recall(data):
    fpr = np.arange(1, 41) / 40
    found = jm.roc_band(*data, fpr=fpr)
    expected = jm.recall_at_fpr(*data, max_fpr=fpr, method="linear")
    np.testing.assert_allclose(found.tpr, expected, rtol=1e-6)


def test_no_key_is_needed_and_none_is_used(data, band):
    same(jm.roc_band(data[0][1], data[1], fpr=GRID, key=KEY, stratify=False), band, rtol=0)


def test_only_the_order_of_the_scores_counts(data, band):
    scores, labels = data[0][1], data[1]
    order = np.random.default_rng(3).permutation(N)
    same(jm.roc_band(np.exp(scores[order]), labels[order], fpr=GRID), band, rtol=0)


def test_masked_items_are_left_out(data, band):
    scores = np.concatenate([data[0][1], [9.0, np.nan, -9.0]])
    labels = np.concatenate([data[1], [False, True, True]])
    found = jm.roc_band(scores, labels, fpr=GRID, where=np.arange(N + 3) < N)
    same(found, band, rtol=0)


FROM_0 = partial(jm.roc_band, fpr=[0, *GRID])
PROGRAM = jax.jit(lambda *x: FROM_0(*x[:2], where=x[2]))  # of all the tests that need one


def test_a_program_finds_the_same(data):
    """Of a batch, with ties and masks, where labels and class sizes are traced.

    Of 49 negatives, k times the reciprocal of 49 is not always the rate k / 49.
    """
    scores, labels = data
    for n in (110, 85):
        where = np.arange(N) < n
        expected = FROM_0(scores, labels, where=where)
        assert expected.low.shape == (2, 21)
        same(PROGRAM(scores, labels, where), expected)
        row = FROM_0(scores[1], labels, where=where)
        same(row, jax.tree.map(_second, expected))


def _second(x):
    return x[1] if x.ndim == 2 else x


@pytest.mark.usefixtures("x64")
def test_a_band_in_double_precision(data, band):
    found = jm.roc_band(data[0][1], data[1], fpr=GRID)
    assert found.low.dtype == np.float64
    same(found, band, rtol=1e-6)


def test_the_ends_of_a_band(data, band):
    """The curve ends at (1, 1) by definition, and nothing shows that it rises at 0 itself."""
    whole = jm.roc_band(data[0][1], data[1], fpr=[0, *GRID])
    for name in LIMITS:
        limit = getattr(whole, name)
        np.testing.assert_array_equal(limit[1:], getattr(band, name))
        assert limit[-1] == 1
    assert whole.low[0] == whole.simultaneous_low[0] == 0
    assert whole.tpr[0] < whole.high[0] <= whole.simultaneous_high[0] < 1


def test_the_points_of_a_band(data):
    np.testing.assert_allclose(jm.roc_band(*data).fpr, np.arange(101) / 100, rtol=1e-6)


def test_a_band_of_a_perfect_model(data):
    labels = data[1]
    found = jm.roc_band(labels.astype(float), labels, fpr=GRID)
    for name in ("tpr", "high", "simultaneous_high"):
        np.testing.assert_array_equal(getattr(found, name), 1)
    assert (found.simultaneous_low <= found.low).all()
    assert (found.low[2:] > 0.9).all()


@pytest.mark.parametrize("labels", [[1, 0, 0, 0, 0], [1, 1, 1, 1, 0], [1, 0]])
def test_one_item_of_a_class(labels):
    found = jm.roc_band(np.arange(len(labels)), labels)
    for name in LIMITS:
        limit = np.asarray(getattr(found, name))
        assert np.isfinite(limit).all()
        assert (np.diff(limit) >= 0).all()
    assert (found.simultaneous_high - found.simultaneous_low)[50] > 0.5


@pytest.mark.parametrize(
    ("scores", "labels"),
    [
        (np.arange(4.0), np.zeros(4, bool)),
        (np.arange(4.0), np.ones(4, bool)),
        (np.array([1, np.nan, 2, 3]), np.array([0, 1, 1, 0])),
        (np.zeros(0), np.zeros(0, bool)),
    ],
)
def test_undefined_bands(scores, labels):
    found = jm.roc_band(scores, labels, fpr=GRID)
    for name in ("tpr", *LIMITS):
        assert np.isnan(getattr(found, name)).all()


@pytest.mark.parametrize(
    ("fpr", "message"),
    [
        ([-0.1, 0.5], r"fpr must be \[points\] in \[0, 1\]"),
        ([1, 5, 10], r"fpr must be \[points\] in \[0, 1\].*write 0\.01 for 1 %"),
        ([0.5, 0.1], "fpr must increase"),
        (0.1, r"fpr must be \[points\]"),
    ],
)
def test_errors_of_points(fpr, message, data):
    with pytest.raises(ValueError, match=message):
        jm.roc_band(*data, fpr=fpr)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"method": "bootstrap"}, TypeError, r"key is missing.*write key=jax\.random\.key\(0\)"),
        ({"method": "exact", "clusters": np.arange(N)}, ValueError, "write method='auto'"),
        ({"method": "exact", "weights": np.ones(N)}, ValueError, "write method='auto'"),
        ({"method": "wald"}, ValueError, "method must be one of"),
        ({"key": 0}, TypeError, "key must be one JAX random key"),
    ],
)
def test_errors_of_options(options, error, message, data):
    with pytest.raises(error, match=message):
        jm.roc_band(data[0][0], data[1], **options)


# ---- weights and clusters


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


# ---- the bootstrap


@pytest.mark.filterwarnings("ignore:.*divide")  # where the curve has reached 1
def test_limits_of_the_bootstrap(data, resampled):
    """Wilson's, of which the simultaneous ones hold all of a share of the resampled curves."""
    metric = partial(jm.recall_at_fpr, max_fpr=GRID, method="linear")
    values = np.asarray(jm.bootstrap(metric, data[0][1], data[1], key=KEY).replicates, float)
    p, error = np.asarray(resampled.tpr, float), values.std(axis=0, ddof=1)
    varied = error > 0
    furthest = np.max(np.abs(values - p)[:, varied] / error[varied], axis=1)
    critical = np.quantile(furthest, 0.95)
    assert 2 < critical < 5
    n = np.minimum(p * (1 - p) / error**2, data[1].sum())
    for z, low in (
        (stats.norm.ppf(0.975), resampled.low),
        (critical, resampled.simultaneous_low),
    ):
        middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
        margin = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
        expected = np.maximum.accumulate(middle - margin)
        np.testing.assert_allclose(low[:10], expected[:10], rtol=1e-3)


@pytest.mark.filterwarnings("ignore:a band by the bootstrap rests on 24 clusters")
def test_weights_and_clusters_of_the_bootstrap(data, resampled):
    """Weights of 1 change nothing, and clusters of copies widen the band."""
    scores, labels = data[0][1], data[1]
    weighted = jm.roc_band(
        scores, labels, fpr=GRID, key=KEY, weights=np.ones(N), method="bootstrap"
    )
    same(weighted, resampled, rtol=0.1, names=("tpr", "low", "simultaneous_low"))
    copies = np.tile(scores[::3], 3), np.tile(labels[::3], 3)  # of as many items
    how = {"fpr": GRID, "key": KEY, "method": "bootstrap"}
    found = jm.roc_band(*copies, clusters=np.tile(np.arange(N // 3), 3), **how)
    three = jm.roc_band(*copies, **how)
    assert np.mean(found.high - found.low) > 1.2 * np.mean(three.high - three.low)
    np.testing.assert_allclose(found.tpr, three.tpr, rtol=1e-5)


def test_a_class_is_absent_from_the_bootstrap(data):
    with pytest.warns(UserWarning, match="undefined"):
        found = jm.roc_band(data[0][1], jnp.zeros(N, bool), fpr=GRID, key=KEY, method="bootstrap")
    for name in ("tpr", *LIMITS):
        assert np.isnan(getattr(found, name)).all()


@pytest.mark.slow
def test_points_take_no_memory_in_programs():
    """Of 400 points no array has as many entries for each item."""
    n, fpr = 20_000, np.linspace(0.0025, 1, 400)
    scores, labels = jnp.arange(n) * 7 % n / n, jnp.arange(n) % 2
    recall = partial(jm.recall_at_fpr, max_fpr=fpr, method="linear")
    area = partial(jm.partial_auc, max_fpr=fpr, min_tpr=0.1)
    for metric in (recall, area, partial(jm.roc_band, fpr=fpr)):
        used = jax.jit(metric).lower(scores, labels).compile().memory_analysis()
        assert used.temp_size_in_bytes < 400 * n


def test_what_is_sorted_stays_in_order():
    """Questions one after another, of negatives that tie, have the answers that each has alone."""
    rng = np.random.default_rng(1)
    scores, labels = rng.integers(0, 6, 300).astype("float32"), rng.random(300) < 0.1

    def placed():
        return placements_of(OneClass(scores[labels]), OneClass(scores[~labels]))

    one = placed()
    for fpr in [np.array([155, 110]) / 266, *rng.random((30, 2))]:
        limit = limit_of_fpr(fpr)
        np.testing.assert_array_equal(one.corners(limit), placed().corners(limit))
    scores, labels = scores[:N].astype(float), labels[:N]
    expected = PROGRAM(np.stack([scores, -scores]), labels, np.ones(N, bool))
    same(FROM_0(scores, labels), jax.tree.map(lambda x: x[0] if x.ndim == 2 else x, expected))


@pytest.mark.parametrize("turn", range(3))
def test_many_limits_are_those_one_by_one(turn, x64):
    """On steps and within them, where scores tie, without weights and with some."""
    rng = np.random.default_rng(turn)
    for _ in range(10):
        n = int(rng.integers(4, 60))
        scores = rng.integers(0, rng.integers(2, 40), n).astype(float)
        labels = np.append([True, False], rng.random(n - 2) < 0.4)
        weights = [None, 3 * rng.random(n) + 0.1, rng.integers(0, 3, n) + 0.0][turn]
        steps = np.arange(1, 5) / (~labels).sum()
        limits = np.sort(np.concatenate([rng.random(8), [0.01, 1.0], steps])).clip(0.01, 1)
        for metric in (jm.partial_auc, partial(jm.recall_at_fpr, method="linear")):
            found = metric(scores, labels, weights=weights, max_fpr=limits)
            each = [metric(scores, labels, weights=weights, max_fpr=x) for x in limits.tolist()]
            np.testing.assert_allclose(found, each, rtol=1e-12, atol=1e-12)


def test_few_negatives_of_a_bootstrap_are_warned_of(rng, recwarn):
    labels = np.arange(N) >= 30
    scores = (rng.normal(size=N) + labels).round()
    jm.roc_band(scores, labels)
    assert not recwarn.list
    with pytest.warns(UserWarning, match="a band by the bootstrap rests on 30 negatives"):
        jm.roc_band(scores, labels, fpr=GRID, weights=np.ones(N), method="bootstrap", key=KEY)
