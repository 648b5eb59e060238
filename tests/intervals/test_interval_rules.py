"""Closed-form intervals: their written formulas, constants and branches."""

from functools import partial

import interval_formulas as formulas
import jax
import numpy as np
import pytest
from fast import in_turn
from interval_rules import LEVELS, MAX_FPR, RULES, by_numpy, doubled, moments
from scipy import special, stats

import jaxmetrics as jm
from jaxmetrics.inference._intervals import areas, precision, recall, rules


def test_values():
    first = moments(0.9, (0.03, 0.02), (180, 20))
    second = moments(0.95, (0.012, 0.0096), (3000, 30))
    limits = [by_numpy(areas.auc, x, 0.95) for x in (first, second)]
    expected = [(0.78322811, 0.95167539), (0.87197641, 0.97479073)]
    np.testing.assert_allclose(limits, expected, rtol=0, atol=1e-8)


# Estimates, variances and sizes: many and few soft failures and successes, and in between.
SAMPLES = [
    (0.9, (0.03, 0.02), (180, 20)),
    (0.62, (0.08, 0.11), (40, 40)),
    (0.993, (0.002, 0.0013), (900, 46)),
    (0.9985, (0.0004, 0.0001), (500, 30)),
    (0.011, (0.0002, 0.003), (300, 25)),
    (0.21, (0.01, 0.05), (5000, 26)),
    (0.97, (0.0, 0.02), (30, 60)),
    (0.975, (0.004, 0.006), (200, 50)),
    (0.99, (0.002, 0.003), (500, 30)),
    (0.325, (1e-4, 2e-4), (20, 20)),  # hardly a positive above a negative
    (0.35, (0.001, 0.002), (30, 30)),
    (0.5, (1e-7, 1e-7), (40, 40)),  # nearly all tie
    (0.5, (3e-4, 4e-4), (40, 20)),
    (0.8, (1e-4, 1e-4), (5, 60)),
    (0.9991, (2e-5, 3e-5), (80, 90)),
    # Between the counts where a limit begins to move and where it has moved.
    (0.99, (0.002, 0.001), (300, 200)),
    (0.8, (1e-6, 0.14), (5000, 300)),
    (0.975, (0.001, 0.0025), (300, 30)),
]


def written(name, sample, level):
    estimate, _, (_, n1) = sample
    if name == "partial_auc":
        return formulas.partial_auc(*sample, level, MAX_FPR, min(1, 1.2 * estimate))
    if name == "average_precision":
        return formulas.average_precision(*sample, level, estimate * (1 - 0.5 / (n1 + 1)))
    if name == "of_few_failures":  # with Jeffreys' counts
        return formulas.of_few_failures((0.3, 0.7), estimate, n1, (1, 1.5), level)
    if name == "of_whole_failures":
        return formulas.of_whole_failures((estimate, estimate), *sample, level)
    return getattr(formulas, name)(*sample, level)


def of_whole_failures(sample, level):
    """Of an interval without width, which they widen whatever the number."""
    classes = list(zip(sample.variances, sample.sizes, strict=True))
    return rules.of_whole_failures((sample.estimate,) * 2, sample.estimate, classes, level)


def of_few_failures(sample, level):
    return rules.of_few_failures((0.3, 0.7), sample.estimate, sample.sizes[1], (1.0, 1.5), level)


NAMES = ["logit_t", "auc", "partial_auc", "average_precision"]


@pytest.mark.parametrize("name", [*NAMES, "of_few_failures", "of_whole_failures"])
def test_written_formulas(name):
    """Each rule is what its text says, by SciPy."""
    samples = jax.tree.map(lambda *x: np.array(x), *(moments(*x) for x in SAMPLES))
    parts = {"of_few_failures": of_few_failures, "of_whole_failures": of_whole_failures}
    rule = {**RULES, **parts}[name]
    for level in LEVELS:
        limits = np.transpose([written(name, sample, level) for sample in SAMPLES])
        np.testing.assert_allclose(doubled(rule, samples, level), limits, rtol=1e-9)


