"""The input of a loss: checks, and rows of items."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxmetrics._base import checks, numerics, sorting
from jaxmetrics._base.double import double_program
from jaxmetrics._base.items import not_allowed
from jaxmetrics._base.parts import AxisName, largest_over, smallest_over, sum_over
from jaxmetrics._base.types import Array, ArrayLike, Items


class Row(NamedTuple):
    """One row of items; `[n]` each. An item that does not count has score 0 and weights 0.

    Attributes:
      scores: less the one next to 0 if all are on one side of it, which keeps their digits; NaN if
        one of them is infinite.
      positives: weights of the positives, 0 for negatives.
      negatives: weights of the negatives, 0 for positives.
      is_positive, is_negative: bool, also of items whose weight is 0, in which a loss has a slope.
    """

    scores: Array
    positives: Array
    negatives: Array
    is_positive: Array
    is_negative: Array

    @property
    def weights(self) -> Array:
        """Weights of all items."""
        return self.positives + self.negatives


def checked_items(
    scores: ArrayLike,
    labels: ArrayLike,
    weights: ArrayLike | None,
    where: ArrayLike | None,
    along: dict[str, ArrayLike | None] | None = None,
) -> Items:
    """`check_items` for a loss, whose weights are rounded to JAX's default float."""
    dtype = numerics.default_float()
    items = checks.check_items(scores, labels, weights, where, along=along, dtype=dtype)
    return items._replace(scores=checks.unwrapped(items.scores))


def refused(items: Items, numbers: dict[str, Any], axis_name: AxisName = None) -> Array:
    """`[...]`, whether a valid score is NaN, or an eager call would refuse a traced input."""
    nan = numerics.is_nan(items.scores)
    undefined = jnp.any(nan if items.where is None else nan & items.where, axis=-1)
    for number in numbers.values():
        undefined |= jnp.isnan(number)
    undefined |= not_allowed(items, axis_name)
    found: Array = sum_over(undefined.astype(jnp.float32), axis_name) > 0
    return found


def rows_of_items(items: Items, undefined: Array, axis_name: AxisName = None) -> Row:
    """All rows of checked items, `[..., n]` each. In an undefined row no item counts.

    With an axis, the items are the part of a device, and are shifted and scaled as all are.
    """
    dtype = jnp.promote_types(items.scores.dtype, jnp.float32)
    valid = ~jnp.expand_dims(undefined, -1)
    valid = valid if items.where is None else valid & items.where
    weight = jnp.ones(1, dtype) if items.weights is None else items.weights
    weight = weight.astype(jnp.promote_types(weight.dtype, dtype))
    valid, positive, weight, scores = jnp.broadcast_arrays(
        valid, items.labels == 1, weight, items.scores
    )
    weight = jnp.where(valid, weight, 0)
    highest = largest_over(jnp.max(weight, axis=-1, keepdims=True), axis_name)
    weight = (weight * (1 / numerics.power_near(highest))).astype(dtype)  # products are finite
    scores = jnp.where(valid, scores, 0).astype(dtype)
    finite = jnp.isfinite(jnp.stack(lowest_and_highest(scores, valid, axis_name))).all(axis=0)
    # Differences do not depend on the shift, so neither does the gradient.
    lowest, highest = lowest_and_highest(scores, valid & (weight > 0), axis_name)
    some = lowest <= highest
    lowest, highest = (jnp.where(some, x, 0)[..., None] for x in (lowest, highest))
    shift = jnp.where(finite[..., None], jnp.clip(0, lowest, highest), jnp.nan)
    # An item without weight would add 0 times the square of its distance, were this infinite.
    furthest = numerics.largest_weight(dtype) ** 0.5
    near = jnp.clip(scores, lowest - furthest, highest + furthest)
    scores = jnp.where(weight > 0, scores, near)
    is_positive, is_negative = valid & positive, valid & ~positive
    return Row(
        jnp.where(valid, scores - shift, 0),
        jnp.where(is_positive, weight, 0),
        jnp.where(is_negative, weight, 0),
        is_positive,
        is_negative,
    )


def infinite(row: Row, axis_name: AxisName = None) -> Array:
    """`[...]`, whether a score that is not masked is infinite, on any device if there is an axis.

    The shift makes all scores of such a row NaN, also beside an item of weight 0.
    """
    count = jnp.sum(~jnp.isfinite(row.scores), axis=-1).astype(row.scores.dtype)
    found: Array = sum_over(count, axis_name) > 0
    return found


