"""Metrics of ranked labels and documents, one row an item, under scikit-learn's names."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

import jax
import numpy as np

from jaxmetrics._base import cumulative, numerics
from jaxmetrics._base.types import Array, ArrayLike, FloatArray, HostArray
from jaxmetrics._base.warned import warn
from jaxmetrics._ranking.gain import dcg, ndcg
from jaxmetrics._roc.areas import average_precision
from jaxmetrics._roc.metric import library_metric
from jaxmetrics._roc.table import ScoreTable
from jaxmetrics.sklearn._inputs import (
    UndefinedMetricWarning,
    check_array,
    check_consistent_length,
    check_options,
    checked_weights,
    classes_of_columns,
    column_or_1d,
    padding,
    refuse_scores,
    type_of_target,
)


def label_ranking_average_precision_score(
    y_true: ArrayLike, y_score: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """The mean average precision of the items' ranked labels, as scikit-learn returns it.

    mean_i of `jaxmetrics.average_precision` over the labels of item i, which is 1 if none or all of
    them are relevant.

    Args:
      y_true: `[n, labels]`, 1 for relevant labels and 0 for others, dense or sparse.
      y_score: `[n, labels]`, higher is more relevant.
      sample_weight: `[n]`.

    Returns:
      A float from 0 to 1.

    Raises:
      ValueError: shapes differ, a value is not finite, `y_true` does not hold 0 and 1, or a weight
        is negative.

    Never NaN. Time O(n labels log labels), memory O(n labels).

    Example:
      >>> from jaxmetrics.sklearn import label_ranking_average_precision_score
      >>> label_ranking_average_precision_score([[1, 0], [0, 1]], [[.7, .5], [.9, .1]])
      0.75

    Reference: scikit-learn's `sklearn.metrics.label_ranking_average_precision_score`.
    """
    relevant, scores = _relevant_and_scores(y_true, y_score, sample_weight, one_label=True)
    values = _values_of_rows(average_precision, scores, relevant)
    return _weighted_mean(np.where(relevant.any(axis=1), values, 1.0), sample_weight)


def label_ranking_loss(
    y_true: ArrayLike, y_score: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """The share of pairs of a relevant and an irrelevant label that are in the wrong order or tie.

    mean_i of sum_(j relevant, k irrelevant) [s_ij <= s_ik] / number of such pairs, which is 0 if
    none or all labels of item i are relevant.

    Args:
      y_true: `[n, labels]`, 1 for relevant labels and 0 for others, dense or sparse.
      y_score: `[n, labels]`, higher is more relevant.
      sample_weight: `[n]`.

    Returns:
      A float from 0, the best, to 1.

    Raises:
      ValueError: shapes differ, a value is not finite, `y_true` does not hold 0 and 1, or a weight
        is negative.

    Never NaN. Time O(n labels log labels), memory O(n labels).

    Example:
      >>> from jaxmetrics.sklearn import label_ranking_loss
      >>> label_ranking_loss([[1, 0, 0], [0, 0, 1]], [[.75, .5, 1], [1, .2, .1]])
      0.75

    Reference: scikit-learn's `sklearn.metrics.label_ranking_loss`.
    """
    relevant, scores = _relevant_and_scores(y_true, y_score, sample_weight)
    return _weighted_mean(_values_of_rows(_in_wrong_order, scores, relevant), sample_weight)


@library_metric
def _in_wrong_order(table: ScoreTable) -> Array:
    library, tps = numerics.namespace(*table), cumulative.running_sum(table.positives)
    not_above = tps[-1] - tps + table.positives
    pairs = tps[-1] * library.sum(table.negatives)
    return numerics.divide(library.sum(table.negatives * not_above), pairs, 0.0)


def coverage_error(
    y_true: ArrayLike, y_score: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """The mean number of top labels that cover all relevant labels of an item.

    mean_i of the number of labels that score at least as high as the lowest relevant label of item
    i, which is 0 without relevant labels.

    Args:
      y_true: `[n, labels]`, 1 for relevant labels and 0 for others.
      y_score: `[n, labels]`, higher is more relevant.
      sample_weight: `[n]`.

    Returns:
      A float; the best possible value is the mean number of relevant labels.

    Raises:
      ValueError: shapes differ, a value is not finite, `y_true` does not hold 0 and 1, or a weight
        is negative.

    Never NaN. Time and memory O(n labels).

    Example:
      >>> from jaxmetrics.sklearn import coverage_error
      >>> coverage_error([[1, 0, 0], [0, 1, 1]], [[1, 0, 0], [0, 1, 1]])
      1.5

    Reference: scikit-learn's `sklearn.metrics.coverage_error`.
    """
    check_options(y_true=y_true, y_score=y_score)
    y_true, y_score = check_array(y_true), check_array(y_score)
    relevant, scores = _relevant_and_scores(y_true, y_score, sample_weight)
    # A count needs no sort; a score table would.
    lowest = np.min(scores, axis=1, keepdims=True, where=relevant, initial=scores.max())
    depth = np.sum(scores >= lowest, axis=1)
    return _weighted_mean(np.where(relevant.any(axis=1), depth, 0), sample_weight)


def dcg_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    k: int | None = None,
    log_base: float = 2,
    sample_weight: ArrayLike | None = None,
    ignore_ties: bool = False,
) -> float:
    """Discounted cumulated gain, as `sklearn.metrics.dcg_score` returns it.

    The mean over rows of `jaxmetrics.dcg`, with logarithms to base `log_base`.

    Args:
      y_true: `[n, documents]`, the gain of each.
      y_score: `[n, documents]`, higher is better.
      k: how many top ranks count; None for all.
      log_base: base of the discount's logarithm, above 0.
      sample_weight: `[n]`.
      ignore_ties: False averages over the orders of tied documents; True ranks the last of them
        first, where scikit-learn's sort, which is not stable, may rank any first.

    Returns:
      A float.

    Raises:
      ValueError: shapes differ, a value is not finite, a weight is negative, or k is below 1.

    Never NaN. Time O(n documents log documents), memory O(n documents).

    Example:
      >>> from jaxmetrics.sklearn import dcg_score
      >>> round(dcg_score([[10, 0, 0, 1, 5]], [[.1, .2, .3, 4, 70]]), 4)
      9.4995

    Reference: scikit-learn's `sklearn.metrics.dcg_score`.
    """
    check_options(y_true=y_true, y_score=y_score, ignore_ties=ignore_ties)
    gains, scores = _graded(y_true, y_score, sample_weight, k)
    if not (isinstance(log_base, Real) and 0 < float(log_base) < np.inf):
        raise ValueError(f"log_base must be a finite number above 0, got {log_base!r}")
    values = _of_lists(dcg, scores, gains, k, ignore_ties)
    return _weighted_mean(values * np.log2(log_base), sample_weight)


def ndcg_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    k: int | None = None,
    sample_weight: ArrayLike | None = None,
    ignore_ties: bool = False,
) -> float:
    """Normalised discounted cumulated gain, as `sklearn.metrics.ndcg_score` returns it.

    The mean over rows of `jaxmetrics.ndcg`.

    Args:
      y_true: `[n, documents]`, the gain of each, not negative.
      y_score: `[n, documents]`, higher is better.
      k: how many top ranks count; None for all.
      sample_weight: `[n]`.
      ignore_ties: False averages over the orders of tied documents; True ranks the last of them
        first, where scikit-learn's sort, which is not stable, may rank any first.

    Returns:
      A float from 0 to 1; a row without gain counts as 0.

    Raises:
      ValueError: shapes differ, a gain or weight is negative, a row has one document, or k is below
        1.

    Never NaN. Time O(n documents log documents), memory O(n documents).

    Example:
      >>> from jaxmetrics.sklearn import ndcg_score
      >>> round(ndcg_score([[10, 0, 0, 1, 5]], [[.1, .2, .3, 4, 70]]), 4)
      0.6957

    Reference: scikit-learn's `sklearn.metrics.ndcg_score`.
    """
    check_options(y_true=y_true, y_score=y_score, ignore_ties=ignore_ties)
    gains = check_array(y_true, ensure_2d=False)
    if gains.min() < 0:
        raise ValueError("ndcg_score should not be used on negative y_true values.")
    if gains.ndim > 1 and gains.shape[1] <= 1:
        raise ValueError(
            "Computing NDCG is only meaningful when there is more than 1 document. "
            f"Got {gains.shape[1]} instead."
        )
    gains, scores = _graded(gains, y_score, sample_weight, k)
    return _weighted_mean(_of_lists(ndcg, scores, gains, k, ignore_ties), sample_weight)


def top_k_accuracy_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    k: int = 2,
    normalize: bool = True,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> float:
    """The share of items whose class is among the k highest scores, as scikit-learn returns it.

    sum_i w_i [the class of i is among its first k] / sum_i w_i. The last of tied classes is first.

    Args:
      y_true: `[n]`, the classes.
      y_score: `[n, classes]`; or `[n]` for two classes: scores above 0.5 predict the second one,
        above 0 if some score is outside of [0, 1].
      k: how many top classes count.
      normalize: False returns the summed weight of the hits instead of their share.
      sample_weight: `[n]`.
      labels: the sorted classes, one for each column, if not all occur in `y_true`.

    Returns:
      A float.

    Raises:
      ValueError: `y_score` does not have a column for each class, a value is not finite, a weight
        is negative, or k is below 1.

    Never NaN. Warns with an UndefinedMetricWarning if k leaves no class out. Time and memory
    O(n classes).

    Example:
      >>> import numpy as np
      >>> from jaxmetrics.sklearn import top_k_accuracy_score
      >>> scores = np.array([[.5, .2, .2], [.3, .4, .2], [.2, .4, .3], [.7, .2, .1]])
      >>> top_k_accuracy_score(np.array([0, 1, 2, 2]), scores, k=2)
      0.75

    Reference: scikit-learn's `sklearn.metrics.top_k_accuracy_score`.
    """
    check_options(y_true=y_true, y_score=y_score, sample_weight=sample_weight)
    check_options(normalize=normalize, labels=labels)
    _check_k(k)
    truth = column_or_1d(check_array(y_true, ensure_2d=False, dtype=None))
    kind = type_of_target(truth, input_name="y_true")
    if kind not in ("binary", "multiclass"):
        raise ValueError(f"y type must be 'binary' or 'multiclass', got '{kind}' instead.")
    two = kind == "binary" and not (labels is not None and len(labels) > 2)
    scores = check_array(y_score, ensure_2d=False)
    if two and scores.ndim == 2 and scores.shape[1] != 1:
        raise ValueError(
            f"`y_true` is binary while y_score is 2d with {scores.shape[1]} classes. If `y_true` "
            "does not contain all the labels, `labels` must be provided."
        )
    if not two and scores.ndim != 2:
        refuse_scores(scores)
    scores = column_or_1d(scores) if two else scores
    check_consistent_length(truth, scores, sample_weight)
    checked_weights(sample_weight, len(truth))
    unequal = (
        "Number of classes in 'y_true' ({}) not equal to the number of classes in 'y_score' ({})."
        "You can provide a list of all known classes by assigning it to the `labels` parameter.",
        "Number of given labels ({}) not equal to the number of classes in 'y_score' ({}).",
    )
    classes = classes_of_columns(truth, 2 if two else scores.shape[1], labels, unequal)
    if k >= len(classes):
        warn(
            f"'k' ({k}) greater than or equal to 'n_classes' ({len(classes)}) will result in a "
            "perfect score and is therefore meaningless.",
            UndefinedMetricWarning,
        )
    index = np.searchsorted(classes, truth)
    if two:
        threshold = 0.5 if scores.min() >= 0 and scores.max() <= 1 else 0
        hits = ((scores > threshold) == index) | (k > 1)
    else:
        own, later = scores[np.arange(len(index)), index], np.arange(len(classes)) > index[:, None]
        ahead = (scores > own[:, None]) | ((scores == own[:, None]) & later)
        hits = np.sum(ahead, axis=1) < k
    if normalize:
        return _weighted_mean(hits, sample_weight)
    return float(np.sum(hits) if sample_weight is None else np.dot(hits, sample_weight))


def _relevant_and_scores(
    y_true: ArrayLike, y_score: ArrayLike, sample_weight: Any, *, one_label: bool = False
) -> tuple[HostArray, FloatArray]:
    """Which labels are relevant, and scores, `[n, labels]`."""
    check_options(y_score=y_score, sample_weight=sample_weight)
    check_consistent_length(y_true, y_score, sample_weight)
    checked_weights(sample_weight, len(y_score))
    y_true = check_array(y_true, ensure_2d=False, accept_sparse="csr")
    scores = check_array(y_score, ensure_2d=False)
    if y_true.shape != scores.shape:
        raise ValueError("y_true and y_score have different shape")
    kind = type_of_target(y_true, input_name="y_true")
    if kind != "multilabel-indicator" and not (one_label and kind == "binary" and y_true.ndim == 2):
        raise ValueError(f"{kind} format is not supported")
    dense = y_true if isinstance(y_true, np.ndarray) else y_true.toarray()
    return dense != 0, scores


def _graded(
    y_true: ArrayLike, y_score: ArrayLike, sample_weight: Any, k: int | None
) -> tuple[HostArray, FloatArray]:
    """Gains and scores `[n, documents]`, checked."""
    check_options(sample_weight=sample_weight)
    gains, scores = (check_array(x, ensure_2d=False) for x in (y_true, y_score))
    check_consistent_length(gains, scores, sample_weight)
    checked_weights(sample_weight, len(gains))
    kind = type_of_target(gains)
    supported = ("multilabel-indicator", "continuous-multioutput", "multiclass-multioutput")
    if kind not in supported:
        raise ValueError(f"Only {supported} formats are supported. Got {kind} instead")
    if k is not None:
        _check_k(k)
    return gains, scores


def _check_k(k: int) -> None:
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise ValueError(f"k must be an int of at least 1, got {k!r}")


def _of_lists(
    metric: Callable[..., Any], scores: FloatArray, labels: HostArray, k: int | None, last: bool
) -> FloatArray:
    """A metric of ranked lists; `last` puts the last tied document first, else orders average."""
    options = {} if k is None else {"k": min(int(k), scores.shape[1])}
    if not last:
        return _values_of_rows(metric, scores, labels, **options)
    return _values_of_rows(metric, scores[:, ::-1], labels[:, ::-1], ties="index", **options)


def _values_of_rows(
    metric: Callable[..., Any], scores: FloatArray, labels: HostArray, **options: Any
) -> FloatArray:
    """A metric of each row of `[n, columns]`, in NumPy float64, compiled for few sizes of n."""
    n = len(scores)
    rows = [(0, padding(n)), (0, 0)]
    # A leading axis of 1: metrics refuse arrays `[n, columns]` that might be columns of items.
    tables = (np.pad(x, rows)[None] for x in (scores, labels))
    with jax.enable_x64(True):
        values = metric(*tables, **options)
    return np.asarray(values)[0, :n]


def _weighted_mean(values: HostArray, sample_weight: ArrayLike | None) -> float:
    return float(np.average(values, weights=sample_weight))
