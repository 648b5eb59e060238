"""What a threshold does: the choice, the rates that it reports, and what is refused."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from chosen_points import COSTS, FEW, KEY, LABELS, N_POSITIVE, RULES, N, best, drawn
from fast import marked

import jaxmetrics as jm
from jaxmetrics.inference._at_threshold import _moments

NAMES = ("recall", "fpr", "precision", "npv", "flagged", "cost", "recall_by_amount")


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


def test_best_to_flag_nothing():
    """All that is flagged in resamples is a negative or two."""
    point = jm.operating_point(
        [0.8, 0.9, 0.1, 0.2, 0.3, 0.4], [0, 0, 1, 1, 0, 0], fp_cost=1.0, fn_cost=0.1, **FEW
    )
    assert point.threshold.estimate == np.inf
    assert point.flagged.estimate == point.flagged.low == 0 < point.flagged.high < 1
    assert 0 <= point.cost.low < point.cost.estimate < point.cost.high < 1


def test_moments_of_a_choice_leave_out_what_is_undefined():
    """Of a precision, where a resample or the data flag nothing at the threshold."""
    in_resamples, in_data = np.array([[0.5, 0.8, np.nan, 0.9], [0.4, np.nan, 0.6, 0.6]])
    found = _moments(in_resamples[:, None], in_data[:, None])
    d = [0.1, 0.3]
    expected = np.mean(d), np.var(d, ddof=1), (0.4 * 0.6 + 0.6 * 0.4) / 2
    np.testing.assert_allclose(np.concatenate(found), expected, rtol=1e-12)


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
        ({"criterion": "f1"}, ValueError, "criterion must be 'youden'"),
        ({"criterion": "youden"}, TypeError, "key is missing, and clusters, costs"),
        ({"threshold": "0.5"}, TypeError, r"threshold must be a number in .*, got '0.5'"),
        ({"max_fpr": 0.1, "clusters": [0, 1, 2, 3]}, TypeError, "key is missing"),
        ({"max_fpr": 0.1, "prevalence": 1.0}, ValueError, r"prevalence must be in \(0, 1\)"),
    ],
)
def test_refuses(options, error, words):
    with pytest.raises(error, match=words):
        jm.operating_point([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1], **options)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
def test_a_threshold_may_be_traced(dtype):
    scores = np.array([1, 4, 3, 8, 7, 2]).astype(dtype)
    labels = np.array([0, 0, 1, 1, 1, 0])

    def recall(threshold):
        return jm.operating_point(scores, labels, threshold=threshold).recall.low

    expected = [recall(x) for x in (4, 7, 9)]
    np.testing.assert_array_equal(jax.vmap(recall)(jnp.array([4.0, 7.0, 9.0])), expected)
    assert jax.jit(recall)(4.0) == expected[0]
    if dtype != "int32":
        assert jax.grad(recall)(4.0) == 0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("threshold", [np.inf, -np.inf, 70000.0])
def test_infinite_thresholds_and_those_beyond_the_scores_are_printed(threshold):
    scores = np.array([0.1, 0.4, 0.35, 0.8, 0.7, 0.2], np.float16)
    found = jm.operating_point(scores, [0, 0, 1, 1, 1, 0], threshold=threshold)
    assert found.recall.estimate == (threshold < 0)
    assert "inf" in str(found)
    assert "inf" in str(found.threshold)


def test_wide_limits_hide_no_digits_of_a_threshold():
    scores = np.array([0.123, 0.4, 0.35, 0.8, 0.735, 0.2, 1.3, -4]) / 1000
    found = jm.operating_point(scores, [0, 0, 1, 1, 1, 0, 1, 0], max_fpr=0.2)
    assert str(found).startswith("threshold 0.000735 (-0.004000 to inf)")


@pytest.mark.parametrize(("least", "threshold"), [(0.3, 3), (0.4, 5), (0.45, 8)])
def test_precision_at_a_prevalence_by_hand(least, threshold):
    """0.2 TPR / (0.2 TPR + 0.8 FPR) is 1 / 3 at the score 3, 3 / 7 at 5, and 1 at 8 alone."""
    labels = [1, 0, 1, 1, 0, 1, 0, 0]
    options = {"min_precision": least, "prevalence": 0.2, **FEW}
    found = jm.operating_point(np.arange(8.0, 0, -1), labels, **options)
    assert found.threshold.estimate == threshold
