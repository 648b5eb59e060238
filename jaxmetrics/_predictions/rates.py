"""Rates of one class against the rest, and their averages over classes."""

from __future__ import annotations

import math

from jaxmetrics._base import checks
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.numerics import divide, namespace
from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics._predictions.counting import Outcomes, choice_of, decisions, value_of


@on_any_mesh
def recall(
    predictions: ArrayLike,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    n_classes: int | None = None,
    average: str | None = "binary",
    classes: ArrayLike | None = None,
    positive_class: int = 1,
    zero_division: float = math.nan,
) -> Array:
    """Recall: the share of the items of a class that are predicted as the class.

    tp / (tp + fn). Of the items of the class, tp is the weight of those predicted as the class, fn
    the weight of the others.

    Args:
      predictions: `[..., n]`, class indices from 0.
      labels: `[..., n]`, class indices from 0.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out; what they hold has no effect.
      n_classes: number of classes. None takes the highest index plus 1, at least 2; traced arrays
        need a number unless average is "binary".
      average: "binary": class `positive_class` against the rest; "micro": of the counts summed
        over the classes; "macro": the mean over the classes; "weighted": the mean weighted by the
        items of each class; None: one value for each class, on a new last axis.
      classes: the classes to average, or to return in this order; None for all.
      positive_class: the class of average="binary".
      zero_division: the value of 0 / 0: NaN, or a number in [0, 1].

    Returns:
      `[...]`, or `[..., classes]` for average=None; from 0 to 1.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; scores in place of class indices,
        or an index above 1 with average="binary", unless n_classes or a positive_class above 1 is
        given.

    NaN for a class without items, and for a macro mean over it, unless `zero_division` is a number.
    The weighted mean leaves classes without items out. Also NaN where traced indices are out of
    range. Time O(n + n_classes), memory O(n_classes).

    Example:
      >>> import jaxmetrics as jm
      >>> predictions, labels = [0, 2, 2, 1, 0], [0, 1, 2, 1, 0]
      >>> print(jm.recall(predictions, labels, average=None))
      [1.  0.5 1. ]
      >>> print(jm.recall(predictions, labels, average="micro"))
      0.8

    Reference: M. Sokolova and G. Lapalme, "A systematic analysis of performance measures for
    classification tasks", Information Processing and Management 45, 2009.
    """
    items = decisions(predictions, labels, weights, where)
    choice = choice_of(items, n_classes, average, classes, positive_class)
    return value_of(items, choice, _class_recall, zero_division)


def _class_recall(outcomes: Outcomes, otherwise: Array) -> Array:
    return divide(outcomes.hits, outcomes.actual, otherwise)


@on_any_mesh
def precision(
    predictions: ArrayLike,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    n_classes: int | None = None,
    average: str | None = "binary",
    classes: ArrayLike | None = None,
    positive_class: int = 1,
    zero_division: float = math.nan,
) -> Array:
    """Precision: the share of the predictions of a class that are correct.

    tp / (tp + fp). Of the items predicted as the class, tp is the weight of those of the class, fp
    the weight of the others.

    Args:
      predictions: `[..., n]`, class indices from 0.
      labels: `[..., n]`, class indices from 0.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out; what they hold has no effect.
      n_classes: number of classes. None takes the highest index plus 1, at least 2; traced arrays
        need a number unless average is "binary".
      average: "binary": class `positive_class` against the rest; "micro": of the counts summed
        over the classes; "macro": the mean over the classes; "weighted": the mean weighted by the
        items of each class; None: one value for each class, on a new last axis.
      classes: the classes to average, or to return in this order; None for all.
      positive_class: the class of average="binary".
      zero_division: the value of 0 / 0: NaN, or a number in [0, 1].

    Returns:
      `[...]`, or `[..., classes]` for average=None; from 0 to 1.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; scores in place of class indices,
        or an index above 1 with average="binary", unless n_classes or a positive_class above 1 is
        given.

    NaN for a class that is never predicted, and for a mean over it, unless `zero_division` is a
    number. The weighted mean leaves classes without items out. Also NaN where traced indices are
    out of range. Time O(n + n_classes), memory O(n_classes).

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.precision([0, 2, 2, 1, 0], [0, 1, 2, 1, 0], average=None))
      [1.  1.  0.5]

    Reference: M. Sokolova and G. Lapalme, "A systematic analysis of performance measures for
    classification tasks", Information Processing and Management 45, 2009.
    """
    items = decisions(predictions, labels, weights, where)
    choice = choice_of(items, n_classes, average, classes, positive_class)
    return value_of(items, choice, _class_precision, zero_division)


def _class_precision(outcomes: Outcomes, otherwise: Array) -> Array:
    return divide(outcomes.hits, outcomes.predicted, otherwise)


