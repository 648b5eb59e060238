"""Functions of a difference whose sums over all pairs are fast: powers and exponentials.

The sigmoid is such a sum, to rounding. With t = exp(-|x|) it is t / (1 + t), or 1 minus that. The
pole of t / (1 + t) is at -1, far from the interval [0, 1]. There a polynomial in t approximates it
with an error below 5.8^-degree. It comes from a Chebyshev polynomial, as in the acceleration of
alternating series. The derivatives and the integral of the sigmoid are such sums too.

Reference: H. Cohen, F. Rodriguez Villegas and D. Zagier, "Convergence acceleration of alternating
series", Experimental Mathematics 9, 2000.
"""

from __future__ import annotations

import functools
from math import comb
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.types import Array

Coefficients = tuple[float, ...]


class Side(NamedTuple):
    """g(y) = sum over d of powers[d] y^d + sum over k of exponentials[k - 1] exp(-k y)."""

    powers: Coefficients = ()
    exponentials: Coefficients = ()

    def derivative(self) -> Side:
        powers = tuple(d * x for d, x in enumerate(self.powers))[1:]
        exponentials = tuple(-k * x for k, x in enumerate(self.exponentials, 1))
        return Side(powers, exponentials)

    def negative(self) -> Side:
        return Side(*(tuple(-x for x in part) for part in self))


class Kernel(NamedTuple):
    """f(x): `above(x)` for x > 0, otherwise `below(-x)`."""

    below: Side
    above: Side

    def derivative(self) -> Kernel:
        return Kernel(self.below.derivative().negative(), self.above.derivative())

    def mirrored(self) -> Kernel:
        """f(-x)."""
        return Kernel(self.above, self.below)

    def at(self, x: Array) -> Array:
        """f(x), element by element."""
        # Not jnp.abs, whose slope at 0 is 1 in JAX: at 0 f is `below`, where the slope is -1.
        distance = jnp.where(x > 0, x, -x)
        return jnp.where(x > 0, value(self.above, distance), value(self.below, distance))


def power(degree: int) -> Kernel:
    """max(x, 0)^degree."""
    return Kernel(Side(), Side((0.0,) * degree + (1.0,)))


def square() -> Kernel:
    """x^2."""
    return Kernel(*[Side((0.0, 0.0, 1.0))] * 2)


def softplus(dtype: Any) -> Kernel:
    """log(1 + exp(x)), to the precision of `dtype`."""
    tail = tuple(c / k for k, c in enumerate(_alternating(_degree(dtype)), 1))
    return Kernel(Side((), tail), Side((0.0, 1.0), tail))


def sigmoid(dtype: Any) -> Kernel:
    """1 / (1 + exp(-x)), to the precision of `dtype`."""
    return softplus(dtype).derivative()


def _degree(dtype: Any) -> int:
    return 24 if np.dtype(dtype).itemsize == 8 else 12


@functools.cache
def _alternating(degree: int) -> Coefficients:
    """Coefficients of t, t^2, ... in a polynomial that approximates t / (1 + t) on [0, 1].

    The polynomial is t (1 - R(t) / R(-1)) / (1 + t), with R the Chebyshev polynomial of [0, 1].
    """
    # R(t) = sum over k of degree / (degree + k) C(degree + k, 2 k) 4^k (-t)^k. The terms at t = -1
    # are positive whole numbers, so their sums are exact.
    terms = [degree * comb(degree + k, 2 * k) * 4**k // (degree + k) for k in range(degree + 1)]
    total, left, found = sum(terms), sum(terms), []
    for k in range(degree):
        left -= terms[k]
        found.append((-1) ** k * left / total)
    return tuple(found)


def value(side: Side, distance: Array) -> Array:
    """g(distance)."""
    powers = numerics.polynomial(side.powers, distance)
    if not side.exponentials:
        return powers
    t = jnp.exp(-distance)
    return powers + t * numerics.polynomial(side.exponentials, t)
