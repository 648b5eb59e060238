"""The confusion matrix, and single numbers from all of it: accuracy and correlation."""

from __future__ import annotations

import functools
import math

import numpy as np

from jaxmetrics._base import checks, cumulative, numerics
from jaxmetrics._base.double import as_default, double_precision, double_program, library_program
from jaxmetrics._base.host import as_jax
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.numerics import divide
from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics._predictions.counting import (
    JOINT,
    Choice,
    Decisions,
    Outcomes,
    counted_items,
    decisions,
    indices,
    matrix_of_classes,
    sum_where,
    value_of,
)


@on_any_mesh
def confusion_matrix(
    predictions: ArrayLike,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    n_classes: int | None = None,
) -> Array:
    """The confusion matrix: the number of items of each class that are predicted as each class.

    C[t, p] = sum_i w_i [labels_i = t] [predictions_i = p].

    Args:
      predictions: `[..., n]`, class indices from 0.
      labels: `[..., n]`, class indices from 0.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out; what they hold has no effect.
      n_classes: number of classes. None takes the highest index plus 1, at least 2; traced arrays
        need a number.

    Returns:
      `[..., n_classes, n_classes]`, a row for each true class and a column for each predicted one;
      integers without weights, or with integer weights.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; scores in place of class indices,
        an index not in 0 to n_classes - 1, or n_classes=None with traced arrays.

    Traced indices that are out of range make the whole matrix NaN, or -1 if it holds integers,
    which have no NaN. Time O(n + n_classes^2), memory O(n_classes^2).

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.confusion_matrix([0, 2, 2, 1], [0, 1, 2, 1]))
      [[1 0 0]
       [0 1 1]
       [0 0 1]]

    Reference: S. V. Stehman, "Selecting and interpreting measures of thematic classification
    accuracy", Remote Sensing of Environment 62, 1997.
    """
    items = decisions(predictions, labels, weights, where)
    n_classes = checks.check_n_classes(indices(items), items.where, n_classes)
    matrix = _matrix(items, n_classes)
    if numerics.is_inexact(matrix):
        return as_default(matrix)
    with double_precision():  # sums of whole weights stay in 64 bits
        return as_jax(matrix)


@library_program("n_classes")
def _matrix(items: Decisions, n_classes: int) -> Array:
    matrix, undefined = _counted_matrix(items, n_classes)
    library = numerics.namespace(matrix)
    otherwise = library.nan if numerics.is_inexact(matrix) else -1
    return library.where(undefined[..., None, None], otherwise, matrix)


@double_program("n_classes")
def matrix_of(items: Decisions, n_classes: int) -> Array:
    """The confusion matrix of checked arrays, 64-bit; not whether it is undefined."""
    return _counted_matrix(items, n_classes)[0]


def _counted_matrix(items: Decisions, n_classes: int) -> tuple[Array, Array]:
    instead = "count fewer classes, or write recall or precision with average=None"
    checks.check_fits("n_classes", n_classes, n_classes**2, instead)
    matrix, undefined = matrix_of_classes(items, n_classes)
    return matrix.astype(np.int32) if items.weights is None else matrix, undefined


