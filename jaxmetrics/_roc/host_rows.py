"""Rows of items that NumPy evaluates: concrete data in the CPU's memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.types import HostArray, Items
from jaxmetrics._roc.at_hand import FEW, in_jax, rows_at_hand
from jaxmetrics._roc.host_class import OneClass, compressed, sortable
from jaxmetrics._roc.host_placements import OnHost, placements_of
from jaxmetrics._roc.reported import Decision, as_reported, no_decision, warn_if

R = TypeVar("R")


def evaluate_on_host(
    function: Callable[..., Any],
    items: Items,
    options: dict[str, Any],
    decision: Decision = no_decision,
    *,
    short: int,
) -> Any:
    """`function(placements, **options)` of each row of a batch; None if NumPy cannot do it now.

    None also for more than a few rows of fewer than `short` items. The result is NaN where a valid
    score is NaN or no item is valid. Thresholds are rounded as the `decision` requires.
    """
    given, dtype = items.scores.dtype, numerics.default_float()

    def of_row(placed: OnHost, undefined: bool, options: dict[str, Any]) -> tuple[Any, Any]:
        with np.errstate(all="ignore"):
            value = function(placed, **options)
            if undefined:
                return jax.tree.map(lambda x: np.nan * x, value), False
            return as_reported(value, lambda: placed.scores, decision(**options), given, dtype)

    found = of_each_row(of_row, items, options, short)
    if found is None:
        return None
    rows, batch = found
    values, unlike = zip(*rows, strict=True)
    result = in_jax(values, batch, items.scores, dtype)
    warn_if(any(unlike), dtype)
    return result


def of_each_row(
    function: Callable[[OnHost, bool, dict[str, Any]], R],
    items: Items,
    options: dict[str, Any],
    short: int,
    *,
    few: int = FEW,
    by_item: bool = False,
) -> tuple[list[R], tuple[int, ...]] | None:
    """`function(placements, undefined, options)` of each row of a batch, and the batch's shape.

    None if NumPy cannot do it now, or if more than `few` rows have fewer than `short` items. A row
    is undefined if a valid score is NaN or no item is valid. Options that are arrays become
    NumPy's. With `by_item`, each class holds the indices of its items.
    """
    found = rows_at_hand(items, options, short=short, few=few)
    if found is None:
        return None
    return [function(*_of_row(row, by_item), found.options) for row in found.rows], found.batch


def _of_row(row: Items, by_item: bool) -> tuple[OnHost, bool]:
    """The placements of items `[n]`, and whether they are undefined."""
    scores: Any = sortable(np.asarray(row.scores))
    labels: Any = row.labels
    positive = labels if labels.dtype == bool else labels == 1
    positives = _of_class(row, scores, positive, by_item)
    negatives = _of_class(row._replace(amounts=None), scores, ~positive, by_item)
    undefined = not (len(positives.scores) or len(negatives.scores))
    if numerics.is_inexact(scores) and not undefined and _has_nan(scores):
        undefined = any(len(x.scores) and _has_nan(x.scores) for x in (positives, negatives))
    return placements_of(positives, negatives), undefined


def _of_class(row: Items, scores: HostArray, mask: HostArray, by_item: bool) -> OneClass:
    """The items with weight of the class `mask`."""
    mask = mask if row.where is None else mask & row.where
    indices = np.flatnonzero(mask).astype(np.uint32) if by_item else None
    items = OneClass(compressed(scores, mask), None, indices)
    if row.weights is None and row.amounts is None:
        return items
    given = (x for x in (row.weights, row.amounts) if x is not None)
    product: Any = math.prod(compressed(np.asarray(x), mask).astype(np.float64) for x in given)
    items, weighty = items._replace(weights=product), product > 0
    return items if weighty.all() else items.only(weighty)


def _has_nan(scores: HostArray) -> bool:
    highest = scores.max()
    return bool(highest != highest)  # the highest of numbers and NaN is NaN
