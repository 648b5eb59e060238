"""Influences, standard errors and covariances, of clusters too."""

from functools import partial

import interval_formulas as formulas
import jax
import numpy as np
import pytest
from registry import sample
from slopes_by_weights import slopes, variance

import jaxmetrics as jm
from jaxmetrics.inference._influence import gradient as _gradient
from jaxmetrics.inference._influence.heavy_negatives import average_precision_by_steps
from jaxmetrics.inference._intervals.effective import clusters_of_one_size

pytestmark = [pytest.mark.usefixtures("x64")]
# ---- the public functions

PARTIAL = partial(jm.partial_auc, max_fpr=0.3)


def classes(labels):
    return [np.flatnonzero(labels == kind) for kind in (False, True)]


def placements(scores, labels, weights=None):
    """Of each item, the weighted share of the other class that it is on the right side of."""
    weights = np.ones(len(labels)) if weights is None else weights
    higher = np.sign(scores[:, None] - scores)
    right = (1 + np.where(labels[:, None], higher, -higher)) / 2
    others = weights * (labels != labels[:, None])
    return np.sum(right * others, axis=1) / others.sum(axis=1)


def test_influence_is_a_placement_value(rng):
    """With ties, weights and a mask that hides NaN: phi = n_c w / W_c (placement - AUC)."""
    scores, labels, weights = sample(rng, 60, batch=(2,))
    labels, where = labels[0], rng.random(60) < 0.8
    weights[:, 5:8] = 0
    spoiled = np.where(where, scores, np.nan)
    got = jm.influence(jm.roc_auc, spoiled, labels, weights=weights, where=where)
    assert got.shape == (2, 60)
    for phi, s, w in zip(np.asarray(got), scores, weights, strict=True):
        assert (phi[~where] == 0).all()
        w = np.where(where, w, 0).astype(float)
        area = jm.roc_auc(s, labels, weights=w)
        for members in classes(labels):
            share = w[members] / w[members].sum() * np.sum(w[members] > 0)
            expected = share * (placements(s, labels, w)[members] - area)
            np.testing.assert_allclose(phi[members], expected, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(phi[members].sum(), 0, atol=1e-10)


@pytest.mark.parametrize("metric", [PARTIAL, jm.average_precision], ids=["partial", "precision"])
def test_influence_is_a_gradient(metric, rng):
    """n_c w_i times the derivative, centred in each class, which for these is its own mean."""
    scores, labels, weights = sample(rng, 60)
    weights = weights.astype(float)
    gradient = slopes(metric, scores, labels, weights)
    phi = np.asarray(jm.influence(metric, scores, labels, weights=weights))
    for members in classes(labels):
        w, g = weights[members], gradient[members]
        expected = len(members) * w * (g - np.average(g, weights=w))
        np.testing.assert_allclose(phi[members], expected, rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(phi[members].sum(), 0, atol=1e-9)


@pytest.mark.parametrize("metric", [PARTIAL, jm.average_precision], ids=["partial", "precision"])
def test_weights_are_drawn_as_scores_are(metric, rng):
    """The error of a sum of w_i times the derivative: its mean over the items is held, and not the
    weight of the class, on which average precision depends."""
    scores, labels, _ = sample(rng, 60)
    weights = rng.gamma(0.5, size=60) * (np.arange(60) % 9 > 0)
    pair = np.stack([scores, np.roll(scores, 7)])

    def parts(row):
        products = weights * slopes(metric, row, labels, weights)
        found = [products[x[weights[x] > 0]] for x in classes(labels)]
        return [(x - x.mean()) * np.sqrt(len(x) / (len(x) - 1)) for x in found]

    expected = sum(np.stack(x) @ np.stack(x).T for x in zip(*map(parts, pair), strict=True))
    given = {"weights": weights}
    functions = jm.covariance, jm.standard_error
    traced = jax.jit(lambda s: [f(metric, s, labels, **given) for f in functions])(pair)
    for covariance in (
        jm.covariance(metric, pair, labels, **given),
        jm.covariance(metric, pair, labels, weights=1e150 * weights),
        traced[0],
    ):
        np.testing.assert_allclose(covariance, expected, rtol=1e-8)
    errors = [
        jm.standard_error(metric, pair, labels, **given),
        traced[1],
        jm.confidence_interval(metric, pair, labels, **given).standard_error,
    ]
    for error in errors:
        np.testing.assert_allclose(np.asarray(error) ** 2, np.diag(expected), rtol=1e-8)


def test_weights_share_the_influence_of_copies(rng):
    """An item of weight k has in all the influence, per item of the class, of its k copies."""
    scores, labels, _ = sample(rng, 60)
    copies = rng.integers(1, 4, 60)
    weighted = np.asarray(jm.influence(PARTIAL, scores, labels, weights=copies))
    repeated = np.repeat(labels, copies)
    single = np.asarray(jm.influence(PARTIAL, np.repeat(scores, copies), repeated))
    owner = np.repeat(np.arange(60), copies)
    for members, all_copies in zip(classes(labels), classes(repeated), strict=True):
        total = np.bincount(owner[all_copies], single[all_copies], 60)[members]
        np.testing.assert_allclose(
            weighted[members] / len(members), total / len(all_copies), rtol=1e-9, atol=1e-12
        )


@pytest.mark.parametrize("metric", [jm.roc_auc, PARTIAL], ids=["roc_auc", "partial_auc"])
def test_standard_error_is_that_of_the_gradient(metric, rng):
    scores, labels, _ = sample(rng, 60, batch=(2,))
    labels = labels[0]
    got = jm.standard_error(metric, scores, labels)
    expected = [variance(metric, row, labels) for row in scores]
    np.testing.assert_allclose(np.asarray(got) ** 2, expected, rtol=1e-10)


def test_standard_error_of_weighted_items(rng):
    """n_c counts the items that have weight."""
    scores, labels, weights = sample(rng, 60)
    weights[10:13] = 0
    where = rng.random(60) < 0.8
    got = jm.standard_error(jm.roc_auc, scores, labels, weights=weights, where=where)
    w = np.where(where, weights, 0).astype(float)
    area, total = jm.roc_auc(scores, labels, weights=w), 0
    for members in classes(labels):
        n, share = np.sum(w[members] > 0), w[members] / w[members].sum()
        deviation = placements(scores, labels, w)[members] - area
        total += n / (n - 1) * np.sum((share * deviation) ** 2)
    np.testing.assert_allclose(got**2, total, rtol=1e-10)


def test_covariance_is_that_of_delong(rng):
    scores, labels, _ = sample(rng, 60, batch=(3,))
    labels = labels[0]
    got = np.asarray(jm.covariance(jm.roc_auc, scores, labels))
    values = np.stack([placements(row, labels) for row in scores])
    expected = sum(np.cov(values[:, members]) / len(members) for members in classes(labels))
    np.testing.assert_allclose(got, expected, rtol=1e-10)
    errors = jm.standard_error(jm.roc_auc, scores, labels)
    np.testing.assert_allclose(np.diagonal(got), np.asarray(errors) ** 2, rtol=1e-10)


@pytest.mark.parametrize(
    ("metric", "tiny"),
    [
        (jm.average_precision, 1e-310),
        (partial(average_precision_by_steps, step=np.asarray(0.5)), 1e-290),
    ],
    ids=["precision", "steps"],
)
def test_weights_beyond_each_others_digits(metric, tiny):
    """The reciprocal of a sum of them may be infinite, and that of its square."""
    scores, labels = np.array([[3.0, 2, 1, 0], [3, 3, 1, 0]]), np.array([1, 0, 1, 0])
    with np.errstate(all="raise", under="ignore"):
        found = jm.influence(metric, scores, labels, weights=np.array([tiny, tiny, 1, 1]))
    np.testing.assert_allclose(found, 0, atol=1e-280)


def test_clusters(rng):
    """By class the sums over the clusters that hold it, centred, over what their squares keep."""
    scores, labels, weights = sample(rng, 60, batch=(2,))
    labels, weights, where = labels[0], weights[0].astype(float), rng.random(60) < 0.8
    clusters = rng.integers(0, 12, 60)
    where[clusters == 3] = False  # a cluster that is left out does not count
    where[(clusters == 5) & labels] = False  # one without positives
    assert (where & (clusters == 5)).any()
    options = {"weights": weights, "where": where}
    got = np.asarray(jm.covariance(jm.roc_auc, scores, labels, clusters=clusters, **options))
    w, sums = np.where(where, weights, 0), []
    for row in scores:
        deviation = placements(row, labels, w) - jm.roc_auc(row, labels, weights=w)
        sums.append(formulas.sums_of_clusters(deviation, labels, clusters, w).sum(axis=0))
    expected = np.array(sums) @ np.array(sums).T
    np.testing.assert_allclose(got, expected, rtol=1e-9)

    names = np.array([f"user {i}" for i in 7 * clusters])
    again = jm.covariance(jm.roc_auc, scores, labels, clusters=names, **options)
    np.testing.assert_allclose(again, got, rtol=1e-12)
    error = jm.standard_error(jm.roc_auc, scores, labels, clusters=clusters, **options)
    np.testing.assert_allclose(np.asarray(error) ** 2, np.diagonal(got), rtol=1e-10)


def test_clusters_of_one_size_are_counted_exactly():
    """A rounded count would be warned of where the clusters are just enough."""
    for k in range(1, 300):
        assert clusters_of_one_size(np.full(k, 0.3)) == k
    assert clusters_of_one_size(np.zeros(3)) == 0
    assert 2 < clusters_of_one_size(np.array([1.0, 2.0, 3.0])) < 3


def test_mixed_clusters_are_those_of_obuchowski(rng):
    """All with both classes: K / (K - 1) times the squares of the sums of influence."""
    scores, labels, _ = sample(rng, 60)
    clusters = np.arange(60) % 5
    assert all(len(set(labels[clusters == k])) == 2 for k in range(5))
    phi = np.asarray(jm.influence(jm.roc_auc, scores, labels))
    sums = np.bincount(clusters, phi / np.where(labels, labels.sum(), (~labels).sum()))
    got = jm.standard_error(jm.roc_auc, scores, labels, clusters=clusters)
    np.testing.assert_allclose(got**2, 5 / 4 * np.sum(sums**2), rtol=1e-10)


def test_clusters_of_one_item_each(rng):
    """They are no clusters."""
    scores, labels, _ = sample(rng, 60)
    got = jm.standard_error(jm.roc_auc, scores, labels, clusters=rng.permutation(60))
    np.testing.assert_allclose(got, jm.standard_error(jm.roc_auc, scores, labels), rtol=1e-10)
    # One cluster, or one with a whole class, has no variance.
    for clusters in (np.zeros(60), np.where(labels, 0, np.arange(60))):
        assert np.isnan(jm.standard_error(jm.roc_auc, scores, labels, clusters=clusters))


def test_public_functions_in_jit(rng):
    scores, labels, _ = sample(rng, 60, batch=(2,))

    def compute(*given):
        return [function(jm.roc_auc, *given) for function in (jm.standard_error, jm.covariance)]

    found = (function(scores, labels[0]) for function in (jax.jit(compute), compute))
    for traced, expected in zip(*found, strict=True):
        np.testing.assert_allclose(traced, expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("lost", ["nan", "positives", "all"])
def test_undefined_errors(lost, rng):
    """A row that is undefined is NaN alone, and items without weight may hold anything."""
    scores, labels, _ = sample(rng, 60, batch=(2,))
    labels = np.stack([labels[0]] * 2)
    where = np.ones((2, 60), bool)
    if lost == "nan":
        scores[1, 4] = np.nan
    else:
        where[1] = ~labels[1] if lost == "positives" else False
    phi = jm.influence(jm.roc_auc, scores, labels, where=where)
    error = jm.standard_error(jm.roc_auc, scores, labels, where=where)
    assert np.isfinite(phi[0]).all()
    assert np.isnan(phi[1]).all()
    np.testing.assert_array_equal(np.isnan(error), [False, True])


def test_nan_in_an_item_without_weight(rng):
    scores, labels, weights = sample(rng, 60)
    weights[7] = 0
    expected = jm.standard_error(jm.roc_auc, scores, labels, weights=weights)
    scores[7] = np.nan
    got = jm.standard_error(jm.roc_auc, scores, labels, weights=weights)
    np.testing.assert_allclose(got, expected)
    assert np.isfinite(jm.influence(jm.roc_auc, scores, labels, weights=weights)).all()


def test_one_item_of_a_class(rng):
    scores, one = sample(rng, 60)[0], np.arange(60) == 3
    assert np.isnan(jm.standard_error(jm.roc_auc, scores, one))
    assert jm.influence(jm.roc_auc, scores, one)[3] == 0


@pytest.mark.parametrize(("in_cache", "loops"), [(1 << 15, 0), (60, 1), (1, 1)])
def test_rows_in_a_loop_or_at_once(in_cache, loops, rng, monkeypatch):
    """All at once if they stay in the cache, else some of them, with a rest, or one by one."""
    monkeypatch.setattr(_gradient, "_IN_CACHE", in_cache)
    rows = rng.normal(size=(5, 20))
    of_rows = partial(_gradient.row_by_row, lambda x, y: x[::-1] + y[0])
    program = str(jax.make_jaxpr(of_rows)(rows, rows))
    assert program.count("scan[") == loops
    np.testing.assert_array_equal(of_rows(rows, rows), rows[:, ::-1] + rows[:, :1])


def test_errors_name_the_way_out(rng):
    scores, labels, _ = sample(rng, 60)
    threshold = partial(jm.threshold_at_fpr, max_fpr=0.1)
    with pytest.raises(TypeError, match=r"threshold_at_fpr is not known to be smooth.*with key="):
        jm.influence(threshold, scores, labels)
    with pytest.raises(TypeError, match=r"resampling needs one: write key=jax.random.key\(0\)"):
        jm.standard_error(threshold, scores, labels)
    for function in (jm.influence, jm.standard_error):
        with pytest.raises(ValueError, match="take one limit at a time, or write bootstrap"):
            function(partial(jm.partial_auc, max_fpr=[0.1, 0.3]), scores, labels)
    with pytest.raises(ValueError, match="take one limit at a time, or write bootstrap"):
        jm.influence(partial(jm.recall_at_fpr, max_fpr=[0.1, 0.3]), scores, labels)
    with pytest.raises(ValueError, match=r"write standard_error\(\.\.\.\) \*\* 2 for one model"):
        jm.covariance(jm.roc_auc, scores, labels)
    with pytest.raises(ValueError, match=r"clusters must be \[n\]"):
        jm.standard_error(jm.roc_auc, scores, labels, clusters=np.zeros(59))
    with pytest.raises(TypeError, match="clusters must be known"):
        jax.jit(lambda c: jm.standard_error(jm.roc_auc, scores, labels, clusters=c))(np.zeros(60))


@jax.jit
def _error_of_area(scores, labels, weights, options):
    return jm.standard_error(partial(jm.partial_auc, **options), scores, labels, weights=weights)


@pytest.mark.parametrize(
    "options",
    [
        {"max_fpr": 0.3, "min_fpr": 0.0, "min_tpr": 0.0},
        {"max_fpr": 0.8, "min_fpr": 0.2, "min_tpr": 0.3},
    ],
)
def test_equal_weights_have_the_error_of_none_where_a_limit_is_at_a_step(options):
    """Sums of 0.7 reach 3 * 0.7 and 8 * 0.7 only up to rounding."""
    labels = np.array([1, 0, 1, 0, 1, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 1, 0])
    area, scores = partial(jm.partial_auc, **options), -np.arange(20.0)
    expected = jm.standard_error(area, scores, labels)
    for weight in (0.1, 0.7, 1.1):
        weights = np.full(20, weight)
        for found in (
            jm.standard_error(area, scores, labels, weights=weights),
            _error_of_area(scores, labels, weights, options),
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    "name",
    [pytest.param("roc_auc", marks=pytest.mark.slow), "partial_auc", "average_precision"],
)
def test_errors_of_clusters_in_jit(name, rng):
    """Derivatives in weights of items, which move the totals of the classes, too."""
    labels, ids = rng.random(60) < 0.4, rng.integers(0, 25, 60)
    scores, options = np.round(rng.normal(size=60) + labels, 1), {}
    if name == "partial_auc":
        options = {"max_fpr": 0.3, "min_tpr": 0.2}

    metric = partial(getattr(jm, name), **options)

    def error(scores):
        return jm.standard_error(metric, scores, labels, clusters=ids)

    np.testing.assert_allclose(jax.jit(error)(scores), error(scores), rtol=1e-5)
