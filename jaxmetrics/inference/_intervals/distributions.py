"""Tails and quantiles, elementwise and in float64: SciPy's of NumPy's arrays, and of JAX's ours.

JAX lacks them. Its part is to be traced inside `double_precision()`.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jax.scipy.special import digamma, gammaln, ndtri

from jaxmetrics._base import numerics, varying
from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics.inference._intervals.beta import beta_cdf, log_of_tail

# From here on the series in 1 / df is exact to 1e-11.
_MANY = 1000.0

# From here on Student's distribution is the normal one: its tails differ by less than 1e-8.
_NORMAL = 1e7

# From Wallace's start Newton's method converges to rounding in 4 steps for df of 0.5 and more.
_STEPS = 5

# Gauss and Legendre's nodes and weights on [0, 1], for an integral of an analytic function.
_NODES, _WEIGHTS = (
    (x + shift) / 2 for x, shift in zip(np.polynomial.legendre.leggauss(64), (1, 0), strict=True)
)


def special(library: Any) -> Any:
    """The special functions of an array library."""
    return scipy.special if library is np else jax.scipy.special


def normal_quantile(probability: Any) -> Array:
    """The normal quantile."""
    quantile: Array = special(numerics.namespace(probability)).ndtri(probability)
    return quantile


def t_survival(t: Any, df: Any) -> Array:
    """P(|T| > t) for Student's T; `df` may be fractional or infinite."""
    library = numerics.namespace(t, df)
    few = library.minimum(df, _NORMAL)
    mass = beta_cdf(few / (few + t * t), few / 2, 0.5 + 0 * few)
    tail: Array = library.where(df < _NORMAL, mass, 2 * special(library).ndtr(-library.abs(t)))
    return tail


def hotelling_survival(statistic: Any, dimensions: Any, df: Any) -> Array:
    """P(X > statistic) for Hotelling's T squared; NaN if `df` is less than its dimensions.

    It is F's of `dimensions` and df - dimensions + 1, and chi-squared's for infinite `df`.
    """
    library = numerics.namespace(statistic, dimensions, df)
    few = library.minimum(df, _NORMAL)
    rest = library.maximum(few - dimensions + 1, 1.0)
    share = 1 / (1 + library.maximum(statistic, 0) / few)
    mass = beta_cdf(share, rest / 2, library.maximum(dimensions, 1) / 2)
    mass = library.where(dimensions > 0, library.where(df >= dimensions, mass, library.nan), 1.0)
    tail: Array = library.where(df < _NORMAL, mass, chi2_survival(statistic, dimensions))
    return tail


def f_survival(statistic: Any, dimensions: Any, df: Any) -> Array:
    """P(X > statistic) for F-distributed X; `df`, of the denominator, may be infinite.

    NaN for no dimensions.
    """
    library = numerics.namespace(statistic, dimensions, df)
    few = library.minimum(df, _NORMAL)
    some = library.where(dimensions > 0, dimensions, library.nan)
    mass = beta_cdf(few / (few + some * statistic), few / 2, some / 2)
    tail: Array = library.where(df < _NORMAL, mass, chi2_survival(some * statistic, some))
    return tail


def chi2_survival(statistic: Any, df: Any) -> Array:
    """P(X > statistic) for chi-squared X."""
    library = numerics.namespace(statistic, df)
    tail: Array = special(library).gammaincc(df / 2, library.maximum(statistic, 0) / 2)
    return tail


def t_quantile(probability: Any, df: Any) -> Array:
    """The quantile of Student's t; `df` may be fractional or infinite.

    The relative error is below 1e-10 for probabilities from 1e-6 to 1 - 1e-6 and df from 0.5.
    """
    if numerics.namespace(probability, df) is np:
        quantile: Array = np.where(
            np.isinf(df), scipy.special.ndtri(probability), scipy.special.stdtrit(df, probability)
        )
        return quantile
    probability, df = _doubles(probability, df)
    few, many = jnp.minimum(df, _MANY), jnp.maximum(df, _MANY)
    size = jnp.where(df <= _MANY, _t_size(probability, few), _t_series(probability, many))
    size = jnp.where((probability == 0) | (probability == 1), jnp.inf, size)
    return jnp.where(probability == 0.5, 0.0, jnp.sign(probability - 0.5) * size)


def _log_mass(outside: Array, square: Array, df: Array) -> Array:
    """The logarithm of P(T^2 > square) where `outside`, and of P(T^2 < square) elsewhere.

    Both are tails of the Beta distribution; the two sides swap its shapes.
    """
    own, other = jnp.where(outside, df, 1) / 2, jnp.where(outside, 1, df) / 2
    odds = jnp.log(square / df)
    return log_of_tail(own, other, jnp.where(outside, -odds, odds))[0]


