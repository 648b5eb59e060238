"""Metrics of hard predictions: by hand, against scikit-learn, and what is undefined or refused."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sklearn.metrics as theirs
from fast import marked
from predicted import AVERAGED, EVERY_COUNT, C, close, problem

import jaxmetrics as jm

AVERAGES = ("micro", "macro", "weighted", None)
LABELS = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2])
PREDICTIONS = np.array([0, 0, 1, 1, 2, 2, 2, 2, 0])


def test_confusion_matrix_by_hand():
    matrix = jm.confusion_matrix(PREDICTIONS, LABELS)
    assert matrix.dtype == jnp.int32
    assert matrix.tolist() == [[2, 1, 0], [0, 1, 1], [1, 0, 3]]
    weighted = jm.confusion_matrix(PREDICTIONS, LABELS, weights=np.arange(9.0))
    assert weighted.tolist() == [[1, 2, 0], [0, 3, 4], [8, 0, 18]]


def test_averages_by_hand():
    by_class = partial(jm.recall, PREDICTIONS, LABELS)
    close(by_class(average=None), [2 / 3, 1 / 2, 3 / 4])
    close(by_class(average="macro"), (2 / 3 + 1 / 2 + 3 / 4) / 3)
    close(by_class(average="micro"), 6 / 9)
    close(by_class(average="weighted"), 6 / 9)
    close(by_class(average=None, classes=[2, 0]), [3 / 4, 2 / 3])
    close(by_class(average="macro", classes=[2, 0]), (3 / 4 + 2 / 3) / 2)
    close(by_class(average="micro", classes=[2, 0]), 5 / 7)
    close(jm.precision(PREDICTIONS, LABELS, average=None), [2 / 3, 1 / 2, 3 / 4])
    close(jm.specificity(PREDICTIONS, LABELS, average=None), [5 / 6, 6 / 7, 4 / 5])
    close(jm.f_beta(PREDICTIONS, LABELS, beta=2, average=None, classes=[0]), [10 / 15])
    close(jm.accuracy(PREDICTIONS, LABELS), 6 / 9)
    close(jm.balanced_accuracy(PREDICTIONS, LABELS), (2 / 3 + 1 / 2 + 3 / 4) / 3)


def test_binary_by_hand():
    predictions, labels = [1, 1, 0, 1, 0, 0], [1, 0, 0, 1, 1, 0]
    close(jm.recall(predictions, labels), 2 / 3)
    close(jm.recall(predictions, labels, positive_class=0), 2 / 3)
    close(jm.precision(predictions, labels), 2 / 3)
    close(jm.specificity(predictions, labels), 2 / 3)
    close(jm.f_beta(predictions, labels), 2 / 3)
    close(jm.matthews_corrcoef(predictions, labels), 1 / 3)
    close(jm.recall(np.array(predictions, bool), np.array(labels, bool)), 2 / 3)
    close(jm.recall(PREDICTIONS, LABELS, positive_class=2), 3 / 4)
    close(jm.recall(PREDICTIONS, LABELS, n_classes=3), 1 / 2)


def test_a_beta_that_is_traced():
    f_beta = partial(jm.f_beta, [1, 1, 0, 1, 0], [1, 1, 1, 0, 0])
    large = np.float32(3e38)
    np.testing.assert_allclose(jax.jit(lambda x: f_beta(beta=x))(large), 2 / 3, rtol=1e-6)
    assert jax.grad(lambda x: f_beta(beta=x))(large) == 0


@pytest.mark.parametrize("beta", [1e100, 1e154, 1e300])
def test_f_beta_of_a_beta_whose_square_overflows_is_recall(beta):
    f_beta = partial(jm.f_beta, beta=beta, average=None, n_classes=4)
    predictions = np.append(PREDICTIONS, 3)  # a class that does not occur
    for found in (f_beta, jax.jit(f_beta)):
        close(found(predictions, np.append(LABELS, 2)), [2 / 3, 1 / 2, 3 / 5, 0])


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("name", "weighted", "averages", "positives"),
    [
        ("recall", True, AVERAGES, (0, 1)),
        ("precision", True, AVERAGES[:2], (0,)),
        ("f_beta", True, AVERAGES[2:], (1,)),
        # The averages are those of any rate.
        marked("recall", False, AVERAGES, (0, 1), fast=False),
        marked("precision", True, AVERAGES[2:], (1,), fast=False),
        marked("f_beta", True, AVERAGES[:2], (0,), fast=False),
    ],
)
def test_averages_against_sklearn(name, weighted, averages, positives, rng):
    ours, reference = AVERAGED[name]
    predictions, labels, weights = problem(rng)
    keep = rng.random(len(labels)) < 0.8
    keep[:C] = True
    given = {"weights": weights} if weighted else {}
    expected_given = {"sample_weight": weights[keep]} if weighted else {}
    for average in averages:
        for classes in ([3, 1],) if weighted else (None, [3, 1]):
            value = ours(predictions, labels, where=keep, average=average, classes=classes, **given)
            expected = reference(
                labels[keep], predictions[keep], labels=classes, average=average, **expected_given
            )
            close(value, expected, rtol=1e-14)
    two = (predictions > 1).astype(int), (labels > 1).astype(int)
    for positive in positives:
        value = ours(*two, where=keep, positive_class=positive, **given)
        expected = reference(two[1][keep], two[0][keep], pos_label=positive, **expected_given)
        close(value, expected, rtol=1e-14)


@pytest.mark.usefixtures("x64")
def test_metrics_of_all_classes_against_sklearn(rng):
    predictions, labels, weights = problem(rng)
    given, theirs_given = {"weights": weights}, {"sample_weight": weights}
    for name, reference in (
        ("accuracy", theirs.accuracy_score),
        ("balanced_accuracy", theirs.balanced_accuracy_score),
        ("matthews_corrcoef", theirs.matthews_corrcoef),
        ("confusion_matrix", theirs.confusion_matrix),
    ):
        ours = getattr(jm, name)
        close(ours(predictions, labels), reference(labels, predictions), rtol=1e-14)
        value = ours(predictions, labels, **given)
        close(value, reference(labels, predictions, **theirs_given), rtol=1e-14)


@pytest.mark.parametrize("number", [0.0, 1.0])
def test_zero_division_against_sklearn(number):
    # Class 2 is never predicted, 3 does not occur, 4 neither.
    labels, predictions = np.array([0, 1, 2, 0]), np.array([0, 1, 3, 1])
    for ours, reference in AVERAGED.values():
        for average in (None, "macro", "micro", "weighted"):
            value = ours(predictions, labels, n_classes=5, average=average, zero_division=number)
            expected = reference(
                labels, predictions, labels=range(5), average=average, zero_division=number
            )
            close(value, expected)


def test_undefined():
    labels, predictions = np.array([0, 1, 2, 0]), np.array([0, 1, 3, 1])
    recalls = jm.recall(predictions, labels, n_classes=5, average=None)
    assert np.isnan(recalls).tolist() == [False, False, False, True, True]
    precisions = jm.precision(predictions, labels, n_classes=5, average=None)
    assert np.isnan(precisions).tolist() == [False, False, True, False, True]
    f = jm.f_beta(predictions, labels, n_classes=5, average=None)
    assert np.isnan(f).tolist() == [False, False, False, False, True]
    for metric in (jm.recall, jm.precision, jm.f_beta):
        assert np.isnan(metric(predictions, labels, n_classes=5, average="macro"))
    close(jm.recall(predictions, labels, n_classes=5, average="weighted"), 2 / 4)
    assert np.isnan(jm.precision(predictions, labels, n_classes=5, average="weighted"))
    close(jm.balanced_accuracy(predictions, labels, n_classes=5), (1 / 2 + 1 + 0) / 3)
    assert np.isnan(jm.matthews_corrcoef(predictions, np.zeros(4, int)))
    assert jm.matthews_corrcoef(predictions, np.zeros(4, int), zero_division=0) == 0
    assert np.isnan(jm.recall([1, 1], [0, 0]))
    assert jm.recall([1, 1], [0, 0], zero_division=1) == 1


@EVERY_COUNT
def test_nothing_is_undefined(metric):
    no_item = metric(np.zeros((2, 0), int), np.zeros(0, int), n_classes=C)
    none, ones = np.zeros(9, bool), np.ones(9)
    masked = metric(LABELS, LABELS, where=none, weights=ones, n_classes=C)
    weightless = metric(LABELS, LABELS, where=~none, weights=0 * ones, n_classes=C)
    for value in (no_item, masked, weightless):
        value = np.asarray(value)
        assert np.isnan(value).all() or not value.any()
        assert np.isnan(value).all() or metric is jm.confusion_matrix
    assert len(no_item) == 2


@pytest.mark.parametrize(
    ("error", "words", "call"),
    [
        (ValueError, "from 0, got -1", lambda: jm.recall([0, -1], [0, 1], average="macro")),
        (ValueError, "below 3, got 3", lambda: jm.confusion_matrix([0, 3], [0, 1], n_classes=3)),
        (ValueError, "average='macro'", lambda: jm.recall(PREDICTIONS, LABELS)),
        (ValueError, "average must be", lambda: jm.recall([0], [1], average="samples")),
        (ValueError, "positive_class=", lambda: jm.recall([0], [1], classes=[1])),
        (
            ValueError,
            "classes=[0]",
            lambda: jm.recall([0], [1], average="macro", positive_class=0),
        ),
        (ValueError, "distinct", lambda: jm.recall([0], [1], average=None, classes=[1, 1])),
        (
            ValueError,
            "classes must be below",
            lambda: jm.recall([0], [1], average=None, classes=[4], n_classes=3),
        ),
        (TypeError, "sequence", lambda: jm.recall([0], [1], average=None, classes=1)),
        (TypeError, "positive_class must be", lambda: jm.recall([0], [1], positive_class="a")),
        (TypeError, "searchsorted", lambda: jm.recall(["a"], ["b"])),
        (ValueError, "argmax", lambda: jm.recall([0.3], [1])),
        (TypeError, "zero_division", lambda: jm.recall([0], [1], zero_division="warn")),
        (ValueError, "zero_division", lambda: jm.recall([0], [1], zero_division=2)),
        (ValueError, "beta", lambda: jm.f_beta([0], [1], beta=-1)),
        (ValueError, "last axis", lambda: jm.accuracy([0, 1], [1])),
        (ValueError, "below 2^63", lambda: jm.accuracy([2**63], np.array([0], np.uint64))),
        (ValueError, "weights must be", lambda: jm.accuracy([0, 1], [1, 0], weights=[1, -1])),
        (TypeError, "where must be bool", lambda: jm.accuracy([0], [1], where=[1])),
        (TypeError, "labels is missing", lambda: jm.accuracy([0], None)),
        (
            TypeError,
            "n_classes=10",
            lambda: jax.jit(jm.confusion_matrix)(PREDICTIONS, LABELS),
        ),
        (
            TypeError,
            "class indices, got float32",
            lambda: jax.jit(jm.accuracy)(jnp.ones(2), jnp.ones(2)),
        ),
    ],
)
def test_errors(error, words, call):
    with pytest.raises(error) as raised:
        call()
    assert words in str(raised.value)


def test_binary_needs_no_number_of_classes():
    compiled = jax.jit(jm.recall)
    close(compiled(jnp.array([1, 0, 1]), jnp.array([1, 1, 0])), 1 / 2)
    assert np.isnan(compiled(jnp.array([1, 0, 2]), jnp.array([1, 1, 0])))
    assert jm.recall([0, 1, 1], [1, 1, 0], where=[True, True, True]) == 0.5


def test_large_whole_weights_stay_whole():
    weights = np.array([2**31, 1, 1])
    matrix = jm.confusion_matrix([1, 1, 0], [1, 1, 0], weights=weights)
    assert np.array_equal(matrix, [[1, 0], [0, 2**31 + 1]])


def test_no_items_with_weights_have_no_value_in_a_program():
    none, weights = np.zeros(0, int), np.zeros(0)
    assert np.isnan(jax.jit(lambda w: jm.accuracy(none, none, weights=w))(weights))
    assert jm.confusion_matrix(none, none, weights=weights).dtype == jnp.float32


def test_the_number_of_classes_is_no_class():
    recall = jax.jit(partial(jm.recall, n_classes=2, average="macro"))
    assert recall([0, 1], [0, 1]) == 1
    assert np.isnan(recall([0, 2], [0, 1]))
    assert np.isnan(recall([0, 1], [0, 2]))
