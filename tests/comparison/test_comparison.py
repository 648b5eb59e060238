"""Comparison of models: paired tests, margins, and models that are equal or undefined."""

from functools import partial

import difference_formulas as differences
import interval_formulas as formulas
import numpy as np
import pytest
from comparing import KEY, PROGRAM, RECALL, N, close, delong, errors_of_differences, t_of_pairs
from fast import marked
from scipy import optimize, stats

import jaxmetrics as jm
from jaxmetrics.inference import _compared


def test_pairs_are_those_of_delong(data, compared):
    areas, covariance = delong(*data)
    difference = areas[:, None] - areas
    error = errors_of_differences(covariance)
    close(compared.estimate, areas)
    close(compared.difference, difference)
    close(compared.standard_error, error)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_limits_are_those_of_welch(data, level):
    """Of the error with one more observation of the largest variance in each class."""
    found = jm.compare(jm.roc_auc, *data, confidence_level=level)
    difference = np.subtract.outer(*[delong(*data)[0]] * 2)
    error, df, t, _ = t_of_pairs(data, level)
    assert (error >= np.asarray(found.standard_error) - 1e-6).all()
    assert np.max(error / np.where(error > 0, found.standard_error, 1)) > 1.005
    close(found.low, difference - t * error)
    close(found.high, difference + t * error)
    pairs = error > 0
    p_value = 2 * stats.t.sf(np.abs(difference[pairs] / error[pairs]), df[pairs])
    close(found.p_value[pairs], p_value)


def test_simultaneous_limits_are_those_of_the_maxima(data, compared):
    """Of normal differences with the covariance of the models, each over the root of a chi2 of its
    classes over its degrees of freedom: one chi2 a draw and class for all comparisons."""
    rng, labels, n = np.random.default_rng(8), data[1], 200_000
    error, _, t, share = t_of_pairs(data)
    covariance = delong(*data)[1]
    models = rng.multivariate_normal(np.zeros(4), covariance, n, method="eigh")
    k0, k1 = (~labels).sum() - 1, labels.sum() - 1
    negatives, positives = (rng.chisquare(k, n)[:, None, None] / k for k in (k0, k1))
    spread = np.where(error > 0, errors_of_differences(covariance), np.inf)
    z = (models[:, :, None] - models[:, None, :]) / spread
    z /= np.sqrt(share * negatives + (1 - share) * positives)
    largest = np.max(np.abs(z), axis=(1, 2))
    critical = np.quantile(largest, 0.95)
    # Two quantiles of 200,000 and of 100,096 draws differ by their own errors.
    density = np.mean(np.abs(largest - critical) < 0.05) / 0.1
    tolerance = 4 * np.sqrt(0.95 * 0.05 * (1 / n + 1 / 100_096)) / density
    assert tolerance < 0.06
    pairs = error > 0
    wide = np.asarray(compared.simultaneous_high - compared.difference, float)
    found = wide[pairs] / error[pairs]
    np.testing.assert_allclose(found, found[0], rtol=1e-4)
    np.testing.assert_allclose(found[0], critical, atol=tolerance)
    assert (found > t[pairs] + 0.1).all()
    # The share of the draws that are at least as extreme.
    difference = np.asarray(compared.difference, float)
    for i, j in zip(*np.nonzero(pairs), strict=True):
        p = np.mean(largest >= abs(difference[i, j]) / error[i, j])
        limit = 4 * np.sqrt((p * (1 - p) + 1e-5) * (1 / n + 1 / 100_096))
        assert abs(compared.simultaneous_p_value[i, j] - p) <= limit + 1e-5


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_limits_of_average_precision(level, data):
    """With the kurtosis of the negatives, and further than t E by the cube of it."""
    labels = data[1]
    found = jm.compare(jm.average_precision, *data, confidence_level=level)
    phi = np.asarray(jm.influence(jm.average_precision, *data), float)[:3:2]
    estimate = np.asarray(found.estimate, float)[:3:2]
    parts = differences.raised_variances(estimate, phi, labels)
    sizes = 1 + ((~labels).sum() - 1) / 10, labels.sum()
    error, df = np.sqrt(parts.sum()), formulas.welch(parts, sizes)
    y = stats.t.ppf((1 + level) / 2, df) * error
    difference = estimate[0] - estimate[1]
    close(found.df[0, 2], df)
    close(found.low[0, 2], difference - y - y**3)
    close(found.high[2, 0], -difference + y + y**3)
    y = optimize.brentq(lambda y: y + y**3 - difference, -1, 1)
    close(found.z[0, 2], y / error)
    close(found.p_value[2, 0], 2 * stats.t.sf(abs(y) / error, df))


