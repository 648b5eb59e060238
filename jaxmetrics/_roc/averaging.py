"""Metrics of several classes or labels, built from any metric of two classes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.double import library_program
from jaxmetrics._base.host import at_hand, is_concrete
from jaxmetrics._base.keywords import made_by, takes_metric
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.types import Array, ArrayLike, HostArray, Items
from jaxmetrics._roc.at_hand import in_jax
from jaxmetrics._roc.record import check_metric, evaluate_chosen

ClassMetric = Callable[..., Any]

_PAIR_WEIGHTS = 2**26  # weights that one_vs_one holds at a time, 8 bytes each


@takes_metric
def one_vs_rest(metric: ClassMetric, average: str | None = "macro") -> ClassMetric:
    """A metric of several classes: each class against all others, then averaged.

    macro: the mean over classes. weighted: the mean weighted by the number of items of each class.
    micro: the metric of all n * classes decisions "item i is of class c", pooled. None: one value
    per class, on a new axis after those of the batch.

    Args:
      metric: a metric of the library, `functools.partial` of one, or any function of a ScoreTable.
      average: "macro", "micro", "weighted" or None.

    Returns:
      A function `(scores, labels, *, weights=None, where=None)` of scores `[..., n, classes]` and
      integer labels `[..., n]`. It returns what the metric returns, `[...]`.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; for example `average` is a
        misspelt word, or, when called, a label is not in 0 to classes - 1.

    With "macro", the mean is NaN if the metric is NaN for any class, as for one without items.
    With "weighted", a class without items does not count. All values are NaN where the traced label
    of a valid item is out of range; leave padding out by `where=labels >= 0`. Cost: that of the
    metric for a batch of `classes` rows.

    Example:
      >>> import jaxmetrics as jm
      >>> scores = [[.8, .1, .1], [.2, .5, .3], [.3, .3, .4], [.4, .5, .1]]
      >>> print(jm.one_vs_rest(jm.roc_auc, average=None)(scores, [0, 1, 2, 0]))
      [1.        0.8333333 1.       ]

    Reference: F. Provost and P. Domingos, "Well-trained PETs", CeDER working paper, 2000.
    """
    check_metric(metric)
    checks.check_choice("average", average, ("macro", "micro", "weighted", None))

    @made_by("one_vs_rest", metric)
    @on_any_mesh
    def averaged(
        scores: ArrayLike,
        labels: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Any:
        columns, classes, per_item = _class_items(scores, labels, weights, where)
        truth = _members(classes, columns.shape[-2], per_item[1])
        return _returned(_average_rows(metric, average, columns, truth, *per_item), scores)

    return averaged


@takes_metric
def multilabel(metric: ClassMetric, average: str | None = "macro") -> ClassMetric:
    """A metric of items with any number of labels: each label on its own, then averaged.

    macro: the mean over labels. weighted: the mean weighted by the number of positives of each
    label. micro: the metric of all n * labels decisions, pooled. samples: the metric of each item
    over its labels, then the weighted mean over items. None: one value per label, on a new axis
    after those of the batch.

    Args:
      metric: a metric of the library, `functools.partial` of one, or any function of a ScoreTable.
      average: "macro", "micro", "weighted", "samples" or None.

    Returns:
      A function `(scores, labels, *, weights=None, where=None)` of scores and labels
      `[..., n, labels]`, and of weights and where `[..., n]`. It returns what the metric returns.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; for example `average` is a
        misspelt word, or, when called, labels are `[..., n]`.

    The mean is NaN if the metric is NaN for any label, or with "samples" for any item. With
    "weighted", a label without positives does not count. Cost: that of the metric for a batch of
    `labels` rows, or of n rows with "samples".

    Example:
      >>> import jaxmetrics as jm
      >>> scores = [[.8, .1], [.2, .5], [.3, .6]]
      >>> print(jm.multilabel(jm.roc_auc)(scores, [[1, 0], [0, 1], [1, 1]]))
      1.0

    Reference: M. Sokolova and G. Lapalme, "A systematic analysis of performance measures for
    classification tasks", Information Processing and Management 45, 2009.
    """
    check_metric(metric)
    checks.check_choice("average", average, ("macro", "micro", "weighted", "samples", None))

    @made_by("multilabel", metric)
    @on_any_mesh
    def averaged(
        scores: ArrayLike,
        labels: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Any:
        array, truth = checks.as_array("scores", scores), checks.as_array("labels", labels)
        checks.check_columns(array.shape, truth.shape, labels_have_columns=True)
        _check_alignment(scores, labels, weights, where)
        per_item = checks.check_per_item(weights, where, array.shape[-2])
        array, truth, row_weights, row_where = at_hand(array, truth, *per_item)
        if average == "samples":
            mask = None if row_where is None else _across(row_where[..., None], array.shape[-1:])
            items = checks.check_items(array, truth, where=mask, rows_are_problems=True)
            each = _evaluated(metric, items)
            values = _mean(each, _n_axes(items) - 2, row_weights, row_where)
        else:
            rows = _transposed(array), _transposed(truth)
            values = _average_rows(metric, average, *rows, row_weights, row_where)
        return _returned(values, scores)

    return averaged


@takes_metric
def one_vs_one(metric: ClassMetric, average: str | None = "macro") -> ClassMetric:
    """A metric of several classes: each pair of classes against each other, then averaged.

    The value of classes a < b, on their items alone, is the mean of two metrics: with a positive
    and the scores of a, and with b positive and the scores of b. macro: the mean over pairs.
    weighted: the mean weighted by the number of items of each pair. None: one value per pair, in
    the order (0, 1), (0, 2), ..., on a new axis after those of the batch.

    Args:
      metric: a metric of the library, `functools.partial` of one, or any function of a ScoreTable.
      average: "macro", "weighted" or None. Pairs share items, so "micro" is not defined.

    Returns:
      A function `(scores, labels, *, weights=None, where=None)` of scores `[..., n, classes]` and
      integer labels `[..., n]`. It returns what the metric returns, `[...]`.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; for example `average` is
        "micro", or, when called, a label is not in 0 to classes - 1.

    The mean is NaN if the metric is NaN for a pair, as for one with a class without items; pairs
    of weight 0, of which both classes have no items, are left out of the weighted one. Traced
    labels out of range are as in `one_vs_rest`. Cost: one sort per class, then that of the metric
    for a batch of classes^2 rows.

    Example:
      >>> import jaxmetrics as jm
      >>> scores = [[.8, .1, .1], [.2, .5, .3], [.3, .3, .4], [.4, .5, .1]]
      >>> print(jm.one_vs_one(jm.roc_auc, average=None)(scores, [0, 1, 2, 0]))
      [0.875 1.    1.   ]

    Reference: D. J. Hand and R. J. Till, "A simple generalisation of the area under the ROC curve
    for multiple class classification problems", Machine Learning 45, 2001.
    """
    check_metric(metric)
    checks.check_choice("average", average, ("macro", "weighted", None))

    @made_by("one_vs_one", metric)
    @on_any_mesh
    def averaged(
        scores: ArrayLike,
        labels: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Any:
        columns, classes, (weights, where) = _class_items(scores, labels, weights, where)
        n_classes = columns.shape[-2]
        every = np.arange(n_classes)
        label = _members(classes, n_classes, where)
        member = label != 0
        by_pair = weights if weights is None else weights[..., None, None, :]

        def against_all(positive: HostArray) -> tuple[Any, int]:
            """The metric `[..., positive, classes]` of the classes `positive` against each class,
            and the axis of `positive`."""
            truth = label[..., positive, None, :]
            among = member[..., positive, None, :] | member[..., None, :, :]
            among = among if where is None else among & where[..., None, None, :]
            given = (columns[..., positive, None, :], truth, by_pair, among)
            items = checks.check_items(*given, rows_are_problems=True)
            return _evaluated(metric, items), _n_axes(items) - 3

        def pairs(*parts: Array, axis: int) -> Array:
            library = numerics.namespace(*parts)
            matrix = library.moveaxis(library.concatenate(parts, axis), (axis, axis + 1), (0, 1))
            return library.moveaxis((matrix[first, second] + matrix[second, first]) / 2, 0, axis)

        # All pairs at once would hold classes^2 * n weights: so many classes are taken in turns.
        turns = max(1, -(-n_classes * member.size // _PAIR_WEIGHTS))
        parts = [against_all(positive) for positive in np.array_split(every, min(turns, n_classes))]
        by_class, (axis, *_) = zip(*parts, strict=True)
        first, second = np.triu_indices(n_classes, 1)
        values = jax.tree.map(partial(pairs, axis=axis), *by_class)
        if average == "weighted":
            weights, where = (x if x is None else x[..., None, :] for x in (weights, where))
            values = _mean(values, axis, weights, where, member, of_pairs=True)
        elif average == "macro":
            values = _mean(values, axis)
        return _returned(values, scores)

    return averaged


def _class_items(
    scores: ArrayLike, labels: ArrayLike, weights: ArrayLike | None, where: ArrayLike | None
) -> tuple[Any, Any, tuple[Any, Any]]:
    """Scores `[..., classes, n]`, labels `[..., n]`, and the weights and mask `[..., n]`.

    As NumPy's where they are at hand, since JAX compiles a program for each step and shape.
    """
    array, classes = checks.as_array("scores", scores), checks.as_array("labels", labels)
    checks.check_columns(array.shape, classes.shape, labels_have_columns=False)
    _check_alignment(scores, labels, weights, where)
    per_item = checks.check_per_item(weights, where, array.shape[-2])
    array, classes, weight, valid = at_hand(array, classes, *per_item)
    checks.check_classes(classes, array.shape[-1], valid)
    return _transposed(array), classes, (weight, valid)


def _members(classes: Any, n_classes: int, where: Any) -> Any:
    """Which items are of each class, `[..., classes, n]`.

    A traced class that has no column is the invalid label 2 in each, which makes values NaN.
    """
    member = classes[..., None, :] == np.arange(n_classes)[:, None]
    if classes.dtype == bool or (is_concrete(classes) and is_concrete(where)):
        return member  # `check_classes` refuses others
    known = jnp.any(member, axis=-2, keepdims=True)
    return jnp.where(known, member.astype(np.int8), np.int8(2))


def _evaluated(metric: ClassMetric, items: Items) -> Any:
    """The metric of each row, as NumPy's where it is at hand."""
    leaves, tree = jax.tree.flatten(evaluate_chosen(metric, items))
    return jax.tree.unflatten(tree, at_hand(*leaves))


