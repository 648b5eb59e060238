"""What a threshold does: the choice, the rates that it reports, and their intervals."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import marked
from scipy import stats

import jaxmetrics as jm
from jaxmetrics._base.types import Items
from jaxmetrics._roc.operating import chosen_point
from jaxmetrics.inference._bootstrap.bootstrap import replicates_of
from jaxmetrics.inference._bootstrap.request import Request
from jaxmetrics.inference._intervals import metrics

N, N_POSITIVE = 120, 40
LABELS = np.arange(N) < N_POSITIVE
KEY = jax.random.key(0)
# Resamples of one number, of at most 128 items that tie, or do not, are one program for each rule.
FEW = {"key": KEY, "n_resamples": 400}
NAMES = ("recall", "fpr", "precision", "npv", "flagged", "cost", "recall_by_amount")
UNSTRATIFIED = Request(**FEW, stratify=False)  # as `operating_point` draws
COSTS = {"fp_cost": 1.0, "fn_cost": 5.0}
RULES = {
    "max_fpr": {"max_fpr": 0.1},
    "min_recall": {"min_recall": 0.7},
    "min_precision": {"min_precision": 0.6, **FEW},
    "threshold": {"threshold": 0.8},
    "youden": {"criterion": "youden", **FEW},
    "cost": FEW,
}


def drawn(rng, *shape):
    return rng.normal(size=(*shape, N)) + 1.2 * LABELS


def by_hand(scores, labels, threshold, prevalence=None, amounts=None, weights=None):
    """What `scores >= threshold` does."""
    weights = np.ones(len(scores)) if weights is None else weights
    flagged = scores >= threshold
    recall, fpr = (np.average(flagged[x], weights=weights[x]) for x in (labels, ~labels))
    share = np.average(labels, weights=weights) if prevalence is None else prevalence
    caught, alarms = share * recall, (1 - share) * fpr
    cleared, missed = (1 - share) * (1 - fpr), share * (1 - recall)
    values = [recall, fpr, caught / (caught + alarms), cleared / (cleared + missed)]
    values.append(caught + alarms)
    values.append(alarms * COSTS["fp_cost"] + share * (1 - recall) * COSTS["fn_cost"])
    if amounts is not None:
        values.append(np.average(flagged[labels], weights=(weights * amounts)[labels]))
    return dict(zip(NAMES, values, strict=False))


@pytest.mark.parametrize(
    ("rule", "prevalence"),
    [
        # Of those that resample one is fast.
        *(marked(x, None, fast="key" not in RULES[x]) for x in RULES),
        ("min_precision", 0.02),
        *(marked(rule, 0.02, fast=False) for rule in ("cost", "max_fpr")),
    ],
)
def test_reports_what_the_threshold_does(rule, prevalence, rng):
    scores, amounts = np.round(drawn(rng), 1), rng.lognormal(size=N)
    options = {**COSTS, **RULES[rule], "prevalence": prevalence, "amounts": amounts}
    point = jm.operating_point(scores, LABELS, **options)
    expected = by_hand(scores, LABELS, np.asarray(point.threshold.estimate), prevalence, amounts)
    for name, value in expected.items():
        found = getattr(point, name)
        np.testing.assert_allclose(found.estimate, value, rtol=1e-6)
        assert 0 <= found.low <= value * (1 + 1e-6) <= found.high * (1 + 1e-6), name
        assert found.low < found.high
        assert found.standard_error > 0
    assert point.threshold.low <= point.threshold.estimate <= point.threshold.high


def best(scores, labels, objective, allowed):
    """The threshold of all scores and +inf that maximises an objective, the highest of several."""
    thresholds = np.append(np.inf, np.unique(scores)[::-1])
    tpr, fpr = ((scores[x][:, None] >= thresholds).mean(axis=0) for x in (labels, ~labels))
    share = labels.mean()
    with np.errstate(invalid="ignore"):
        precision = share * tpr / (share * tpr + (1 - share) * fpr)
    # Rounded, so that equal values of different sums tie.
    rank = np.where(allowed(tpr, fpr, precision), np.round(objective(tpr, fpr), 12), -np.inf)
    return thresholds[np.argmax(rank)]


def test_rules_choose_the_best(x64, rng):
    def anything(tpr, fpr, precision):
        return np.ones(tpr.shape, bool)

    scores = np.round(drawn(rng), 1)  # with ties
    share = LABELS.mean()
    cases = {
        "max_fpr": (lambda t, f: t, lambda t, f, p: f <= 0.1),
        "min_recall": (lambda t, f: t - 1e3 * f, lambda t, f, p: t >= 0.7),
        "min_precision": (lambda t, f: t, lambda t, f, p: p >= 0.6),
        "youden": (lambda t, f: t - f, anything),
        "cost": (lambda t, f: -(1 - share) * f - 5 * share * (1 - t), anything),
    }
    for rule, (objective, allowed) in cases.items():
        options = {**COSTS, **RULES[rule]} if rule == "cost" else RULES[rule]
        found = jm.operating_point(scores, LABELS, **options).threshold.estimate
        assert found == best(scores, LABELS, objective, allowed), rule


def test_agrees_with_the_metrics(rng):
    scores = np.round(drawn(rng), 1)
    at = jm.operating_point(scores, LABELS, max_fpr=0.1)
    np.testing.assert_allclose(at.recall.estimate, jm.recall_at_fpr(scores, LABELS, max_fpr=0.1))
    assert at.threshold.estimate == jm.threshold_at_fpr(scores, LABELS, max_fpr=0.1)
    at = jm.operating_point(scores, LABELS, min_recall=0.7)
    other = jm.specificity_at_sensitivity(scores, LABELS, min_sensitivity=0.7)
    np.testing.assert_allclose(1 - at.fpr.estimate, other, rtol=1e-6)
    cheapest = jm.operating_point(scores, LABELS, **COSTS, **FEW).threshold.estimate
    assert cheapest == jm.min_cost_threshold(scores, LABELS, **COSTS)


def test_of_several_best_points_the_highest_threshold():
    """0.9 and 0.6 both have a recall - FPR of 0.5."""
    scores, labels = [0.9, 0.8, 0.6, 0.4, 0.3, 0.7], [1, 0, 1, 0, 0, 0]
    point = jm.operating_point(scores, labels, criterion="youden", **COSTS, **FEW)
    np.testing.assert_allclose(point.threshold.estimate, 0.9, rtol=1e-6)
    assert (point.recall.estimate, point.fpr.estimate) == (0.5, 0)


@pytest.mark.slow
def test_costs_at_another_prevalence(rng):
    """The rarer positives are, the higher is the cheapest threshold; weights say the same."""
    scores = drawn(rng)
    options = {**COSTS, **FEW}
    amounts = np.ones(N)  # in the program of another test
    often, seldom = (
        jm.operating_point(
            scores, LABELS, prevalence=p, amounts=amounts, **options
        ).threshold.estimate
        for p in (0.5, 0.02)
    )
    assert often < seldom
    weights = np.where(LABELS, 0.02 / N_POSITIVE, 0.98 / (N - N_POSITIVE))
    weighted = jm.operating_point(scores, LABELS, weights=weights, **options)
    assert weighted.threshold.estimate == seldom
    precise = [
        jm.operating_point(scores, LABELS, min_precision=0.2, **COSTS, **FEW, **x)
        for x in ({"prevalence": 0.02, "amounts": amounts}, {"weights": weights})
    ]
    assert precise[0].threshold.estimate == precise[1].threshold.estimate


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
    scores = np.concatenate([np.arange(100.0), np.arange(50, 150)])
    labels = np.arange(200) >= 100
    point = jm.operating_point(scores, labels, max_fpr=0.1)
    fewest, most = stats.binom.ppf([0.025, 0.975], 100, 0.1)
    assert point.threshold.high == 100 - fewest
    assert point.threshold.low == 100 - most - 1
    few = jm.operating_point(scores[90:110], labels[90:110], max_fpr=0.01)
    assert few.threshold.high == np.inf


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


def test_a_light_positive_is_a_precision_of_1():
    scores, labels = -np.arange(8.0), np.array([1, 0, 1, 1, 0, 0, 0, 0])
    weights = np.array([0.5, 1, 1, 2, 1, 1, 1, 1])
    for given in ({}, {"prevalence": 0.3}):
        found = jm.operating_point(scores, labels, weights=weights, max_fpr=0.1, **given).precision
        assert found.estimate == found.high == 1
        assert 0 < found.low < 0.5


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


def test_batch_and_masks(rng):
    """Models of a batch get the same resamples, in any order; a mask leaves items out."""
    scores, out = drawn(rng, 2), LABELS[::-1]
    pairs = []
    for rule in ("max_fpr", "youden"):
        both, swapped = (
            jm.operating_point(x, LABELS, **RULES[rule], **COSTS) for x in (scores, scores[::-1])
        )
        assert both.recall.estimate.shape == (2,)
        pairs.append((both, jax.tree.map(lambda x: x[::-1], swapped)))
    masked = np.where(out, np.nan, scores)
    kept = jm.operating_point(scores[:, ~out], LABELS[~out], **RULES["max_fpr"])
    pairs.append((jm.operating_point(masked, LABELS, **RULES["max_fpr"], where=~out), kept))
    for one, other in pairs:
        jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-5), one, other)


@pytest.mark.slow
def test_works_in_jit(rng):
    scores = jnp.asarray(drawn(rng), jnp.float32)
    for rule in ("max_fpr", "youden"):
        options = {**RULES[rule], **COSTS, "prevalence": 0.1}
        function = partial(jm.operating_point, labels=LABELS, **options)
        outside, inside = function(scores), jax.jit(function)(scores)
        jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-4), inside, outside)


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


def test_few_clusters_that_decide_hardly_show_how_alike_items_are():
    """One of 40 clusters is flagged in part: that items are independent is not known from it."""
    labels, ids = np.arange(N) % 2 == 0, np.arange(N) // 3
    given = {"threshold": 0.5, "clusters": ids, **FEW}
    fpr = jm.operating_point(np.isin(np.arange(N), [1, 3, 60]) * 1.0, labels, **given).fpr
    assert fpr.estimate == 2 / 60
    # Beta limits of 40 draws, not of 60.
    assert fpr.high > 0.97 * stats.beta.ppf(0.975, 40 / 30 + 0.5, 40 * 29 / 30 + 0.5)


def test_edges():
    labels = [0, 0, 1, 1]
    perfect = jm.operating_point([0.1, 0.2, 0.8, 0.9], labels, max_fpr=0.1, **COSTS)
    assert (perfect.recall.estimate, perfect.recall.high, perfect.fpr.low) == (1, 1, 0)
    assert perfect.recall.low > 0
    assert perfect.fpr.high < 1
    worst = jm.operating_point([0.8, 0.9, 0.1, 0.2], labels, max_fpr=0.1, prevalence=0.1)
    assert worst.threshold.estimate == np.inf
    assert worst.recall.estimate == worst.flagged.estimate == 0
    assert np.isnan([worst.precision.estimate, worst.precision.low]).all()
    absent = jm.operating_point([0.8, 0.9], [0, 0], threshold=0.5)
    assert all(np.isnan(x).all() for x in jax.tree.leaves(absent))
    broken = jm.operating_point([0.8, np.nan, 0.1], [0, 1, 1], max_fpr=0.5)
    assert all(np.isnan(x).all() for x in jax.tree.leaves(broken))


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
def test_nothing_is_flagged_at_a_known_prevalence(rng):
    """NPV is 1 less the prevalence, and hardly more if some positives would be flagged."""
    labels = rng.random(2000) < 0.2
    point = jm.operating_point(
        rng.normal(size=2000), labels, fp_cost=1000.0, fn_cost=1.0, prevalence=0.01, key=KEY
    )
    assert point.threshold.estimate == np.inf
    npv = point.npv
    assert 0.9899 < npv.low <= npv.estimate <= npv.high < 0.9905


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({}, TypeError, "one rule must choose the threshold, got none"),
        ({"max_fpr": 0.1, "threshold": 1.0}, TypeError, "got max_fpr and threshold"),
        ({"fp_cost": 1.0}, TypeError, "costs come in pairs, got fp_cost alone"),
        ({"max_fpr": [0.1, 0.2]}, ValueError, "max_fpr must be one number, got 2"),
        ({"threshold": [0.1, 0.2]}, ValueError, "threshold must be one number, got 2"),
        ({"max_fpr": 5}, ValueError, "write fractions, 0.01 for 1 %"),
        ({"criterion": "f1"}, ValueError, "criterion must be one of 'youden'"),
        ({"criterion": "youden"}, TypeError, "key is missing, and clusters, costs"),
        ({"threshold": "0.5"}, TypeError, r"threshold must be a number in .*, got '0.5'"),
        ({"max_fpr": 0.1, "clusters": [0, 1, 2, 3]}, TypeError, "key is missing"),
        ({"max_fpr": 0.1, "prevalence": 1.0}, ValueError, r"prevalence must be in \(0, 1\)"),
    ],
)
def test_refuses(options, error, words):
    with pytest.raises(error, match=words):
        jm.operating_point([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1], **options)


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


@pytest.mark.slow
def test_a_threshold_of_enough_recall_holds_with_few_clustered_positives(rng):
    """The lower limit is the threshold that guarantees a recall: an order statistic, or none."""
    labels, ids = np.arange(400) < 12, np.arange(400) // 2
    given = {"min_recall": 0.95, "clusters": ids, "key": KEY, "n_resamples": 60}
    point = jm.operating_point(rng.normal(size=400) + labels, labels, **given)
    assert point.threshold.low == -np.inf
    assert point.recall.low < 0.8
    assert point.precision.high < 0.2


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
