"""Tails and quantiles, elementwise: SciPy's for NumPy arrays, our own for JAX arrays.

JAX lacks them. Trace the part for JAX inside `double_precision()`. All is in float64, except on
TPUs what `beta.py` computes in float32: its errors are then those of float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy

from jaxmetrics._base import numerics
from jaxmetrics._base.double import in_native_floats
from jaxmetrics._base.types import Array
from jaxmetrics.inference._intervals.beta import beta_cdf, beta_cdf_of_odds, log_odds_of_tail

# With NumPy, tails for df from _NORMAL on are those for infinite df; they differ by less than 1e-7.
# With JAX, tails and quantiles for df above _MOST are those for _MOST; the relative difference is
# less than 1e-10.
_NORMAL, _MOST = 1e7, 1e15

_MOST_HALVES = 128

# In place of a probability of 0, whose quantile is not used.
_SMALLEST = 1e-30


def special(library: Any) -> Any:
    """The special functions of an array library."""
    return scipy.special if library is np else jax.scipy.special


def normal_cdf(x: Array) -> Array:
    """P(Z <= x) for a normal Z."""
    return in_native_floats(lambda x: special(numerics.namespace(x)).ndtr(x), x)


def normal_quantile(probability: Any) -> Array:
    """The normal quantile."""
    return special(numerics.namespace(probability)).ndtri(probability)


def t_survival(t: Any, df: Any) -> Array:
    """P(|T| > t) for Student's T; `df` may be fractional or infinite."""
    return _outside(t * t, 1.0, df)


def hotelling_survival(statistic: Any, dimensions: Any, df: Any) -> Array:
    """P(X > statistic) for Hotelling's T squared; NaN if `df` is less than its dimensions.

    By the F distribution with `dimensions` and df - dimensions + 1 degrees of freedom, which is
    chi-squared for infinite `df`; 1 for no dimensions.
    """
    library = numerics.namespace(statistic, dimensions, df)
    few = library.minimum(df, _MOST)
    rest = library.maximum(few - dimensions + 1, 1.0)
    square = library.maximum(statistic, 0) * (rest / few)
    mass = _outside(square, library.maximum(dimensions, 1), rest)
    return library.where(dimensions > 0, library.where(df >= dimensions, mass, library.nan), 1.0)


def gamma_survival(x: Array, halves: int) -> Array:
    """P(X > x) for Gamma-distributed X of the shape `halves` / 2.

    JAX's incomplete gamma function has loops, and each of their steps is a launch on a GPU. In its
    place this adds at most 64 terms: Q(a + 1, x) = Q(a, x) + x^a exp(-x) / Gamma(a + 1).
    """
    library = numerics.namespace(x)
    if library is np or halves > _MOST_HALVES:
        return special(library).gammaincc(halves / 2, x)
    x = jnp.maximum(x, jnp.finfo(x.dtype).tiny)  # which has a logarithm, and derivatives
    first: Array = jnp.exp(-x) if halves % 2 == 0 else jax.scipy.special.erfc(jnp.sqrt(x))
    powers = np.arange(1 - halves % 2 / 2, halves / 2)
    if not len(powers):
        return first
    logs = scipy.special.gammaln(powers + 1).astype(x.dtype)
    terms = jnp.exp(jnp.log(x)[..., None] * powers.astype(x.dtype) - x[..., None] - logs)
    return first + jnp.sum(terms, axis=-1)


def f_survival(statistic: Any, dimensions: Any, df: Any) -> Array:
    """P(X > statistic) for F-distributed X; `df`, of the denominator, may be infinite.

    NaN for no dimensions.
    """
    some = numerics.namespace(statistic, dimensions, df).where(dimensions > 0, dimensions, np.nan)
    return _outside(some * statistic, some, df)


