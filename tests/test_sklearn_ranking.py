"""Metrics of ranked labels and documents under scikit-learn's names, against scikit-learn's."""

from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import sklearn.metrics as theirs
from scikit_tests import same
from scipy import sparse

import jaxmetrics.sklearn as ours

OF_LABELS = ["label_ranking_average_precision_score", "label_ranking_loss", "coverage_error"]


@pytest.mark.parametrize("name", OF_LABELS)
@pytest.mark.parametrize("dtype", [float, int])
def test_of_labels(name, dtype, rng):
    """With ties, items of no label and of all, and sizes that are padded."""
    scores = rng.integers(-2, 2, (21, 5)).astype(dtype)
    relevant = rng.integers(0, 2, (21, 5))
    relevant[0], relevant[1] = 0, 1
    for weights in (None, rng.random(21)):
        value = getattr(ours, name)(relevant, scores, sample_weight=weights)
        expected = getattr(theirs, name)(relevant, scores, sample_weight=weights)
        assert isinstance(value, float)
        assert value == pytest.approx(expected, rel=1e-14)
    if name != "coverage_error":
        value = getattr(ours, name)(sparse.csr_array(relevant), scores)
        assert value == pytest.approx(getattr(theirs, name)(relevant, scores), rel=1e-14)


@pytest.mark.parametrize("name", OF_LABELS)
def test_of_two_labels(name):
    """One of which is relevant to each item: these are rows, not the classes of items."""
    relevant, scores = np.eye(2, dtype=int)[np.arange(16) % 2], np.arange(32).reshape(16, 2) % 3
    expected = getattr(theirs, name)(relevant, scores)
    assert getattr(ours, name)(relevant, scores) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("name", ["dcg_score", "ndcg_score"])
def test_gains(name, rng):
    scores, gains = rng.integers(0, 4, (21, 5)), rng.integers(0, 3, (21, 5))
    gains[0] = 0
    options = {} if name == "ndcg_score" else {"log_base": 10}
    for k in (None, 2, 50):
        for weights in (None, rng.random(21)):
            given = {"k": k, "sample_weight": weights, **options}
            value = getattr(ours, name)(gains, scores, **given)
            assert value == pytest.approx(getattr(theirs, name)(gains, scores, **given), rel=1e-14)
        # Where scores tie the order of scikit-learn is that of an unstable sort; its ranks do not.
        ranks = np.argsort(np.argsort(scores, axis=1, kind="stable"), axis=1)
        value = getattr(ours, name)(gains, scores, k=k, ignore_ties=True, **options)
        expected = getattr(theirs, name)(gains, ranks, k=k, ignore_ties=True, **options)
        assert value == pytest.approx(expected, rel=1e-14)


def test_top_k(rng):
    """Of classes that tie the last comes first."""
    scores, labels = rng.integers(0, 3, (40, 5)), rng.integers(0, 5, 40)
    for options in ({}, {"sample_weight": rng.random(40)}, {"normalize": False}):
        for k in (1, 3):
            given = {"k": k, "labels": range(5), **options}
            value = ours.top_k_accuracy_score(labels, scores, **given)
            assert value == pytest.approx(theirs.top_k_accuracy_score(labels, scores, **given))
    names = np.array(["a", "b", "c", "d", "e"])[labels]
    assert ours.top_k_accuracy_score(names, scores) == theirs.top_k_accuracy_score(names, scores)


@pytest.mark.parametrize("k", [0, -1, True, 1.5])
def test_k_that_is_none(k):
    for function in (ours.ndcg_score, ours.dcg_score):
        with pytest.raises(ValueError, match="k must be"):
            function([[1, 0, 2]], [[0.1, 0.2, 0.3]], k=k)
    with pytest.raises(ValueError, match="k must be"):
        ours.top_k_accuracy_score([0, 1, 2], np.eye(3), k=k)


_CLASSES = {"y_true": [0, 1, 1], "y_pred": [0, 0, 1]}
_SCORED = {"y_true": [0, 1, 1], "y_score": [0.1, 0.4, 0.3]}
_ROWS = {"y_true": [[0, 1, 1], [1, 0, 0], [1, 1, 0]], "y_score": np.arange(9).reshape(3, 3) % 4}


