"""Losses of all pairs, of items that the devices of a mesh hold in parts, and their slopes.

Each device receives the rows of one range of the scores, as for metrics. It sums over the pairs
within its range. Of the items of all other devices it needs a few sums alone, of powers and of
exponentials of the distance, which all devices have of each other. The slopes of the rows go back
the way that their weights came.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base import numerics, sorting, varying
from jaxmetrics._base.double import in_double
from jaxmetrics._base.parts import AxisName, Rows, rows_of_range, sum_over
from jaxmetrics._base.types import Array, Items
from jaxmetrics.losses._pair_sums import Kernel, Side, State, pair_sums, state_of, sum_of_state
from jaxmetrics.losses._rows import Row, refused, rows_of_items
from jaxmetrics.losses._surrogates import kernel_of, placed, slopes_in_scores
from jaxmetrics.losses._top_set import set_of_shares

_WINDOW = ("max_fpr", "min_tpr", "band")


def pairs_of_parts(
    items: Items,
    numbers: dict[str, Any],
    axis_name: AxisName,
    surrogate: str,
    two_way: bool = False,
) -> tuple[Array, Array]:
    """The loss of all items `[...]`, and its slopes in the scores of this part `[..., n]`."""
    undefined = refused(items, numbers, axis_name)
    batch = rows_of_items(items, undefined, axis_name)
    dtype = batch.scores.dtype
    window = {name: jnp.asarray(x, dtype) for name, x in numbers.items() if name in _WINDOW}
    scale = {name: jnp.asarray(x, dtype) for name, x in numbers.items() if name not in _WINDOW}

    def of_row(row: Row, scale: dict[str, Array], window: dict[str, Array]) -> tuple[Array, Array]:
        places = placed(row, surrogate, axis_name, **scale)
        value, slopes = _of_pairs(places, kernel_of(surrogate, dtype), two_way, axis_name, **window)
        slopes = slopes_in_scores(slopes, row, surrogate, axis_name, **scale)
        infinite = sum_over(jnp.sum(~jnp.isfinite(places.scores)).astype(dtype), axis_name) > 0
        value, slopes = (jnp.where(infinite, jnp.nan, x).astype(dtype) for x in (value, slopes))
        return value, slopes

    program = in_double(of_row)
    of_rows = numerics.over_batch(lambda row: program(row, scale, window), batch.scores.ndim - 1)
    value, slopes = of_rows(batch)
    return jnp.where(undefined, jnp.nan, value), jnp.where(undefined[..., None], 0, slopes)


def _of_pairs(
    items: Row, kernel: Kernel, two_way: bool, axis_name: AxisName, **window: Array
) -> tuple[Array, Array]:
    """The mean over all pairs, and its slopes in the places of the items of this device."""
    keys = sorting.descending_keys(-items.scores)
    keys = jnp.where(items.weights > 0, keys, ~np.zeros((), keys.dtype))

    def exchanged(*weights: Array) -> tuple[tuple[Array, Array], Array]:
        rows = rows_of_range(Rows(keys, *weights), axis_name)
        return (rows.positives, rows.negatives), rows.keys

    weights = items.positives, items.negatives
    of_class, back, keys_here = varying.vjp(exchanged, *weights, has_aux=True)
    places = -sorting.scores_of_keys(keys_here, items.scores).astype(items.scores.dtype)
    here = Range.of(places, sum(of_class), axis_name)

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
    sums = positives * here.pair_sums(kernel, negatives)
    # A sum of copies, of the type that gathered items give the loss.
    value = jnp.sum(lax.all_gather(jnp.sum(sums), axis_name))
    slope = kernel.derivative()
    at_positives = -here.pair_sums(slope, negatives)
    at_negatives = jnp.flip(here.reversed().pair_sums(slope, jnp.flip(positives)))
    of_rows = (
        numerics.divide(chosen * slopes, whole * total, 0.0)
        for chosen, slopes, whole in zip(
            (positives, negatives), (at_positives, at_negatives), of_class, strict=True
        )
    )
    of_positives, of_negatives = back(tuple(of_rows))
    slopes = items.positives * of_positives + items.negatives * of_negatives
    return numerics.divide(value, total, 0.0), slopes


class Range(NamedTuple):
    """The rows of one device, whose places are between those of the devices beside it.

    Attributes:
      places: `[n]` ascending.
      before: `[devices]`, whether a device has lower places.
      axis_name: of the devices.
    """

    places: Array
    before: Array
    axis_name: AxisName

    @classmethod
    def of(cls, places: Array, weights: Array, axis_name: AxisName) -> Range:
        """Rows without a weight are last, and get the place of the row before them."""
        some = weights > 0
        lowest = lax.all_gather(jnp.min(jnp.where(some, places, jnp.inf)), axis_name)
        highest = lax.all_gather(jnp.max(jnp.where(some, places, -jnp.inf)), axis_name)
        device = jnp.arange(len(highest))
        here = lax.axis_index(axis_name)
        last = jnp.max(jnp.where(device <= here, highest, -jnp.inf))
        last = jnp.where(last > -jnp.inf, last, jnp.min(lowest))
        last = jnp.where(jnp.isfinite(last), last, 0)
        return cls(jnp.where(some, places, last), device < here, axis_name)

    def reversed(self) -> Range:
        """The same rows in reverse order, at the negative of their places."""
        return Range(-jnp.flip(self.places), self.after, self.axis_name)

    @property
    def after(self) -> Array:
        """`[devices]`, whether a device has higher places."""
        own = jnp.arange(len(self.before)) == lax.axis_index(self.axis_name)
        return ~(self.before | own)

    def _sum(self, of_each: Array, chosen: Array) -> Array:
        """Over the chosen devices, of `[devices, ...]`."""
        shape = len(chosen), *[1] * (of_each.ndim - 1)
        return jnp.sum(jnp.where(chosen.reshape(shape), of_each, 0), axis=0)

    def shares_above(self, weights: Array) -> tuple[Array, Array]:
        """The share of a class above each row, and the same including it."""
        of_each = lax.all_gather(jnp.sum(weights), self.axis_name)
        after, total = self._sum(of_each, self.after), jnp.sum(of_each)
        upto = lax.cumsum(weights, reverse=True) + after
        above = jnp.append(upto[1:], after)
        above, upto = numerics.divide(above, total, 0.0), numerics.divide(upto, total, 0.0)
        return above, jnp.maximum(upto, above)

    def pair_sums(self, kernel: Kernel, weights: Array) -> Array:
        """At each row the sum of weight times f(place - place of the row) over all rows."""
        back = self.reversed()
        above = back._of_devices_before(kernel.above, jnp.flip(weights))
        below = self._of_devices_before(kernel.below, weights)
        return pair_sums(kernel, self.places, weights, None) + below + jnp.flip(above)

    def _of_devices_before(self, side: Side, weights: Array) -> Array:
        first, last = self.places[0], self.places[-1]
        own = state_of(side, (last - self.places)[None], weights[None])
        state = State(*(lax.all_gather(x[0], self.axis_name) for x in own))
        lasts = lax.all_gather(last, self.axis_name)
        moved = state.moved(jnp.where(self.before, first - lasts, 0))
        before = State(*(self._sum(x, self.before) for x in moved))
        return sum_of_state(side, before, self.places - first)