def test_the_unit_of_a_partial_area_says_nothing(data):
    raw, share, corrected = (
        jm.compare(partial(jm.partial_auc, max_fpr=0.2, scale=scale), *data)
        for scale in ("raw", "range", "mcclish")
    )
    close(share.low, raw.low / 0.2)
    close(corrected.high, raw.high / (2 * (0.2 - 0.02)))
    for found in (share, corrected):
        for name in ("df", "p_value", "simultaneous_p_value"):
            close(getattr(found, name), getattr(raw, name))


def test_hardly_a_failure_raises_the_error():
    """With soft failures n (1 - A) of 0.3, in the midst of those that raise it in part."""
    labels = np.arange(40) >= 20
    scores = np.stack([np.arange(40.0)] * 2)
    scores[0, 19], scores[1, 0] = 25.5, 31.5  # negatives above 6 and above 12 of the positives
    assert (1 - jm.roc_auc(scores, labels)[0]) * 20 == pytest.approx(0.3)
    found = jm.compare(jm.roc_auc, scores, labels)
    error, df, *_ = t_of_pairs((scores, labels))
    close(found.df[0, 1], df[0, 1])
    close(found.z[0, 1], found.difference[0, 1] / error[0, 1])


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
    wide, single = (
        (x - compared.difference)[0, 1] for x in (compared.simultaneous_high, compared.high)
    )
    assert wide < single * stats.norm.isf(0.025 / 6) / stats.norm.isf(0.025)


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
    # Hotelling's, with the fewest degrees of freedom of a pair.
    error, df, *_ = t_of_pairs(data)
    fewest = df[error > 0].min()
    expected = stats.f.sf(expected * (fewest - 1) / (2 * fewest), 2, fewest - 1)
    close(compared.chi2_p_value, expected, rtol=1e-3)


def test_a_reference(data, compared):
    found = jm.compare(jm.roc_auc, *data, reference=1, confidence_level=0.9)
    assert found.confidence_level == 0.9
    close(found.difference, compared.difference[:, 1])
    close(found.standard_error, compared.standard_error[:, 1])
    close(found.p_value, compared.p_value[:, 1])
    error, _, t, _ = t_of_pairs(data, 0.9)
    close(found.high, found.difference + (t * error)[:, 1])
    assert found.simultaneous_high.shape == found.simultaneous_p_value.shape == (4,)
    others = np.array([0, 2, 3])
    assert (found.simultaneous_low < found.low)[others].all()
    close(found.chi2, compared.chi2)


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
    """They fall to nothing as Bonferroni's do, which they never exceed."""
    found = from_moments([0.0, 0.0, 1.0, 9.0])
    np.testing.assert_array_equal(np.diagonal(found.simultaneous_p_value), 1)
    close(found.simultaneous_p_value[0, 3], 6 * found.p_value[0, 3])
    assert 0 < found.simultaneous_p_value[0, 3] < 1e-20
    against = from_moments([0.0, 0.0, 1.0, 9.0], reference=3)
    # 2.84 to 3.18 with 60 other axes of equal length, which the machine chooses.
    assert 2.7 < against.simultaneous_p_value[0] / against.p_value[0] <= 3 * (1 + 1e-6)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"reference": 4}, ValueError, "reference must be from 0 to 3, got 4"),
        ({"reference": "a"}, TypeError, "reference must be an index"),
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


def test_a_margin_has_both_directions_and_a_reference_has_a_name(rng):
    labels = rng.random(400) < 0.3
    old = rng.normal(size=400) + 2 * labels
    scores = {"old": old, "new": rng.normal(size=400) + labels}
    found = jm.compare(jm.roc_auc, scores, labels, margin=0.01)
    frame = found.to_frame().set_index(["model", "minus"]).noninferiority_p_value
    assert frame["old", "new"] < 0.01 < 0.9 < frame["new", "old"]
    assert "p, not worse" in str(found)
    assert "p, not worse" not in str(jm.compare(jm.roc_auc, scores, labels))
    by_name, by_index = (jm.compare(jm.roc_auc, scores, labels, reference=x) for x in ("new", 1))
    np.testing.assert_array_equal(by_name.difference, by_index.difference)
    with pytest.raises(ValueError, match="one of 'old', 'new', got 'odl'"):
        jm.compare(jm.roc_auc, scores, labels, reference="odl")
    with pytest.raises(TypeError, match="a dict or a frame"):
        jm.compare(jm.roc_auc, np.stack([*scores.values()]), labels, reference="old")
    alone = jm.compare_to_value(jm.roc_auc, old, labels, value=0.7)
    assert str(alone).startswith("difference 0.")
    assert len(alone.to_frame()) == 1


def test_the_unit_of_weights_says_nothing_of_perfect_models(rng):
    """Their variance is the rounding of 0, and correlates with nothing."""
    labels = np.arange(24) < 10
    scores = np.stack([labels * 1.0, labels * 2.0, rng.normal(size=24) + labels])
    weights = rng.choice([0.5, 1.0, 2.5, 3.0], 24)
    found = [
        jm.compare_to_value(jm.roc_auc, scores, labels, value=0.4, weights=weights * unit)
        for unit in (1, 7, 0.1)
    ]
    for other in found[1:]:
        np.testing.assert_allclose(other.chi2, found[0].chi2, rtol=1e-5)
    assert [x.chi2_df for x in found] == [3, 3, 3]