@pytest.mark.parametrize(
    ("module", "name"),
    [(areas, x) for x in ("_PSEUDO_AUC", "_PSEUDO_PARTIAL", "PRIOR")]
    + [(areas, x) for x in ("_FEWEST", "_FEWEST_POSITIVES")]
    + [(precision, x) for x in ("_FEW", "_FEW_ABOVE", "_FEWEST", "KURTOSIS")]
    + [(rules, x) for x in ("_UNSEEN", "MANY_FAILURES")],
)
def test_no_constant_may_change(module, name, monkeypatch):
    """Each one by 3 % makes a rule differ from its text for one of the samples."""
    samples = jax.tree.map(lambda *x: np.array(x, float), *(moments(*x) for x in SAMPLES))
    of_rules = {name: RULES[name] for name in NAMES} | {"of_whole_failures": of_whole_failures}

    def limits():
        with np.errstate(all="ignore"):
            return [np.array(rule(samples, np.float64(0.95))) for rule in of_rules.values()]

    expected, value = limits(), np.array(getattr(module, name))
    for place in range(value.size):
        changed = value * np.where(np.arange(value.size) == place, 1.03, 1)
        changed = tuple(changed) if value.ndim else float(changed[0])
        monkeypatch.setattr(module, name, changed)
        worst = max(np.max(abs(x - y)) for x, y in zip(limits(), expected, strict=True))
        assert worst > 1e-8, place


def test_samples_reach_every_branch():
    """Of the widening to Beta limits: not at all, in part and all of it, on both sides."""
    for fewest, size in ((1 / 4, min), (1.0, lambda sizes: sizes[1])):
        failures = np.array([(1 - a) * size(n) for a, _, n in SAMPLES]) / fewest
        assert (failures > 1.5).any()
        assert (failures < 1).any()
        assert ((failures > 1) & (failures < 1.5)).any()
    successes = np.array([a * n[1] for a, _, n in SAMPLES])
    assert (successes < 1).any()
    assert ((successes > 4) & (successes < 6)).any()
    above = np.array([n[1] * formulas.share_above(a, n[0] / n[1]) for a, _, n in SAMPLES])
    assert (above < 1).any()
    assert ((above > 1) & (above < 2)).any()
    # The Beta limits are wider than those of the rule that they replace.
    estimate, variances, sizes = SAMPLES[3]
    narrow = formulas.logit_t(estimate, variances, sizes, 0.95)
    assert doubled(areas.auc, moments(*SAMPLES[3]), 0.95)[0] < narrow[0] - 0.02


# A curve that is steep, one that is flat and then steep, few positives, and limits on steps.
CURVES = [(0, 60, 300, 0.1), (1, 25, 200, 0.05), (2, 200, 45, 0.2), (3, 40, 1000, 0.0125)]


