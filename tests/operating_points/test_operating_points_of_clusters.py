"""Limits of thresholds where items come in clusters."""

import jax
import numpy as np
import pytest
from chosen_points import FEW, KEY, LABELS, N, drawn
from fast import marked
from scipy import stats

import jaxmetrics as jm
from jaxmetrics._base.types import Items
from jaxmetrics.inference._at_threshold import clusters_at
from jaxmetrics.inference._intervals.operating import Terms


@pytest.mark.slow  # that copies are as one item says more
def test_clusters_widen(rng):
    scores, ids = np.repeat(drawn(rng)[::6], 6), np.repeat(np.arange(N // 6), 6)
    labels = np.repeat(LABELS[::6], 6)
    options = {"threshold": 0.5, **FEW}
    alone = jm.operating_point(scores, labels, **options)
    whole = jm.operating_point(scores, labels, clusters=ids, **options)
    assert whole.fpr.method == "bootstrap"
    assert whole.fpr.estimate == alone.fpr.estimate
    assert whole.fpr.standard_error > 1.7 * alone.fpr.standard_error
    assert whole.threshold.low == whole.threshold.high


@pytest.mark.parametrize("prevalence", [None, marked(0.1, fast=False)])
def test_copies_in_clusters_are_as_one_item(prevalence, rng):
    """Rates of 0 and 1, too, of which copies seem to be certain: patients count, not items."""
    labels = np.arange(40) < 15
    alone = np.where(labels, rng.uniform(1, 3, 40), rng.uniform(0, 2, 40)).round(3)
    scores, truth, ids = (np.repeat(x, 3) for x in (alone, labels, np.arange(40)))
    given = {"clusters": ids, "prevalence": prevalence, **FEW}
    rates = ("recall", "fpr", "specificity", "precision", "npv")
    for threshold in (0.9, 1.5, 2.1, alone.max()):
        one = jm.operating_point(alone, labels, threshold=threshold, prevalence=prevalence)
        copies = jm.operating_point(scores, truth, threshold=threshold, **given)
        for name in rates + ("flagged",) * (prevalence is None):
            few, many = getattr(one, name), getattr(copies, name)
            assert 0.85 < (many.high - many.low) / (few.high - few.low) < 1.2, (threshold, name)


@pytest.mark.slow
@pytest.mark.parametrize("n_clusters", [42, 44])
def test_clusters_that_vary_alike_are_known_well(n_clusters):
    """All have a residual of one size, whose kurtosis is 1 up to rounding."""
    item = np.arange(9 * n_clusters + 20)
    labels = item >= 9 * n_clusters
    ids = np.where(labels, item - 8 * n_clusters, item // 9)
    flagged = labels | (item % 9 < 4 + ids % 2)
    fpr = jm.operating_point(
        flagged * 1.0, labels, threshold=0.5, clusters=ids, key=KEY, n_resamples=200
    ).fpr
    assert fpr.high - fpr.low < 0.15  # it is 0.3 of as many draws as clusters


@pytest.mark.parametrize("prevalence", [None, 0.2])
def test_what_clusters_show_of_a_share_by_hand(prevalence, rng):
    """Their effective number, and degrees of freedom from 1 to one less than the clusters."""
    n, k = 60, 12
    labels, ids, weights = rng.random(n) < 0.5, rng.integers(0, k, n), rng.lognormal(size=n)
    scores, amounts = rng.normal(size=n), rng.lognormal(size=n)
    flagged = scores >= 0.3
    terms = Terms(None if prevalence is None else np.float64(prevalence), 1.0, 4.0)
    items = Items(scores, labels, weights, None, amounts)
    found = clusters_at(items, ids, np.float64(0.3), terms)
    shares = np.where(labels, weights[labels].sum(), weights[~labels].sum()) / weights.sum()
    of_all, fixed = weights, np.zeros(n, int)
    if prevalence is not None:  # the share of each class is fixed
        of_all = weights * np.where(labels, prevalence, 1 - prevalence) / shares
        fixed = labels.astype(int)
    none = np.zeros(n, int)
    expected = {
        "recall": (flagged, weights * labels, none),
        "fpr": (flagged, weights * ~labels, none),
        "precision": (labels, weights * flagged, none),
        "npv": (~labels, weights * ~flagged, none),
        "flagged": (flagged, of_all, fixed),
        "cost": (np.where(labels, 1.0 * ~flagged, flagged / 4), of_all, fixed),
        "recall_by_amount": (flagged, weights * amounts * labels, none),
    }
    assert found.keys() == expected.keys()
    limited = []
    for name, (values, each, parts) in expected.items():
        means = np.bincount(parts, each * values) / np.bincount(parts, each)
        residuals = np.bincount(ids, each * (values - means[parts]), k)
        totals = np.bincount(ids, each, k)
        m = (totals > 0).sum()
        kurtosis = m * (residuals**4).sum() / (residuals**2).sum() ** 2
        df = np.clip(2 * (m - 1) / (kurtosis - 1), 1, m - 1)
        limited.append(df == m - 1)
        np.testing.assert_allclose(found[name].df, df, rtol=1e-9, err_msg=name)
        fewest = totals.sum() ** 2 / (totals**2).sum()
        np.testing.assert_allclose(found[name].fewest, fewest, rtol=1e-9, err_msg=name)
    assert not all(limited)


def test_few_clusters_that_decide_hardly_show_how_alike_items_are():
    """One of 40 clusters is flagged in part: that items are independent is not known from it."""
    labels, ids = np.arange(N) % 2 == 0, np.arange(N) // 3
    given = {"threshold": 0.5, "clusters": ids, **FEW}
    fpr = jm.operating_point(np.isin(np.arange(N), [1, 3, 60]) * 1.0, labels, **given).fpr
    assert fpr.estimate == 2 / 60
    # Beta limits of 40 draws, not of 60.
    assert fpr.high > 0.97 * stats.beta.ppf(0.975, 40 / 30 + 0.5, 40 * 29 / 30 + 0.5)


@pytest.mark.slow
def test_a_given_threshold_is_known_with_clusters_too(rng):
    """Clusters of one item: the same threshold, and limits near the closed forms."""
    labels = rng.random(2000) < 0.2
    scores = (rng.normal(size=2000) + labels).astype(np.float32)
    given = {"threshold": 1.3, "prevalence": 0.01}
    alone = jm.operating_point(scores, labels, **given)
    clustered = jm.operating_point(
        scores, labels, clusters=np.arange(2000), key=jax.random.key(0), **given
    )
    assert clustered.threshold.low == clustered.threshold.high == alone.threshold.estimate
    for name in ("recall", "fpr", "precision", "npv", "flagged"):
        one, other = getattr(alone, name), getattr(clustered, name)
        np.testing.assert_allclose(other.high - other.low, one.high - one.low, rtol=0.1)


@pytest.mark.slow
def test_limits_of_the_cheapest_threshold_of_clusters(rng):
    """Clusters of one item are items; copies in one cluster are as one item of their weight."""
    scores = drawn(rng)
    rule = {"fp_cost": 1.0, "fn_cost": 2.0, **FEW}
    alone = jm.operating_point(scores, LABELS, **rule).threshold
    single = jm.operating_point(scores, LABELS, clusters=np.arange(N), **rule).threshold
    assert (single.low, single.high) == (alone.low, alone.high)
    ids = np.arange(N) % 30
    whole = jm.operating_point(scores, LABELS, clusters=ids, **rule).threshold
    order = np.argsort(-scores)
    added = np.where(LABELS, -2.0, 1.0)[order]
    cost = np.append(0, added.cumsum())
    best = int(cost.argmin())
    inside = []
    for k in range(N + 1):
        between = slice(min(k, best), max(k, best))
        sums = np.bincount(ids[order][between], added[between], 30)
        inside.append(cost[k] - cost[best] <= 1.6448536 * np.sqrt((sums**2).sum() + 2 * 5))
    within = np.flatnonzero(inside)
    low, high = np.append(scores[order], -np.inf)[within[-1]], np.append(np.inf, scores[order])
    np.testing.assert_allclose([whole.low, whole.high], [low, high[within[0]]], rtol=1e-6)


@pytest.mark.parametrize(
    "rule", [{"max_fpr": 0.3}, marked({"min_recall": 0.8}, fast=False), {"min_recall": 1.0}]
)
def test_limits_of_a_quantile_of_clusters(rule, rng):
    """Copies in one cluster are as one item; of items of their own the limits differ by a rank."""
    scores, given = drawn(rng), {**FEW, **rule}
    few, labels, each = scores[::3].copy(), LABELS[::3], np.arange(N // 3)
    few[-1] = few[0]  # a tie, which the programs of copies allow for
    alone = jm.operating_point(few, labels, **rule).threshold
    single = jm.operating_point(few, labels, clusters=each, **given).threshold
    copies = np.repeat(few, 3), np.repeat(labels, 3)
    whole = jm.operating_point(*copies, clusters=np.repeat(each, 3), **given).threshold
    assert (whole.low, whole.high) == (single.low, single.high)
    of_class = np.sort(np.float32(few[labels if "min_recall" in rule else ~labels]))
    ends = np.searchsorted(of_class, [single.low, alone.low, alone.high, single.high])
    assert max(abs(ends[1] - ends[0]), abs(ends[3] - ends[2])) <= 1
    # As many as the variance by hand: of pairs of positives, which are in one cluster.
    pairs = np.where(LABELS, np.arange(N) // 2, np.arange(N))
    if rule == {"min_recall": 0.8}:
        away = np.bincount(pairs[LABELS], (scores >= np.sort(scores[LABELS])[8])[LABELS] - 0.8)
        halves = np.bincount(pairs[LABELS], (scores >= np.sort(scores[LABELS])[20])[LABELS] - 0.5)
        spreads = (away**2).sum() / (0.8 * 0.2), (halves**2).sum() / 0.25
        size = min(40, *(40**2 / (x * 20 / 19) for x in spreads))
        found = jm.operating_point(scores, LABELS, clusters=pairs, **given).threshold
        fewest, most = (int(np.sum(scores[LABELS] >= x)) for x in (found.high, found.low))
        lower, upper = (
            next(k for k in range(41) if k >= size or stats.beta.cdf(0.2, size - k, k + 1) >= x)
            for x in (0.025, 0.975)
        )
        assert fewest == np.ceil(40 * lower / size)
        assert most == np.ceil(40 * (upper + 1) / size)


@pytest.mark.parametrize("rule", [{"max_fpr": 0.1}, marked({"min_recall": 0.7}, fast=False)])
def test_a_quantile_is_chosen_once_for_all_resamples(rule, rng):
    """Rates have the errors of the same threshold, given."""
    scores, given = drawn(rng), {"clusters": np.arange(N) // 3, **FEW}
    chosen = jm.operating_point(scores, LABELS, **rule, **given)
    fixed = jm.operating_point(scores, LABELS, threshold=chosen.threshold.estimate, **given)
    for name in ("recall", "fpr", "precision", "npv", "flagged"):
        found, expected = getattr(chosen, name), getattr(fixed, name)
        assert found.standard_error == expected.standard_error
        assert found.method == "bootstrap"
    assert (chosen.fpr.low, chosen.fpr.high) == (fixed.fpr.low, fixed.fpr.high)


@pytest.mark.slow
def test_a_threshold_of_enough_recall_holds_with_few_clustered_positives(rng):
    """The lower limit is the threshold that guarantees a recall: an order statistic, or none."""
    labels, ids = np.arange(400) < 12, np.arange(400) // 2
    given = {"min_recall": 0.95, "clusters": ids, "key": KEY, "n_resamples": 60}
    point = jm.operating_point(rng.normal(size=400) + labels, labels, **given)
    assert point.threshold.low == -np.inf
    assert point.recall.low < 0.8
    assert point.precision.high < 0.2


@pytest.mark.slow
@pytest.mark.parametrize("rule", [{"max_fpr": 0.2}, {"min_recall": 0.5}])
def test_undefined_rows_of_clusters_are_nan(rule):
    scores = np.array([[0.1, 0.4, 0.35, 0.8, 0.7, 0.2], [0.2, 0.1, np.nan, 0.5, 0.6, 0.3]])
    given = {"clusters": [0, 0, 1, 1, 2, 3], "key": jax.random.key(0), "n_resamples": 20, **rule}
    labels = np.array([0, 0, 1, 1, 1, 0])
    recall = jm.operating_point(scores, labels, **given).recall
    alone = jm.operating_point(scores[0], labels, **given).recall
    for name in ("estimate", "low", "high", "standard_error"):
        assert getattr(recall, name)[0] == getattr(alone, name)
        assert np.isnan(getattr(recall, name)[1])
    assert np.isnan(jm.operating_point(scores[0], np.ones(6, int), **given).recall.estimate)


def test_few_clusters_are_warned_of(rng):
    clusters = np.arange(N) // 3
    labels = (np.arange(N) % 3 == 0) & (clusters < 10)
    scores = np.round(rng.normal(size=N) + labels, 1)
    with pytest.warns(UserWarning, match="the limits rest on 10 clusters with positives"):
        jm.operating_point(scores, labels, threshold=0.5, clusters=clusters, **FEW)