@on_any_mesh
def f_beta(
    predictions: ArrayLike,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    n_classes: int | None = None,
    beta: float = 1.0,
    average: str | None = "binary",
    classes: ArrayLike | None = None,
    positive_class: int = 1,
    zero_division: float = math.nan,
) -> Array:
    """F-beta: the harmonic mean of precision and recall, with weight beta^2 on recall.

    (1 + beta^2) tp / ((1 + beta^2) tp + beta^2 fn + fp).

    Args:
      predictions: `[..., n]`, class indices from 0.
      labels: `[..., n]`, class indices from 0.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out; what they hold has no effect.
      n_classes: number of classes. None takes the highest index plus 1, at least 2; traced arrays
        need a number unless average is "binary".
      beta: at least 0. 1 is F1, 0 is precision; a larger beta favours recall.
      average: "binary": class `positive_class` against the rest; "micro": of the counts summed
        over the classes; "macro": the mean over the classes; "weighted": the mean weighted by the
        items of each class; None: one value for each class, on a new last axis.
      classes: the classes to average, or to return in this order; None for all.
      positive_class: the class of average="binary".
      zero_division: the value of 0 / 0: NaN, or a number in [0, 1].

    Returns:
      `[...]`, or `[..., classes]` for average=None; from 0 to 1.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; scores in place of class indices,
        or an index above 1 with average="binary", unless n_classes or a positive_class above 1 is
        given.

    NaN for a class that neither occurs nor is predicted (for beta=0: that is not predicted), and
    for a mean over it, unless `zero_division` is a number. The weighted mean leaves classes without
    items out. Also NaN where traced indices are out of range. Time O(n + n_classes), memory
    O(n_classes).

    Example:
      >>> import jaxmetrics as jm
      >>> print(f"{jm.f_beta([1, 1, 0, 1], [1, 0, 0, 1], beta=2):.4f}")
      0.9091

    Reference: C. J. van Rijsbergen, "Information Retrieval", 2nd edition, 1979.
    """
    items = decisions(predictions, labels, weights, where)
    choice = choice_of(items, n_classes, average, classes, positive_class)
    return value_of(items, choice, _class_f_beta, zero_division, checks.check_beta(beta))


def _class_f_beta(outcomes: Outcomes, otherwise: Array, beta: Array) -> Array:
    # From here on it is recall in all digits of beta's dtype; larger squares would overflow.
    most = 2.0**256 if beta.dtype.itemsize == 8 else 2.0**30
    beta = namespace(outcomes.hits, beta).minimum(beta, most)
    found = (1 + beta**2) * outcomes.hits
    missed = beta**2 * outcomes.false_negatives + outcomes.false_positives
    return divide(found, found + missed, otherwise)


@on_any_mesh
def specificity(
    predictions: ArrayLike,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    n_classes: int | None = None,
    average: str | None = "binary",
    classes: ArrayLike | None = None,
    positive_class: int = 1,
    zero_division: float = math.nan,
) -> Array:
    """Specificity: the share of the other items that are not predicted as the class.

    tn / (tn + fp). Of the items of other classes, fp is the weight of those predicted as the class,
    tn the weight of the others.

    Args:
      predictions: `[..., n]`, class indices from 0.
      labels: `[..., n]`, class indices from 0.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out; what they hold has no effect.
      n_classes: number of classes. None takes the highest index plus 1, at least 2; traced arrays
        need a number unless average is "binary".
      average: "binary": class `positive_class` against the rest; "micro": of the counts summed
        over the classes; "macro": the mean over the classes; "weighted": the mean weighted by the
        items of each class; None: one value for each class, on a new last axis.
      classes: the classes to average, or to return in this order; None for all.
      positive_class: the class of average="binary".
      zero_division: the value of 0 / 0: NaN, or a number in [0, 1].

    Returns:
      `[...]`, or `[..., classes]` for average=None; from 0 to 1.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; scores in place of class indices,
        or an index above 1 with average="binary", unless n_classes or a positive_class above 1 is
        given.

    NaN for a class that holds all items, and for a mean over it, unless `zero_division` is a
    number. Also NaN where traced indices are out of range. Time O(n + n_classes), memory
    O(n_classes).

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.specificity([1, 1, 0, 1], [1, 0, 0, 1]))
      0.5

    Reference: J. Yerushalmy, "Statistical problems in assessing methods of medical diagnosis",
    Public Health Reports 62, 1947.
    """
    items = decisions(predictions, labels, weights, where)
    choice = choice_of(items, n_classes, average, classes, positive_class)
    return value_of(items, choice, _class_specificity, zero_division)


def _class_specificity(outcomes: Outcomes, otherwise: Array) -> Array:
    rest = outcomes.true_negatives + outcomes.false_positives
    return divide(outcomes.true_negatives, rest, otherwise)
