"""Smooth metrics of placements in many slices at once, and their slopes in the weights.

Such a metric is a sum over positives. So it is evaluated and differentiated for each group of
positives that tie, with the totals of its slice, for all groups of a run of slices at once. The
groups of a slice are added up, and the slopes of each item.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.duals import value_and_slopes
from jaxmetrics._base.host import in_threads
from jaxmetrics._base.types import HostArray
from jaxmetrics._roc.record import Chosen, Options
from jaxmetrics._roc.sliced import (
    EachGroup,
    Order,
    RunOfSlices,
    Sliced,
    TiedPositives,
    columns_of,
    groups_of,
)
from jaxmetrics.inference._intervals.metrics import error_bars_of


class InSlices(NamedTuple):
    """A metric of one model in each slice.

    Attributes:
      estimate: `[slices]`.
      influence: `[n]`, the derivative in the weight of each item, times the weight of its class;
        without weights up to a constant of the class.
      numbers: what the closed form needs beside the moments, `[slices, ...]`.
    """

    estimate: HostArray
    influence: HostArray
    numbers: Any


def smooth_in_slices(
    chosen: Chosen, arrays: Options, sliced: Sliced, scores: HostArray, levels: HostArray
) -> InSlices:
    """The metric in each slice, from scores `[n]` in the order of `sliced`."""
    function: Any = chosen.metric.of_placements
    numbers_of = error_bars_of(chosen.metric).numbers
    # Limits `[..., 1]`, beside the axis of the groups.
    options = chosen.options({name: x[..., None] for name, x in arrays.items()})

    def of_part(part: RunOfSlices) -> InSlices:
        own = part.sliced
        order = own.order(scores[part.span])
        groups = groups_of(own, order)
        totals, sizes = (x.take(groups.slice, axis=0).T for x in (own.totals, own.sizes))

        def placed(rows: Any) -> Any:
            return EachGroup(rows[:5], rows[5:])

        def value(rows: Any, _: Any) -> Any:
            return function(placed(rows), **options)

        def added(values: HostArray) -> HostArray:
            return np.bincount(groups.slice, values, len(own.counts))

        rows = np.concatenate([columns_of(own, order, groups), totals])
        with np.errstate(all="ignore"):
            values, slopes, _ = value_and_slopes(value, rows, np.zeros(0))
            influence = _influence(own, order, groups, slopes[:5])
            if own.weights is not None:  # without, centring removes this constant of each class
                of_classes = np.stack([added(x) for x in slopes[5:]], axis=-1)
                influence += own.spread(of_classes * own.totals)
            numbers = numbers_of(placed(rows), tuple(sizes), levels, options)
        return InSlices(added(values), influence, jax.tree.map(added, numbers))

    parts = in_threads(of_part, sliced.parts())
    return jax.tree.map(lambda *x: np.concatenate(x), *parts)


def _influence(sliced: Sliced, order: Order, groups: TiedPositives, slopes: HostArray) -> HostArray:
    """The influence of each item, in the order of `sliced`, without the part of the totals."""
    real = groups.ends > groups.begins
    begins, ends, of_slice = (x.compress(real) for x in groups)
    by_weight, by_above, by_not_below, by_higher, by_not_lower = slopes.compress(real, axis=1)
    scale = sliced.totals.take(of_slice, axis=0)

    # Between the begins and ends of groups and of slices all items have the same sums.
    n_slices = len(sliced.counts)
    cuts = 2 * of_slice.searchsorted(np.arange(n_slices + 1))  # begins and ends before each slice
    places = np.insert(np.stack([begins, ends], axis=1).ravel(), cuts, sliced.begins)
    lengths = np.diff(places)

    def spread(above: HostArray, not_below: HostArray, unit: HostArray) -> HostArray:
        """An item above a group counts in both of its placements; one that ties, in `not_below`."""
        steps = (np.stack([not_below, above], axis=1) * unit[:, None]).ravel()
        begins = cuts + np.arange(n_slices + 1)
        return numerics.running_between(begins, np.insert(steps, cuts[:-1], 0)).repeat(lengths)

    found = spread(by_above, by_not_below, scale[:, 0])
    positive = order.positive
    own = (by_weight * scale[:, 1]).repeat(
        np.add.reduceat(positive, begins) if len(begins) else begins
    )
    if by_higher.any() or by_not_lower.any():
        own = own + spread(by_higher, by_not_lower, scale[:, 1]).compress(positive)
    found[positive] = own
    by_item = np.empty_like(found)
    by_item[order.item] = found
    return by_item
