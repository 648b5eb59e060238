"""Comparison of models: paired tests, simultaneous limits and permutations."""

import itertools
from functools import partial

import jax
import numpy as np
import pytest
from scipy import integrate, optimize, stats

import jaxmetrics as jm
from jaxmetrics._base.double import double_program
from jaxmetrics._base.types import Items
from jaxmetrics.inference import _comparison, _permutation

# With xdist's --dist loadgroup one worker compiles each program once.
pytestmark = pytest.mark.xdist_group("comparison")

KEY = jax.random.key(31)
N = 200
RECALL = partial(jm.recall_at_fpr, max_fpr=0.1)


@pytest.fixture(scope="module")
def data():
    """Four models, of which the last says the same as the first in another unit, and labels."""
    rng = np.random.default_rng(2)
    labels = np.arange(N) % 10 < 3
    common = rng.normal(size=N) + 1.2 * labels
    scores = common + np.array([0.2, 0.6, 4.0])[:, None] * rng.normal(size=(3, N))
    scores = scores.round(1)
    return np.stack([*scores, np.exp(scores[0])]), labels


@pytest.fixture(scope="module")
def compared(data):
    return jm.compare(jm.roc_auc, *data)


def close(a, b, rtol=2e-5):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=1e-6)


def delong(scores, labels):
    """The areas and their covariance."""
    positive, negative = scores[:, labels], scores[:, ~labels]
    difference = positive[:, :, None] - negative[:, None]
    wins = (difference > 0) + (difference == 0) / 2
    v10, v01 = wins.mean(axis=2), wins.mean(axis=1)
    return wins.mean(axis=(1, 2)), np.cov(v10) / v10.shape[1] + np.cov(v01) / v01.shape[1]


def errors_of_differences(covariance):
    variances = np.diag(covariance)
    return np.sqrt(np.maximum(variances[:, None] + variances - 2 * covariance, 0))


# ---- pairs


def test_pairs_are_those_of_delong(data, compared):
    areas, covariance = delong(*data)
    difference = areas[:, None] - areas
    error = errors_of_differences(covariance)
    close(compared.estimate, areas)
    close(compared.difference, difference)
    close(compared.standard_error, error)
    z = stats.norm.ppf(0.975)
    close(compared.low, difference - z * error)
    close(compared.high, difference + z * error)
    pairs = ~np.eye(4, dtype=bool)
    pairs[0, 3] = pairs[3, 0] = False
    close(compared.p_value[pairs], 2 * stats.norm.sf(np.abs(difference[pairs] / error[pairs])))


def test_row_minus_column(compared):
    close(compared.difference, -compared.difference.T)
    close(compared.low, -compared.high.T)
    close(compared.simultaneous_low, -compared.simultaneous_high.T)
    for p in (compared.p_value, compared.simultaneous_p_value):
        np.testing.assert_array_equal(p, p.T)


def test_models_that_are_equal(compared):
    """A model and itself, and the same in another unit: no difference, without doubt."""
    for i, j in (*zip(range(4), range(4), strict=True), (0, 3), (3, 0)):
        for name in ("difference", "low", "high", "simultaneous_low", "simultaneous_high"):
            assert getattr(compared, name)[i, j] == 0
        assert compared.p_value[i, j] == 1
        assert compared.simultaneous_p_value[i, j] == 1


def test_all_at_once_is_more_careful(compared):
    pairs = ~np.eye(4, dtype=bool)
    assert (compared.simultaneous_low <= compared.low)[pairs].all()
    assert (compared.simultaneous_high >= compared.high)[pairs].all()
    assert (compared.simultaneous_p_value >= compared.p_value - 1e-3).all()
    # Fewer than six comparisons, of which some are one, cost less than Bonferroni's.
    wide = (compared.simultaneous_high - compared.difference)[0, 1]
    assert wide < stats.norm.isf(0.025 / 6) * compared.standard_error[0, 1]


def test_the_best_is_among_the_best(compared):
    assert compared.best_set[np.argmax(compared.estimate)]
    np.testing.assert_array_equal(compared.best_set[0], compared.best_set[3])
    worst = np.argmin(compared.estimate)
    assert compared.simultaneous_high[worst, 0] < 0
    assert not compared.best_set[worst]


