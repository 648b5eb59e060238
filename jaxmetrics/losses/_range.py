"""A range of the places of items that the devices of a mesh hold in parts, for losses.

Each device receives the rows of one range, as for metrics. It sums over the pairs within its range.
Of the items of all other devices it needs a few sums alone, of powers and of exponentials of the
distance, which all devices have of each other. What it finds for a row goes back to the items the
way that their weights came.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base import numerics, sorting, varying
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
    """The loss of all items `[...]`, and its slopes in the scores of this part `[..., n]`.

    `of_row(row, **numbers)` has both for each row of a batch.
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
    """A loss and its slopes; NaN if a place of any device is infinite, but of masked items."""
    (value, slopes), some = found, infinite(items, axis_name)
    undefined = jnp.where(items.is_positive | items.is_negative, jnp.nan, 0)
    return jnp.where(some, jnp.nan, value), jnp.where(some, undefined, slopes)


def sum_of_devices(of_items: Array, axis_name: AxisName) -> Array:
    """The sum over all items, as a sum of copies: of the type that gathered items give a loss."""
    return jnp.sum(lax.all_gather(jnp.sum(of_items), axis_name))


class InRange(NamedTuple):
    """What a device receives of two weights of each item.

    Attributes:
      weights: two `[rows]`, the sums over the items of each row.
      back: from two arrays `[rows]` to two `[n]`, at each item of this device the entry of its row.
      range: the places of the rows.
    """

    weights: tuple[Array, Array]
    back: Callable[[tuple[Array, ...]], tuple[Array, Array]]
    range: Range


def in_range(items: Row, weights: tuple[Array, Array], axis_name: AxisName) -> InRange:
    """Two weights of the items, by the place of each, and the way back."""
    keys = sorting.descending_keys(-items.scores)
    keys = jnp.where(items.weights > 0, keys, ~np.zeros((), keys.dtype))

    def exchanged(*weights: Array) -> tuple[tuple[Array, Array], Array]:
        rows = rows_of_range(Rows(keys, *weights), axis_name)
        return (rows.positives, rows.negatives), rows.keys

    of_rows, back, keys_here = varying.vjp(exchanged, *weights, has_aux=True)
    places = -sorting.scores_of_keys(keys_here, items.scores).astype(items.scores.dtype)
    return InRange(of_rows, back, Range.of(places, keys_here, axis_name))


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
    def of(cls, places: Array, keys: Array, axis_name: AxisName) -> Range:
        """Entries that are no rows are last, and get the place of the row before them."""
        some = keys != ~np.zeros((), keys.dtype)
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

    def shares_above(self, weights: Array) -> tuple[Array, Array]:
        """The share of a class above each row, and the same including it."""
        upto = lax.cumsum(weights, reverse=True)
        of_each = lax.all_gather(upto[0], self.axis_name)
        after = total = jnp.zeros_like(upto[0])
        # One by one from the last: both sides of a border then have the same number.
        for others, follows in zip(of_each[::-1], self.after[::-1], strict=True):
            after = jnp.where(follows, others + after, after)
            total = others + total
        upto = upto + after
        above = jnp.append(upto[1:], after)
        above, upto = numerics.divide(above, total, 0.0), numerics.divide(upto, total, 0.0)
        return above, jnp.maximum(upto, above)

    def pair_sums(self, kernel: Kernel, weights: Array) -> Array:
        """At each row the sum of weight times f(place - place of the row) over all rows."""
        back = self.reversed()
        above = back._of_devices_before(kernel.above, jnp.flip(weights))
        below = self._of_devices_before(kernel.below, weights)
        return pair_sums(kernel, self.places, weights, None) + below + jnp.flip(above)

    def sums_from(self, kernel: Kernel, weights: Array) -> Array:
        """At each row the sum of weight times f(place of the row - place) over all rows."""
        return jnp.flip(self.reversed().pair_sums(kernel, jnp.flip(weights)))

    def _of_devices_before(self, side: Side, weights: Array) -> Array:
        first, last = self.places[0], self.places[-1]
        own = state_of(side, last - self.places, weights)
        state = State(*(lax.all_gather(x, self.axis_name, axis=1) for x in own))
        lasts = lax.all_gather(last, self.axis_name)
        moved = state.moved(jnp.where(self.before, first - lasts, 0)).where(self.before)
        before = State(*(jnp.sum(x, axis=1) for x in moved))
        return sum_of_state(side, before, self.places - first)