def _returned(values: Any, scores: ArrayLike) -> Any:
    """The values as JAX's arrays; NumPy's go to the device of the scores."""
    known = numerics.namespace(*jax.tree.leaves(values)) is np
    return in_jax([values], (), scores) if known else values


def _check_alignment(*arrays: ArrayLike) -> None:
    names = ("scores", "labels", "weights", "where")
    checks.check_alignment(dict(zip(names, arrays, strict=True)), by_rows=True)


def _transposed(array: Any) -> Any:
    return array.swapaxes(-1, -2)


def _across(array: Any, tail: tuple[int, ...]) -> Any:
    """`array` broadcast to end in `tail`. NumPy's stays NumPy's: JAX would round float64."""
    return numerics.namespace(array).broadcast_to(array, array.shape[: -len(tail)] + tail)


def _n_axes(items: Items) -> int:
    return max(x.ndim for x in items if x is not None)


def _average_rows(
    metric: ClassMetric, average: str | None, scores: Any, truth: Any, weights: Any, where: Any
) -> Any:
    """The metric of each row `[..., rows, n]`, averaged; with "micro", of all rows as one."""
    weights, where = (x if x is None else x[..., None, :] for x in (weights, where))
    if average == "micro":
        tail = scores.shape[-2:]
        pooled = [
            x if x is None else _across(x, tail).reshape(*x.shape[:-2], -1)
            for x in (scores, truth, weights, where)
        ]
        return _evaluated(metric, checks.check_items(*pooled, rows_are_problems=True))
    items = checks.check_items(scores, truth, weights, where, rows_are_problems=True)
    values = _evaluated(metric, items)
    if average is None:
        return values
    axis = _n_axes(items) - 2
    if average == "weighted":
        return _mean(values, axis, weights, where, truth == 1)
    return _mean(values, axis)


