"""The threshold that a rule chooses, as it is reported: a sort of all items is the last resort."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.double import library_program
from jaxmetrics._base.host import is_concrete, near_tree
from jaxmetrics._base.items import items_at_hand
from jaxmetrics._base.types import Array, Items
from jaxmetrics._roc.order import undefined
from jaxmetrics._roc.record import MetricLike, Options, evaluate_chosen
from jaxmetrics._roc.reported import holds
from jaxmetrics._roc.thresholds import threshold_at_fpr
from jaxmetrics._roc.tradeoffs import specificity_at_sensitivity


def chosen_threshold(rule: MetricLike, options: Options, items: Items) -> Array:
    """The threshold of a rule with these options, rounded so that it flags what is reported."""
    exact = holds(numerics.default_float(), items.scores.dtype)
    if "max_fpr" in options:
        of_fpr = functools.partial(threshold_at_fpr, max_fpr=options["max_fpr"], method="step")
        found: Array = evaluate_chosen(of_fpr, items)
    elif exact and "threshold" in options:
        found = _where_defined(items_at_hand(items), *near_tree((options["threshold"],)))
    elif "min_recall" in options:
        of_recall = functools.partial(
            specificity_at_sensitivity,
            min_sensitivity=options["min_recall"],
            return_threshold=True,
        )
        found = evaluate_chosen(of_recall, items).threshold
    else:
        found = evaluate_chosen(rule, items).threshold
    return found


def in_dtype(threshold: Any, dtype: Any) -> Any:
    """A threshold in the dtype of the scores, in which it is compared."""
    if is_concrete(threshold):
        with np.errstate(over="ignore"):  # infinite scores alone are above it
            return np.asarray(threshold, dtype)
    return threshold.astype(dtype) if dtype.itemsize < threshold.dtype.itemsize else threshold


@library_program()
def _where_defined(items: Items, threshold: Array) -> Array:
    """A threshold that is given, in rows without a valid score that is NaN."""
    library, threshold = numerics.namespace(items.scores, threshold), threshold.astype(np.float64)
    return library.where(undefined(items), library.nan, threshold)
