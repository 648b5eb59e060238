"""Tails and quantiles of the Beta distribution, elementwise and in float64.

SciPy's of NumPy's arrays. JAX's incomplete Beta function loses digits as the shapes grow, and has
no inverse and no derivative in them, so its tails here are integrals: in the log-odds the density
is analytic and log-concave. To be traced inside `double_precision()`.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jax.scipy.special import digamma, gammaln

from jaxmetrics._base import numerics, varying
from jaxmetrics._base.types import Array, HostArray

# Gauss and Legendre's nodes and weights on [0, 1].
_NODES, _WEIGHTS = (
    (x + shift) / 2 for x, shift in zip(np.polynomial.legendre.leggauss(64), (1, 0), strict=True)
)
_REACH = 40.0  # of the integral: the logarithm of the density's fall from one end to the other
_STEPS = 12
_LARGE = 100.0  # the shapes from which on SciPy's inverse may have eight digits


def beta_quantile(probability: Any, a: Any, b: Any, needed: Any = True) -> Array:
    """The quantile of the Beta distribution; NumPy leaves out what is not needed, which is NaN.

    The relative error is below 1e-10 for probabilities from 1e-6 to 1 - 1e-6 and shapes from 0.5 to
    1e6.
    """
    if numerics.namespace(probability, a, b) is np:
        a = np.where(needed, a, np.nan)
        found: Any = np.asarray(scipy.special.betaincinv(a, b, probability))
        large = np.broadcast_to(np.minimum(a, b) > _LARGE, found.shape)
        if large.any():
            given = (np.broadcast_to(x, found.shape)[large] for x in (a, b, probability))
            found[large] = _refined(found[large], *given)
        inside: Array = found
        return inside
    given = (jnp.asarray(x, jnp.float64) for x in (probability, a, b))
    return _quantile(*jnp.broadcast_arrays(*given))


def may_exceed(limit: Any, probability: Any, a: Any, b: Any) -> Any:
    """False where the quantile is surely within `limit`; NumPy, as programs compute all quantiles.

    By Chernoff's bound, the tail above x is at most (x / m)^a ((1 - x) / (1 - m))^b, for x above
    the mean m. It takes a small part of the time of the quantile.
    """
    if numerics.namespace(limit, probability, a, b) is not np:
        return True
    mean = a / (a + b)
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = a * np.log(limit / mean) + b * np.log((1 - limit) / (1 - mean))
    return ~((limit > mean) & (bound < np.log(1 - probability)))


def _refined(near: HostArray, a: HostArray, b: HostArray, probability: HostArray) -> HostArray:
    """By a secant of SciPy's function, which has more digits than its inverse."""
    far = near + np.where(near < 0.5, near, near - 1) * 1e-6
    error, step = (scipy.special.betainc(a, b, x) - probability for x in (near, far))
    quantile = near - numerics.divide(error * (near - far), error - step, 0.0)
    inside: HostArray = np.clip(quantile, 0.0, 1.0)
    return inside


def beta_cdf(x: Any, a: Any, b: Any) -> Array:
    """P(X <= x) for Beta X."""
    if numerics.namespace(x, a, b) is np:
        mass: Array = scipy.special.betainc(a, b, x)
        return mass
    x, a, b = jnp.broadcast_arrays(*(jnp.asarray(value, jnp.float64) for value in (x, a, b)))
    lower = x * (a + b) <= a
    own, other = jnp.where(lower, a, b), jnp.where(lower, b, a)
    odds = jnp.log(x) - jnp.log1p(-x)
    tail = jnp.exp(log_of_tail(own, other, jnp.where(lower, odds, -odds))[0])
    return jnp.where(x <= 0, 0.0, jnp.where(x >= 1, 1.0, jnp.where(lower, tail, 1 - tail)))


@jax.custom_jvp
def _quantile(probability: Array, a: Array, b: Array) -> Array:
    """By Newton's method for log(-log P) of the smaller tail, as a function of the log-odds.

    The logarithm of a tail is a power or an exponential function of these, and its own logarithm
    is near a line in the second case, in which the method would else be slow.
    """
    lower, own, other = _smaller(probability, a, b)
    goal = jnp.log(jnp.minimum(probability, 1 - probability))

    def step(_: int, odds: Array) -> Array:
        log_tail, log_density, _means = log_of_tail(own, other, odds)
        slope = jnp.exp(log_density - log_tail) / log_tail
        return odds - jnp.log(log_tail / goal) / slope

    odds: Array = varying.fori_loop(0, _STEPS, step, jnp.log(own / other))
    return jax.nn.sigmoid(jnp.where(lower, odds, -odds))