def sample_of_curve(seed, n1, n0):
    rng = np.random.default_rng(seed)
    positives, negatives = rng.normal(size=n1) + 1.3, rng.normal(size=n0)
    if seed == 1:  # half of the positives are where the slope is not looked for, but the box is
        low, high = np.sort(negatives)[[-15, -14]]
        positives[: n1 // 2] = rng.uniform(low, high, n1 // 2)
    return positives, negatives


@pytest.mark.parametrize(("curve", "level"), in_turn(CURVES, LEVELS))
def test_written_formula_of_recall(curve, level):
    seed, n1, n0, max_fpr = curve
    positives, negatives = sample_of_curve(seed, n1, n0)

    def height(fpr):
        return formulas.height(positives, negatives, fpr)

    low, high = formulas.around_limit(max_fpr, n0)
    heights = recall.Heights(
        height(max_fpr),
        height(max_fpr - 1e-6),
        height(low),
        height(high),
        formulas.divided_area(positives, negatives, max_fpr),
    )
    counts = by_numpy(recall.likely_counts, max_fpr, n0, level)
    box = recall.Box(*(height(x) if x >= 0 else 0.0 for x in counts))
    unweighted = moments(heights.at, (0.0, 0.0), (n0, n1))
    found = by_numpy(recall.recall, unweighted, heights, box, max_fpr, level)
    expected = formulas.recall(positives, negatives, max_fpr, level)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    slope = by_numpy(recall.squared_slope, heights, max_fpr, (n0, n1))
    np.testing.assert_allclose(
        slope, formulas.squared_slope(positives, negatives, max_fpr), rtol=1e-9
    )


@pytest.mark.parametrize("n_tied", [95, 101, 106, 109])
def test_ties_just_beyond_the_limit(n_tied):
    """1 % of 10,000 negatives tie with 94 of 2,000 positives, at the top: the recall is 0 or 4.7 %,
    and Wilson's limit is that of half a draw."""
    positives = np.concatenate([np.ones(94), np.linspace(0, 0.9, 1906)])
    negatives = np.concatenate([np.ones(n_tied), np.linspace(0, 0.9, 10_000 - n_tied)])
    scores = np.concatenate([negatives, positives])
    labels = np.arange(12_000) >= 10_000
    found = jm.confidence_interval(partial(jm.recall_at_fpr, max_fpr=0.01), scores, labels)
    assert found.low == 0
    assert 94 / 2000 < found.high < 94 / 2000 + 4.5 * np.sqrt(94) / 2000


def test_the_box_widens_where_the_slope_is_wrong():
    positives, negatives = sample_of_curve(1, 25, 200)
    slope, box = (
        f(positives, negatives, 0.05, 0.95) for f in (formulas.recall_of_slope, formulas.recall_box)
    )
    assert box[1] > slope[1] + 0.02


def test_counts_of_the_box():
    level, n0, max_fpr = 0.95, np.array([40.0, 300.0, 5000.0]), np.float64(0.05)
    fewest, last, most, *ends = by_numpy(recall.likely_counts, max_fpr, n0, level)
    np.testing.assert_allclose(fewest * n0, stats.binom.ppf(0.1, n0, max_fpr) - 1, atol=1e-9)
    np.testing.assert_allclose(last * n0, stats.binom.ppf(0.9, n0, max_fpr) - 1, atol=1e-9)
    np.testing.assert_allclose(most * n0, stats.binom.ppf(0.9, n0, max_fpr), atol=1e-9)
    for x, q in zip([ends[0] + 1 / n0, ends[1]], [0.00125, 0.99875], strict=True):
        np.testing.assert_allclose(x * n0, stats.binom.ppf(q, n0, max_fpr), atol=1e-9)
    fewest, *_ = by_numpy(recall.likely_counts, 0.01, 30.0, level)
    assert fewest < 0  # none may be above, so the recall may be 0
    assert by_numpy(recall.likely_counts, 1.0, 30.0, level)[-1] == 1
    counts = by_numpy(recall.likely_counts, 0.95, 10.0, level)
    assert counts[1:3] == (1, 1)  # the limit may be 1


def test_logit_t_is_welchs_on_the_logit_scale():
    low, high = doubled(rules.logit_t, moments(0.8, (0.06, 0.04), (15, 9)), 0.95)
    # Welch's degrees of freedom are those of a difference of two means.
    parts = np.array([0.06 / 15, 0.04 / 9])
    df = parts.sum() ** 2 / np.sum(parts**2 / [14, 8])
    margin = stats.t.ppf(0.975, df) * np.sqrt(parts.sum()) / 0.16
    expected = special.expit(special.logit(0.8) + np.array([-margin, margin]))
    np.testing.assert_allclose([low, high], expected, rtol=1e-10)


def test_wilson():
    for k, n in [(0, 5), (3, 10), (10, 10), (499, 500)]:
        expected = stats.binomtest(k, n).proportion_ci(0.9, method="wilson")
        np.testing.assert_allclose(doubled(rules.wilson, k / n, n, 0.9), expected, atol=1e-14)
    low, high = doubled(rules.wilson, 0.3, 7.25, 0.95)
    z = special.ndtri(0.975)
    for p in (low, high):  # the definition
        np.testing.assert_allclose(abs(0.3 - p), z * np.sqrt(p * (1 - p) / 7.25), rtol=1e-12)
    np.testing.assert_array_equal(doubled(rules.wilson, 0.3, 0, 0.95), [0, 1])


def test_shape_of_the_beta():
    for mean, rho in [(0.9, 0.05), (0.5, 0.3), (0.2, 0.9)]:
        law = stats.beta(mean * (1 / rho - 1), (1 - mean) * (1 / rho - 1))
        np.testing.assert_allclose(law.var(), rho * mean * (1 - mean))
        skewness, kurtosis = law.stats("sk")
        expected = skewness, kurtosis + 3 - 1 - skewness**2
        np.testing.assert_allclose(doubled(areas.beta_shape, mean, rho), expected, atol=1e-12)


def test_variance_of_a_power_law():
    # A negative at u takes from the area what the curve r (u / t)^h falls below its end there.
    t, area = 0.2, 0.6
    h = (0.55 + 0.65 * np.sqrt(t)) * (1 - area)
    u = (np.arange(10**6) + 0.5) / 10**6
    height = area * (1 + h)
    influence = np.where(u < t, height * (1 - (u / t) ** h) / t, 0)
    got = doubled(areas.power_law_variance, area, t)
    np.testing.assert_allclose(got, np.var(influence), rtol=1e-4)


def test_bias_of_few_negatives():
    def bias(area, m, max_fpr, height):
        sizes = m / max_fpr, 1e9
        return area - doubled(areas.centre_of_window, area, sizes, max_fpr, height)

    assert bias(0.6, 10.0, 1.0, 1.0) == 0  # the whole curve has none
    assert bias(0.02, 1.0, 0.1, 1.0) == 0.01  # half of the area
    # Of many negatives: what the end of the curve is above its mean, over twice their number.
    np.testing.assert_allclose(bias(0.6, 1e4, 0.1, 0.75) * 1e4, 0.75 * 0.25 * 0.9 / 2, rtol=1e-3)
