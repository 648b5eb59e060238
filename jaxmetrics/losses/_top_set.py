"""The highest share of a class, which a partial metric uses, as weights by rank.

An item takes an interval of ranks. Its weight is the mean, over this interval, of a function that
falls from 1 to 0 at the share. A step gives the exact set, with a fraction of the item at its edge;
a sigmoid gives a soft set. An item of weight 2 therefore counts as two items, and tied items have
equal parts. One without weight has none, and the slope in its weight is the function at its rank.

Weights depend on ranks alone and have no derivative. If a loss rises with the score of an item, the
set is the one with the highest loss among sets of its size. A change of the set then does not
change the loss to first order. Nor have they one in the weights of items, which do change it.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxmetrics._base.cumulative import running_highest, running_lowest
from jaxmetrics._base.numerics import divide, rates
from jaxmetrics._base.parts import AxisName, largest_over, sum_over
from jaxmetrics._base.types import Array

# Spacings of floats within which a share is reached: sums of weights reach it only up to rounding.
_SLACK = 16


def top_set(
    places: Array, weights: Array, share: Array, band: Array, total: Array | None = None
) -> Array:
    """Weights `[n]` of the items in the highest `share` of a class.

    Args:
      places: `[n]` ascending.
      weights: `[n]` of items of the class, 0 for others.
      share: of the class, in (0, 1].
      band: the scale of the sigmoid, divided by share (1 - share); 0 for the exact set.
      total: the weight of the class, if lower items are not among these.
    """
    return set_of_shares(*shares_above(places, weights, total), weights, share, band)


def set_of_shares(above: Array, upto: Array, weights: Array, share: Array, band: Array) -> Array:
    """`top_set` of items with these shares of the class above the tie of each, and upto it."""
    some, safe = _width(share, band)
    high, low = (share - above) / safe, (share - upto) / safe
    step = jnp.minimum((upto - above) / safe, 20)
    # softplus(high) - softplus(low), without cancellation where the two are close.
    close = jnp.log1p(jax.nn.sigmoid(low) * jnp.expm1(step))
    far = jax.nn.softplus(high) - jax.nn.softplus(low)
    soft = safe * jnp.where(step < 20, close, far)
    exact = jnp.clip(share - above, 0, upto - above)
    within = (above < share) | (share >= 1)  # of the whole class the lowest item, too
    at_once = jnp.where(some, jax.nn.sigmoid(high), within.astype(weights.dtype))
    return weights * divide(jnp.where(some, soft, exact), upto - above, at_once)


def edge_set(places: Array, weights: Array, share: Array, band: Array) -> Array:
    """`edge_of_shares` of items with these places `[n]` ascending."""
    return edge_of_shares(*shares_above(places, weights, None), weights, share, band)


def edge_of_shares(
    above: Array,
    upto: Array,
    weights: Array,
    share: Array,
    band: Array,
    axis_name: AxisName = None,
) -> Array:
    """Weights `[n]` of the items at the edge of the highest `share`, which add up to 1.

    With band 0 all weight is at the first item that is not wholly in the exact set, and at the
    lowest one where all are. Shares are as of `set_of_shares`.
    """
    some, safe = _width(share, band)
    high, low = (share - above) / safe, (share - upto) / safe
    soft = jax.nn.sigmoid(high) * jax.nn.sigmoid(-low) * -jnp.expm1((above - upto) / safe)
    end = reached(share, weights.dtype)
    lowest = upto == largest_over(jnp.max(upto), axis_name)
    exact = ((above <= end) & ((end < upto) | lowest)).astype(weights.dtype)
    at_once = jnp.where(some, jax.nn.sigmoid(high) * jax.nn.sigmoid(-high) / safe, 0)
    edge = weights * divide(jnp.where(some, soft, exact), upto - above, at_once)
    return divide(edge, sum_over(jnp.sum(edge), axis_name), 0.0)


def reached(share: Array, dtype: Any) -> Array:
    """A share that sums of weights exceed if they are beyond the share, whatever their rounding."""
    end: Array = share * (1 + _SLACK * jnp.finfo(dtype).eps)
    return end


def _width(share: Array, band: Array) -> tuple[Array, Array]:
    """Whether the edge is soft, and its width, or 1 in place of a width of 0."""
    # At share 1 the set is the whole class, and the width is 0. One below the rounding of shares is
    # none, as its square, by which slopes are divided, may be 0.
    width = band * share * (1 - share)
    some = width > jnp.finfo(width.dtype).eps * share
    return some, jnp.where(some, width, 1)


def shares_above(places: Array, weights: Array, total: Array | None) -> tuple[Array, Array]:
    """Share of the class above each tie, and the same including the tie; as of `top_set`."""
    places, weights = lax.stop_gradient((places, weights))
    upto = lax.cumsum(weights, reverse=True)
    total = upto[0] if total is None else total
    above = jnp.append(upto[1:], 0)
    differs = places[1:] != places[:-1]
    first, last = jnp.append(True, differs), jnp.append(differs, True)
    upto = running_lowest(jnp.where(first, upto, jnp.inf))
    above = jnp.flip(running_highest(jnp.flip(jnp.where(last, above, 0))))
    above, upto = (rates(x, jnp.where(total > 0, total, 1)) for x in (above, upto))
    return above, jnp.maximum(upto, above)
