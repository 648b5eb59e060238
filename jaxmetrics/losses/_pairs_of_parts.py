"""Losses over pairs, and their slopes, where the devices of a mesh hold the items in parts."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from jaxmetrics._base import numerics
from jaxmetrics._base.parts import AxisName, sum_over
from jaxmetrics._base.types import Array, Items
from jaxmetrics.losses._kernels import Kernel
from jaxmetrics.losses._range import (
    in_range,
    loss_and_slopes,
    nan_where_infinite,
    sum_of_devices,
)
from jaxmetrics.losses._rows import Row
from jaxmetrics.losses._surrogates import kernel_of, placed, slopes_in_scores, within_reach
from jaxmetrics.losses._top_set import set_of_shares

_WINDOW = ("max_fpr", "min_tpr", "band")


def pairs_of_parts(
    items: Items,
    numbers: dict[str, Any],
    axis_name: AxisName,
    surrogate: str,
    two_way: bool = False,
) -> tuple[Array, Array]:
    """`loss_and_slopes` of the mean loss over all pairs, or over the pairs of a window."""

    def of_row(row: Row, **numbers: Array) -> tuple[Array, Array]:
        window = {name: x for name, x in numbers.items() if name in _WINDOW}
        scale = {name: x for name, x in numbers.items() if name not in _WINDOW}
        # `within_reach` makes items that cost nothing tie, also before the sets of a window are
        # taken: this would change only slopes in weights, which are not computed here.
        places = within_reach(placed(row, surrogate, axis_name, **scale), surrogate, axis_name)
        kernel = kernel_of(surrogate, row.scores.dtype)
        value, slopes = _of_pairs(places, kernel, two_way, axis_name, **window)
        slopes = slopes_in_scores(slopes, row, surrogate, axis_name, **scale)
        return nan_where_infinite((value, slopes), row, axis_name)

    return loss_and_slopes(of_row, items, numbers, axis_name)


def _of_pairs(
    items: Row, kernel: Kernel, two_way: bool, axis_name: AxisName, **window: Array
) -> tuple[Array, Array]:
    """The mean loss over all pairs, and its slopes in the places of this device's items."""
    of_class, back, here = in_range(items, (items.positives, items.negatives), axis_name)
    positives, negatives = of_class
    if window:
        shares = here.shares_above(negatives)
        negatives = set_of_shares(*shares, negatives, window["max_fpr"], window["band"])
    if two_way:
        below = here.reversed()
        shares = below.shares_above(jnp.flip(positives))
        lowest = 1 - window["min_tpr"], window["band"]
        positives = jnp.flip(set_of_shares(*shares, jnp.flip(positives), *lowest))

    total = sum_over(jnp.sum(positives), axis_name) * sum_over(jnp.sum(negatives), axis_name)
    value = sum_of_devices(positives * here.pair_sums(kernel, negatives), axis_name)
    slope = kernel.derivative()
    at_positives = -here.pair_sums(slope, negatives)
    at_negatives = here.sums_from(slope, positives)
    of_rows = (
        numerics.divide(chosen * slopes, whole * total, 0.0)
        for chosen, slopes, whole in zip(
            (positives, negatives), (at_positives, at_negatives), of_class, strict=True
        )
    )
    of_positives, of_negatives = back(tuple(of_rows))
    slopes = items.positives * of_positives + items.negatives * of_negatives
    return numerics.divide(value, total, 0.0), slopes