def nan_if_infinite(row: Row) -> Array:
    """`[...]`, a factor of a loss, and so of its slopes: 1, or NaN where a score is infinite."""
    factor: Array = jnp.where(infinite(row), jnp.nan, 1)
    return factor


def lowest_and_highest(
    scores: Array, which: Array, axis_name: AxisName = None
) -> tuple[Array, Array]:
    """`[...]`, the lowest and the highest of some scores, of all devices if there is an axis.

    They are constants to derivatives. Of none, the lowest is infinite, and the highest -infinite.
    """
    fixed = lax.stop_gradient(scores)
    lowest = jnp.min(fixed, axis=-1, initial=jnp.inf, where=which)
    highest = jnp.max(fixed, axis=-1, initial=-jnp.inf, where=which)
    return smallest_over(lowest, axis_name), largest_over(highest, axis_name)


def ascending(row: Row) -> Row:
    """The row in ascending order of score. Among tied items positives come last."""
    order = order_of(row)
    return Row(*(permuted(x, order) for x in row))


def order_of(row: Row, index: Array | None = None, some: Array | None = None) -> Array:
    """The indices of the items in the order of `ascending`.

    With `index`, of these alone, where `some`; `[n]` in place of the others.
    """
    scores, later = lax.stop_gradient(row.scores), row.is_positive
    order: Array
    if index is None or some is None:
        order = _order_by_score(scores, later, jnp.arange(len(scores), dtype=jnp.uint32))
        return order
    scores, later = (x.at[index].get(mode="promise_in_bounds") for x in (scores, later))
    payload = jnp.where(some, index, len(row.scores)).astype(jnp.uint32)
    order = _order_by_score(scores, later, payload)
    return order


@double_program()
def _order_by_score(scores: Array, later: Array, index: Array) -> Array:
    index = index | (later.astype(jnp.uint32) << 31)
    order: Array = sorting.sort_by_key_and_payload(~sorting.descending_keys(scores), index)[1]
    return order & (2**31 - 1)


def row_at(row: Row, order: Array) -> Row:
    """The items of the row at the indices of `order_of` some items; unused places have no weight.

    An unused place is sorted as the last item of the row, and so has its score.
    """
    scores, *others = row
    kept = (x.at[order].get(mode="fill", fill_value=0) for x in others)
    return Row(scores.at[order].get(mode="clip"), *kept)


def permuted(values: Array, order: Array) -> Array:
    """`values[order]`, for a permutation."""
    taken: Array = values.at[order].get(mode="promise_in_bounds", unique_indices=True)
    return taken


class OfNegatives(NamedTuple):
    """Of the scores of the negatives, in a unit in which their squares are neither 0 nor infinite.

    Attributes:
      unit: a power of two near their range; a constant to derivatives.
      scores: `[n]`, of all items.
      shares: `[n]`, of each negative in their weight.
      away: `[n]`, of each negative, its score less their mean.
      std: the standard deviation; 1 where it is 0, as it is a divisor.
      varies: whether it is not 0.
    """

    unit: Array
    scores: Array
    shares: Array
    away: Array
    std: Array
    varies: Array


def of_negatives(row: Row, axis_name: AxisName = None) -> OfNegatives:
    """The mean and the deviation of the negatives, of all devices if there is an axis."""
    shares = numerics.divide(row.negatives, sum_over(jnp.sum(row.negatives), axis_name), 0.0)
    lowest, highest = lowest_and_highest(row.scores, row.negatives > 0, axis_name)
    unit = numerics.power_near(highest / 2 - lowest / 2)
    furthest = numerics.largest_weight(row.scores.dtype) ** 0.5  # of items whose unit it is not
    scores = jnp.clip(row.scores / unit, -furthest, furthest)
    mean = sum_over(jnp.sum(shares * scores), axis_name)
    # The mean of tied scores may be rounded, and their deviation then is the rounding of 0.
    tied = highest == lowest
    centre = jnp.where(tied, highest / unit + (mean - lax.stop_gradient(mean)), mean)
    away = jnp.where(row.is_negative, scores - centre, 0)
    variance = sum_over(jnp.sum(shares * away**2), axis_name)
    varies = ~tied & (variance > 0)
    std = jnp.sqrt(jnp.where(varies, variance, 1))
    return OfNegatives(unit, scores, shares, away, std, varies)


def weight_of_positives(row: Row, axis_name: AxisName = None) -> Array:
    """Of all devices if there is an axis; 0 where a class is absent."""
    positives, negatives = (sum_over(jnp.sum(x), axis_name) for x in (row.positives, row.negatives))
    return jnp.where(negatives > 0, positives, 0)
