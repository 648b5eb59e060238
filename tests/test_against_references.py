"""Values against scikit-learn and NumPy in float64, over random data with ties and weights."""

import numpy as np
import pytest
import sklearn.metrics as sk
from registry import sample

import jaxmetrics as jm
from jaxmetrics._base.checks import QUANTILE_METHODS

pytestmark = pytest.mark.usefixtures("x64")

SHAPES = pytest.mark.parametrize("ties", [True, False])
WEIGHTED = pytest.mark.parametrize("weighted", [True, False])


def data(rng, ties, weighted, n=200):
    scores, labels, weights = sample(rng, n, ties=ties)
    return scores.astype(float), labels, weights.astype(float) if weighted else None


def close(a, b, **options):
    np.testing.assert_allclose(np.asarray(a), b, **{"rtol": 1e-12, "atol": 1e-14, **options})


@SHAPES
@WEIGHTED
@pytest.mark.parametrize("trial", range(5))
def test_areas(ties, weighted, trial):
    scores, labels, weights = data(np.random.default_rng(trial), ties, weighted)
    given = {"sample_weight": weights}
    close(jm.roc_auc(scores, labels, weights=weights), sk.roc_auc_score(labels, scores, **given))
    limits = [0.01, 0.1, 0.25, 0.99, 1.0]
    ours = jm.partial_auc(scores, labels, weights=weights, max_fpr=limits, scale="mcclish")
    close(ours, [sk.roc_auc_score(labels, scores, max_fpr=f, **given) for f in limits])
    close(
        jm.average_precision(scores, labels, weights=weights),
        sk.average_precision_score(labels, scores, **given),
    )


@SHAPES
@WEIGHTED
def test_curves(ties, weighted, rng):
    scores, labels, weights = data(rng, ties, weighted)
    given = {"sample_weight": weights}
    curves = [
        (jm.roc_curve, sk.roc_curve, {"drop_intermediate": False}),
        (jm.precision_recall_curve, sk.precision_recall_curve, {}),
    ]
    for ours, theirs, options in curves:
        curve = ours(scores, labels, weights=weights)
        expected = theirs(labels, scores, **given, **options)
        distinct = len(np.unique(scores))
        for a, b in zip(curve, expected, strict=True):
            a = np.asarray(a)
            a = a[: distinct + 1] if ours is jm.roc_curve else a[len(a) - distinct - 1 :]
            close(a[: len(b)], b)
            assert len(curve.thresholds) == len(scores) + 1


@SHAPES
@WEIGHTED
def test_curves_without_intermediate_points(ties, weighted, rng):
    scores, labels, weights = data(rng, ties, weighted)
    given = {"sample_weight": weights, "drop_intermediate": True}
    for a, b in zip(
        jm.drop_intermediate(jm.roc_curve(scores, labels, weights=weights)),
        sk.roc_curve(labels, scores, **given),
        strict=True,
    ):
        close(a, b)
    for a, b in zip(
        jm.drop_intermediate(jm.precision_recall_curve(scores, labels, weights=weights)),
        sk.precision_recall_curve(labels, scores, **given),
        strict=True,
    ):
        close(a[: len(b)], b)
    ours = jm.drop_intermediate(jm.det_curve(scores, labels, weights=weights))
    fpr, fnr, thresholds = sk.det_curve(labels, scores, **given)
    inside = np.isin(ours.thresholds, thresholds)
    close(ours.fpr[inside], fpr)
    close(ours.fnr[inside], fnr)
    assert (ours.fpr[~inside] == 0).all() | (ours.fnr[~inside] == 0).any()


@pytest.mark.parametrize(
    "method",
    [  # one of each kind: a step, its mean, straight lines
        pytest.param(
            method,
            marks=()
            if method in ("inverted_cdf", "averaged_inverted_cdf", "linear", "hazen")
            else pytest.mark.slow,
        )
        for method in QUANTILE_METHODS
    ],
)
def test_quantile_methods(method, rng):
    limits = np.array([0.003, 0.01, 0.05, 0.1, 0.25, 0.4, 0.5, 0.75, 0.9, 1.0])
    sizes = ((2, False), (5, False), (10, True), (41, True), (100, False))
    rows = [data(rng, ties, False, n)[:2] for n, ties in sizes]
    widest = max(n for n, _ in sizes)  # so that each metric is compiled once
    padded = [[np.resize(x, widest) for x in row] for row in rows]
    scores, labels = map(np.stack, zip(*padded, strict=True))
    where = np.arange(widest) < [[n] for n, _ in sizes]
    options = {"where": where, "max_fpr": limits, "method": "quantile", "quantile_method": method}
    thresholds = jm.threshold_at_fpr(scores, labels, **options)
    recall = jm.recall_at_fpr(scores, labels, **options)
    for (s, y), found, share in zip(rows, thresholds, recall, strict=True):
        expected = np.quantile(s[~y], 1 - limits, method=method)
        close(found, expected, rtol=1e-15)
        close(share, [(s[y] > t).mean() for t in expected])


