"""Planned studies: the power of a z test and of Student's t, sizes that attain it, and refusals."""

from functools import partial

import jax
import numpy as np
import pytest
from scipy import stats

import jaxmetrics as jm
from jaxmetrics.inference._planning import Effect, Errors, power_of

N, N_POSITIVE = 120, 40
LABELS = np.arange(N) < N_POSITIVE
RECALL = partial(jm.recall_at_fpr, max_fpr=0.2)


@pytest.fixture(scope="module")
def scores():
    rng = np.random.default_rng(5)
    common, own = rng.normal(size=N), rng.normal(size=(2, N))
    return common + 0.5 * own + np.array([[1.4], [1.1]]) * LABELS


def variances(metric, scores):
    """By class the variance of the difference of the influence values of two models."""
    phi = np.asarray(jm.influence(metric, scores, LABELS), float)
    d = phi[0] - phi[1]
    return d[~LABELS].var(ddof=1), d[LABELS].var(ddof=1)


def z_power(difference, error, alpha=0.05):
    z = stats.norm.isf(alpha / 2)
    return stats.norm.sf(z - difference / error) + stats.norm.cdf(-z - difference / error)


@pytest.mark.parametrize("metric", [jm.roc_auc, RECALL, jm.average_precision])
def test_power_of_a_large_study_is_that_of_a_z_test(metric, scores, x64):
    v0, v1 = variances(metric, scores)
    n1, n0 = 200_000, 300_000
    error = np.sqrt(v0 / n0 + v1 / n1)
    differences = np.array([0.0, 1.0, 2.8, 4.0]) * error
    found = jm.power(metric, scores, LABELS, difference=differences, n_positives=n1, n_negatives=n0)
    np.testing.assert_allclose(found, z_power(differences, error), atol=5e-4)
    np.testing.assert_allclose(found[0], 0.05, atol=5e-4)


def test_size_of_a_large_study_is_that_of_the_formula(scores, x64):
    v0, v1 = variances(jm.roc_auc, scores)
    for ratio in (None, 1.0, 10.0):
        r = (N - N_POSITIVE) / N_POSITIVE if ratio is None else ratio
        formula = (v1 + v0 / r) * ((stats.norm.isf(0.025) + stats.norm.isf(0.1)) / 0.001) ** 2
        needed = jm.sample_size(
            jm.roc_auc, scores, LABELS, difference=0.001, power=0.9, ratio=ratio
        )
        np.testing.assert_allclose(needed.n_positives, formula, rtol=2e-3)
        np.testing.assert_allclose(needed.n_negatives, r * formula, rtol=2e-3)


def test_agrees_with_hanley_and_mcneil():
    """Exponential scores have their variances, A / (2 - A) - A^2 and 2 A^2 / (1 + A) - A^2."""
    rng, n, area = np.random.default_rng(0), 40_000, 0.8
    labels = np.arange(2 * n) < n
    scores = rng.exponential(np.where(labels, area / (1 - area), 1.0))
    needed = jm.sample_size(jm.roc_auc, scores, labels, difference=0.01, ratio=2)
    v0, v1 = area / (2 - area) - area**2, 2 * area**2 / (1 + area) - area**2
    z = (stats.norm.isf(0.025) + stats.norm.isf(0.2)) / 0.01
    np.testing.assert_allclose(needed.n_positives, (v1 + v0 / 2) * z**2, rtol=0.03)


def test_power_of_students_t():
    """Against the noncentral t, where the degrees of freedom are few."""
    for df in (10.0, 30.0):
        for effect in (1.0, 2.0, 3.5):
            t = stats.t.isf(0.025, df)
            exact = stats.nct.sf(t, df, effect) + stats.nct.cdf(-t, df, effect)
            errors = Errors(*(np.float64(x) for x in (1.0, 1.0, df)))
            found = power_of(errors, Effect(np.float64(effect), None), np.float64(0.95))
            np.testing.assert_allclose(found, exact, atol=0.002)


def test_power_is_that_of_the_models_in_turn(scores):
    """Of either sign of the difference, too, whose skewness makes it depend on its error."""
    given = {"n_positives": 5, "n_negatives": 5}
    found = jm.power(jm.roc_auc, scores, LABELS, difference=[-0.01, 0.0, 0.05], **given)
    turned = jm.power(jm.roc_auc, scores[::-1], LABELS, difference=[0.01, 0.0, -0.05], **given)
    np.testing.assert_allclose(found, turned, rtol=1e-5)


@pytest.mark.parametrize("options", [{}, {"paired": False}, {"margin": 0.02}], ids=str)
def test_sizes_have_the_power(options, scores):
    """One positive less does not; both are whole numbers."""
    needed = jm.sample_size(jm.roc_auc, scores, LABELS, difference=0.05, power=0.85, **options)
    n1, n0 = float(needed.n_positives), float(needed.n_negatives)
    assert n1 == round(n1)
    assert n0 == round(n0)
    at = partial(jm.power, jm.roc_auc, scores, LABELS, difference=0.05, **options)
    assert at(n_positives=n1, n_negatives=n0) >= 0.85
    assert at(n_positives=n1 - 1, n_negatives=n0 - 2) < 0.85


