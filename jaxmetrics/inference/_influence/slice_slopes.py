"""Smooth metrics of placements in many slices at once, and their slopes in the weights.

Such a metric is a sum over positives. So one program evaluates and differentiates it for each group
of positives that tie, with the totals of its slice, for all groups of all slices. NumPy adds up the
groups of a slice, and the slopes of each item.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.double import double_program
from jaxmetrics._base.host import in_threads
from jaxmetrics._base.types import Array, HostArray
from jaxmetrics._roc.record import Chosen, Options
from jaxmetrics._roc.sliced import Order, RunOfSlices, Sliced, TiedPositives, columns_of, groups_of
from jaxmetrics.inference._influence.host_slopes import GroupsOfPositives
from jaxmetrics.inference._intervals.metrics import error_bars_of

_FEWEST = 1024  # the fewest groups that a program is compiled for


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


class _Placed(NamedTuple):
    """The groups of some slices, and `[9, groups]`: their columns, totals and sizes."""

    order: Order
    groups: TiedPositives
    rows: HostArray


def smooth_in_slices(
    chosen: Chosen, arrays: Options, sliced: Sliced, scores: HostArray, levels: HostArray
) -> InSlices:
    """The metric in each slice, from scores `[n]` in the order of `sliced`."""
    parts = sliced.parts()

    def placed_in(part: RunOfSlices) -> _Placed:
        order = part.sliced.order(scores[part.span])
        groups = groups_of(part.sliced, order)
        both = (x.take(groups.slice, axis=0).T for x in (part.sliced.totals, part.sliced.sizes))
        return _Placed(
            order, groups, np.concatenate([columns_of(part.sliced, order, groups), *both])
        )

    placed = in_threads(placed_in, parts)
    ends = np.cumsum([x.rows.shape[1] for x in placed], dtype=int)
    n = int(ends[-1]) if len(ends) else 0
    rows = np.ones((9, max(_FEWEST, numerics.next_power_of_two(n))))
    np.concatenate([x.rows for x in placed] + [rows[:, n:]], axis=1, out=rows)
    value, slopes, by_totals, numbers = jax.tree.map(
        lambda x: np.asarray(x)[..., :n], _contributions(rows, levels, arrays, chosen)
    )
    of_slice = np.zeros(n, int)
    for x, part, end in zip(placed, parts, ends, strict=True):
        of_slice[end - x.rows.shape[1] : end] = x.groups.slice + part.slices.start

    def added(values: HostArray) -> HostArray:
        return np.bincount(of_slice, values, len(sliced.counts))

    influence = np.empty(len(scores))

    def spread(part: RunOfSlices, placed: _Placed, slopes: HostArray) -> None:
        with np.errstate(all="ignore"):
            influence[part.span] = _influence(part.sliced, placed.order, placed.groups, slopes)

    in_threads(spread, parts, placed, np.split(slopes, ends[:-1], axis=1) if parts else [])
    if sliced.weights is not None:  # without, centring removes this constant of each class
        of_classes = np.stack([added(x) for x in by_totals], axis=-1)
        influence += sliced.spread(of_classes * sliced.totals)
    return InSlices(added(value), influence, jax.tree.map(added, numbers))


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


@double_program("chosen")
def _contributions(
    rows: Array, levels: Array, arrays: Options, chosen: Chosen
) -> tuple[Array, Array, Array, Any]:
    """The part that each group has in the value, its slopes in the columns and in the totals of the
    slice, and its part in the numbers."""
    options = chosen.options(arrays)
    function: Any = chosen.metric.of_placements
    numbers = error_bars_of(chosen.metric).numbers

    def of_group(column: Array, total: Array, size: Array) -> Any:
        def value(column: Array, total: Array) -> Any:
            placed = GroupsOfPositives(column[:, None], total[::-1])
            return jnp.asarray(function(placed, **options), jnp.float64)

        found, (slopes, by_total) = jax.value_and_grad(value, (0, 1))(column, total)
        placed: Any = GroupsOfPositives(column[:, None], total[::-1])
        return found, slopes, by_total, numbers(placed, (size[0], size[1]), levels, options)

    mapped = jax.vmap(of_group, in_axes=-1, out_axes=-1)
    return mapped(rows[:5], rows[5:7], rows[7:])