def _outside(square: Any, dimensions: Any, df: Any) -> Array:
    """P(dimensions F > square), for F with `dimensions` and `df`, which may be infinite."""
    if numerics.namespace(square, df) is not np:
        few, least = jnp.minimum(df, _MOST), float(np.finfo(np.float32).tiny)
        odds = few / jnp.maximum(square, least)  # infinite ones have slopes that are NaN
        return beta_cdf_of_odds(odds, few / 2, dimensions / 2)
    few = np.minimum(df, _NORMAL)
    # The smaller one of the two Beta shares is used, because near 1 a share has few digits.
    least = np.minimum(square, few)
    near = scipy.special.betaincc(dimensions / 2, few / 2, least / (few + least))
    far = scipy.special.betainc(few / 2, dimensions / 2, few / (few + square))
    mass = np.where(square < few, near, far)
    return np.where(df < _NORMAL, mass, scipy.special.gammaincc(dimensions / 2, square / 2))


def t_quantile(probability: Any, df: Any) -> Array:
    """The quantile of Student's t; `df` may be fractional or infinite.

    The relative error is below 1e-10 for probabilities from 1e-6 to 1 - 1e-6 and df from 0.5, and
    1e-5 on TPUs.
    """
    if numerics.namespace(probability, df) is np:
        return np.where(
            np.isinf(df), scipy.special.ndtri(probability), scipy.special.stdtrit(df, probability)
        )
    given = (jnp.asarray(x, jnp.float64) for x in (probability, jnp.minimum(df, _MOST)))
    probability, df = jnp.broadcast_arrays(*given)
    # df / (df + T^2) is Beta, and T^2 / df are its odds. The smaller of P(|T| > t) and P(|T| < t)
    # is used, because the larger one loses digits near 1.
    outside, inside = 2 * jnp.minimum(probability, 1 - probability), jnp.abs(2 * probability - 1)
    mass = jnp.maximum(jnp.minimum(outside, inside), _SMALLEST)
    far = outside < inside
    own, other = jnp.where(far, df, 1.0), jnp.where(far, 1.0, df)
    odds = log_odds_of_tail(mass, own / 2, other / 2)
    size = in_native_floats(_root, df, jnp.where(far, -odds, odds))
    size = jnp.where((probability == 0) | (probability == 1), jnp.inf, size)
    return jnp.where(probability == 0.5, 0.0, jnp.sign(probability - 0.5) * size)


def _root(factor: Array, log_odds: Array) -> Array:
    return jnp.sqrt(factor) * jnp.exp(log_odds / 2)


def binomial_quantiles(chances: Sequence[Any], n: Any, share: Any) -> Array:
    """`binomial_quantile` of several chances, `[chances, ...]`; one call, as programs are long."""
    library = numerics.namespace(*chances, n, share)
    *each, n, share = library.broadcast_arrays(*chances, n, share)
    return binomial_quantile(library.stack(each), n, share)


def binomial_quantile(probability: Any, n: Any, share: Any) -> Array:
    """The smallest whole k with P(X <= k) >= probability, for X binomial of `n` and `share`.

    `n` may be fractional: the Beta tail that equals P(X <= k) for whole numbers then defines it.
    Bisects around the expansion of E. A. Cornish and R. A. Fisher 1937, so it is exact where the
    expansion errs by less than 2.5; on TPUs seldom off by one, and by up to three where n is a
    million and more.
    """
    library = numerics.namespace(probability, n, share)
    z = special(library).ndtri(probability)
    mean, variance = n * share, n * share * (1 - share)
    skewed = (1 - 2 * share) * (z * z - 1) / 6
    near = library.floor(mean + z * library.sqrt(variance) + skewed)
    found = near - 3
    for step in (4, 2, 1):
        k = found + step - 1
        inside = library.clip(k, 0.0, library.maximum(n - 1e-9, 0.0))
        below = beta_cdf(1 - share, n - inside, inside + 1)
        reached = library.where(k >= n, 1.0, library.where(k < 0, 0.0, below))
        found = library.where(reached >= probability, found, k + 1)
    return library.clip(found, 0.0, library.floor(n))
