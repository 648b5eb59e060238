"""The highest share of a class, which a partial metric uses, as weights by rank.

An item takes an interval of ranks. Its weight is the mean, over this interval, of a function that
falls from 1 to 0 at the share. A step gives the exact set, with a fraction of the item at its edge;
a sigmoid gives a soft set. An item of weight 2 therefore counts as two items, and tied items have
equal parts. An item of weight 0 has no part, and the slope in its weight is the function at its
rank.

The function of the ranks has no derivative in scores. If a loss rises with the score of an item,
the set has the highest loss among sets of its size. A change of the set then does not change the
loss to first order. The function has no derivative in the weights of items either, although a
change of these does change the set and the loss.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxmetrics._base.cumulative import cumulated, running_highest, running_lowest
from jaxmetrics._base.numerics import divide, rates
from jaxmetrics._base.parts import AxisName, largest_over, sum_over
from jaxmetrics._base.types import Array

# Tolerance of a share, in spacings of floats: sums of weights reach it only up to rounding.
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
      total: the weight of the whole class, if its lower items are not in `weights`.
    """
    return set_of_shares(*shares_above(places, weights, total), weights, share, band)


def set_of_shares(above: Array, upto: Array, weights: Array, share: Array, band: Array) -> Array:
    """`top_set` from the share of the class above each item's tie, and the same with the tie."""
    some, safe = _width(share, band)
    high, low = (share - above) / safe, (share - upto) / safe
    step = jnp.minimum((upto - above) / safe, 20)
    # softplus(high) - softplus(low), without cancellation where the two are close.
    close = jnp.log1p(jax.nn.sigmoid(low) * jnp.expm1(step))
    far = jax.nn.softplus(high) - jax.nn.softplus(low)
    soft = safe * jnp.where(step < 20, close, far)
    exact = jnp.clip(share - above, 0, upto - above)
    within = (above < share) | (share >= 1)  # the whole class has its lowest item, too
    at_once = jnp.where(some, jax.nn.sigmoid(high), within.astype(weights.dtype))
    return weights * divide(jnp.where(some, soft, exact), upto - above, at_once)


def edge_of_shares(
    above: Array,
    upto: Array,
    weights: Array,
    share: Array,
    band: Array,
    axis_name: AxisName = None,
) -> Array:
    """Weights `[n]` of the items at the edge of the highest `share`, which add up to 1.

    With band 0 all weight is at the first item that is not wholly in the exact set, or at the
    lowest item if all are wholly in it. The shares are those that `set_of_shares` takes.
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
    """The share with a tolerance: a sum of weights above it exceeds the share despite rounding."""
    return share * (1 + _SLACK * jnp.finfo(dtype).eps)


def _width(share: Array, band: Array) -> tuple[Array, Array]:
    """Whether the edge is soft, and its width, or 1 in place of a width of 0."""
    # At share 1 the set is the whole class, and the width is 0. A width below the rounding error of
    # shares counts as 0: slopes are divided by its square, which may be 0.
    width = band * share * (1 - share)
    some = width > jnp.finfo(width.dtype).eps * share
    return some, jnp.where(some, width, 1)


def shares_above(places: Array, weights: Array, total: Array | None) -> tuple[Array, Array]:
    """Share of the class above each tie, and the same including the tie; arguments as `top_set`."""
    places, weights = lax.stop_gradient((places, weights))
    upto = cumulated(weights, reverse=True)
    total = upto[0] if total is None else total
    above = jnp.append(upto[1:], 0)
    differs = places[1:] != places[:-1]
    first, last = jnp.append(True, differs), jnp.append(differs, True)
    upto = running_lowest(jnp.where(first, upto, jnp.inf))
    above = running_highest(jnp.where(last, above, 0), reverse=True)
    above, upto = (rates(x, jnp.where(total > 0, total, 1)) for x in (above, upto))
    return above, jnp.maximum(upto, above)
