"""Counts of items by true and by predicted class; metrics are formulas of these counts.

Classes are indices from 0. NumPy counts what lies in the memory of the CPU, without a program.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks, cumulative, numerics
from jaxmetrics._base.double import as_default, double_program, library_program
from jaxmetrics._base.host import at_hand, near_tree
from jaxmetrics._base.items import beyond_scale
from jaxmetrics._base.numerics import divide
from jaxmetrics._base.types import Array, ArrayLike, HostOrDeviceArray

JOINT = "joint"  # in place of an average: the metric itself combines all classes


class Decisions(NamedTuple):
    """The checked arrays that describe items; `[..., n]` each, leading axes broadcast."""

    predictions: HostOrDeviceArray
    labels: HostOrDeviceArray
    weights: HostOrDeviceArray | None
    where: HostOrDeviceArray | None


class Outcomes(NamedTuple):
    """The weight of the hits and the errors of each class against the rest.

    `[..., classes]` each; integers without weights, or with integer weights. Sums of them that are
    denominators of metrics are exactly 0 where they have no items: that decides what is NaN.
    """

    hits: Array
    false_positives: Array
    false_negatives: Array
    true_negatives: Array

    @property
    def actual(self) -> Array:
        return self.hits + self.false_negatives

    @property
    def predicted(self) -> Array:
        return self.hits + self.false_positives


class Choice(NamedTuple):
    """Which classes are counted and how they are averaged; constants of a program."""

    n_classes: int | None  # None where there is no upper limit
    average: str | None
    classes: tuple[int, ...] | None = None
    positive_class: int = 1


def decisions(
    predictions: ArrayLike, labels: ArrayLike, weights: ArrayLike | None, where: ArrayLike | None
) -> Decisions:
    items = Decisions(*checks.check_predictions(predictions, labels, weights, where))
    return Decisions(*at_hand(*items))


def indices(items: Decisions) -> dict[str, HostOrDeviceArray]:
    return {"predictions": items.predictions, "labels": items.labels}


def choice_of(
    items: Decisions,
    n_classes: int | None,
    average: str | None,
    classes: ArrayLike | None,
    positive_class: int,
) -> Choice:
    checks.check_choice("average", average, ("binary", "micro", "macro", "weighted", None))
    chosen = checks.check_class_filter(classes)
    ids = indices(items)
    if average == "binary":
        if chosen is not None:
            raise ValueError("classes is for averages over classes: write positive_class=")
        limit = checks.check_positive_class(ids, items.where, n_classes, positive_class)
        return Choice(limit, average, positive_class=int(positive_class))
    if positive_class != 1:
        raise ValueError(
            f"positive_class is for average='binary': write classes=[{positive_class}]"
        )
    return Choice(checks.check_n_classes(ids, items.where, n_classes, chosen), average, chosen)


def value_of(
    items: Decisions,
    choice: Choice,
    metric: Callable[..., Array],
    zero_division: float,
    *options: HostOrDeviceArray,
) -> Array:
    """`metric(outcomes, zero_division, *options)` of each class or one, averaged as chosen."""
    numbers = near_tree((checks.check_zero_division(zero_division), *options))
    return as_default(_value_of_counts(items, numbers, choice, metric))


@library_program("choice", "metric")
def _value_of_counts(
    items: Decisions, numbers: tuple[Array, ...], choice: Choice, metric: Callable[..., Array]
) -> Array:
    outcomes, undefined = _counted(items, choice)
    library = numerics.namespace(*outcomes)
    if choice.average == "micro":
        outcomes = Outcomes(*(library.sum(x, axis=-1) for x in outcomes))
    values = metric(outcomes, *numbers)
    if choice.average in ("macro", "weighted"):
        weighted = choice.average == "weighted"
        shares = outcomes.actual if weighted else library.ones_like(outcomes.hits)
        # The value of a class without weight may be NaN, which must not make the mean NaN.
        total = library.sum(library.where(shares > 0, values, 0) * shares, axis=-1)
        values = divide(total, library.sum(shares, axis=-1), numbers[0])
    undefined = undefined[..., None] if choice.average is None else undefined
    return library.where(undefined, library.nan, values)


@double_program("choice")
def outcomes_of(items: Decisions, choice: Choice) -> Outcomes:
    """The counts of checked arrays, 64-bit; not whether they are undefined."""
    return _counted(items, choice)[0]


def _counted(items: Decisions, choice: Choice) -> tuple[Outcomes, Array]:
    if choice.average == "binary":
        return _of_one_class(items, choice.positive_class, choice.n_classes)
    assert choice.n_classes is not None
    outcomes, undefined = _of_classes(items, choice.n_classes)
    if choice.classes is not None:
        outcomes = Outcomes(*(x[..., choice.classes] for x in outcomes))
    return outcomes, undefined


def _of_one_class(
    items: Decisions, positive_class: int, n_classes: int | None
) -> tuple[Outcomes, Array]:
    """The counts `[...]` of one class, by sums without a scatter; and whether it is undefined."""
    said, true, amounts, undefined = counted_items(items, n_classes)
    said, true = said == positive_class, true == positive_class
    cells = (said & true, said & ~true, ~said & true, ~said & ~true)
    return Outcomes(*(sum_where(cell, amounts) for cell in cells)), undefined


def _of_classes(items: Decisions, n_classes: int) -> tuple[Outcomes, Array]:
    """The counts `[..., n_classes]`, and `[...]` whether they are undefined."""
    instead = "number the classes with numpy.unique(ids, return_inverse=True)[1]"
    checks.check_fits("n_classes", n_classes, 4 * n_classes, instead)
    if n_classes**2 <= np.shape(items.labels)[-1]:  # one count of the cells takes less time
        matrix, undefined = matrix_of_classes(items, n_classes)
        return _of_matrix(matrix), undefined
    said, true, amounts, undefined = counted_items(items, n_classes)
    library = numerics.namespace(said, true, amounts)

    def count(ids: Array, counted: Array) -> Array:
        sums = sums_of_rows(library.where(counted, ids, n_classes), amounts, n_classes)
        return sums if numerics.is_inexact(sums) else sums.astype(np.int64)

    hits = count(true, said == true)
    errors = count(said, said != true), count(true, said != true)
    return _outcomes(hits, *errors), undefined


def _outcomes(hits: Array, false_positives: Array, false_negatives: Array) -> Outcomes:
    # The weight of the other classes is exactly 0 where all items are of one.
    others = cumulative.others(hits + false_negatives)
    true_negatives = numerics.namespace(hits).maximum(others - false_positives, 0)
    return Outcomes(hits, false_positives, false_negatives, true_negatives)


def _of_matrix(matrix: Array) -> Outcomes:
    """The counts of a confusion matrix `[..., classes, classes]`."""
    library = numerics.namespace(matrix)
    matrix = matrix if numerics.is_inexact(matrix) else matrix.astype(np.int64)
    errors = library.where(np.eye(matrix.shape[-1], dtype=bool), 0, matrix)
    hits = library.diagonal(matrix, axis1=-2, axis2=-1)
    return _outcomes(hits, library.sum(errors, axis=-2), library.sum(errors, axis=-1))


def matrix_of_classes(items: Decisions, n_classes: int) -> tuple[Array, Array]:
    """The confusion matrix `[..., n_classes, n_classes]`, and `[...]` whether it is undefined."""
    said, true, amounts, undefined = counted_items(items, n_classes)
    # An item that is left out has the class n_classes, beyond the last cell.
    cells = true.astype(np.int64) * n_classes + said
    matrix = sums_of_rows(cells, amounts, n_classes**2)
    return matrix.reshape(*matrix.shape[:-1], n_classes, n_classes), undefined


def counted_items(items: Decisions, n_classes: int | None) -> tuple[Array, Array, Array, Array]:
    """Predictions, labels and the weight of each item, `[..., n]`; and `[...]` whether they are
    undefined: an eager call refuses invalid items, a traced one cannot.

    Items that are left out weigh 0 and have the class n_classes, which a scatter drops. It would
    count an index below 0 from the end.
    """
    if numerics.namespace(*(x for x in items if x is not None)) is np:
        return _counted_on_host(items, n_classes)
    said, true = (jnp.asarray(ids).astype(jnp.int64) for ids in (items.predictions, items.labels))
    allowed = (said >= 0) & (true >= 0)
    if n_classes is not None:
        allowed &= (said < n_classes) & (true < n_classes)
    counts = allowed if items.where is None else allowed & items.where
    if n_classes is not None:
        said, true = (jnp.where(counts, ids, n_classes) for ids in (said, true))
    if items.weights is None:
        amounts = counts.astype(jnp.int32)
    else:
        weights = jnp.asarray(items.weights)
        weights = weights.astype(jnp.float64 if numerics.is_inexact(weights) else jnp.int64)
        amounts = jnp.where(counts, weights, 0)
        allowed &= (weights >= 0) & (weights < jnp.inf)
    wrong = ~allowed if items.where is None else ~allowed & items.where
    undefined = jnp.any(wrong, axis=-1) | beyond_scale(items.weights, items.where)
    return said, true, amounts, undefined


def _counted_on_host(items: Decisions, n_classes: int | None) -> tuple[Any, Any, Any, Any]:
    """`counted_items` of NumPy's arrays, whose values were checked.

    Without weights, the amounts are which items count.
    """
    said, true, weights, where = items
    counts: Any = np.ones(said.shape[-1:], bool) if where is None else where
    amounts = counts
    if n_classes is not None:  # which narrow dtypes may not hold
        said, true = (x if x.dtype == bool else x.astype(np.int64) for x in (said, true))
        if where is not None:
            said, true = (np.where(counts, ids, n_classes) for ids in (said, true))
    if weights is not None:
        kind = np.float64 if numerics.is_inexact(weights) else np.int64
        amounts = np.where(counts, weights.astype(kind), 0)
    shape = np.broadcast_shapes(said.shape, true.shape, amounts.shape)
    return said, true, amounts, np.zeros(shape[:-1], bool)


def sums_of_rows(ids: Array, amounts: Array, n: int) -> Array:
    """`[..., n]`, the sums of the amounts of each id `[..., items]`, but for ids of n and above."""
    if numerics.namespace(ids, amounts) is not np:

        def of_row(ids: Array, amounts: Array) -> Array:
            return jnp.zeros(n, amounts.dtype).at[ids].add(amounts, mode="drop")

        return jnp.vectorize(of_row, signature="(n),(n)->(k)")(ids, amounts)
    given: Any = np.broadcast_arrays(np.minimum(ids, n), amounts)
    *batch, _ = given[0].shape
    first = np.arange(math.prod(batch)).reshape(*batch, 1) * (n + 1)  # one bin for what is dropped
    bins, weights = (x.ravel() for x in (given[0] + first, given[1]))
    if amounts.dtype == bool:
        bins, weights = bins[weights], None
    sums: Any = np.bincount(bins, weights, math.prod(batch) * (n + 1))
    kind = np.float64 if numerics.is_inexact(amounts) else np.int64
    return sums.reshape(*batch, n + 1)[..., :n].astype(kind)


def sum_where(cell: Array, amounts: Array) -> Array:
    if amounts.dtype == bool:  # NumPy's
        counted: Any = np.count_nonzero(cell & amounts, axis=-1)
        return counted
    library = numerics.namespace(cell, amounts)
    return library.sum(library.where(cell, amounts, 0), axis=-1)