def test_chi2(data, compared):
    """Of the three models that differ."""
    areas, covariance = delong(data[0][:3], data[1])
    contrast = np.array([[1.0, -1, 0], [0, 1, -1]])
    d = contrast @ areas
    expected = d @ np.linalg.solve(contrast @ covariance @ contrast.T, d)
    close(compared.chi2, expected, rtol=1e-4)
    assert compared.chi2_df == 2
    close(compared.chi2_p_value, stats.chi2.sf(expected, 2), rtol=1e-3)


def test_a_reference(data, compared):
    found = jm.compare(jm.roc_auc, *data, reference=1, confidence_level=0.9)
    assert found.confidence_level == 0.9
    close(found.difference, compared.difference[:, 1])
    close(found.standard_error, compared.standard_error[:, 1])
    close(found.p_value, compared.p_value[:, 1])
    z = stats.norm.ppf(0.95)
    close(found.high, found.difference + z * found.standard_error)
    assert found.simultaneous_high.shape == found.simultaneous_p_value.shape == (4,)
    others = np.array([0, 2, 3])
    assert (found.simultaneous_low < found.low)[others].all()
    close(found.chi2, compared.chi2)


# ---- simultaneous limits


@pytest.fixture
def from_moments(data, monkeypatch):
    """The comparison of models whose metrics have these values and are equally correlated."""
    covariance = 0.3 * np.eye(4) + 0.7

    def compare(estimate, **options):
        found = np.asarray(estimate, float), covariance
        monkeypatch.setattr(_comparison, "estimate_and_covariance", lambda *_: found)
        return jm.compare(jm.roc_auc, *data, **options)

    return compare


def test_critical_value_of_all_pairs(from_moments):
    """Tukey's studentized range, over sqrt(2)."""
    law = stats.studentized_range(4, np.inf)
    found = from_moments([0.0, 1.0, 2.0, 2.3])
    close(found.standard_error[0, 1], np.sqrt(0.6))
    critical = (found.simultaneous_high - found.difference) / np.sqrt(0.6)
    np.testing.assert_allclose(critical[0, 1:], law.ppf(0.95) / np.sqrt(2), atol=0.015)
    z = np.abs(np.asarray(found.difference, float) / np.sqrt(0.6))
    np.testing.assert_allclose(found.simultaneous_p_value, law.sf(z * np.sqrt(2)), atol=5e-3)


def dunnett(sides, n_others=3, level=0.95):
    """The critical value of several models against one, all of variance 1 and independent."""

    def chance(c):
        def given(z):
            low = stats.norm.cdf(z - np.sqrt(2) * c) if sides == 2 else 0
            return stats.norm.pdf(z) * (stats.norm.cdf(z + np.sqrt(2) * c) - low) ** n_others

        return integrate.quad(given, -9, 9)[0]

    return optimize.brentq(lambda c: chance(c) - level, 0.5, 4)


def test_critical_value_of_a_reference(from_moments):
    np.testing.assert_allclose(dunnett(2), 2.349, atol=1e-3)  # as in Dunnett's table
    found = from_moments(np.zeros(4), reference=1)
    np.testing.assert_allclose(
        found.simultaneous_high[0] / found.standard_error[0], dunnett(2), atol=0.015
    )


def test_best_set_is_that_of_hsu(from_moments):
    """A model is left out as soon as one other is better by Dunnett's one-sided value."""
    critical = dunnett(1) * np.sqrt(0.6)
    for excess, kept in ((0.98, True), (1.02, False)):
        found = from_moments([0, 0.1, 0.1, critical * excess])
        np.testing.assert_array_equal(found.best_set, [kept, True, True, True])


def test_key_of_the_simulation(data, compared):
    again = jm.compare(jm.roc_auc, *data)
    np.testing.assert_array_equal(again.simultaneous_low, compared.simultaneous_low)
    other = jm.compare(jm.roc_auc, *data, key=KEY)
    assert (other.simultaneous_low != compared.simultaneous_low).any()
    np.testing.assert_allclose(other.simultaneous_low, compared.simultaneous_low, atol=2e-3)