@pytest.mark.parametrize("name", sorted(set(ours.__all__) - {"auc"}))
def test_weights_that_are_all_zero(name):
    """These were an IndexError, a ZeroDivisionError, 0 or NaN."""
    function = getattr(ours, name)
    function = partial(function, beta=2) if name == "fbeta_score" else function
    inputs = next(given for given in (_CLASSES, _SCORED, _ROWS) if _is_accepted(function, given))
    for weights in (np.zeros(3), np.zeros(3, int), [0.0, 0, 0]):
        with pytest.raises(ValueError, match="Sample weights must contain at least one non-zero"):
            function(**inputs, sample_weight=weights)


def _is_accepted(function, given):
    try:
        function(**given)
    except (TypeError, ValueError):
        return False
    return True


@pytest.mark.parametrize("name", ["roc_auc_score", "average_precision_score"])
@pytest.mark.parametrize("average", ["macro", "weighted", "micro", "samples", None])
def test_weights_of_labels_that_are_all_zero(name, average):
    rows = {"y_true": [[0, 1], [1, 0], [1, 0]], "y_score": np.arange(6).reshape(3, 2) % 4}
    with pytest.raises(ValueError, match="Sample weights must contain at least one non-zero"):
        getattr(ours, name)(**rows, average=average, sample_weight=np.zeros(3))


@pytest.mark.parametrize("name", ["roc_auc_score", "average_precision_score"])
@pytest.mark.parametrize("average", ["macro", "weighted", "micro", "samples", None])
def test_classes_without_weight(name, average):
    """They warn as classes that do not occur."""
    rows, scores = np.array([[0, 1], [1, 0], [1, 1], [0, 1]]), np.arange(8).reshape(4, 2) % 5
    call = partial(same, name, average=average)
    for item in np.eye(4):
        for weights in (item, 1 - item, item + item[[1, 2, 3, 0]]):
            call(rows, scores, sample_weight=weights)
            call(rows[:, 0], scores[:, 0], sample_weight=weights)
            call(np.array([[0, 1], [1, 1], [0, 1], [0, 1]]), scores, sample_weight=weights)
    if average == "weighted":
        for library in (ours, theirs):
            given = {"average": average, "sample_weight": [0, 0, 1]}
            assert getattr(library, name)(np.eye(3, 2), scores[:3], **given) == 0


@pytest.mark.parametrize(
    "name",
    ["roc_curve", "precision_recall_curve", "det_curve", "average_precision_score"],
)
def test_scores_that_are_objects(name):
    truth, scores = [0, 1, 0, 1, 1], [0.5, 2, Decimal("0.25"), True, Fraction(1, 2)]
    function = getattr(ours, name)
    value = function(truth, np.array(scores, object))
    assert np.array_equal(np.r_[value], np.r_[function(truth, [float(x) for x in scores])])
    with pytest.raises(TypeError, match="must hold numbers"):
        function(truth, np.array([0.5, 2, "0.25", 1, 0], object))
    with pytest.raises(ValueError, match="infinity"):
        function(truth, np.array([0.5, 2, np.inf, 1, 0], object))


def test_classes_in_a_column(rng):
    truth, scores = np.array([[0], [1], [2], [2], [1]]), rng.dirichlet(np.ones(3), 5)
    same("average_precision_score", truth, scores)
    same("roc_auc_score", truth, scores, multi_class="ovr")
    pairs = [ours.roc_auc_score(y, scores, multi_class="ovo") for y in (truth, truth[:, 0])]
    assert pairs[0] == pairs[1]


def test_one_class_with_a_column_of_scores_for_each():
    same("roc_auc_score", [1, 1], [[0.2, 0.8], [0.3, 0.7]])
    with pytest.raises(ValueError, match="1d array"):
        ours.roc_auc_score([0, 1], [[0.2, 0.8], [0.3, 0.7]])


@pytest.mark.parametrize("unit", [1e-100, 1e-17, 1e12])
def test_the_unit_of_weights_drops_no_corner_of_a_curve(unit):
    rng = np.random.default_rng(0)
    labels, scores, weights = rng.integers(0, 2, 15), rng.normal(size=15), rng.random(15)
    found = ours.roc_curve(labels, scores, sample_weight=unit * weights)
    expected = theirs.roc_curve(labels, scores, sample_weight=weights)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)
