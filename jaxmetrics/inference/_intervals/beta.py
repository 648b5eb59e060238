"""Tails and quantiles of the Beta distribution, elementwise.

NumPy arrays take SciPy's functions. JAX's incomplete Beta function loses digits as the shapes grow,
and has no inverse and no derivative in the shapes. For JAX arrays, tails are therefore integrals
over the log-odds, in which the density is analytic and log-concave. Trace them inside
`double_precision()`. All is in float64, except tails and quantiles on TPUs, which are in float32;
their derivatives are in float64 there, too, at the float32 quantile.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jax.scipy.special import digamma

from jaxmetrics._base import numerics, varying
from jaxmetrics._base.double import in_native_floats
from jaxmetrics._base.types import Array, HostArray

# Gauss-Legendre nodes and weights on [0, 1], after a node at 0 that has weight 0.
_NODES, _WEIGHTS = (
    np.append(0.0, (x + shift) / 2)
    for x, shift in zip(np.polynomial.legendre.leggauss(64), (1, 0), strict=True)
)
_REACH = 40.0  # the integral ends where the log density is lower by this than at its start
_FAR = 40.0  # log-odds from the mode u beyond which rest + share e^u is share e^u, to all digits,
# unless the share is tiny; the density is then 0 long before
_STEPS = 6  # of Halley's method for a quantile
_STEPS_OF_REACH = 24  # of Newton's method for the length of the integral
_LARGE = 100.0  # where both shapes are larger, SciPy's inverse may have only eight digits


def beta_quantile(probability: Any, a: Any, b: Any, needed: Any = True) -> Array:
    """The quantile of the Beta distribution; with NumPy, NaN where it is not `needed`.

    The relative error is below 1e-10 for probabilities from 1e-6 to 1 - 1e-6 and shapes from 0.5 to
    1e6, and 1e-5 on TPUs.
    """
    if numerics.namespace(probability, a, b) is np:
        a = np.where(needed, a, np.nan)
        found: Any = np.asarray(scipy.special.betaincinv(a, b, probability))
        large = np.broadcast_to(np.minimum(a, b) > _LARGE, found.shape)
        if large.any():
            given = (np.broadcast_to(x, found.shape)[large] for x in (a, b, probability))
            found[large] = _refined(found[large], *given)
        return found
    given = (jnp.asarray(x, jnp.float64) for x in (probability, a, b))
    probability, a, b = jnp.broadcast_arrays(*given)
    lower = probability < 0.5
    own, other = jnp.where(lower, a, b), jnp.where(lower, b, a)
    odds = log_odds_of_tail(jnp.minimum(probability, 1 - probability), own, other)
    return jax.nn.sigmoid(jnp.where(lower, odds, -odds))


def may_exceed(limit: Any, probability: Any, a: Any, b: Any) -> Any:
    """False where the quantile is surely at most `limit`; True for JAX, which computes them all.

    By Chernoff's bound, the tail above x is at most (x / m)^a ((1 - x) / (1 - m))^b, for x above
    the mean m. The bound takes a small part of the time of the quantile.
    """
    if numerics.namespace(limit, probability, a, b) is not np:
        return True
    mean = a / (a + b)
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = a * np.log(limit / mean) + b * np.log((1 - limit) / (1 - mean))
    return ~((limit > mean) & (bound < np.log(1 - probability)))


def _refined(near: HostArray, a: HostArray, b: HostArray, probability: HostArray) -> HostArray:
    """Quantiles after a secant step with SciPy's tail, which has more digits than its inverse."""
    far = near + np.where(near < 0.5, near, near - 1) * 1e-6
    error, step = (scipy.special.betainc(a, b, x) - probability for x in (near, far))
    quantile = near - numerics.divide(error * (near - far), error - step, 0.0)
    return np.clip(quantile, 0.0, 1.0)


def beta_cdf(x: Any, a: Any, b: Any) -> Array:
    """P(X <= x) for Beta X; for JAX arrays, the shapes must be at least 0.1."""
    if numerics.namespace(x, a, b) is np:
        return scipy.special.betainc(a, b, x)
    return beta_cdf_of_odds(x / (1 - x), a, b)


def beta_cdf_of_odds(odds: Any, a: Any, b: Any) -> Array:
    """P(X / (1 - X) <= odds) for Beta X, in JAX. Near 1, X has fewer digits than its odds."""
    odds, a, b = jnp.broadcast_arrays(*(jnp.asarray(x, jnp.float64) for x in (odds, a, b)))
    return in_native_floats(_mass, odds, a, b)


@jax.custom_jvp
def log_odds_of_tail(mass: Array, own: Array, other: Array) -> Array:
    """The `mass`-quantile of the log-odds of a Beta variable with the shapes `own` and `other`."""
    return in_native_floats(_log_odds, mass, own, other)


@log_odds_of_tail.defjvp
def _(values: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, Array]:
    """By the implicit function theorem."""
    mass, own, other = values
    odds = log_odds_of_tail(mass, own, other)
    tail = _tail(own, other, odds)
    mean_log, mean_log_other = tail.means
    in_own = mean_log - digamma(own) + digamma(own + other)
    in_other = mean_log_other - digamma(other) + digamma(own + other)
    change = tangents[0] - mass * (in_own * tangents[1] + in_other * tangents[2])
    return odds, change * jnp.exp(-tail.log_density)


