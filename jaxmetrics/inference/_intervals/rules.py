"""Closed-form intervals: from an estimate and its variance, by class, to confidence limits.

To be traced inside `double_precision()`. Arguments may be arrays, may be traced, and broadcast. A
NaN estimate has NaN limits; any other estimate has finite limits if all sizes are at least 1.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import expit, logit

from jaxmetrics._base import numerics
from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics.inference._intervals import distributions

Limits = tuple[Array, Array]

# `_PSEUDO_...`: the weight, in the variance of a class, of one pseudo-observation that has the
# largest possible variance. `_PRIOR`: the number of negatives in the window that the power law's
# variance counts as.
_PSEUDO_AUC = 1 / 8
_PSEUDO_PARTIAL = 1 / 3
_PRIOR = 2.0
_FEWEST_DF = 4.0

# An estimate this near to 0 or 1 differs from it by rounding only.
_ROUNDING = 1e-12


class Moments(NamedTuple):
    """The input of a closed-form interval: by class, the variance of the influence values.

    The metric is from 0 to 1, and here the influence values of each class have the estimate as
    their mean. Under weights the size of a class is its effective size (sum w)^2 / sum w^2, and the
    variance is this size times sum (w / sum w)^2 (influence - estimate)^2 * n / (n - 1).
    """

    estimate: Array  # [...]
    variances: tuple[Array, Array]  # unbiased, of negatives and of positives
    sizes: tuple[Array, Array]  # of negatives and of positives


def standard_error(moments: Moments) -> Array:
    """sqrt(s0^2 / n0 + s1^2 / n1); NaN if a class has one item, as its variance is unknown."""
    library = numerics.namespace(*moments.variances, *moments.sizes)
    _, variances, sizes = moments if library is np else _doubles(moments)
    parts = [
        numerics.divide(s2, library.where(n > 1, n, 0), library.nan)
        for s2, n in zip(variances, sizes, strict=True)
    ]
    error: Array = library.sqrt(parts[0] + parts[1])
    return error


def logit_t(moments: Moments, confidence_level: ArrayLike) -> Limits:
    """expit(logit(A) -+ t sqrt(V) / (A (1 - A))), with A the estimate, V = s0^2 / n0 + s1^2 / n1.

    t has the degrees of freedom of Welch and Satterthwaite, V^2 / sum((s^2 / n)^2 / (n - 1)), at
    least 1. An estimate with variance 0 is treated as 0 or 1, whichever is nearer. For any metric
    from 0 to 1.
    """
    moments, confidence_level = _doubles(moments), jnp.asarray(confidence_level, jnp.float64)
    estimate, variances, sizes = moments
    centre = _interior(estimate, sizes)
    u = centre * (1 - centre)
    parts = [_known(s2, n, u) / n for s2, n in zip(variances, sizes, strict=True)]
    variance = parts[0] + parts[1]
    spread = _spread(parts[0], 1.0, sizes[0]) + _spread(parts[1], 1.0, sizes[1])
    t = distributions.t_quantile((1 + confidence_level) / 2, _df(variance, spread, 1.0))
    margin = t * jnp.sqrt(variance) / u
    limits = expit(logit(centre) - margin), expit(logit(centre) + margin)
    return _around(estimate, _ends(estimate, limits, sizes, confidence_level, variance <= 0))


def auc(moments: Moments, confidence_level: ArrayLike) -> Limits:
    """The limits of the area under the ROC curve: logit, t and a correction for skewness.

    expit(logit A - sqrt(V) / (A (1 - A)) T(+-t)). The influence values of a class are means of
    Bernoulli draws, so their distribution is close to the Beta with mean A and variance
    rho A (1 - A). The Beta supplies the skewness g and the kurtosis, which a small sample cannot. A
    pseudo-observation of rho = 1 keeps the variance from being far too small by chance. The degrees
    of freedom follow from the kurtosis. T removes the skewness, which balances the two tails. The
    interval is not wider than Wilson's of n0 n1 / (n0 + n1) draws, which is the case rho = 1.

    Found by simulation: see the coverage table in the documentation. With 20 positives or fewer,
    some of them mislabelled, the coverage of a 95 % interval can fall to 79 %.
    """
    moments, confidence_level = _doubles(moments), jnp.asarray(confidence_level, jnp.float64)
    estimate, variances, sizes = moments
    area = _interior(estimate, sizes)
    u = area * (1 - area)
    variance = spread = third = jnp.zeros_like(u)
    for s2, n in zip(variances, sizes, strict=True):
        rho = _beta_share(s2, n, u, _PSEUDO_AUC)
        skewness, excess = _beta_shape(area, rho)
        part = rho * u / n
        variance = variance + part
        third = third + skewness * part**1.5 / jnp.sqrt(n)
        spread = spread + _spread(part, (excess + skewness**2 / 2) / 2, n)
    t = distributions.t_quantile((1 + confidence_level) / 2, _df(variance, spread, _FEWEST_DF))

    skewness = third / variance**1.5
    scale = jnp.sqrt(variance) / u
    shift = skewness / 6
    bend = skewness / 3 + scale * (2 * area - 1) / 2  # the second term: the logit is curved

    def transformed(x: Array) -> Array:
        y = x - shift
        bent = jnp.abs(bend * y)
        return jnp.where(bend * y < 0, y * (1 + bent), y / (1 + bent))

    centre = logit(area)
    limits = expit(centre - scale * transformed(t)), expit(centre - scale * transformed(-t))
    limits = _ends(estimate, limits, sizes, confidence_level)
    n0, n1 = sizes
    within = wilson(area, n0 * n1 / (n0 + n1), confidence_level)
    return _around(estimate, _inside(limits, within))


def partial_auc(
    moments: Moments,
    confidence_level: ArrayLike,
    max_fpr: ArrayLike,
    tpr_at_max_fpr: ArrayLike,
) -> Limits:
    """The limits of the area under the ROC curve up to `max_fpr`, divided by `max_fpr`.

    expit(logit e -+ t sqrt(V0 + V1) / (e (1 - e))). With only m negatives in the window the
    estimate is biased upwards by about (height - area) (1 - max_fpr) / (2 m), with the height of
    the curve at `max_fpr`; e is the estimate without this bias. V1 is as in `auc`. V0 depends on
    the m negatives alone, so it is shrunk towards the variance of a power law,
    ROC(u) = r (u / max_fpr)^h, with h a function of e and `max_fpr`.

    `moments` are those of the divided area. `tpr_at_max_fpr` is the height of the curve, and the
    middle of the step where `max_fpr` falls on one.

    Found by simulation: see the coverage table in the documentation. Unreliable with fewer than
    about three negatives in the window.
    """
    moments, confidence_level = _doubles(moments), jnp.asarray(confidence_level, jnp.float64)
    max_fpr = jnp.asarray(max_fpr, jnp.float64)
    tpr_at_max_fpr = jnp.asarray(tpr_at_max_fpr, jnp.float64)
    estimate, (s2_0, s2_1), (n0, n1) = moments
    sizes = n0, n1
    m = n0 * max_fpr

    area = _interior(estimate, sizes)
    centre = _interior(area - _window_bias(area, m, max_fpr, tpr_at_max_fpr), sizes)
    u = centre * (1 - centre)

    rho = _beta_share(s2_1, n1, area * (1 - area), _PSEUDO_PARTIAL)
    v1 = rho * u / n1
    _, excess = _beta_shape(centre, rho)

    s2_0 = _known(s2_0, n0, u / max_fpr)
    v0 = (m * s2_0 + _PRIOR * _power_law_variance(centre, max_fpr)) / (m + _PRIOR) / n0

    variance = v0 + v1
    spread = _spread(v1, excess / 2, n1) + v0**2 / (m + _PRIOR + 2)
    t = distributions.t_quantile((1 + confidence_level) / 2, _df(variance, spread, _FEWEST_DF))
    margin = t * jnp.sqrt(variance) / u
    limits = expit(logit(centre) - margin), expit(logit(centre) + margin)
    limits = _ends(estimate, limits, sizes, confidence_level)
    within = wilson(centre, n1 * m / (n1 + m), confidence_level)
    return _around(estimate, _inside(limits, within))


def effective_size(share: Array, variance: Array, most: Array) -> Array:
    """The number of draws for which a proportion p has variance V: p (1 - p) / V, up to `most`."""
    size = numerics.divide(share * (1 - share), variance, jnp.inf)
    return jnp.minimum(jnp.where(size == 0, jnp.inf, size), most)


def wilson(estimate: ArrayLike, n: ArrayLike, confidence_level: ArrayLike) -> Limits:
    """The range of p with |estimate - p| <= z sqrt(p (1 - p) / n), for a proportion of `n` draws.

    `n` may be fractional; for n = 0 the limits are 0 and 1. E. B. Wilson, "Probable inference, the
    law of succession, and statistical inference", JASA 22, 1927.
    """
    estimate, n, confidence_level = (
        jnp.asarray(value, jnp.float64) for value in (estimate, n, confidence_level)
    )
    z2 = distributions.normal_quantile((1 + confidence_level) / 2) ** 2
    middle = n * estimate + z2 / 2
    margin = jnp.sqrt(z2 * (n * estimate * (1 - estimate) + z2 / 4))
    low, high = (middle - margin) / (n + z2), (middle + margin) / (n + z2)
    return _around(estimate, (jnp.maximum(low, 0.0), jnp.minimum(high, 1.0)))


def _beta_share(s2: Array, n: Array, largest: Array, pseudo: float) -> Array:
    """rho, the variance over its largest value, shrunk to 1 by `pseudo` of an observation."""
    rho = jnp.minimum(_known(s2, n, largest) / largest, 1.0)
    return rho + pseudo / n * (1 - rho)


def _beta_shape(mean: Array, rho: Array) -> tuple[Array, Array]:
    """The skewness of the Beta, and its kurtosis above the least possible, 1 + skewness^2."""
    skewness = 2 * (1 - 2 * mean) * jnp.sqrt(rho / (mean * (1 - mean))) / (1 + rho)
    return skewness, 2 * (1 - rho) / (1 + 2 * rho) * (1 + skewness**2 / 4)


def _window_bias(area: Array, m: Array, max_fpr: Array, tpr_at_max_fpr: Array) -> Array:
    """The upward bias of a partial area with few negatives in the window, at most half of it.

    The height at the end of the window is a mean of the observed one, with weight m, and that of
    the power law, with weight `_PRIOR`.
    """
    observed = tpr_at_max_fpr * jnp.clip(tpr_at_max_fpr / area - 1, 0.0, 1.0)
    h = _power(area, max_fpr)
    height = (m * observed + _PRIOR * area * (1 + h) * h) / (m + _PRIOR)
    return jnp.minimum(height * (1 - max_fpr) / (2 * m), area / 2)


def _power(area: Array, max_fpr: Array) -> Array:
    """The approximate exponent in the window of ROC curves with this partial area."""
    return jnp.minimum((0.55 + 0.65 * jnp.sqrt(max_fpr)) * (1 - area), 1.0)


def _spread(variance: Array, factor: ArrayLike, n: Array) -> Array:
    """variance^2 / df of a class, with df = (n - 1) / factor; infinite for one item."""
    several = n > 1
    return jnp.where(several, variance**2 * factor / jnp.where(several, n - 1, 1), jnp.inf)


def _power_law_variance(area: Array, max_fpr: Array) -> Array:
    """The variance of a negative's influence on the partial area, if the curve is the power law."""
    h = _power(area, max_fpr)
    return (area * h) ** 2 * (2 * (1 + h) / (1 + 2 * h) - max_fpr) / max_fpr