# ---- other ways to a covariance


def test_recall_by_paired_resamples(data):
    found = jm.compare(RECALL, *data, key=KEY)
    values = np.asarray(jm.bootstrap(RECALL, *data, key=KEY).replicates, float)
    error = errors_of_differences(np.cov(values.T))
    close(found.standard_error, error, rtol=1e-4)
    with pytest.raises(TypeError, match="key is missing"):
        jm.compare(RECALL, *data)


def test_clusters(data, rng):
    """Clusters of one item each are no clusters, but for n - 1 in place of each class's."""
    found = jm.compare(jm.roc_auc, *data, clusters=rng.permutation(N))
    again = jm.compare(jm.roc_auc, *data, clusters=[f"user {i}" for i in range(N)])
    close(found.standard_error, again.standard_error)
    np.testing.assert_allclose(
        found.standard_error, jm.compare(jm.roc_auc, *data).standard_error, rtol=0.02
    )


def test_a_model_that_is_undefined(data):
    scores = data[0].copy()
    scores[2, 5] = np.nan
    with pytest.warns(UserWarning, match="of model 2 is undefined.*without"):
        found = jm.compare(jm.roc_auc, scores, data[1])
    for name in ("difference", "standard_error", "low", "p_value"):
        value = np.asarray(getattr(found, name))
        others = np.array([0, 1, 3])
        assert np.isnan(value[2, others]).all()
        assert np.isnan(value[others, 2]).all()
        assert np.isfinite(value[np.ix_(others, others)]).all()


@pytest.mark.filterwarnings("ignore:.*undefined")
@pytest.mark.parametrize("metric", [jm.roc_auc, RECALL])
@pytest.mark.parametrize("lost", [0, 2])
def test_models_are_compared_without_one_that_is_undefined(metric, lost, data):
    """As if it were left out, but for the draws of max |Z|."""
    scores = data[0][[1, 0, 2, 1]]
    scores[lost, 5] = np.nan
    left = np.flatnonzero(np.arange(4) != lost)
    found = jm.compare(metric, scores, data[1], key=KEY)
    alone = jm.compare(metric, scores[left], data[1], key=KEY)
    for name in ("standard_error", "p_value"):
        close(getattr(found, name)[np.ix_(left, left)], getattr(alone, name), rtol=1e-4)
    for name in ("simultaneous_low", "simultaneous_p_value"):
        value = np.asarray(getattr(found, name))[np.ix_(left, left)]
        np.testing.assert_allclose(value, getattr(alone, name), atol=5e-3)
    np.testing.assert_array_equal(found.best_set[left], alone.best_set)
    if metric is jm.roc_auc and lost == 0:
        assert not found.best_set[2]  # before, all stayed
    assert found.best_set[lost]
    close(found.chi2, alone.chi2, rtol=1e-4)
    assert found.chi2_df == alone.chi2_df


@pytest.mark.filterwarnings("ignore:.*undefined")
def test_one_model_that_is_defined(data):
    found = jm.compare(jm.roc_auc, np.stack([data[0][0], np.full(N, np.nan)]), data[1])
    assert np.isnan(found.chi2)
    assert found.best_set.all()


def test_simultaneous_p_values_beyond_the_draws(from_moments):
    """Bonferroni's, which no number of draws bounds from below."""
    found = from_moments([0.0, 0.0, 1.0, 9.0])
    np.testing.assert_array_equal(np.diagonal(found.simultaneous_p_value), 1)
    close(found.simultaneous_p_value[0, 3], 6 * found.p_value[0, 3])
    assert 0 < found.simultaneous_p_value[0, 3] < 1e-20


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"reference": 4}, ValueError, "reference must be from 0 to 3, got 4"),
        ({"reference": "a"}, TypeError, "reference must be an int"),
        ({"confidence_level": 95}, ValueError, r"write 0\.95 for 95 %"),
        ({"clusters": [1, 2]}, ValueError, r"clusters must be \[n\]"),
        ({"weights": np.ones((4, N))}, ValueError, r"weights must be \[n\], the same for all"),
    ],
)
def test_errors(options, error, message, data):
    with pytest.raises(error, match=message):
        jm.compare(jm.roc_auc, *data, **options)


