"""Warnings of recalls whose limit is within a tie, where the curve has a step.

The errors of a recall follow from the slope of the curve, which a step does not have.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from jaxmetrics._base.compaction import sample_indices
from jaxmetrics._base.host import on_host
from jaxmetrics._base.types import HostArray, Items
from jaxmetrics._base.warned import warn
from jaxmetrics._base.words import some_of
from jaxmetrics._roc.areas import in_counts
from jaxmetrics._roc.record import MetricLike, choose
from jaxmetrics.inference._intervals.effective import effective_size
from jaxmetrics.inference._intervals.metrics import has_influence, with_influence

# Negatives that tie at the limit, in standard deviations of the number beyond the limit. With more
# of them, equal models differed significantly at 5 % in 10 to 31 % of simulated data sets.
_TIED = 1.5
_ENOUGH = 1 << 16  # negatives that suffice: of k times as many, every k-th is used
# For other names of a recall: the rate that has the limit, and the class that may tie there.
_COMPLEMENTS = {
    "sensitivity_at_specificity": ("specificity", "negatives"),
    "specificity_at_sensitivity": ("sensitivity", "positives"),
}


NamedSlices: TypeAlias = tuple[HostArray, dict[int, str]] | None


def warn_of_tied_limits(
    metric: MetricLike, items: Items, slices: NamedSlices = None, *, planned: bool = False
) -> None:
    """Warn where many items tie at the limit."""
    message = tied_limits(metric, items, slices, planned=planned)
    if message is not None:
        warn(message)


def tied_limits(
    metric: MetricLike, items: Items, slices: NamedSlices = None, *, planned: bool = False
) -> str | None:
    """What to say where many items tie at the limit, among all items or in a slice; else None.

    `slices`: the slice index `[n]` of each item, and by index the names of the slices to examine.
    `planned`: the items are those of a pilot.
    """
    rate, what = _COMPLEMENTS.get(choose(metric)[0].metric.name, ("FPR", "negatives"))
    metric, items = with_influence(metric, items)
    chosen, arrays = choose(metric)
    options = chosen.options(arrays)
    given = on_host(*items[:4], options.get("max_fpr"))
    stepped = has_influence(chosen.metric) and options.get("method") in ("step", "quantile")
    if given is None or not stepped or given[-1] >= 1 or not given[0].size:
        return None
    scores, labels, weights, where, limit = given
    counted = labels != 1
    for kept in (where, None if weights is None else weights > 0):
        counted = counted if kept is None else counted & kept
    rows = [
        np.broadcast_to(x, scores.shape).reshape(-1, scores.shape[-1])
        for x in (scores, counted, np.float64(1) if weights is None else weights)
    ]
    names: list[str] = [""]
    parts: list[Any] = [slice(None)]
    if slices is not None:
        ids, names = slices[0], [*slices[1].values()]
        order, at = np.argsort(ids, kind="stable"), np.array([*slices[1]], int)
        ends = np.searchsorted(ids, np.stack([at, at + 1], axis=1), sorter=order)
        parts = [order[first:end] for first, end in ends]
    most = [
        max(_tied_at(limit, *(x[part] for x in of_model)) for of_model in zip(*rows, strict=True))
        for part in parts
    ]
    if not any(most):
        return None
    shown = limit if rate == "FPR" else 1 - limit
    others = ', or recall_at_fpr with method="linear"' if rate == "FPR" else ""
    which, found = "", "up to 31 % of equal models differed significantly at 5 %"
    if planned:
        found = "a planned power of 1.00 was 0.22 to 0.46, and less by a small pilot"
    elif slices is not None:
        tied = [name for name, n in zip(names, most, strict=True) if n]
        which = f" in slice{'s' * (len(tied) > 1)} {some_of(tied)}"
        found = "up to 59 % of equal models differed at 5 % in some slice, and 69 % of trends"
    return (
        f"the limit of the {rate}, {float(shown):g}, is within a tie of "
        f"{max(most):.0f} {what}{which}: in simulations of such ties {found}: "
        f"{'plan for' if planned else 'compare'} partial areas{others}"
    )


def _tied_at(limit: Any, scores: Any, counted: Any, weights: Any) -> float:
    """The effective number of negatives, those `counted`, that tie at the limit.

    It is 0 if errors allow for so few.
    """
    negatives = np.flatnonzero(counted)
    if not len(negatives):
        return 0.0
    step = max(len(negatives) // _ENOUGH, 1)
    index = negatives[sample_indices(len(negatives), step, np)]
    scores, weights = scores[index], weights[index]
    order = np.argsort(scores)[::-1]
    scores, weights = scores[order], weights[order]
    upto = weights.cumsum()
    limit = np.asarray(limit)
    within = in_counts(limit, upto[-1])
    first = min(int(np.searchsorted(upto, within, side="right")), len(scores) - 1)
    n = step * effective_size(weights)
    tied = float(n * weights[scores == scores[first]].sum() / upto[-1])
    return tied if tied > max(_TIED * np.sqrt(n * limit * (1 - limit)), 2) else 0.0
