"""What the mini-batch losses share: a state with one number for each positive.

A batch may be too small to hold the top negatives. Each positive therefore has a slot, whose number
summarises the negatives of all batches so far. Each batch that holds the positive updates it.
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
from jaxmetrics._base.double import nan_as_value
from jaxmetrics._base.host import to_program
from jaxmetrics._base.items import at_least_one, one_id_at_least
from jaxmetrics._base.quoting import restoring
from jaxmetrics._base.types import Array, ArrayLike, Items
from jaxmetrics.losses._rows import Row, checked_items, nan_if_infinite, refused, rows_of_items
from jaxmetrics.losses._surrogates import kernel_of, placed, within_reach

EMPTY = -np.inf  # a slot that no batch has visited


class Pairs(NamedTuple):
    """The pairs of a batch, with a row for each positive and a column for each negative.

    Attributes:
      losses: `[n, n]`, the surrogate loss of each pair. Rows of negatives and columns of positives
        have no meaning; their weights are 0.
      positives: `[n]`, weights of the positives, scaled to add up to 1; 0 for negatives, and all 0
        without positives.
      negatives: `[n]`, the same for the negatives.
      row: the items.
    """

    losses: Array
    positives: Array
    negatives: Array
    row: Row


# step(pairs, number in the slot of each item, **options) -> (loss of each item, new numbers).
Step = Callable[..., tuple[Array, Array]]


def empty_slots(n_slots: int) -> Array:
    """`[n_slots]` slots that no batch has visited."""
    checks.check_count("n_slots", n_slots)
    checks.check_fits("n_slots", n_slots, n_slots // 2, "count the slots from 0")
    with nan_as_value():
        return jnp.full(n_slots, EMPTY, numerics.default_float())


def check_state(state: Any, kind: Any, module: str) -> None:
    """Refuse all but a state of this loss, with one slot for each item."""
    if not isinstance(state, kind):
        of = type(state)
        given = of.__name__ if of.__name__ != "State" else f"{of.__module__.split('.')[-1]}.State"
        hint = restoring(state, kind._fields, f"{module}.State") or f"{module}.init(n_slots)"
        raise TypeError(f"state must be a {module}.State, got {given}: write {hint}")
    (name,), (slots,) = kind._fields, state
    dtype, shape = getattr(slots, "dtype", type(slots).__name__), np.shape(slots)
    # A cast rounds a number by more than a batch moves it.
    if dtype not in (np.float32, np.float64):
        raise TypeError(
            f"{name} of the state must be float32, got {dtype}: leave states out of casts of "
            "precision"
        )
    if len(shape) != 1:
        raise ValueError(
            f"{name} of the state must be [n_slots], got {list(shape)}: for several states vmap "
            "the call"
        )


def apply_step(
    step: Step,
    numbers: dict[str, Any],
    slots: Array,
    batch: tuple[ArrayLike, ...],
    surrogate: str,
    of_pairs: dict[str, Any],
) -> tuple[Array, Array]:
    """The loss of a batch, and the slots after it.

    `numbers` are the options of the step, `of_pairs` those of the surrogate.
    """
    of_pairs, numbers = (checks.check_loss_options(x) for x in (of_pairs, numbers))
    scores, labels, index, weights, where = batch
    items = checked_items(scores, labels, weights, where, {"index": index})
    places = one_id_at_least(checks.check_slots(index, items, len(slots)))
    return _apply(
        step, surrogate, *to_program((at_least_one(items), of_pairs, numbers, places)), slots
    )


@functools.partial(jax.jit, static_argnames=("step", "surrogate"))
def _apply(
    step: Step,
    surrogate: str,
    items: Items,
    of_pairs: dict[str, Any],
    numbers: dict[str, Any],
    index: Array,
    slots: Array,
) -> tuple[Array, Array]:
    there = (index >= 0) & (index < len(slots))
    homeless = ~there & (items.labels == 1)
    homeless = homeless if items.where is None else homeless & items.where
    undefined = refused(items, of_pairs | numbers) | jnp.any(homeless)
    row = rows_of_items(items, undefined)
    dtype = row.scores.dtype
    of_pairs, numbers = jax.tree.map(lambda x: jnp.asarray(x, dtype), (of_pairs, numbers))
    places = within_reach(placed(row, surrogate, **of_pairs), surrogate).scores
    losses = kernel_of(surrogate, dtype).at(places - places[:, None])
    positives, negatives = (
        numerics.divide(x, jnp.sum(x), 0.0) for x in (row.positives, row.negatives)
    )
    pairs = Pairs(losses, positives, negatives, row)
    index = jnp.where(there, index, len(slots))  # a negative one would count from the end
    held = slots.at[index].get(mode="fill", fill_value=EMPTY).astype(dtype)
    values, now = step(pairs, held, **numbers)
    some = jnp.any(row.negatives > 0)
    loss = jnp.sum(jnp.where(row.is_positive & some, pairs.positives * values, 0))
    loss = jnp.where(undefined, jnp.nan, loss * nan_if_infinite(row))
    # A loss that is not finite updates no slot: a slot could not return from an infinite number.
    visited = (row.positives > 0) & some & jnp.isfinite(loss)
    target = jnp.where(visited, index, len(slots))  # out of range, so dropped
    now = lax.stop_gradient(now).astype(slots.dtype)
    return loss, slots.at[target].set(now, mode="drop")
