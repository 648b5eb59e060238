"""Losses of items that the devices of a mesh hold in parts: each device receives a range of places.

A row holds the items of one place. Each device receives the rows of one range, as for metrics, and
sums over the pairs within it. From the items of other devices it needs only a few sums of powers
and exponentials of the distance, which all devices gather. The results of a row return to its items
by the way that their weights came.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxmetrics._base import numerics, sorting, varying
from jaxmetrics._base.cumulative import cumulated
from jaxmetrics._base.double import in_double
from jaxmetrics._base.parts import AxisName, Rows, rows_of_range
from jaxmetrics._base.types import Array, Items
from jaxmetrics.losses._kernels import Kernel, Side
from jaxmetrics.losses._pair_sums import State, pair_sums, state_of, sum_of_state
from jaxmetrics.losses._rows import Row, infinite, refused, rows_of_items


def loss_and_slopes(
    of_row: Callable[..., tuple[Array, Array]],
    items: Items,
    numbers: dict[str, Any],
    axis_name: AxisName,
) -> tuple[Array, Array]:
    """The loss of all items `[...]`, and its slopes in the scores of this device's part `[..., n]`.

    `of_row(row, **numbers)` returns both for one row of a batch.
    """
    undefined = refused(items, numbers, axis_name)
    batch = rows_of_items(items, undefined, axis_name)
    dtype = batch.scores.dtype
    numbers = {name: jnp.asarray(x, dtype) for name, x in numbers.items()}

    def rounded(row: Row, numbers: dict[str, Array]) -> tuple[Array, Array]:
        value, slopes = of_row(row, **numbers)
        return value.astype(dtype), slopes.astype(dtype)

    program = in_double(rounded)
    of_rows = numerics.over_batch(lambda row: program(row, numbers), batch.scores.ndim - 1)
    value, slopes = of_rows(batch)
    return jnp.where(undefined, jnp.nan, value), jnp.where(undefined[..., None], 0, slopes)


def nan_where_infinite(
    found: tuple[Array, Array], items: Row, axis_name: AxisName
) -> tuple[Array, Array]:
    """A loss and its slopes, NaN if a place on any device is infinite; 0 for masked items."""
    (value, slopes), some = found, infinite(items, axis_name)
    undefined = jnp.where(items.is_positive | items.is_negative, jnp.nan, 0)
    return jnp.where(some, jnp.nan, value), jnp.where(some, undefined, slopes)


def sum_of_devices(of_items: Array, axis_name: AxisName) -> Array:
    """The sum over all items, as a sum of what all devices gather.

    Its type varies over the axis, as that of a loss of gathered items does; after `psum` it would
    not.
    """
    return jnp.sum(lax.all_gather(jnp.sum(of_items), axis_name))


class InRange(NamedTuple):
    """The rows that a device receives, for two weights of each item.

    Attributes:
      weights: two arrays `[rows]`, the sums over the items of each row.
      back: takes two arrays `[rows]`, and returns two `[n]`: for each item that this device holds,
        the entry of its row, on whichever device that is.
      range: the places of the rows.
    """

    weights: tuple[Array, Array]
    back: Callable[[tuple[Array, ...]], tuple[Array, Array]]
    range: Range


def in_range(items: Row, weights: tuple[Array, Array], axis_name: AxisName) -> InRange:
    """Sends two weights of each item to the device in whose range its place is."""
    keys = sorting.descending_keys(-items.scores)
    keys = jnp.where(items.weights > 0, keys, sorting.largest_key(keys))

    def exchanged(*weights: Array) -> tuple[tuple[Array, Array], Array]:
        rows = rows_of_range(Rows(keys, *weights), axis_name)
        return (rows.positives, rows.negatives), rows.keys

    of_rows, back, keys_here = varying.vjp(exchanged, *weights, has_aux=True)
    places = -sorting.scores_of_keys(keys_here, items.scores).astype(items.scores.dtype)
    return InRange(of_rows, back, Range.of(places, keys_here, axis_name))


class Range(NamedTuple):
    """The rows of one device; those of another device are all at lower or all at higher places.

    Attributes:
      places: `[n]` ascending.
      before: `[devices]`, whether a device has lower places.
      axis_name: of the devices.
    """

    places: Array
    before: Array
    axis_name: AxisName

    @classmethod
    def of(cls, places: Array, keys: Array, axis_name: AxisName) -> Range:
        """Unused entries come last, and get the highest place of this device and those before it.

        If these have no rows, they get the lowest place of all devices.
        """
        some = keys != sorting.largest_key(keys)
        lowest = lax.all_gather(jnp.min(jnp.where(some, places, jnp.inf)), axis_name)
        highest = lax.all_gather(jnp.max(jnp.where(some, places, -jnp.inf)), axis_name)
        device = jnp.arange(len(highest))
        here = lax.axis_index(axis_name)
        last = jnp.max(jnp.where(device <= here, highest, -jnp.inf))
        last = jnp.where(last > -jnp.inf, last, jnp.min(lowest))
        last = jnp.where(jnp.isfinite(last), last, 0)
        return cls(jnp.where(some, places, last), device < here, axis_name)

    def reversed(self) -> Range:
        """The same rows in reverse order, with the sign of their places changed."""
        return Range(-jnp.flip(self.places), self.after, self.axis_name)

    @property
    def after(self) -> Array:
        """`[devices]`, whether a device has higher places."""
        own = jnp.arange(len(self.before)) == lax.axis_index(self.axis_name)
        return ~(self.before | own)

    def shares_above(self, weights: Array) -> tuple[Array, Array]:
        """The share of a class above each row, and the same including the row."""
        upto = cumulated(weights, reverse=True)
        of_each = lax.all_gather(upto[0], self.axis_name)
        after = total = jnp.zeros_like(upto[0])
        # Added one by one from the last device, so that both sides of a border round alike.
        for others, follows in zip(of_each[::-1], self.after[::-1], strict=True):
            after = jnp.where(follows, others + after, after)
            total = others + total
        upto = upto + after
        above = jnp.append(upto[1:], after)
        above, upto = numerics.divide(above, total, 0.0), numerics.divide(upto, total, 0.0)
        return above, jnp.maximum(upto, above)

    def pair_sums(self, kernel: Kernel, weights: Array) -> Array:
        """At each row the sum of weight times f(place - place of the row) over all rows."""
        own = kernel.at(jnp.zeros((), self.places.dtype)) * weights
        return self.sums_of_others(kernel, weights) + own

    def sums_of_others(self, kernel: Kernel, weights: Array) -> Array:
        """As `pair_sums`, but a row is left out of its own sum, as items are by `_pair_sums`."""
        back = self.reversed()
        above = back._of_devices_before(kernel.above, jnp.flip(weights))
        below = self._of_devices_before(kernel.below, weights)
        return pair_sums(kernel, self.places, weights, None) + below + jnp.flip(above)

    def sums_from(self, kernel: Kernel, weights: Array) -> Array:
        """At each row the sum of weight times f(place of the row - place) over all rows."""
        return jnp.flip(self.reversed().pair_sums(kernel, jnp.flip(weights)))

    def _of_devices_before(self, side: Side, weights: Array) -> Array:
        # At each row the sum of weight times g(distance) over the rows of lower devices.
        first, last = self.places[0], self.places[-1]
        own = state_of(side, last - self.places, weights)
        state = State(*(lax.all_gather(x, self.axis_name, axis=1) for x in own))
        lasts = lax.all_gather(last, self.axis_name)
        moved = state.moved(jnp.where(self.before, first - lasts, 0)).where(self.before)
        before = State(*(jnp.sum(x, axis=1) for x in moved))
        return sum_of_state(side, before, self.places - first)