def _df(variance: Array, spread: Array, fewest: float) -> Array:
    """The degrees of freedom of a sum of variances: Welch 1947, Satterthwaite 1946."""
    return jnp.maximum(numerics.divide(variance**2, spread, jnp.inf), fewest)


def _known(s2: Array, n: Array, largest: Array) -> Array:
    """The variance, or, for a class of one item, the largest possible one."""
    return jnp.where(n > 1, s2, largest)


def _interior(estimate: Array, sizes: tuple[Array, Array]) -> Array:
    """The estimate, kept half a pair of items away from 0 and 1, where the logit is infinite."""
    margin = 1 / (2 * sizes[0] * sizes[1])
    return jnp.clip(estimate, margin, 1 - margin)


def _ends(
    estimate: Array,
    limits: Limits,
    sizes: tuple[Array, Array],
    confidence_level: Array,
    constant: ArrayLike = False,
) -> Limits:
    """The limits, replaced where the estimate is 0 or 1, or the influence is `constant`.

    The lower limit of a perfect sample is that of Clopper and Pearson for n successes of n, with n
    the size of the smaller class, unless `limits` has a lower one. An estimate of 0 is the reverse.
    """
    low, high = limits
    lowest = ((1 - confidence_level) / 2) ** (1 / jnp.minimum(*sizes))
    perfect = estimate >= jnp.where(constant, 0.5, 1 - _ROUNDING)
    worst = estimate <= jnp.where(constant, 0.5, _ROUNDING)
    low = jnp.where(worst, 0.0, jnp.where(perfect, jnp.minimum(low, lowest), low))
    high = jnp.where(perfect, 1.0, jnp.where(worst, jnp.maximum(high, 1 - lowest), high))
    return low, high


def _inside(limits: Limits, outer: Limits) -> Limits:
    return jnp.maximum(limits[0], outer[0]), jnp.minimum(limits[1], outer[1])


def _around(estimate: Array, limits: Limits) -> Limits:
    """Widened to contain the estimate, which a low level or a shifted centre may leave out."""
    return jnp.minimum(limits[0], estimate), jnp.maximum(limits[1], estimate)


def _doubles(moments: Moments) -> Moments:
    estimate, variances, sizes = moments

    def double(value: ArrayLike) -> Array:
        return jnp.asarray(value, jnp.float64)

    return Moments(
        double(estimate),
        (double(variances[0]), double(variances[1])),
        (double(sizes[0]), double(sizes[1])),
    )
