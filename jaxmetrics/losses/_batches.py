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

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.double import ordinary_promotion
from jaxmetrics._base.items import at_least_one, one_id_at_least
from jaxmetrics._base.types import Array, ArrayLike, Items
from jaxmetrics.losses._areas import kernel_of, placed
from jaxmetrics.losses._rows import Row, refused, rows_of_items

EMPTY = -np.inf  # of a slot that was never visited


class Batch(NamedTuple):
    """What the caller passes of a batch, `[n]` each, before it is checked."""

    scores: ArrayLike
    labels: ArrayLike
    index: ArrayLike
    weights: ArrayLike | None
    where: ArrayLike | None


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
    checks.check_count("n_slots", n_slots)
    return jnp.full(n_slots, EMPTY, numerics.default_float())


def apply_step(
    step: Step,
    numbers: dict[str, Any],
    slots: Array,
    batch: Batch,
    surrogate: str,
    of_pairs: dict[str, Any],
) -> tuple[Array, Array]:
    """The loss of a batch, whose gradient is for training, and the slots after it.

    `numbers` are of the step, `of_pairs` of the surrogate.
    """
    of_pairs, numbers = (checks.check_loss_options(x) for x in (of_pairs, numbers))
    items = checks.check_items(batch.scores, batch.labels, batch.weights, batch.where)
    places = one_id_at_least(checks.check_slots(batch.index, items, len(slots)))
    with ordinary_promotion():
        result: tuple[Array, Array] = _apply(
            step, surrogate, at_least_one(items), of_pairs, numbers, places, slots
        )
    return result


@functools.partial(jax.jit, static_argnums=(0, 1))
def _apply(
    step: Step,
    surrogate: str,
    items: Items,
    of_pairs: dict[str, Any],
    numbers: dict[str, Any],
    index: Array,
    slots: Array,
) -> tuple[Array, Array]:
    undefined = refused(items, of_pairs | numbers)
    row = rows_of_items(items, undefined)
    dtype = row.scores.dtype
    of_pairs, numbers = jax.tree.map(lambda x: jnp.asarray(x, dtype), (of_pairs, numbers))
    places = placed(row, surrogate, **of_pairs).scores
    losses = kernel_of(surrogate, dtype).at(places - places[:, None])
    positives, negatives = (
        numerics.divide(x, jnp.sum(x), 0.0) for x in (row.positives, row.negatives)
    )
    pairs = Pairs(losses, positives, negatives, row)
    held = slots.at[index].get(mode="fill", fill_value=EMPTY).astype(dtype)
    values, now = step(pairs, held, **numbers)
    counts = (row.positives > 0) & jnp.any(row.negatives > 0)
    loss = jnp.sum(jnp.where(counts, pairs.positives * values, 0))
    kept = counts & (index >= 0)
    target = jnp.where(kept, index, len(slots))  # which there is none of
    now = lax.stop_gradient(now).astype(slots.dtype)
    return jnp.where(undefined, jnp.nan, loss), slots.at[target].set(now, mode="drop")
