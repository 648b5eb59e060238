"""Checks of the inputs of a loss, and its evaluation for each row of a batch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxmetrics._base import checks, numerics, sorting
from jaxmetrics._base.double import double_program, ordinary_promotion
from jaxmetrics._base.items import at_least_one, not_allowed
from jaxmetrics._base.parts import AxisName, gathered
from jaxmetrics._base.types import Array, ArrayLike, Items


class Row(NamedTuple):
    """One row of items; `[n]` each. An item that does not count has score 0 and weights 0.

    Attributes:
      scores: shifted to be about 0, which keeps the digits of scores that are all far from 0.
      positives: weights of the positives, 0 for negatives.
      negatives: weights of the negatives, 0 for positives.
    """

    scores: Array
    positives: Array
    negatives: Array

    @property
    def weights(self) -> Array:
        """Weights of all items."""
        return self.positives + self.negatives


def loss_of_rows(
    loss: Callable[..., Array],
    constants: tuple[Any, ...],
    numbers: dict[str, Any],
    scores: ArrayLike,
    labels: ArrayLike,
    weights: ArrayLike | None,
    where: ArrayLike | None,
    axis_name: AxisName = None,
) -> Array:
    """`loss(row, *constants, **numbers)` of each row of a batch, in one compiled program.

    With an axis, items are the part of a device, and the loss is that of all, the same on each.
    """
    items = checked_items(scores, labels, weights, where)
    checked = checks.check_loss_options(numbers)
    axis_name = checks.check_axis_name(axis_name)
    if axis_name is not None:
        items = gathered(items, axis_name)
    with ordinary_promotion():
        value: Array = _loss_of_rows(loss, constants, at_least_one(items), checked)
    # Each device computes the loss of all items. Were it not their mean, the gradient would be
    # that of the sum of all these losses.
    return value if axis_name is None else lax.pmean(value, axis_name)


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


@functools.partial(jax.jit, static_argnames=("loss", "constants"))
def _loss_of_rows(
    loss: Callable[..., Array],
    constants: tuple[Any, ...],
    items: Items,
    numbers: dict[str, Any],
) -> Array:
    undefined = refused(items, numbers)
    batch = rows_of_items(items, undefined)
    dtype = batch.scores.dtype
    numbers = {name: jnp.asarray(x, dtype) for name, x in numbers.items()}

    def of_one(row: Row) -> Array:
        return loss(row, *constants, **numbers)

    value = numerics.over_batch(of_one, batch.scores.ndim - 1)(batch)
    return jnp.where(undefined, jnp.nan, value)


def refused(items: Items, numbers: dict[str, Any]) -> Array:
    """`[...]`, whether a valid score is NaN, or an eager call would refuse a traced input."""
    nan = numerics.is_nan(items.scores)
    undefined = jnp.any(nan if items.where is None else nan & items.where, axis=-1)
    for number in numbers.values():
        undefined |= jnp.isnan(number)
    found: Array = undefined | not_allowed(items)
    return found


def rows_of_items(items: Items, undefined: Array) -> Row:
    """All rows of checked items, `[..., n]` each. In an undefined row no item counts."""
    dtype = jnp.promote_types(items.scores.dtype, jnp.float32)
    valid = ~jnp.expand_dims(undefined, -1)
    valid = valid if items.where is None else valid & items.where
    weight = jnp.ones(1, dtype) if items.weights is None else items.weights
    weight = weight.astype(jnp.promote_types(weight.dtype, dtype))
    valid, positive, weight, scores = jnp.broadcast_arrays(
        valid, items.labels == 1, weight, items.scores
    )
    (weight,) = numerics.near_one(jnp.where(valid, weight, 0))  # products do not overflow
    weight = weight.astype(dtype)
    scores = jnp.where(valid, scores, 0).astype(dtype)
    # Differences do not depend on the shift, so neither does the gradient.
    count = jnp.maximum(jnp.sum(valid, -1, keepdims=True), 1).astype(dtype)
    middle = lax.stop_gradient(jnp.sum(scores / count, -1, keepdims=True))
    return Row(
        jnp.where(valid, scores - middle, 0),
        jnp.where(valid & positive, weight, 0),
        jnp.where(valid & ~positive, weight, 0),
    )


def ascending(row: Row) -> Row:
    """The row in ascending order of score. Among tied items positives come last."""
    order = order_of(row)
    return Row(*(permuted(x, order) for x in row))


def order_of(row: Row) -> Array:
    """The indices of the items in the order of `ascending`."""
    order: Array = _order_by_score(lax.stop_gradient(row.scores), row.positives > 0)
    return order


@double_program()
def _order_by_score(scores: Array, later: Array) -> Array:
    index = jnp.arange(len(scores), dtype=jnp.uint32) | (later.astype(jnp.uint32) << 31)
    order: Array = sorting.sort_by_key_and_payload(~sorting.descending_keys(scores), index)[1]
    return order & (2**31 - 1)


def permuted(values: Array, order: Array) -> Array:
    """`values[order]`, for a permutation."""
    taken: Array = values.at[order].get(mode="promise_in_bounds", unique_indices=True)
    return taken


def std_of_negatives(row: Row) -> Array:
    """The standard deviation of the negatives' scores; 1 where it is 0, as it is a divisor."""
    shares = numerics.divide(row.negatives, jnp.sum(row.negatives), 0.0)
    variance = jnp.sum(shares * (row.scores - jnp.sum(shares * row.scores)) ** 2)
    return jnp.sqrt(jnp.where(variance > 0, variance, 1))