@SHAPES
@WEIGHTED
def test_recall_at_fpr_against_a_search(ties, weighted, rng):
    scores, labels, weights = data(rng, ties, weighted)
    limits = [0.01, 0.05, 0.1, 0.33, 0.5, 1.0]
    fpr, tpr, thresholds = sk.roc_curve(
        labels, scores, sample_weight=weights, drop_intermediate=False
    )
    step = [tpr[fpr <= limit].max() for limit in limits]
    close(jm.recall_at_fpr(scores, labels, weights=weights, max_fpr=limits), step)
    linear = [np.interp(limit, fpr + 1e-14 * np.arange(len(fpr)), tpr) for limit in limits]
    ours = jm.recall_at_fpr(scores, labels, weights=weights, max_fpr=limits, method="linear")
    close(ours, linear, rtol=1e-8)
    ours = jm.threshold_at_fpr(scores, labels, weights=weights, max_fpr=limits)
    close(ours, [thresholds[tpr == value].max() for value in step])


@SHAPES
@WEIGHTED
def test_operating_points_against_a_search(ties, weighted, rng):
    scores, labels, weights = data(rng, ties, weighted)
    given = {"sample_weight": weights}
    precision, recall, _ = sk.precision_recall_curve(labels, scores, **given)
    fpr, tpr, _ = sk.roc_curve(labels, scores, drop_intermediate=False, **given)
    for limit in (0.0, 0.2, 0.5, 0.9, 1.0):
        ours = {"scores": scores, "labels": labels, "weights": weights}
        close(jm.precision_at_recall(**ours, min_recall=limit), precision[recall >= limit].max())
        close(jm.recall_at_precision(**ours, min_precision=limit), recall[precision >= limit].max())
        close(
            jm.sensitivity_at_specificity(**ours, min_specificity=limit),
            tpr[1 - fpr >= limit].max(),
        )
        close(
            jm.specificity_at_sensitivity(**ours, min_sensitivity=limit),
            (1 - fpr)[tpr >= limit].max(),
        )


def test_sampled_auc_is_unbiased(rng):
    import jax

    scores, labels, weights = data(rng, ties=True, weighted=True)
    where = rng.random(len(scores)) < 0.8
    spoiled = np.where(where, scores, np.nan)
    n_pairs = 200_000
    for options in ({}, {"weights": weights, "where": where}):
        exact = jm.roc_auc(spoiled if "where" in options else scores, labels, **options)
        sampled = jm.roc_auc_sampled(
            jax.random.key(1),
            spoiled if "where" in options else scores,
            labels,
            n_pairs=n_pairs,
            **options,
        )
        assert abs(sampled - exact) < 4 * 0.5 / np.sqrt(n_pairs)
    batch = jm.roc_auc_sampled(
        jax.random.key(1), np.stack([scores, 2 * scores]), labels, n_pairs=99
    )
    assert batch[0] == batch[1]  # the same pairs in both rows
    assert np.isnan(jm.roc_auc_sampled(jax.random.key(0), scores, labels * 0, n_pairs=9))
    assert np.isnan(jm.roc_auc_sampled(jax.random.key(0), spoiled, labels, n_pairs=9))


@pytest.mark.parametrize("limit", [None, 0.3])
def test_areas_of_more_pairs_than_single_precision_counts(limit, rng):
    labels = np.arange(30_000) % 2 == 0
    scores = rng.normal(size=30_000) + labels
    if limit is None:
        found = jm.roc_auc(scores, labels)
    else:
        found = jm.partial_auc(scores, labels, max_fpr=limit, scale="mcclish")
    close(found, sk.roc_auc_score(labels, scores, max_fpr=limit), rtol=1e-14)
