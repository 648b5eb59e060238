"""Limits of thresholds and of what they do."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from chosen_points import COSTS, FEW, KEY, LABELS, N_POSITIVE, RULES, N, drawn
from fast import marked
from scipy import stats

import jaxmetrics as jm
from jaxmetrics._base.types import Items
from jaxmetrics._roc.operating import chosen_point
from jaxmetrics.inference._bootstrap.bootstrap import replicates_of
from jaxmetrics.inference._bootstrap.request import Request
from jaxmetrics.inference._intervals import metrics

UNSTRATIFIED = Request(**FEW, stratify=False)  # as `operating_point` draws


def test_limits_of_a_given_threshold_are_jeffreys():
    scores = np.concatenate([np.linspace(0, 1, 20), np.linspace(0.5, 1.5, 20)])
    labels = np.arange(40) >= 20
    point = jm.operating_point(scores, labels, threshold=0.9)
    counts = {"recall": (12, 20), "fpr": (2, 20), "precision": (12, 14), "flagged": (14, 40)}
    counts |= {"npv": (18, 26), "specificity": (18, 20)}
    for name, (k, n) in counts.items():
        limits = stats.beta.ppf([0.025, 0.975], k + 0.5, n - k + 0.5)
        found = getattr(point, name)
        np.testing.assert_allclose([found.low, found.high], limits, rtol=1e-5)
        assert found.method == "closed form"
    assert point.threshold.low == point.threshold.high == np.float32(0.9)


def test_negative_predictive_value_is_the_precision_of_the_other_class(rng):
    """Of reversed scores, whose threshold flags what is not flagged here."""
    scores = drawn(rng)
    for options in ({"prevalence": 0.02}, {}):
        point = jm.operating_point(scores, LABELS, threshold=0.8, **options)
        reversed_options = {name: 1 - x for name, x in options.items()}
        other = jm.operating_point(-scores, ~LABELS, threshold=-0.8, **reversed_options)
        for name in ("estimate", "low", "high", "standard_error"):
            expected = getattr(other.precision, name)
            np.testing.assert_allclose(getattr(point.npv, name), expected, rtol=1e-5)
    everything = jm.operating_point(scores, LABELS, threshold=-9)
    assert np.isnan(everything.npv.estimate)
    assert everything.specificity.estimate == 0


def test_limits_of_a_quantile_are_order_statistics():
    """The number of 100 negatives above the true threshold is binomial: from 5 to 16 of them."""
    scores = np.concatenate([np.arange(100.0), np.arange(50.5, 150)])
    labels = np.arange(200) >= 100
    point = jm.operating_point(scores, labels, max_fpr=0.1)
    fewest, most = stats.binom.ppf([0.025, 0.975], 100, 0.1)
    assert point.threshold.high == 100 - fewest
    assert point.threshold.low == 100 - most - 1
    error = (most + 1 - fewest) / (2 * stats.norm.ppf(0.975))
    np.testing.assert_allclose(point.threshold.standard_error, error, rtol=1e-6)
    few = jm.operating_point(scores[90:110], labels[90:110], max_fpr=0.01)
    assert few.threshold.high == np.inf


@pytest.mark.parametrize("weights", [None, np.full(200, 0.5)])
def test_the_upper_limit_of_a_threshold_is_a_level_above_the_quantile(weights, rng):
    """The lowest level with a share of 0.05 or less is 5, and the quantile of the negatives 4."""
    labels = np.arange(200) < 50
    of_class = [0.45, 0.3, 0.139, 0.06, 0.041, 0.01], [0.02, 0.05, 0.13, 0.2, 0.3, 0.3]
    drawn = [rng.choice(6, (300, 200), p=p).astype("float32") for p in of_class]
    scores = np.where(labels, drawn[1], drawn[0])
    found = jm.operating_point(scores, labels, max_fpr=0.05, weights=weights).threshold
    assert np.mean((found.low <= 5) & (found.high >= 5)) > 0.95


@pytest.mark.parametrize("rule", [{"max_fpr": 0.5}, {"min_recall": 0.5}])
@pytest.mark.parametrize("weight", [1.0, 0.1])
def test_equal_weights_change_no_limit(rule, weight):
    scores, labels = np.arange(12.0), np.arange(12) % 2 == 0
    expected = jm.operating_point(scores, labels, **rule)
    found = jm.operating_point(scores, labels, weights=np.full(12, weight), **rule)
    for name in ("threshold", "recall", "fpr", "precision", "flagged"):
        of_weights, of_counts = getattr(found, name), getattr(expected, name)
        np.testing.assert_allclose(of_weights.low, of_counts.low, rtol=1e-6)
        np.testing.assert_allclose(of_weights.high, of_counts.high, rtol=1e-6)


def test_error_of_a_precision_at_a_given_prevalence_by_hand():
    """Its log-odds have the variance of log recall - log FPR, with half an item more in each."""
    labels = np.arange(60) < 20
    scores = np.concatenate([np.arange(20) < 12, np.arange(40) < 5])
    found = jm.operating_point(scores, labels, threshold=1, prevalence=0.1).precision
    value = 0.1 * 0.6 / (0.1 * 0.6 + 0.9 * 0.125)
    recall, fpr = 12.5 / 21, 5.5 / 41
    variance = (1 - recall) / (20 * recall) + (1 - fpr) / (40 * fpr)
    expected = value, value * (1 - value) * variance**0.5
    np.testing.assert_allclose((found.estimate, found.standard_error), expected, rtol=1e-6)


def test_a_share_of_weighted_items_has_as_many_draws_as_their_weights():
    """Weights 1 and 3 of each class are 64 / 20 draws of the flagged; 16 others weigh 1."""
    labels = np.array([1, 1, 0, 0] + 6 * [1] + 10 * [0])
    weights = np.array([1.0, 3, 1, 3] + 16 * [1])
    found = jm.operating_point(np.arange(20) < 4, labels, threshold=1, weights=weights)
    for share, k, n in ((found.precision, 1.6, 3.2), (found.npv, 10, 16)):
        limits = stats.beta.ppf([0.025, 0.975], k + 0.5, n - k + 0.5)
        np.testing.assert_allclose([share.low, share.high], limits, rtol=1e-5)


@pytest.mark.parametrize("rule", ["min_precision", "youden", "cost"])
def test_limits_depend_on_the_order_of_scores_in_double_precision_alone(rule, rng):
    """In resamples a threshold flags the item that it is the score of, which float32 would not."""
    scores = drawn(rng)
    given = COSTS | RULES[rule]
    points = [jm.operating_point(x, LABELS, **given) for x in (scores, stats.rankdata(scores))]
    for name in ("recall", "fpr", "precision", "npv", "flagged", "cost"):
        of_scores, of_ranks = (getattr(x, name) for x in points)
        np.testing.assert_array_equal(of_scores.low, of_ranks.low)
        np.testing.assert_array_equal(of_scores.high, of_ranks.high)


def test_a_flagged_positive_of_hardly_any_weight_tells_no_precision():
    """Half a negative is 10^17 of what is flagged."""
    items, weights = ([3.0, 2.0, 1.0, 0.0], [1, 0, 0, 1]), np.float32([1e-18, 1, 1, 1])

    def limits(weights):
        return jm.operating_point(*items, weights=weights, max_fpr=0.1).precision

    for low, high in ((x.low, x.high) for x in (limits(weights), jax.jit(limits)(weights))):
        assert (low, high) == (0, 1)


def test_a_single_positive_that_is_flagged_tells_no_precision():
    """The threshold is its score, whatever the precision, and its weight does not matter."""
    scores, labels = -np.arange(8.0), np.array([1, 0, 1, 1, 0, 0, 0, 0])
    weights = np.array([0.5, 1, 1, 2, 1, 1, 1, 1])
    for given in ({}, {"prevalence": 0.3}):
        found = jm.operating_point(scores, labels, weights=weights, max_fpr=0.1, **given).precision
        assert found.estimate == found.high == 1
        assert 0 <= found.low < 0.01


@pytest.mark.parametrize("rule", [{"max_fpr": 0.03}, {"min_recall": 0.1}])
def test_a_precision_by_a_quantile_is_of_a_negative_binomial_draw(rule):
    """Of 4 of 40 positives and 1 of 60 negatives, the run ends at a negative or at a positive."""
    scores = -np.arange(100.0)
    labels = np.isin(np.arange(100), [0, 1, 3, 4, *range(60, 96)])
    found = jm.operating_point(scores, labels, **rule).precision
    a, b = (3.5, 2) if "max_fpr" in rule else (4, 1.5)
    limits = stats.beta(a, b).ppf([0.025, 0.975])
    assert found.estimate == np.float32(0.8)
    np.testing.assert_allclose([found.low, found.high], limits, rtol=1e-5)


def test_costs_of_another_unit_choose_the_same_in_resamples(rng):
    """And tie alike, as few whole numbers do often."""
    items = Items(drawn(rng)[None].round(), LABELS)
    costs = ({"fp_cost": unit, "fn_cost": unit} for unit in (1, 0.1, 10))
    chosen = [replicates_of(partial(chosen_point, **x), items, UNSTRATIFIED).values for x in costs]
    for name, *found in zip(chosen[0]._fields, *chosen, strict=True):
        for other in found[1:]:
            np.testing.assert_array_equal(found[0], other, err_msg=name)


def test_no_negative_is_flagged_in_vain_in_resamples_of_weights(rng):
    """All positives are above it, whose sums are rounded in several orders."""
    labels = np.arange(600) < 200
    items = Items(-np.arange(600.0)[None], labels, rng.random(600) + 0.1)
    chosen = replicates_of(partial(chosen_point, min_precision=0.5), items, Request(KEY, 300))
    assert (chosen.values.fp == 0).all()


def test_a_cost_is_at_most_the_dearer():
    """Every item is an error."""
    labels = np.arange(13) >= 1
    found = jm.operating_point(-np.arange(13.0), labels, threshold=-0.5, fp_cost=3, fn_cost=3).cost
    np.testing.assert_allclose([found.estimate, found.high, found.standard_error], [3, 3, 0])
    assert found.low < 3


def test_scores_of_infinity_are_flagged_and_it_is_said():
    scores, labels = [np.inf, np.inf, 2.0, 1.0, 0.0, -1.0], [1, 0, 1, 0, 0, 0]
    with pytest.warns(UserWarning, match="best to flag nothing, but any threshold flags scores of"):
        found = jm.operating_point(scores, labels, max_fpr=0.1)
    assert found.threshold.estimate == np.inf
    assert found.fpr.estimate == 0.25


def test_units_of_amounts_do_not_matter(rng):
    scores, amounts = drawn(rng), rng.lognormal(size=N)
    expected, *others = (
        jm.operating_point(scores, LABELS, threshold=0.8, amounts=x * amounts).recall_by_amount
        for x in (1.0, 1e-170, 1e170)
    )
    for found in others:
        for name in ("estimate", "low", "high", "standard_error"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-5)


@pytest.mark.slow
def test_threshold_does_not_depend_on_amounts(rng):
    scores, amounts = drawn(rng), rng.lognormal(3, 1, size=N)
    for rule in ("youden", "max_fpr"):
        options = {**RULES[rule], **COSTS}
        plain, both = (
            jm.operating_point(scores, LABELS, **options, amounts=x) for x in (None, amounts)
        )
        assert plain.recall_by_amount is None
        for name in ("threshold", "recall", "cost"):
            one, other = getattr(plain, name), getattr(both, name)
            assert one.estimate == other.estimate
            if rule == "max_fpr":
                assert (one.low, one.high) == (other.low, other.high)
    # Equal amounts are counts, also in each resample.
    equal = np.full(N, 7.0)
    same = jm.operating_point(scores, LABELS, **RULES["youden"], **COSTS, amounts=equal)
    for end in ("estimate", "low", "high", "standard_error"):
        found = getattr(same.recall_by_amount, end), getattr(same.recall, end)
        np.testing.assert_allclose(*found, rtol=1e-5)


def test_optimism_moves_the_limits():
    """Without any signal the best point of a sample is no better than chance, but looks so."""
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(20, N))
    point = jm.operating_point(scores, LABELS, criterion="youden", **COSTS, **FEW)
    apparent = point.recall.estimate - point.fpr.estimate
    middle = (point.recall.low + point.recall.high - point.fpr.low - point.fpr.high) / 2
    assert apparent.mean() > 0.08
    assert middle.mean() < 0.75 * apparent.mean()


@pytest.mark.slow
def test_limits_of_rates_at_an_end_have_as_many_draws_as_vary():
    """Where the best flags next to nothing, and resamples at times more: recall to .97 before."""
    rng = np.random.default_rng(4)
    labels = rng.random(4000) < 0.03
    scores = rng.normal(size=4000) + 1.2 * labels
    point = jm.operating_point(scores, labels, fp_cost=1.0, fn_cost=1.0, key=KEY, n_resamples=200)
    assert point.recall.estimate < 0.02
    assert point.recall.high < 0.1
    assert point.flagged.high < 0.01


@pytest.mark.slow
@pytest.mark.parametrize(
    "rule",
    [
        {"fp_cost": 1.0, "fn_cost": 3.0},
        pytest.param({"criterion": "youden"}, marks=pytest.mark.slow),  # costs that the data set
        marked({"min_precision": 0.6}, fast=False),
    ],
)
def test_runs_of_negatives_are_drawn_as_their_items_are(rule):
    """All fields have one law, whether runs or, with weights of 1, items are drawn; ties too."""
    rng = np.random.default_rng(3)
    labels = rng.random(80) < 0.3
    scores = np.round(rng.normal(size=(1, 80)) + labels, 1)
    metric, request = partial(chosen_point, **rule), Request(jax.random.key(1), 4000)
    drawn = [
        replicates_of(metric, Items(scores, labels, weights), request).values
        for weights in (None, np.ones(80))
    ]
    for runs, items in zip(*map(jax.tree.leaves, drawn), strict=True):
        assert stats.ks_2samp(np.ravel(runs[1:]), np.ravel(items[1:])).pvalue > 1e-4


SCANNED = (  # clusters with weights, and neither
    ("min_precision", None, False),
    ("cost", 15, True),
)


@pytest.mark.parametrize(
    ("rule", "clusters", "weighted"),
    [
        marked(*x, fast=x in SCANNED)
        for x in itertools.product(["min_precision", "youden", "cost"], [None, 15], [True, False])
    ],
)
def test_one_scan_finds_the_points_of_score_tables(rule, clusters, weighted, rng, monkeypatch):
    """Of tied items with amounts, in the same resamples."""
    rules = {"min_precision": {"min_precision": 0.6}, "youden": {"criterion": "youden"}}
    metric = partial(chosen_point, **COSTS, **rules.get(rule, {}), prevalence=0.2)
    scores = np.round(drawn(rng), 1)[None]
    weights = rng.integers(0, 4, N) / 4 if weighted else None
    items = Items(scores, LABELS, weights, amounts=rng.lognormal(size=N))
    ids = None if clusters is None else (np.arange(N) % clusters, clusters)
    request = Request(**FEW, stratify=clusters is None, clusters=ids)
    by_scan = replicates_of(metric, items, request).values
    monkeypatch.setattr(metrics, "by_rule", None)
    by_table = replicates_of(metric, items, request).values
    for name, found, expected in zip(by_scan._fields, by_scan, by_table, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=name)
    assert len(np.unique(by_scan.threshold)) > 3


def test_limits_of_the_cheapest_threshold_by_hand():
    """Four positives above six negatives: k items more or fewer cost k."""
    scores, labels = np.arange(10.0, 0.0, -1), np.isin(np.arange(10), [0, 1, 2, 3])
    found = jm.operating_point(scores, labels, fp_cost=1.0, fn_cost=1.0, **FEW).threshold
    # k <= 1.645 sqrt(k + 4) for k up to 4.
    assert (found.estimate, found.low, found.high) == (7, 2, np.inf)
    wide = np.repeat(scores, 10), np.repeat(labels, 10)
    found = jm.operating_point(*wide, fp_cost=1.0, fn_cost=1.0, **FEW).threshold
    assert (found.estimate, found.low, found.high) == (7, 6, 7)  # ties: k is 10
    assert found.method == "closed form"
    weighted = jm.operating_point(
        scores, labels, weights=np.full(10, 3.0), fp_cost=2.0, fn_cost=2.0, **FEW
    )
    assert (weighted.threshold.low, weighted.threshold.high) == (2, np.inf)
    level = jm.operating_point(
        scores, labels, fp_cost=1.0, fn_cost=1.0, confidence_level=0.8, **FEW
    ).threshold
    # k <= 0.842 sqrt(k + 4) for k up to 2.
    assert (level.low, level.high) == (4, 9)


@pytest.mark.parametrize(
    ("prevalence", "n_clusters"),
    [(None, None), (0.2, 30), *(marked(*x, fast=False) for x in ((None, 30), (0.2, None)))],
)
def test_limits_of_the_lowest_precise_threshold(prevalence, n_clusters, rng):
    """Each threshold is tested by the residuals of its flagged items, one after the other; ties."""
    scores = np.round(drawn(rng), 1)
    clusters = None if n_clusters is None else np.arange(N) % n_clusters
    rule = {"min_precision": 0.6, "prevalence": prevalence, "clusters": clusters}
    found = jm.operating_point(scores, LABELS, **rule, **FEW).threshold
    limit = 0.6
    if prevalence is not None:  # the odds of the sample, over those of use, times those of 0.6
        odds = 1.5 * (N_POSITIVE / (N - N_POSITIVE)) * (1 - prevalence) / prevalence
        limit = odds / (1 + odds)
    gains = np.where(LABELS, 1 - limit, -limit)
    ids = np.arange(N) if clusters is None else clusters
    distinct, z = np.unique(scores), []
    for threshold in distinct:
        flagged = scores >= threshold
        residual = gains * flagged
        if prevalence is not None:
            shares = np.where(LABELS, flagged[LABELS].mean(), flagged[~LABELS].mean())
            residual = gains * (flagged - shares)
        variance = (np.bincount(ids, residual) ** 2).sum() + 2 * (limit**2 + (1 - limit) ** 2)
        z.append((gains * flagged).sum() / np.sqrt(variance))
    lowest = np.flatnonzero(np.array(z) >= -1.959964)[0]
    enough = np.flatnonzero(np.array(z) > 1.959964)
    below = distinct[lowest - 1] if lowest else -np.inf
    expected = below, distinct[enough[0]] if len(enough) else np.inf
    np.testing.assert_allclose([found.low, found.high], expected, rtol=1e-6)
    assert found.low < found.estimate <= found.high
    assert found.method == "closed form"


def test_limits_of_a_precision_that_all_or_nothing_has():
    """Infinite where all or nothing may be precise: three of three are too few for 0.5."""
    scores = np.append(np.arange(60.0), [0, -1])  # a positive and a negative tie near the end

    def limits(top, **options):
        labels = np.append(top, [False, True])
        found = jm.operating_point(scores, labels, **options, **FEW).threshold
        return float(found.low), float(found.high)

    half, order = np.arange(60) < 30, np.arange(60)
    assert limits(half, min_precision=0.9) == (54, np.inf)  # 0.9 k <= 1.96 (0.81 k + 1.64)^.5
    assert limits(half, min_precision=0.1)[0] == -np.inf
    for most, ends in ((57, True), (40, False)):
        found = limits((order >= most) | (order == 0), min_precision=0.5)[1]
        assert (found == np.inf) == ends


TEN, THREE_OF_FIVE = np.arange(9.0, -1, -1), np.isin(np.arange(10), [0, 1, 4])


def _threshold(limit):
    found = jm.operating_point(TEN, THREE_OF_FIVE, min_precision=limit, **FEW)
    return found.threshold.estimate


@pytest.mark.parametrize("limit", [marked(0.6, fast=False), np.float32(0.6), jnp.float32(0.6)])
def test_a_precision_that_is_just_met(limit):
    """Three of five are 0.6, also to the digits of a 32-bit limit: eager, traced and resampled."""
    assert _threshold(limit) == jax.jit(_threshold)(limit) == 5
    items = Items(TEN[None], THREE_OF_FIVE)
    found = replicates_of(partial(chosen_point, min_precision=limit), items, UNSTRATIFIED)
    assert found.values.threshold[0] == 5


@pytest.mark.parametrize("unit", [1.0, 0.1, marked(1 / 3, fast=False)])
def test_an_effective_size_that_is_whole_but_for_rounding(unit, x64):
    """Positives of weights 1, 1, 1, 3 and 2 are 64 / 16 = 4 draws, of which the lowest counts."""
    scores = [2, -0.1, 0.2, 0.8, -1.3, -0.3, 0.4, -2, 1.1]
    weights = np.array([1, 1, 1, 3, 2, 1, 1, 1, 1]) * unit
    found = jm.operating_point(scores, [1] * 5 + [0] * 4, weights=weights, min_recall=0.3)
    assert (found.threshold.low, found.threshold.high) == (-1.3, np.inf)