def _mean(
    values: Any,
    axis: int,
    weights: Any = None,
    where: Any = None,
    members: Any = None,
    *,
    of_pairs: bool = False,
) -> Any:
    """The mean of `values` over `axis`, the last axis of `weights` and `where`.

    With `members` `[..., rows, n]`, with which weights and mask broadcast, a row counts by the
    weight of its members. With `of_pairs`, a value is that of a pair of rows, and counts by the
    members of both.
    """
    dtype = numerics.default_float()
    return _mean_in_double(values, weights, where, members, axis, of_pairs, dtype)


@library_program("axis", "of_pairs", "dtype")
def _mean_in_double(
    values: Any, weights: Any, where: Any, members: Any, axis: int, of_pairs: bool, dtype: Any
) -> Any:
    share: Any = np.ones(()) if weights is None else weights.astype(np.float64)
    if members is not None:
        where = members if where is None else members & where
    if where is not None:
        share = numerics.namespace(share, where).where(where, share, 0)
    if members is not None:
        (share,) = numerics.near_one(share.sum(axis=-1))
    if of_pairs:
        first, second = np.triu_indices(share.shape[-1], 1)
        share = share[..., first] + share[..., second]

    def mean(x: Any) -> Any:
        library = numerics.namespace(x, share)
        row_share = library.broadcast_to(share, x.shape[: axis + 1])
        row_share = row_share.reshape(row_share.shape + (1,) * (x.ndim - axis - 1))
        # A row without weight does not count, although its value may be NaN.
        weighted = library.where(row_share > 0, x.astype(np.float64), 0) * row_share
        total = library.sum(row_share, axis)
        return (library.sum(weighted, axis) / total).astype(dtype)

    return jax.tree.map(mean, values)
