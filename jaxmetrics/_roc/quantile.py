"""Quantiles of a weighted sample, by any of NumPy's 13 methods."""

from __future__ import annotations

from collections.abc import Callable

from jaxmetrics._base.cumulative import running_sum
from jaxmetrics._base.numerics import SLACK, namespace, product
from jaxmetrics._base.types import Array

# The position, from 0, of the quantile q among n ordered values; a fractional position is between
# two of them. Hyndman and Fan's types 1 to 9 in their order, then NumPy's own four.
_POSITIONS: dict[str, Callable[[Array, Array], Array]] = {
    "inverted_cdf": lambda n, q: _ceil(product(n, q) - 1),
    "averaged_inverted_cdf": lambda n, q: _halfway_if_whole(product(n, q) - 1),
    "closest_observation": lambda n, q: _nearest_odd_below(product(n, q) - 1.5),
    "interpolated_inverted_cdf": lambda n, q: _plotting(n, q, 0, 1),
    "hazen": lambda n, q: _plotting(n, q, 0.5, 0.5),
    "weibull": lambda n, q: _plotting(n, q, 0, 0),
    "linear": lambda n, q: product(n - 1, q),
    "median_unbiased": lambda n, q: _plotting(n, q, 1 / 3, 1 / 3),
    "normal_unbiased": lambda n, q: _plotting(n, q, 3 / 8, 3 / 8),
    "lower": lambda n, q: _floor(product(n - 1, q)),
    "higher": lambda n, q: _ceil(product(n - 1, q)),
    "midpoint": lambda n, q: _halfway(product(n - 1, q)),
    "nearest": lambda n, q: product(n - 1, q).round(),
}


def _floor(x: Array) -> Array:
    return namespace(x).floor(x)


def _ceil(x: Array) -> Array:
    return namespace(x).ceil(x)


def _plotting(n: Array, q: Array, alpha: float, beta: float) -> Array:
    return product(n, q) + (alpha + product(q, 1 - alpha - beta)) - 1


def _halfway(position: Array) -> Array:
    return (_floor(position) + _ceil(position)) / 2


def _halfway_if_whole(position: Array) -> Array:
    whole = _floor(position)
    half_or_one: Array = namespace(position).where(position == whole, 0.5, 1.0)
    return whole + half_or_one


def _nearest_odd_below(position: Array) -> Array:
    # An odd whole position as it is; for any other, the next whole number above it.
    whole = _floor(position)
    even = (position != whole) | (whole % 2 != 1)
    return whole + even


def quantile(total: Array, from_top: Callable[[Array], Array], q: Array, method: str) -> Array:
    """The quantiles `q` of `total` values; `from_top(place)` is one of them, place 0 the highest.

    Agrees with `numpy.quantile`, except that a value beside an infinity, and a quantile between two
    equal infinities, are not NaN. NaN between an infinity and another value, or if the total is 0.
    """
    library = namespace(total, q)
    copies = library.maximum(total, 1)  # all weights may add up to less than one copy
    last = copies - 1
    position = library.clip(_POSITIONS[method](copies, q), 0, last)
    below = _floor(position)
    reached = SLACK * total  # sums of weights reach a place only up to rounding
    places = below, library.minimum(below + 1, last)
    low, high = (from_top(last - place + reached) for place in places)
    gap, fraction = high - low, position - below
    # Starts from the nearer end: the interpolation is monotone, and exact at both ends.
    between: Array = library.where(
        fraction < 0.5, low + product(gap, fraction), high - product(gap, 1 - fraction)
    )
    between = library.where((low == high) | (fraction == 0), low, between)
    return library.where(total > 0, between, library.nan)


def weighted_quantile(values: Array, weights: Array, q: Array, method: str) -> Array:
    """The quantiles `q` of descending `values` `[rows]`; a weight is a number of copies."""
    library, copies = namespace(weights), running_sum(weights)
    last = len(weights) - 1 - library.argmax(weights[::-1] > 0)

    def from_top(place: Array) -> Array:
        places = library.searchsorted(copies, place, side="right")
        # The slack of the place may exceed the rest of the total: no weight is then beyond.
        return library.take(values, library.minimum(places, last), mode="clip")

    return quantile(copies[-1], from_top, q, method)
