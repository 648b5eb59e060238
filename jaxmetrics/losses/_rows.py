"""The inputs of a loss, checked, and its evaluation row by row of a batch."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxmetrics import _checks, _numerics, _sorting
from jaxmetrics._table import at_least_one
from jaxmetrics._types import Array, ArrayLike


class Row(NamedTuple):
    """One row of items; `[n]` each. An item that does not count has score 0 and weights 0.

    Attributes:
      scores: about 0, which keeps their digits where they are all far from it.
      positives: weights of the positives, 0 for negatives.
      negatives: weights of the negatives, 0 for positives.
    """

    scores: Array
    positives: Array
    negatives: Array

    @property
    def weights(self) -> Array:
        """Of all items."""
        return self.positives + self.negatives


def evaluate(
    loss: Callable[..., Array],
    constants: tuple[Any, ...],
    numbers: dict[str, Any],
    scores: ArrayLike,
    labels: ArrayLike,
    weights: ArrayLike | None,
    where: ArrayLike | None,
) -> Array:
    """`loss(row, *constants, **numbers)` of each row of a batch, one compiled program."""
    items = _checks.check_items(scores, labels, weights, where)
    checked = _checks.check_loss_options(numbers)
    with _numerics.ordinary_promotion():
        value: Array = _of_rows(loss, constants, tuple(at_least_one(items)[:4]), checked)
    return value


@functools.partial(jax.jit, static_argnums=(0, 1))
def _of_rows(
    loss: Callable[..., Array],
    constants: tuple[Any, ...],
    arrays: tuple[Any, ...],
    numbers: dict[str, Any],
) -> Array:
    parts = rows(*arrays)
    dtype = parts.scores.dtype
    numbers = {name: jnp.asarray(x, dtype) for name, x in numbers.items()}

    def of_one(*parts: Array) -> Array:
        return loss(Row(*parts), *constants, **numbers)

    for _ in parts.scores.shape[:-1]:
        of_one = jax.vmap(of_one)
    value: Array = of_one(*parts)
    refused = functools.reduce(operator.or_, map(jnp.isnan, numbers.values()), False)
    return jnp.where(refused, jnp.nan, value)


def rows(scores: Array, labels: Array, weights: Array | None, where: Array | None) -> Row:
    """All rows of checked items, `[..., n]` each."""
    scores, labels = jnp.asarray(scores), jnp.asarray(labels)
    dtype = jnp.promote_types(scores.dtype, jnp.float32)
    valid = jnp.ones(1, bool) if where is None else jnp.asarray(where)
    weight = jnp.ones(1, dtype) if weights is None else jnp.asarray(weights).astype(dtype)
    valid, positive, weight, scores = jnp.broadcast_arrays(valid, labels != 0, weight, scores)
    scores = jnp.where(valid, scores, 0).astype(dtype)
    # Differences do not depend on where 0 is, so nor does the gradient.
    count = jnp.maximum(jnp.sum(valid, -1, keepdims=True), 1).astype(dtype)
    middle = lax.stop_gradient(jnp.sum(scores / count, -1, keepdims=True))
    return Row(
        jnp.where(valid, scores - middle, 0),
        jnp.where(valid & positive, weight, 0),
        jnp.where(valid & ~positive, weight, 0),
    )


def ascending(places: Array, later: Array) -> Array:
    """The order of `[n]` places; of those that are equal, items that are `later` come last."""
    order: Array = _order(lax.stop_gradient(places), later)
    return order


@_numerics.double_program()
def _order(places: Array, later: Array) -> Array:
    index = jnp.arange(len(places), dtype=jnp.uint32) | (later.astype(jnp.uint32) << 31)
    order: Array = _sorting.sort_by_key_and_payload(~_sorting.descending_keys(places), index)[1]
    return order & (2**31 - 1)


def take(values: Array, order: Array) -> Array:
    """`values[order]`, of an order that has each item once."""
    taken: Array = values.at[order].get(mode="promise_in_bounds", unique_indices=True)
    return taken


def spread(scores: Array, weights: Array) -> Array:
    """The standard deviation; 1 where there is none, so that it can be divided by."""
    total = jnp.sum(weights)
    shares = weights / jnp.where(total > 0, total, 1)
    variance = jnp.sum(shares * (scores - jnp.sum(shares * scores)) ** 2)
    some = variance > 0
    return jnp.where(some, jnp.sqrt(jnp.where(some, variance, 1)), 1)