def test_two_samples_and_one_value(scores):
    """Of two samples the variances add up; against a value there is that of one model."""
    errors = np.asarray(jm.standard_error(jm.roc_auc, scores, LABELS), float)
    sizes = {"difference": 0.002, "paired": False}
    two = jm.sample_size(jm.roc_auc, scores, LABELS, **sizes)
    z = (stats.norm.isf(0.025) + stats.norm.isf(0.2)) / 0.002
    expected = N_POSITIVE * (errors**2).sum() * z**2
    np.testing.assert_allclose(two.n_positives, expected, rtol=1e-2)
    same = jm.sample_size(jm.roc_auc, scores[0], LABELS, **sizes)
    np.testing.assert_allclose(same.n_positives, 2 * N_POSITIVE * errors[0] ** 2 * z**2, rtol=1e-2)
    value = jm.sample_size(jm.roc_auc, scores[0], LABELS, difference=0.002)
    np.testing.assert_allclose(value.n_positives, same.n_positives / 2, rtol=1e-2)
    together = jm.sample_size(jm.roc_auc, scores, LABELS, difference=0.002)
    assert together.n_positives < two.n_positives


def test_pilot_that_is_large_enough_has_its_own_error(scores):
    needed = jm.power(jm.roc_auc, scores, LABELS, difference=0.1)
    same = jm.power(
        jm.roc_auc,
        scores,
        LABELS,
        difference=0.1,
        n_positives=N_POSITIVE,
        n_negatives=N - N_POSITIVE,
    )
    np.testing.assert_allclose(needed, same, rtol=1e-6)
    compared = jm.compare(jm.roc_auc, scores, LABELS)
    margin = np.asarray(compared.high - compared.difference)[0, 1]
    # A difference as large as the margin of its limits is found in one of two studies.
    half = jm.power(jm.roc_auc, scores, LABELS, difference=margin)
    np.testing.assert_allclose(half, 0.5, atol=0.02)


@pytest.mark.parametrize("metric", [jm.roc_auc, partial(jm.partial_auc, max_fpr=0.3)])
def test_a_value_at_a_limit_is_found_in_one_of_two_studies(metric, scores):
    """On the logit scale, whose limits are not as far below the estimate as above it."""
    scores = scores[0] + 2.5 * LABELS
    found = jm.confidence_interval(metric, scores, LABELS, method="logit")
    below, above = found.estimate - found.low, found.high - found.estimate
    assert below > 1.1 * above
    for difference in (below, -above):
        power = jm.power(metric, scores, LABELS, difference=difference)
        np.testing.assert_allclose(power, 0.5, atol=0.02)
    one_sided = jm.confidence_interval(metric, scores, LABELS, method="logit", confidence_level=0.9)
    margin = one_sided.estimate - one_sided.low
    power = jm.power(metric, scores, LABELS, margin=margin)
    np.testing.assert_allclose(power, 0.5, atol=0.02)
    raw, share = (partial(jm.partial_auc, max_fpr=0.3, scale=x) for x in ("raw", "range"))
    for part in (0.3, 1.2):
        d = part * (1 - jm.partial_auc(scores, LABELS, max_fpr=0.3, scale="range")) / 4
        own = jm.power(share, scores, LABELS, difference=-d)
        np.testing.assert_allclose(
            jm.power(raw, scores, LABELS, difference=-0.3 * d), own, rtol=1e-4
        )
    assert np.isnan(jm.power(jm.roc_auc, scores, LABELS, difference=-0.4))  # a value above 1
    split = jm.power(metric, scores, LABELS, difference=margin / 4, margin=3 * margin / 4)
    np.testing.assert_allclose(split, power, rtol=1e-4)


@pytest.mark.parametrize("metric", [jm.roc_auc, partial(jm.partial_auc, max_fpr=0.3)])
def test_width(metric, scores):
    """Of each model; of many items it is that of the normal interval."""
    width = 0.003
    needed = jm.sample_size(metric, scores, LABELS, width=width)
    errors = np.asarray(jm.standard_error(metric, scores, LABELS), float)
    expected = N_POSITIVE * (2 * stats.norm.isf(0.025) * errors / width) ** 2
    np.testing.assert_allclose(needed.n_positives, expected, rtol=0.01)
    np.testing.assert_allclose(2 * stats.norm.isf(0.025) * needed.standard_error, width, rtol=0.01)
    wide = jm.sample_size(metric, scores[0], LABELS, width=[0.1, 0.2])
    assert wide.n_positives[0] > wide.n_positives[1] >= 2


def test_where_leaves_items_out(scores):
    where = np.arange(N) % 5 > 0
    plan = partial(jm.sample_size, jm.roc_auc, difference=0.05)
    masked = plan(np.where(where, scores, np.nan), LABELS, where=where)
    kept = plan(scores[:, where], LABELS[where])
    jax.tree.map(np.testing.assert_array_equal, masked, kept)