@jax.custom_jvp
def _t_size(probability: Array, df: Array) -> Array:
    """The absolute value of the quantile, by Newton's method.

    The logarithms of P(|T| < t) and of P(|T| > t) are concave functions of log t. So the method
    converges from any start, and the error of log t is the relative error of t. The smaller of the
    two probabilities is used, because the larger one loses digits near 1.
    """
    outside = 2 * jnp.minimum(probability, 1 - probability)
    inside = jnp.abs(2 * probability - 1)
    tail = outside < inside
    goal = jnp.log(jnp.minimum(outside, inside))
    log_norm = _log_density_at_0(df)

    def step(_: Array, log_t: Array) -> Array:
        square = jnp.exp(2 * log_t)
        log_mass = _log_mass(tail, square, df)
        log_density = log_norm - (df + 1) / 2 * jnp.log1p(square / df)
        slope = 2 * jnp.exp(log_t + log_density - log_mass)
        return log_t - (log_mass - goal) / jnp.where(tail, -slope, slope)

    # Wallace 1959: log(1 + t^2 / df) is approximately the square of a normal quantile over df.
    square = ((8 * df + 3) / (8 * df + 1) * ndtri(outside / 2)) ** 2 / df
    start = (jnp.log(df) + square + jnp.log(-jnp.expm1(-square))) / 2
    return jnp.exp(varying.fori_loop(0, _STEPS, step, start))


@_t_size.defjvp
def _(values: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    """By the implicit function, as the loop has no derivative in reverse mode.

    With tan(a) = t / sqrt(df), P(0 < T < t) is the integral of C cos(x)^(df - 1) from 0 to a. Its
    derivatives in df, at a fixed t, and in t are elementary but for one integral.
    """
    probability, df = values
    t = _t_size(probability, df)
    angle = jnp.arctan(t / jnp.sqrt(df))
    x = angle[..., None] * _NODES
    log_norm_in_df = (digamma((df + 1) / 2) - digamma(df / 2)) / 2
    ratio = jnp.exp((df - 1)[..., None] * jnp.log(jnp.cos(x) / jnp.cos(angle)[..., None]))
    integral = angle * (((log_norm_in_df[..., None] + jnp.log(jnp.cos(x))) * ratio) @ _WEIGHTS)
    in_df = t / (2 * df) - jnp.sqrt(df) * integral / jnp.cos(angle) ** 2
    log_norm = _log_density_at_0(df)
    density = jnp.exp(log_norm + (df + 1) * jnp.log(jnp.cos(angle)))
    in_probability = jnp.sign(probability - 0.5) / density
    return t, in_probability * tangents[0] + in_df * tangents[1]


def _log_density_at_0(df: Array) -> Array:
    """The logarithm of the density at 0."""
    half, more = gammaln(jnp.stack([df, df + 1]) / 2)
    found: Array = more - half - jnp.log(df * jnp.pi) / 2
    return found


def _t_series(probability: Array, df: Array) -> Array:
    """The absolute value of the quantile for large df: Fisher and Cornish 1960."""
    z = jnp.abs(ndtri(probability))
    s = z * z
    terms = (
        (s + 1) / 4,
        ((5 * s + 16) * s + 3) / 96,
        (((3 * s + 19) * s + 17) * s - 15) / 384,
        ((((79 * s + 776) * s + 1482) * s - 1920) * s - 945) / 92160,
    )
    total = jnp.zeros_like(z)
    for term in reversed(terms):
        total = (total + term) / df
    return z * (1 + total)


def binomial_quantile(probability: Any, n: Any, share: Any) -> Array:
    """The smallest whole k with P(X <= k) >= probability, for X binomial of `n` and `share`.

    `n` may be fractional: P(X <= k) is then the Beta's tail that it is for whole numbers. Exact
    where the expansion of E. A. Cornish and R. A. Fisher 1937 is nearer than 2.5.
    """
    library = numerics.namespace(probability, n, share)
    z = special(library).ndtri(probability)
    mean, variance = n * share, n * share * (1 - share)
    skewed = (1 - 2 * share) * (z * z - 1) / 6
    near = library.floor(mean + z * library.sqrt(variance) + skewed)
    found = near - 3
    for step in (4, 2, 1):  # bisects
        k = found + step - 1
        inside = library.clip(k, 0.0, library.maximum(n - 1e-9, 0.0))
        below = beta_cdf(1 - share, n - inside, inside + 1)
        reached = library.where(k >= n, 1.0, library.where(k < 0, 0.0, below))
        found = library.where(reached >= probability, found, k + 1)
    within: Array = library.clip(found, 0.0, library.floor(n))
    return within


def _doubles(*values: ArrayLike) -> tuple[Array, ...]:
    """Broadcast, in float64."""
    return tuple(jnp.broadcast_arrays(*(jnp.asarray(value, jnp.float64) for value in values)))