@on_any_mesh
def accuracy(
    predictions: ArrayLike,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Accuracy: the share of the items that are predicted as their class.

    sum_i w_i [predictions_i = labels_i] / sum_i w_i.

    Args:
      predictions: `[..., n]`, class indices from 0.
      labels: `[..., n]`, class indices from 0.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out; what they hold has no effect.

    Returns:
      `[...]`, from 0 to 1.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; scores in place of class indices,
        or an index below 0 or not below 2^63.

    NaN where there is no item, or a traced index is out of range. Time O(n), memory O(1).

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.accuracy([0, 2, 2, 1, 0], [0, 1, 2, 1, 0]))
      0.8

    Reference: M. Sokolova and G. Lapalme, "A systematic analysis of performance measures for
    classification tasks", Information Processing and Management 45, 2009.
    """
    items = decisions(predictions, labels, weights, where)
    checks.check_class_range(indices(items), items.where, None, "")
    return as_default(_accuracy(items))


@library_program()
def _accuracy(items: Decisions) -> Array:
    said, true, amounts, undefined = counted_items(items, None)
    library = numerics.namespace(said, true, amounts)
    right, wrong = (sum_where(cell, amounts) for cell in (said == true, said != true))
    return library.where(undefined, np.nan, divide(right, right + wrong, np.nan))


@on_any_mesh
def balanced_accuracy(
    predictions: ArrayLike,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    n_classes: int | None = None,
) -> Array:
    """Balanced accuracy: the mean recall of the classes that occur.

    sum_c tp_c / (tp_c + fn_c) / m, over the m classes with tp_c + fn_c > 0.

    Args:
      predictions: `[..., n]`, class indices from 0.
      labels: `[..., n]`, class indices from 0.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out; what they hold has no effect.
      n_classes: number of classes. None takes the highest index plus 1, at least 2; traced arrays
        need a number.

    Returns:
      `[...]`, from 0 to 1; chance is 1 / m.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; scores in place of class indices,
        an index not in 0 to n_classes - 1, or n_classes=None with traced arrays.

    NaN where there is no item, or traced indices are out of range. Unlike the macro mean of
    `recall`, it leaves absent classes out. Time O(n + n_classes), memory O(n_classes).

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.balanced_accuracy([0, 2, 2, 1, 0], [0, 0, 2, 2, 0]))
      0.5833333

    Reference: K. H. Brodersen et al., "The balanced accuracy and its posterior distribution",
    ICPR 2010.
    """
    items = decisions(predictions, labels, weights, where)
    choice = Choice(checks.check_n_classes(indices(items), items.where, n_classes), JOINT)
    return value_of(items, choice, _balanced_accuracy, math.nan)


def _balanced_accuracy(outcomes: Outcomes, otherwise: Array) -> Array:
    recalls = divide(outcomes.hits, outcomes.actual, 0.0)
    library = numerics.namespace(recalls)
    return divide(library.sum(recalls, -1), library.sum(outcomes.actual > 0, -1), otherwise)


@on_any_mesh
def matthews_corrcoef(
    predictions: ArrayLike,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    n_classes: int | None = None,
    zero_division: float = math.nan,
) -> Array:
    """Matthews' correlation coefficient of predicted and true classes, two or several.

    sum_c (tp_c tn_c - fp_c fn_c) / sqrt((sum_c p_c (s - p_c)) (sum_c t_c (s - t_c))). p_c is the
    weight of the items predicted as class c, t_c that of the items of class c, s that of all items.

    Args:
      predictions: `[..., n]`, class indices from 0.
      labels: `[..., n]`, class indices from 0.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out; what they hold has no effect.
      n_classes: number of classes. None takes the highest index plus 1, at least 2; traced arrays
        need a number.
      zero_division: the value of 0 / 0: NaN, or a number in [0, 1].

    Returns:
      `[...]`, at most 1; chance is 0. With two classes -1 means that every prediction is wrong.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; scores in place of class indices,
        an index not in 0 to n_classes - 1, or n_classes=None with traced arrays.

    NaN where all items are of one class, or are predicted as one, unless `zero_division` is a
    number: the correlation with a constant is undefined. scikit-learn returns 0 there. Also NaN
    where traced indices are out of range. Time O(n + n_classes), memory O(n_classes).

    Example:
      >>> import jaxmetrics as jm
      >>> print(f"{jm.matthews_corrcoef([1, 1, 0, 1], [1, 0, 0, 1]):.4f}")
      0.5774

    Reference: J. Gorodkin, "Comparing two K-category assignments by a K-category correlation
    coefficient", Computational Biology and Chemistry 28, 2004.
    """
    items = decisions(predictions, labels, weights, where)
    choice = Choice(checks.check_n_classes(indices(items), items.where, n_classes), JOINT)
    return value_of(items, choice, _matthews_corrcoef, zero_division)


def _matthews_corrcoef(outcomes: Outcomes, otherwise: Array) -> Array:
    near_one = numerics.near_one(*(x.astype(np.float64) for x in outcomes))
    hits, false_positives, false_negatives, true_negatives = near_one
    said, true = hits + false_positives, hits + false_negatives
    library = numerics.namespace(hits)
    both = library.sum(hits * true_negatives - false_positives * false_negatives, axis=-1)
    spread = (library.sum(x * cumulative.others(x), axis=-1) for x in (said, true))
    product = functools.reduce(library.multiply, spread)
    # Each spread is exactly 0 where all items are of one class: it is a sum of products of weights.
    defined = product > 0
    # The inner where keeps the infinite derivative of sqrt at 0 out of the gradient.
    found = both / library.sqrt(library.where(defined, product, 1))
    return library.where(defined, numerics.within(found, -1, 1), otherwise)