def test_small_variances_are_variances():
    """Of one inverted pair of 3,000 items: two models that are equal have one degree of freedom."""
    n = 1500
    scores = np.arange(2.0 * n)
    scores[[n - 1, n]] = scores[[n, n - 1]]
    given = np.stack([scores, scores]), np.arange(2 * n) >= n
    assert jm.compare_to_value(jm.roc_auc, *given, value=0.9).chi2_df == 1


def test_the_rounding_of_no_variance_is_none():
    """Of a perfect model and a constant one, with weights or clusters."""
    rounded, estimate = np.diag([1e-33, 3e-34]), np.array([1.0, 0.5])
    difference = estimate[:, None] - estimate
    chi2, df = _compared._equality(estimate, difference, rounded, np.zeros(2, bool))
    assert df == 0
    assert np.isnan(chi2)


@pytest.mark.parametrize("only", [0, 1])
def test_precisions_of_one_class_have_no_error(only):
    scores = np.stack([np.arange(9.0), -np.arange(9.0)])
    found = jm.compare(jm.average_precision, scores, np.full(9, only))
    np.testing.assert_array_equal(found.difference, 0)
    for name in ("standard_error", "low", "high", "p_value", "simultaneous_low"):
        assert np.isnan(getattr(found, name)[0, 1])


@pytest.mark.parametrize("n_models", [marked(x, fast=x == 4) for x in (2, 4, 12, 70)])
def test_opposite_models_differ_without_variance(n_models, rng):
    """Within a program, too, whose sums are rounded."""
    labels = np.arange(N) < 80
    scores = rng.normal(size=(n_models, N)) + labels
    scores[0], scores[1] = labels, ~labels
    for found in (jm.compare(jm.roc_auc, scores, labels), PROGRAM(scores, labels)):
        assert found.p_value[0, 1] == 0
        assert found.best_set[:2].tolist() == [True, False]
        assert found.estimate[:2].tolist() == [1, 0]


def test_small_differences_of_large_means_have_a_statistic(rng):
    """Such as those of times."""
    values = np.round(rng.gamma(2, 2000, size=(3, 500)))
    values[2] += 1500
    near, far = (jm.compare_means(values + start) for start in (0, 2.0**50))
    np.testing.assert_allclose(far.chi2, near.chi2, rtol=1e-4)
    assert far.chi2_df == near.chi2_df == 2


def test_errors_of_average_precision_with_heavy_negatives_are_those_of_steps(data, rng):
    """The influence of a negative is what is lost if its excess over a positive is left out."""
    scores, labels = data
    weight, pair = 7.0, []
    scores = scores[:2] + 0.01 * rng.random((2, len(labels)))  # without ties
    for row in scores:
        order = np.argsort(-row)
        positive = labels[order]
        place = np.flatnonzero(positive)
        tps, fps = np.cumsum(positive)[place], weight * np.cumsum(~positive)[place]
        step = np.minimum(fps, weight - 1)
        slope = np.zeros((2, len(row)))
        lost = tps / (tps + fps - step) - tps / (tps + fps)
        slope[0, place] = weight * lost / np.where(fps > 0, step, 1) / len(tps)
        slope[1, place] = fps / (tps + fps) ** 2 / len(tps)
        below = np.cumsum(slope[:, ::-1], axis=1)[:, ::-1]
        value = np.zeros(len(row))
        precision = tps / (tps + fps)
        value[place] = (precision - precision.mean()) / len(tps)
        of_item = np.empty(len(row))
        of_item[order] = np.where(positive, value + below[1], -below[0])
        pair.append(of_item)
    apart = pair[0] - pair[1]
    variance = sum(len(x) * np.var(x, ddof=1) for x in (apart[labels], apart[~labels]))
    found = jm.compare(jm.average_precision, scores, labels, weights=np.where(labels, 1, weight))
    close(found.standard_error[0, 1], np.sqrt(variance))


def test_copies_in_clusters_are_as_one_item(rng):
    """Within a limit, too, where five copies of a negative are no five negatives."""
    labels = np.arange(120) % 3 == 0
    scores = rng.normal(size=(2, 120)) + labels
    metric = partial(jm.partial_auc, max_fpr=0.05)
    one = jm.compare(metric, scores, labels)
    copies = scores.repeat(5, axis=1), labels.repeat(5)
    found = jm.compare(metric, *copies, clusters=np.arange(120).repeat(5))
    np.testing.assert_allclose(found.low, one.low, rtol=1e-5)
    np.testing.assert_allclose(found.p_value, one.p_value, rtol=1e-4)
