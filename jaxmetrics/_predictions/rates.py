"""Rates of one class against the rest, and their averages over classes."""

from __future__ import annotations

import math

from jaxmetrics._base.numerics import divide
from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics._predictions.counting import Outcomes, choice_of, decisions, value_of


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
    """Recall: how much of a class was found.

    tp / (tp + fn), with tp the weight of the items of the class that were said to be of it, and fn
    of those that were not.

    Args:
      predictions: `[..., n]`, class indices from 0.
      labels: `[..., n]`, class indices from 0.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out; whatever they hold, it has no effect.
      n_classes: how many classes there are. None is one more than the highest index, and two at
        least; it must be given where a program is traced, unless average is "binary".
      average: "binary", of the class `positive_class` against the rest; "micro", of the counts
        summed over classes; "macro", the mean over classes; "weighted", their mean by weight of
        their items; None, one value a class, on a new last axis.
      classes: which classes to average, or to give in which order; None for all.
      positive_class: for average="binary".
      zero_division: what 0 / 0 is, NaN or in [0, 1].

    Returns:
      `[...]`, or `[..., classes]` for average=None; from 0 to 1.

    Raises:
      TypeError, ValueError: an input is not what it should be, or shapes do not fit. Among them
        several classes with average="binary", unless n_classes says that they are meant.

    NaN for a class without items, and so for a macro mean over it, unless `zero_division` is a
    number; a class without items has no part in the weighted mean. NaN too where traced indices are
    out of range. Time O(n + n_classes), memory O(n_classes).

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


def _class_recall(outcomes: Outcomes, beta: Array, otherwise: Array) -> Array:
    return divide(outcomes.hits, outcomes.actual, otherwise)


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
    """Precision: how much of what was said to be of a class is.

    tp / (tp + fp), with tp the weight of the items of the class that were said to be of it, and fp
    of those of other classes that were.

    Args:
      predictions: `[..., n]`, class indices from 0.
      labels: `[..., n]`, class indices from 0.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out; whatever they hold, it has no effect.
      n_classes: how many classes there are. None is one more than the highest index, and two at
        least; it must be given where a program is traced, unless average is "binary".
      average: "binary", of the class `positive_class` against the rest; "micro", of the counts
        summed over classes; "macro", the mean over classes; "weighted", their mean by weight of
        their items; None, one value a class, on a new last axis.
      classes: which classes to average, or to give in which order; None for all.
      positive_class: for average="binary".
      zero_division: what 0 / 0 is, NaN or in [0, 1].

    Returns:
      `[...]`, or `[..., classes]` for average=None; from 0 to 1.

    Raises:
      TypeError, ValueError: an input is not what it should be, or shapes do not fit. Among them
        several classes with average="binary", unless n_classes says that they are meant.

    NaN for a class that was never predicted, and so for a macro mean over it, unless
    `zero_division` is a number; a class without items has no part in the weighted mean. NaN too
    where traced indices are out of range. Time O(n + n_classes), memory O(n_classes).

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


def _class_precision(outcomes: Outcomes, beta: Array, otherwise: Array) -> Array:
    return divide(outcomes.hits, outcomes.predicted, otherwise)


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
    """F-beta: the harmonic mean of precision and recall, recall counting beta^2 times.

    (1 + beta^2) tp / ((1 + beta^2) tp + beta^2 fn + fp).

    Args:
      predictions: `[..., n]`, class indices from 0.
      labels: `[..., n]`, class indices from 0.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out; whatever they hold, it has no effect.
      n_classes: how many classes there are. None is one more than the highest index, and two at
        least; it must be given where a program is traced, unless average is "binary".
      beta: at least 0; 1 is F1, 0 is precision.
      average: "binary", of the class `positive_class` against the rest; "micro", of the counts
        summed over classes; "macro", the mean over classes; "weighted", their mean by weight of
        their items; None, one value a class, on a new last axis.
      classes: which classes to average, or to give in which order; None for all.
      positive_class: for average="binary".
      zero_division: what 0 / 0 is, NaN or in [0, 1].

    Returns:
      `[...]`, or `[..., classes]` for average=None; from 0 to 1.

    Raises:
      TypeError, ValueError: an input is not what it should be, or shapes do not fit. Among them
        several classes with average="binary", unless n_classes says that they are meant.

    NaN for a class that neither occurs nor was predicted, and so for a macro mean over it, unless
    `zero_division` is a number; a class without items has no part in the weighted mean. NaN too
    where traced indices are out of range. Time O(n + n_classes), memory O(n_classes).

    Example:
      >>> import jaxmetrics as jm
      >>> print(f"{jm.f_beta([1, 1, 0, 1], [1, 0, 0, 1], beta=2):.4f}")
      0.9091

    Reference: C. J. van Rijsbergen, "Information Retrieval", 2nd edition, 1979.
    """
    items = decisions(predictions, labels, weights, where)
    choice = choice_of(items, n_classes, average, classes, positive_class)
    return value_of(items, choice, _class_f_beta, zero_division, beta)


def _class_f_beta(outcomes: Outcomes, beta: Array, otherwise: Array) -> Array:
    found = (1 + beta**2) * outcomes.hits
    missed = beta**2 * outcomes.false_negatives + outcomes.false_positives
    return divide(found, found + missed, otherwise)


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
    """Specificity: how much of what is not of a class was not said to be.

    tn / (tn + fp), with tn the weight of the items of other classes that were said to be of one of
    those, and fp of those that were not.

    Args:
      predictions: `[..., n]`, class indices from 0.
      labels: `[..., n]`, class indices from 0.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out; whatever they hold, it has no effect.
      n_classes: how many classes there are. None is one more than the highest index, and two at
        least; it must be given where a program is traced, unless average is "binary".
      average: "binary", of the class `positive_class` against the rest; "micro", of the counts
        summed over classes; "macro", the mean over classes; "weighted", their mean by weight of
        their items; None, one value a class, on a new last axis.
      classes: which classes to average, or to give in which order; None for all.
      positive_class: for average="binary".
      zero_division: what 0 / 0 is, NaN or in [0, 1].

    Returns:
      `[...]`, or `[..., classes]` for average=None; from 0 to 1.

    Raises:
      TypeError, ValueError: an input is not what it should be, or shapes do not fit. Among them
        several classes with average="binary", unless n_classes says that they are meant.

    NaN for a class that all items are of, and so for a mean over it, unless `zero_division` is a
    number. NaN too where traced indices are out of range. Time O(n + n_classes), memory
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


def _class_specificity(outcomes: Outcomes, beta: Array, otherwise: Array) -> Array:
    rest = outcomes.true_negatives + outcomes.false_positives
    return divide(outcomes.true_negatives, rest, otherwise)
