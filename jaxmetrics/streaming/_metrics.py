"""What streams add to each metric: its ends over the orders within bins, and what `exact` needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp

from jaxmetrics._base.types import Array, HostArray
from jaxmetrics._roc.areas import average_precision, partial_auc, roc_auc
from jaxmetrics._roc.record import Chosen, Metric, Options
from jaxmetrics._roc.table import ScoreTable
from jaxmetrics._roc.thresholds import recall_at_fpr, threshold_at_fpr
from jaxmetrics._roc.tradeoffs import (
    precision_at_recall,
    recall_at_precision,
    sensitivity_at_specificity,
    specificity_at_sensitivity,
)
from jaxmetrics.streaming._cells import (
    Cells,
    Keep,
    Limits,
    order_matters,
    order_matters_at_limit,
    order_matters_in_window,
    order_matters_to_precision,
    order_matters_to_threshold,
)
from jaxmetrics.streaming._ends import (
    Counted,
    Value,
    ends_by_mean_precision,
    ends_by_order,
    ends_by_precision,
    ends_by_score,
)
from jaxmetrics.streaming._items import ScoresOf, scores_by_order, scores_by_score


class Streamed(NamedTuple):
    """What streams add to a metric.

    Attributes:
      ends: returns `[3, ...]`: the low end, the value with ties in each bin, and the high end.
      matters: the cells in which the order of the items changes the metric.
      keep: what the metric needs of these cells.
      methods: the values of its option `method` for which bounds are known.
      scores: returns scores of items for which the metric has the values of `ends`, or None.
    """

    ends: Callable[[Value, Counted, bool], Array] = ends_by_order
    matters: Callable[[Cells, Limits], HostArray] = order_matters
    keep: Keep = Keep.ROWS
    methods: tuple[str, ...] = ()
    scores: ScoresOf | None = scores_by_order


def streamed(chosen: Chosen, arrays: Options) -> Streamed:
    """What streams add to a metric; refuses a metric whose bounds are not known."""
    found, name = _STREAMED.get(chosen.metric), chosen.metric.name
    if found is None:
        raise ValueError(
            f"bounds are known for {', '.join(x.name for x in _STREAMED)}, got {name}: for its "
            "value with ties in each bin write metric(table(state, bins=bins))"
        )
    method = chosen.options(arrays).get("method")
    if method is not None and method not in found.methods:
        raise ValueError(
            f"bounds of {name} are not known for method={method!r}, which may be between scores: "
            f"write {' or '.join(map(repr, found.methods))}"
        )
    return found


def ends_of(chosen: Chosen, arrays: Options, bins: Counted, weighted: bool = False) -> Array:
    """`[3, ...]` of one state: the low end, the value with ties in each bin, and the high end."""

    def value(table: ScoreTable) -> Array:
        return chosen.value(table, arrays)

    return jnp.where(bins.undefined, jnp.nan, streamed(chosen, arrays).ends(value, bins, weighted))


_STREAMED: dict[Metric, Streamed] = {
    roc_auc.record: Streamed(keep=Keep.AREA),
    partial_auc.record: Streamed(matters=order_matters_in_window, keep=Keep.AREA),
    recall_at_fpr.record: Streamed(matters=order_matters_at_limit, methods=("step", "linear")),
    threshold_at_fpr.record: Streamed(
        ends_by_score, order_matters_to_threshold, methods=("step",), scores=scores_by_score
    ),
    average_precision.record: Streamed(
        ends_by_mean_precision, order_matters_to_precision, Keep.PRECISION, scores=None
    ),
    precision_at_recall.record: Streamed(ends_by_precision),
    recall_at_precision.record: Streamed(ends_by_precision),
    sensitivity_at_specificity.record: Streamed(),
    specificity_at_sensitivity.record: Streamed(),
}