@jax.jit  # traced once for all callers
def _mass(odds: Array, a: Array, b: Array) -> Array:
    lower = odds * b <= a
    own, other = jnp.where(lower, a, b), jnp.where(lower, b, a)
    log_odds = jnp.log(odds)
    tail = jnp.exp(_tail(own, other, jnp.where(lower, log_odds, -log_odds)).log_mass)
    inside = jnp.where(lower, tail, 1 - tail)
    return jnp.where(odds <= 0, 0.0, jnp.where(odds == jnp.inf, 1.0, inside))


@jax.jit
def _log_odds(mass: Array, own: Array, other: Array) -> Array:
    """By Halley's method for the log probability, which is concave in the log-odds."""
    goal = jnp.log(mass)

    def step(_: int, odds: Array) -> Array:
        tail = _tail(own, other, odds)
        slope = jnp.exp(tail.log_density - tail.log_mass)
        error = tail.log_mass - goal
        return odds - error / (slope - error * (tail.slope - slope) / 2)

    return varying.fori_loop(0, _STEPS, step, jnp.log(own / other))


class _Tail(NamedTuple):
    """The tail of a Beta variable X below some log-odds, its end.

    Attributes:
      log_mass: the logarithm of the probability of the tail.
      log_density: the logarithm of the density of the log-odds at the end.
      slope: the derivative of `log_density` in the log-odds.
      means: the means of log X and of log(1 - X) in the tail.
    """

    log_mass: Array
    log_density: Array
    slope: Array
    means: tuple[Array, Array]


def _tail(own: Array, other: Array, odds: Array) -> _Tail:
    """The tail of the Beta distribution below these log-odds, in the precision of the arrays.

    Its variables follow the rarer side: X if `own` is the smaller shape, else 1 - X.
    """
    total, rarer = own + other, jnp.minimum(own, other)
    share = rarer / total
    rest, log_share = 1 - share, jnp.log(share)
    sign = jnp.where(own > other, -1.0, 1.0)  # makes log-odds those of the rarer side
    end = odds - jnp.log(own / other)  # distance from the mode
    close = jnp.finfo(odds.dtype).eps ** (1 / 6)  # up to here the series has all digits
    both, skew = share * rest, rest - share
    cumulants = [
        1 / 2,
        skew / 6,
        (1 - 6 * both) / 24,
        skew * (1 - 12 * both) / 120,
        (1 - 30 * both + 120 * both**2) / 720,
    ]  # of a Bernoulli draw: k-th cumulant / (k! share rest), from k = 2 on

    def density(away: Array) -> tuple[Array, Array, Array]:
        """The log density up to a constant, its slope, and log((1 - x) / (1 - mode)).

        x is the rarer side. With u its log-odds from the mode, the log density is
        total (share u - log(rest + share e^u)). The difference loses digits near the mode, where
        the series of the cumulants replaces it.
        """
        u = sign * away
        growth = jnp.expm1(jnp.minimum(u, _FAR))
        more = share * growth
        log_rest = -jnp.where(u < _FAR, jnp.log1p(more), u + log_share)
        slope = -sign * rarer * rest * growth / (1 + more)
        near = -rarer * rest * u**2 * numerics.polynomial(cumulants, u)
        return jnp.where(abs(u) < close, near, rarer * u + total * log_rest), slope, log_rest

    def column(numbers: HostArray) -> HostArray:
        """The numbers along a new axis before those of the arrays."""
        return numbers.astype(odds.dtype).reshape(-1, *(1,) * odds.ndim)

    def longer(length: Array) -> Array:
        there, slope, _ = density(end - length)
        reached: Array = length - (at_end - there - _REACH) / slope
        return jnp.maximum(reached, 0.0)  # where the density is 0, the difference is rounding

    # The fall of the log density is convex in the length. `furthest` is at least the root, and
    # Newton's method for a convex function stays on that side.
    at_end, *_ = density(end)
    furthest = (_REACH + total * (jnp.log(total / other) + jnp.maximum(end, 0.0))) / own
    length = varying.repeated(_STEPS_OF_REACH, longer, furthest)
    away = end - length * column(_NODES)
    there, (slope, *_), log_rest = density(away)
    here = there[0]
    ratios = jnp.exp(there - here) * column(_WEIGHTS)
    mass = jnp.sum(ratios, axis=0)
    mean_away, mean_rest = (jnp.sum(ratios * x, axis=0) / mass for x in (away, log_rest))
    means = (
        jnp.log(own / total) + mean_rest + jnp.where(sign > 0, mean_away, 0.0),
        jnp.log(other / total) + mean_rest - jnp.where(sign > 0, 0.0, mean_away),
    )
    here = here - _log_norm(own, other)
    return _Tail(here + jnp.log(length * mass), here, slope, means)


def _log_norm(a: Array, b: Array) -> Array:
    """log B(a, b) - a log(a / (a + b)) - b log(b / (a + b)), without large numbers."""
    of_each = _stirling(jnp.stack([a, b, a + b]))
    return jnp.log(2 * jnp.pi * (1 / a + 1 / b)) / 2 + of_each[0] + of_each[1] - of_each[2]


def _stirling(x: Array) -> Array:
    """log Gamma(x) - (x - 1/2) log x + x - log(2 pi) / 2.

    By Stirling's series from 10 on, and below by Gamma(x + 10) = x (x + 1) ... (x + 9) Gamma(x).
    """
    large = jnp.where(x < 10, x + 10, x)
    square = 1 / large**2
    terms = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
    series = numerics.polynomial(terms, square)
    small = jnp.minimum(x, 10.0)
    raised, rising = small + 10, math.prod(small + k for k in range(10))
    below = (small - 0.5) * jnp.log(raised / small) + jnp.log(raised**10 / rising) - 10
    return series / large + jnp.where(x < 10, below, 0.0)
