"""What the mini-batch losses share: a number that each positive remembers from batch to batch.

A batch may be too small to hold the negatives that a partial AUC is about, of which each positive
then has a number in a slot of its own: whatever it takes to know from this batch what all negatives
would tell.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics import _checks, _numerics
from jaxmetrics._types import Array, ArrayLike
from jaxmetrics.losses._areas import kernel_of, places_of, surrogate_numbers
from jaxmetrics.losses._rows import Row, rows

EMPTY = -np.inf  # of a slot that was never visited


class Pairs(NamedTuple):
    """The pairs of a batch; rows are items as positives, columns as negatives.

    Attributes:
      losses: `[n, n]`.
      positives: `[n]`, shares of the positives, which add up to 1; 0 where there are none.
      negatives: `[n]`, likewise of the negatives.
      row: the items.
    """

    losses: Array
    positives: Array
    negatives: Array
    row: Row


# (pairs, what the slots of the items hold, numbers) -> (loss of each item, what they hold now).
Step = Callable[..., tuple[Array, Array]]


def empty_slots(n_slots: int) -> Array:
    """`[n_slots]`, none of which was visited."""
    _checks.check_count("n_slots", n_slots)
    return jnp.full(n_slots, EMPTY, _numerics.default_float())


def mean_of_slots(values: Array, slots: Array) -> Array:
    """The mean of `values` over the slots that were visited; NaN if none was."""
    visited = slots > EMPTY
    return jnp.sum(jnp.where(visited, values, 0)) / jnp.sum(visited)


def apply_step(
    step: Step,
    numbers: dict[str, Any],
    slots: Array,
    scores: ArrayLike,
    labels: ArrayLike,
    index: ArrayLike,
    *,
    surrogate: str,
    margin: float | Array | None,
    temperature: float | Array | None,
    weights: ArrayLike | None,
    where: ArrayLike | None,
) -> tuple[Array, Array]:
    """The loss of a batch, whose gradient is for training, and the slots after it."""
    of_pairs = _checks.check_loss_options(surrogate_numbers(surrogate, margin, temperature))
    numbers = _checks.check_loss_options(numbers)
    items = _checks.check_items(scores, labels, weights, where)
    places = _checks.check_slots(index, items, len(slots))
    with _numerics.ordinary_promotion():
        result: tuple[Array, Array] = _apply(
            step, surrogate, tuple(items[:4]), of_pairs, numbers, places, slots
        )
    return result


@functools.partial(jax.jit, static_argnums=(0, 1))
def _apply(
    step: Step,
    surrogate: str,
    arrays: tuple[Any, ...],
    of_pairs: dict[str, Any],
    numbers: dict[str, Any],
    index: Array,
    slots: Array,
) -> tuple[Array, Array]:
    row = rows(*arrays)
    dtype = row.scores.dtype
    of_pairs, numbers = jax.tree.map(lambda x: jnp.asarray(x, dtype), (of_pairs, numbers))
    places = places_of(row, surrogate, **of_pairs)
    losses = kernel_of(surrogate, dtype).at(places - places[:, None])
    pairs = Pairs(losses, _shares(row.positives), _shares(row.negatives), row)
    index = jnp.asarray(index)
    held = slots.at[index].get(mode="fill", fill_value=EMPTY).astype(dtype)
    values, now = step(pairs, held, **numbers)
    some = (jnp.sum(row.positives) > 0) & (jnp.sum(row.negatives) > 0)
    loss = jnp.where(some, jnp.sum(jnp.where(row.positives > 0, pairs.positives * values, 0)), 0)
    kept = some & (row.positives > 0) & (index >= 0)
    target = jnp.where(kept, index, len(slots))  # which there is none of
    now = lax.stop_gradient(now).astype(slots.dtype)
    return loss, slots.at[target].set(now, mode="drop")


def _shares(weights: Array) -> Array:
    total = jnp.sum(weights)
    return weights / jnp.where(total > 0, total, 1)
