"""The binary cross-entropy, with which a model is trained before training for a metric."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxmetrics._base import numerics
from jaxmetrics._base.double import nan_as_value, ordinary_promotion
from jaxmetrics._base.host import to_program
from jaxmetrics._base.items import at_least_one
from jaxmetrics._base.types import Array, ArrayLike, Items
from jaxmetrics.losses._rows import checked_items, refused, rows_of_items


def cross_entropy(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The binary cross-entropy, where scores are log-odds.

    loss = sum_i w_i (log(1 + exp(s_i)) - y_i s_i) / sum_i w_i

    Args:
      scores: `[..., n]`, log-odds of the positive class.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative.
      where: `[..., n]` bool, False for items to leave out.

    Returns:
      `[...]`, in nats, in float32; in float64 for float64 scores in x64 mode. NaN if all items are
      left out or have weight 0.

    Raises:
      TypeError, ValueError: as the conventions list under Errors.

    The loss is NaN, and its gradient 0, where a valid score is NaN, or a traced label or weight is
    invalid. Time and memory O(n).

    Example:
      >>> import jax.numpy as jnp, jaxmetrics as jm
      >>> print(f"{jm.training.cross_entropy(jnp.array([0., 2.]), jnp.array([1, 1])):.3f}")
      0.410

    Reference: D. R. Cox, "The regression analysis of binary sequences", JRSS B 20, 1958.
    """
    items = at_least_one(checked_items(scores, labels, weights, where))
    with ordinary_promotion(), nan_as_value():
        value: Array = _of_items(to_program(items))
    return value


@jax.jit
def _of_items(items: Items) -> Array:
    undefined = refused(items, {})
    row = rows_of_items(items, undefined)  # its scores are shifted, those of `items` are not
    scores = items.scores.astype(row.scores.dtype)
    # An item of weight 0 counts, as the loss has a slope in its weight, unless its score is
    # infinite: 0 times an infinite loss is NaN.
    some = (row.is_positive | row.is_negative) & ((row.weights > 0) | jnp.isfinite(scores))
    scores = jnp.where(some, scores, 0)
    each = row.weights * jax.nn.softplus(jnp.where(row.is_positive, -scores, scores))
    value = numerics.divide(jnp.sum(each, axis=-1), jnp.sum(row.weights, axis=-1), jnp.nan)
    return jnp.where(undefined, jnp.nan, value)
