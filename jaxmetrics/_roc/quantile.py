"""Quantiles of a sorted weighted sample, by any of NumPy's 13 methods."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp

from jaxmetrics._base.numerics import running_sum
from jaxmetrics._base.types import Array

# The position, from 0, of the quantile q among n ordered values; a fractional position is between
# two of them. Hyndman and Fan's types 1 to 9 in their order, then NumPy's own four.
_POSITIONS: dict[str, Callable[[Array, Array], Array]] = {
    "inverted_cdf": lambda n, q: jnp.ceil(_product(n, q) - 1),
    "averaged_inverted_cdf": lambda n, q: _halfway_if_whole(_product(n, q) - 1),
    "closest_observation": lambda n, q: _nearest_odd_below(_product(n, q) - 1.5),
    "interpolated_inverted_cdf": lambda n, q: _plotting(n, q, 0, 1),
    "hazen": lambda n, q: _plotting(n, q, 0.5, 0.5),
    "weibull": lambda n, q: _plotting(n, q, 0, 0),
    "linear": lambda n, q: _product(n - 1, q),
    "median_unbiased": lambda n, q: _plotting(n, q, 1 / 3, 1 / 3),
    "normal_unbiased": lambda n, q: _plotting(n, q, 3 / 8, 3 / 8),
    "lower": lambda n, q: jnp.floor(_product(n - 1, q)),
    "higher": lambda n, q: jnp.ceil(_product(n - 1, q)),
    "midpoint": lambda n, q: _halfway(_product(n - 1, q)),
    "nearest": lambda n, q: jnp.round(_product(n - 1, q)),
}


def _plotting(n: Array, q: Array, alpha: float, beta: float) -> Array:
    return _product(n, q) + (alpha + _product(q, 1 - alpha - beta)) - 1


def _product(a: Array, b: Array | float) -> Array:
    """`a * b` of numbers that are not negative, rounded as NumPy rounds it.

    A compiler may fuse a product with the sum that follows and round once. A quantile that equals a
    score could then be just beside it. The `where` between product and sum prevents that.
    """
    product = a * b
    return jnp.where(product >= 0, product, jnp.nan)


def _halfway(position: Array) -> Array:
    return (jnp.floor(position) + jnp.ceil(position)) / 2


def _halfway_if_whole(position: Array) -> Array:
    whole = jnp.floor(position)
    return whole + jnp.where(position == whole, 0.5, 1.0)


def _nearest_odd_below(position: Array) -> Array:
    whole = jnp.floor(position)
    return jnp.where((position == whole) & (whole % 2 == 1), whole, whole + 1)


def weighted_quantile(values: Array, weights: Array, q: Array, method: str) -> Array:
    """The quantiles `q` of descending `values` `[rows]`; a weight is a number of copies.

    Agrees with `numpy.quantile` of the copies, except that a quantile between two equal infinities
    is that infinity, not NaN. NaN where the weights sum to 0.
    """
    copies = running_sum(weights)
    total = copies[-1]
    position = jnp.clip(_POSITIONS[method](total, q), 0, total - 1)
    below = jnp.floor(position)

    def at(position: Array) -> Array:
        # Values descend, so position p from the bottom is total - 1 - p from the top.
        from_top = jnp.clip(total - 1 - position, 0, None)
        return values[jnp.searchsorted(copies, from_top, side="right")]

    low, high, fraction = at(below), at(jnp.minimum(below + 1, total - 1)), position - below
    gap = high - low
    # Starts from the nearer end: the interpolation is monotone, and exact at both ends.
    between = jnp.where(
        fraction < 0.5, low + _product(gap, fraction), high - _product(gap, 1 - fraction)
    )
    return jnp.where(total > 0, jnp.where(low == high, low, between), jnp.nan)