def test_edges(scores):
    """No difference is found by no study; a class of one item says nothing."""
    none = jm.sample_size(jm.roc_auc, scores, LABELS, difference=0.0)
    assert np.isinf(none.n_positives)
    assert np.isinf(
        jm.sample_size(jm.roc_auc, scores, LABELS, difference=-0.1, margin=0.05).n_positives
    )
    one = jm.sample_size(jm.roc_auc, [0.1, 0.4, 0.3], [0, 0, 1], width=0.1)
    assert np.isnan([one.n_positives, one.n_negatives, one.standard_error]).all()
    assert np.isnan(jm.power(jm.roc_auc, scores, LABELS > 1, difference=0.1))


@pytest.mark.slow
def test_works_in_jit(scores):
    plan = partial(jm.sample_size, jm.roc_auc, labels=LABELS, difference=0.05)
    outside, inside = plan(scores), jax.jit(plan)(scores)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-4), inside, outside)


def test_warns_of_a_limit_within_a_tie(rng):
    """The slope there depends on the size of the pilot, and not on that of the study."""
    labels = np.arange(800) < 600
    scores = np.round(2 * (rng.normal(size=(2, 800)) + labels * [[1.0], [1.7]])) / 2
    recall = partial(jm.recall_at_fpr, max_fpr=0.1)
    for plan in (jm.power, jm.sample_size):
        with pytest.warns(UserWarning, match="within a tie of .*: plan for partial areas"):
            plan(recall, scores, labels, difference=0.2)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({}, TypeError, "one question must be asked: write width=0.05"),
        ({"width": 0.1, "difference": 0.1}, TypeError, "one question must be asked"),
        ({"width": 0.1, "margin": 0.1}, TypeError, "one question must be asked"),
        ({"width": -0.1}, ValueError, r"width must be in \(0, 1\)"),
        ({"width": 5}, ValueError, "width must be .*got 5: write fractions, 0.01 for 1 %"),
        ({"difference": -5}, ValueError, r"difference must be in \(-1, 1\), got -5"),
        ({"margin": 5}, ValueError, "margin must be .*write fractions"),
        ({"difference": 0.1, "power": 80}, ValueError, r"power must be in \(0, 1\)"),
        ({"difference": 0.1, "ratio": 0}, ValueError, "ratio must be"),
        ({"difference": 0.1, "paired": 1}, TypeError, "paired must be True or False"),
        ({"difference": 0.1, "confidence_level": 95}, ValueError, "write 0.95 for 95 %"),
    ],
)
def test_refuses(options, error, words, scores):
    with pytest.raises(error, match=words):
        jm.sample_size(jm.roc_auc, scores, LABELS, **options)


def test_refuses_what_it_cannot_plan(scores):
    with pytest.raises(ValueError, match="average_precision does: take a pilot"):
        jm.sample_size(jm.average_precision, scores, LABELS, difference=0.1, ratio=1)
    with pytest.raises(ValueError, match=r"scores must be \[n\] of one model or \[2, n\]"):
        jm.power(jm.roc_auc, scores[[0, 1, 1]], LABELS, difference=0.1)
    metric = partial(jm.precision_at_recall, min_recall=0.5)
    with pytest.raises(TypeError, match="not known to be smooth"):
        jm.power(metric, scores, LABELS, difference=0.1)
    with pytest.raises(TypeError, match="difference is missing"):
        jm.power(jm.roc_auc, scores, LABELS)


NOTHING_TO_LEARN = "the pilot has no errors, or its models no difference, to learn from"


@pytest.mark.parametrize("metric", [jm.roc_auc, jm.average_precision])
@pytest.mark.parametrize("difference", [0.05, -0.05])
def test_a_pilot_whose_models_rank_alike_plans_nothing(metric, difference, scores):
    alike = np.stack([scores[0], np.exp(scores[0])])
    for plan in (jm.power, lambda *x, **y: jm.sample_size(*x, **y).n_positives):
        for given in (alike, 0 * scores[0]):
            with pytest.warns(UserWarning, match=NOTHING_TO_LEARN):
                assert np.isnan(plan(metric, given, LABELS, difference=difference))


@pytest.mark.parametrize("metric", [jm.roc_auc, partial(jm.recall_at_fpr, max_fpr=0.3)])
def test_a_pilot_without_errors_plans_nothing(metric):
    scores, labels = np.arange(40.0), np.arange(40) >= 20
    for plan in (partial(jm.sample_size, width=0.2), partial(jm.sample_size, difference=-0.1)):
        with pytest.warns(UserWarning, match=NOTHING_TO_LEARN):
            assert np.isnan(plan(metric, scores, labels, paired=True).n_positives)
    with pytest.warns(UserWarning, match=NOTHING_TO_LEARN):
        assert np.isnan(jm.power(metric, scores, labels, difference=-0.1, paired=True))