def test_one_model_cannot_be_compared(data):
    for scores in (data[0][0], data[0][:1], data[0][None]):
        for function in (jm.compare, partial(jm.permutation_test, key=KEY)):
            with pytest.raises(ValueError, match="two models or more"):
                function(jm.roc_auc, scores, data[1])


# ---- permutations


def area(ranks, labels):
    difference = ranks[labels][:, None] - ranks[~labels]
    return np.mean((difference > 0) + (difference == 0) / 2)


def test_permutations_against_all_there_are():
    """Of ten items every way to swap ranks is tried."""
    labels = np.array([0, 1, 1, 0, 1, 0, 0, 1, 1, 0], bool)
    first = np.array([0.1, 0.9, 0.7, 0.2, 0.8, 0.3, 0.3, 0.8, 0.6, 0.4])
    second = 100 * np.array([0.5, 0.4, 0.9, 0.1, 0.3, 0.3, 0.6, 0.8, 0.2, 0.7])
    ranks = [stats.rankdata(first), stats.rankdata(second)]
    differences = []
    for swap in itertools.product([False, True], repeat=10):
        a, b = np.where(swap, ranks[::-1], ranks)
        differences.append(area(a, labels) - area(b, labels))
    exact = np.mean(np.abs(differences) >= abs(differences[0]) - 1e-12)
    assert 0.01 < exact < 0.5

    # Two items more that are masked, the first model again in another unit, and one undefined.
    scores = np.stack([first, second, np.log(first), first])
    scores[3, 7] = np.nan
    scores = np.concatenate([scores[:, :4], np.full((4, 2), np.nan), scores[:, 4:]], axis=1)
    kinds, where = np.insert(labels, [4, 4], [False, True]), np.arange(12) // 2 != 2
    found = jm.permutation_test(jm.roc_auc, scores, kinds, where=where, key=KEY, n_resamples=20_000)
    for value in (found.p_value, found.difference):
        assert np.isnan(value[3, :3]).all()
        assert np.isnan(value[:3, 3]).all()
    assert np.isnan(found.estimate[3])
    found = jax.tree.map(lambda x: x[:3] if x.ndim == 1 else x[:3, :3], found)
    error = np.sqrt(exact * (1 - exact) / 20_000)
    np.testing.assert_allclose(found.p_value[0, 1], exact, atol=4 * error)
    np.testing.assert_array_equal(found.p_value, found.p_value.T)
    close(found.p_value[1, 2], found.p_value[0, 1])
    np.testing.assert_array_equal(np.diagonal(found.p_value), 1)
    assert found.p_value[0, 2] == 1
    close(found.estimate, [area(first, labels), area(second, labels), area(first, labels)])
    close(found.difference, np.subtract.outer(*[np.asarray(found.estimate)] * 2))


def test_ranks_of_many_items_stay_apart():
    """float32 holds the integers up to 2^24, which are the ranks of half as many items."""
    for n, dtype in ((2**23, "float32"), (2**23 + 2, "float64")):
        items = Items(jax.ShapeDtypeStruct((2, n), "float32"), jax.ShapeDtypeStruct((n,), bool))
        assert jax.eval_shape(_permutation._ranks, items).dtype == dtype


def test_permutations_of_ranks_in_double_precision(data, monkeypatch):
    expected = jm.permutation_test(jm.roc_auc, data[0][:2], data[1], key=KEY, n_resamples=50)
    whole = _permutation._ranks
    monkeypatch.setattr(_permutation, "_ranks", lambda items: in_double_precision(whole(items)))
    found = jm.permutation_test(jm.roc_auc, data[0][:2], data[1], key=KEY, n_resamples=50)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(a, b)


@double_program()
def in_double_precision(ranks):
    """Ranks that float32 does not tell apart."""
    return ranks.astype("float64") - 2.0**30