@_quantile.defjvp
def _(values: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, Array]:
    """By the implicit function."""
    probability, a, b = values
    x = _quantile(probability, a, b)
    lower, own, other = _smaller(probability, a, b)
    odds = jnp.log(x) - jnp.log1p(-x)
    odds = jnp.where(lower, odds, -odds)
    log_tail, log_density, (mean_log, mean_log_other) = log_of_tail(own, other, odds)
    change = jnp.where(lower, tangents[0], -tangents[0])
    in_own = mean_log - digamma(own) + digamma(own + other)
    in_other = mean_log_other - digamma(other) + digamma(own + other)
    of_own = jnp.where(lower, tangents[1], tangents[2])
    of_other = jnp.where(lower, tangents[2], tangents[1])
    change = change - jnp.exp(log_tail) * (in_own * of_own + in_other * of_other)
    slope = jnp.exp(-log_density) * x * (1 - x)
    return x, jnp.where(lower, slope, -slope) * change


def _smaller(probability: Array, a: Array, b: Array) -> tuple[Array, Array, Array]:
    """Whether the lower tail is the smaller one; the shape at its end, and the other one."""
    lower = probability < 0.5
    return lower, jnp.where(lower, a, b), jnp.where(lower, b, a)


def log_of_tail(own: Array, other: Array, odds: Array) -> tuple[Array, Array, tuple[Array, Array]]:
    """The logarithms of P(log-odds < odds) and of the density there, and the means of log x and of
    log (1 - x) in this tail."""

    at_mode = jnp.log1p(other / own), jnp.log1p(own / other)

    def logs(odds: Array) -> tuple[Array, Array]:
        """log x and log (1 - x)."""
        both = -jnp.log1p(jnp.exp(-jnp.abs(odds)))
        return both + jnp.minimum(odds, 0), both - jnp.maximum(odds, 0)

    def log_density(logs: tuple[Array, Array]) -> Array:
        """But for a constant; 0 at the mode."""
        log, log_other = logs
        return own * (at_mode[0] + log) + other * (at_mode[1] + log_other)

    here = log_density(logs(odds))

    def longer(_: Array, length: Array) -> Array:
        log, log_other = logs(odds - length)
        fall = here - log_density((log, log_other))
        x = jnp.exp(log)
        return length - (fall - _REACH) / (own - (own + other) * x)

    # From the right of where a convex function has the value, Newton's method stays there.
    furthest = (_REACH + (own + other) * jnp.log(2.0)) / own + jnp.maximum(odds, 0) * 2
    mode = jnp.maximum(odds - jnp.log(own / other), 0)
    length = varying.fori_loop(0, 2 * _STEPS, longer, furthest + mode)
    of_nodes = logs(odds - length * _NODES.reshape(-1, *(1,) * odds.ndim))
    ratios = jnp.exp(log_density(of_nodes) - here) * _WEIGHTS.reshape(-1, *(1,) * odds.ndim)
    mass = jnp.sum(ratios, axis=0)
    mean, mean_other = (jnp.sum(ratios * x, axis=0) / mass for x in of_nodes)
    here = here - _log_norm(own, other)
    return here + jnp.log(length * mass), here, (mean, mean_other)


def _log_norm(a: Array, b: Array) -> Array:
    """log B(a, b) - a log(a / (a + b)) - b log(b / (a + b)), without large numbers."""
    half = (jnp.log(2 * jnp.pi) + jnp.log1p(b / a) - jnp.log(b)) / 2
    of_each = _stirling(jnp.stack([a, b, a + b]))  # at once, as compilers for TPUs take long
    found: Array = half + of_each[0] + of_each[1] - of_each[2]
    return found


def _stirling(x: Array) -> Array:
    """log Gamma(x) - (x - 1/2) log x + x - log(2 pi) / 2."""
    large = jnp.maximum(x, 10.0)
    square = 1 / large**2
    terms = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
    series = jnp.zeros_like(x)
    for term in reversed(terms):
        series = series * square + term
    small = jnp.minimum(x, 10.0)
    exact = gammaln(small) - (small - 0.5) * jnp.log(small) + small - jnp.log(2 * jnp.pi) / 2
    return jnp.where(x < 10, exact, series / large)
