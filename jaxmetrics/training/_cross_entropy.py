"""Cross-entropy, from which training for a metric goes on, of the items that losses take."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax

from jaxmetrics._base import numerics
from jaxmetrics._base.double import ordinary_promotion
from jaxmetrics._base.items import at_least_one
from jaxmetrics._base.types import Array, ArrayLike, Items
from jaxmetrics.losses._rows import checked_items, refused


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
    invalid; it is NaN for an infinite score of a positive, too. Time and memory O(n).

    Example:
      >>> import jax.numpy as jnp, jaxmetrics as jm
      >>> print(f"{jm.training.cross_entropy(jnp.array([0., 2.]), jnp.array([1, 1])):.3f}")
      0.410

    Reference: D. R. Cox, "The regression analysis of binary sequences", JRSS B 20, 1958.
    """
    items = at_least_one(checked_items(scores, labels, weights, where))
    with ordinary_promotion():
        value: Array = _of_items(items)
    return value


@jax.jit
def _of_items(items: Items) -> Array:
    undefined = refused(items, {})
    dtype = jnp.promote_types(items.scores.dtype, jnp.float32)
    counts = ~undefined[..., None] if items.where is None else items.where & ~undefined[..., None]
    weights = jnp.ones(1, dtype) if items.weights is None else items.weights
    weights = jnp.where(counts, weights.astype(jnp.promote_types(weights.dtype, dtype)), 0)
    highest = jnp.max(weights, axis=-1, keepdims=True)
    weights = (weights * (1 / numerics.power_near(highest))).astype(dtype)  # their sum is finite
    scores = jnp.where(weights > 0, items.scores, 0).astype(dtype)
    each = optax.sigmoid_binary_cross_entropy(scores, (items.labels == 1).astype(dtype))
    weights, each = jnp.broadcast_arrays(weights, each)
    value = numerics.divide(jnp.sum(weights * each, -1), jnp.sum(weights, -1), jnp.nan)
    return jnp.where(undefined, jnp.nan, value)
