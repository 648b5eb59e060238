"""The input of a loss: checks, and rows of items."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
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
      scores: shifted to keep their digits: if all have one sign, the one nearest to 0 is subtracted
        from all. All are NaN if one is infinite.
      positives: weights of the positives, 0 for negatives.
      negatives: weights of the negatives, 0 for positives.
      is_positive, is_negative: bool, True also for items of weight 0: a loss has a slope in their
        weights.
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
    arrays = {"scores": items.scores, "weights": items.weights}
    return items._replace(**jax.tree.map(checks.unwrapped, arrays))


def refused(items: Items, numbers: dict[str, Any], axis_name: AxisName = None) -> Array:
    """`[...]`, whether a valid score is NaN, or an eager call would refuse a traced input."""
    nan = numerics.is_nan(items.scores)
    undefined = jnp.any(nan if items.where is None else nan & items.where, axis=-1)
    for number in numbers.values():
        undefined |= jnp.isnan(number)
    undefined |= not_allowed(items, axis_name)
    return sum_over(undefined.astype(jnp.float32), axis_name) > 0


def rows_of_items(items: Items, undefined: Array, axis_name: AxisName = None) -> Row:
    """All rows of checked items, `[..., n]` each. In an undefined row no item counts.

    With an axis, the items are this device's part; the shift and the scale are those of all items.
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
    is_positive, is_negative = valid & positive, valid & ~positive
    # An item of weight 0 is moved near the others: 0 times an infinite squared distance is NaN.
    # Where not all can be near, near those of whom it costs the most if it is far.
    furthest = numerics.largest_weight(dtype) ** 0.5
    low, high = highest - furthest, lowest + furthest
    of_positive = jnp.maximum(jnp.minimum(scores, high), low)
    near = jnp.where(positive, of_positive, jnp.minimum(jnp.maximum(scores, low), high))
    scores = jnp.where(weight > 0, scores, near)
    return Row(
        jnp.where(valid, scores - shift, 0),
        jnp.where(is_positive, weight, 0),
        jnp.where(is_negative, weight, 0),
        is_positive,
        is_negative,
    )


def infinite(row: Row, axis_name: AxisName = None) -> Array:
    """`[...]`, whether a score that is not masked is infinite, on any device if there is an axis.

    The shift makes all scores of such a row NaN, even if the infinite one has weight 0.
    """
    count = jnp.sum(~jnp.isfinite(row.scores), axis=-1).astype(row.scores.dtype)
    return sum_over(count, axis_name) > 0


def nan_if_infinite(row: Row) -> Array:
    """`[...]`, a factor of a loss, and so of its slopes: 1, or NaN where a score is infinite."""
    return jnp.where(infinite(row), jnp.nan, 1)


def lowest_and_highest(
    scores: Array, which: Array, axis_name: AxisName = None
) -> tuple[Array, Array]:
    """`[...]`, the lowest and the highest of some scores, of all devices if there is an axis.

    They are constants to derivatives. Of no scores, the lowest is inf, and the highest -inf.
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

    With `index`, only of the items at these indices, where `some`; other entries are n.
    """
    scores, later = lax.stop_gradient(row.scores), row.is_positive
    items = jnp.arange(len(scores), dtype=jnp.uint32)
    if index is not None and some is not None:
        scores, later = (sorting.entries_at(x, index) for x in (scores, later))
        items = jnp.where(some, index, len(row.scores)).astype(jnp.uint32)
    order: Array = _order_by_score(scores, later, items)
    return order


@double_program()
def _order_by_score(scores: Array, later: Array, index: Array) -> Array:
    index = index | (later.astype(jnp.uint32) << 31)
    order: Array = sorting.sort_by_key_and_payload(~sorting.descending_keys(scores), index)[1]
    return order & (2**31 - 1)


def row_at(row: Row, order: Array) -> Row:
    """The items of the row at these indices from `order_of`; unused places have no weight.

    An unused place, of index n, gets the score of the last item of the row, by which it was sorted.
    """
    scores, *others = row
    kept = (x.at[order].get(mode="fill", fill_value=0) for x in others)
    return Row(scores.at[order].get(mode="clip"), *kept)


def permuted(values: Array, order: Array) -> Array:
    """`values[order]`, for a permutation."""
    return values.at[order].get(mode="promise_in_bounds", unique_indices=True)


class OfNegatives(NamedTuple):
    """The spread of the negatives' scores, in a unit that makes squares neither 0 nor infinite.

    Attributes:
      unit: a power of two near half the range of the negatives; a constant to derivatives.
      scores: `[n]`, the scores of all items, from that nearest to 0 among the negatives.
      shares: `[n]`, the share of each negative in the weight of the negatives; 0 for other items.
      away: `[n]`, the score of each negative minus their mean; 0 for other items.
      std: the standard deviation of the negatives; 1 where it is 0, as it is a divisor.
      varies: whether the standard deviation is not 0.
    """

    unit: Array
    scores: Array
    shares: Array
    away: Array
    std: Array
    varies: Array


def of_negatives(row: Row, axis_name: AxisName = None) -> OfNegatives:
    """The spread of the negatives, of all devices if there is an axis."""
    shares = numerics.divide(row.negatives, sum_over(jnp.sum(row.negatives), axis_name), 0.0)
    lowest, highest = lowest_and_highest(row.scores, row.negatives > 0, axis_name)
    lowest, highest = (jnp.where(lowest <= highest, x, 0) for x in (lowest, highest))
    unit = numerics.power_near(highest / 2 - lowest / 2)
    nearest = jnp.clip(0, lowest, highest)  # from which scores keep their digits, as do the others
    low, high = ((x - nearest) / unit for x in (lowest, highest))
    furthest = numerics.largest_weight(row.scores.dtype) ** 0.5  # limits other items
    scores = jnp.clip((row.scores - nearest) / unit, low - furthest, high + furthest)
    mean = sum_over(jnp.sum(shares * scores), axis_name)
    # The rounded mean of tied scores may differ from them: their deviation would not be exactly 0.
    tied = highest == lowest
    centre = jnp.where(tied, high + (mean - lax.stop_gradient(mean)), mean)
    away = jnp.where(row.is_negative, scores - centre, 0)
    variance = sum_over(jnp.sum(shares * away**2), axis_name)
    varies = ~tied & (variance > 0)
    std = jnp.sqrt(jnp.where(varies, variance, 1))
    return OfNegatives(unit, scores, shares, away, std, varies)


def weight_of_positives(row: Row, axis_name: AxisName = None) -> Array:
    """The weight of all positives, on all devices if there is an axis; 0 if a class is absent."""
    positives, negatives = (sum_over(jnp.sum(x), axis_name) for x in (row.positives, row.negatives))
    return jnp.where(negatives > 0, positives, 0)
