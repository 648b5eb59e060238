"""Closed-form intervals of the area under the ROC curve and of a part of it."""

from __future__ import annotations

from typing import Any

from jaxmetrics._base import numerics
from jaxmetrics._base.types import Array
from jaxmetrics.inference._intervals import distributions
from jaxmetrics.inference._intervals.informative import of_fewer
from jaxmetrics.inference._intervals.rules import (
    Limits,
    Moments,
    all_of,
    around,
    around_logit,
    degrees,
    ends,
    inside,
    interior,
    known,
    of_few_failures,
    of_rare_items,
    of_whole_failures,
    spread_of,
    towards,
    towards_the_end,
    wilson,
)

# The weight of a pseudo-observation with the largest possible variance, which is added to the
# variance of a class; the second is the least one.
_PSEUDO_AUC = 1 / 8
_PSEUDO_PARTIAL = 1 / 3
PRIOR = 2.0  # the power law's variance counts as this many negatives in the window
_SKEWNESS = 1 / 2  # the part of the power law's skewness that is removed
_FEWEST_DF = 4.0  # the least degrees of freedom
# The variance is not trusted up to the first number of soft failures n (1 - A), and is trusted from
# the second on: of the positives or of the negatives in the window, and of the positives.
_FEWEST = (0.25, 0.375)
_FEWEST_POSITIVES = (1.0, 1.5)


def auc(moments: Moments, level: Any) -> Limits:
    """The limits of the area under the ROC curve: logit, t and a correction for skewness.

    expit(logit A - sqrt(V) / (A (1 - A)) T(+-t)). The influence values of a class are means of
    Bernoulli draws, so their distribution is close to the Beta with mean A and variance
    rho A (1 - A). The Beta supplies the skewness g and the kurtosis, which a small sample cannot. A
    pseudo-observation of rho = 1 keeps the variance from being far too small by chance. The degrees
    of freedom follow from the kurtosis. T removes the skewness, which balances the two tails. The
    interval is not wider than Wilson's for n0 n1 / (n0 + n1) draws, which is the case rho = 1.
    `of_whole_failures` then widens it for rare items, of which a sample has few or none. Where
    weights are correlated with the scores, rho may exceed 1: `of_fewer` then lowers the sizes.

    For the limit on the side of 1/2 the quantile is Student's. For the other limit it moves to the
    normal one as |2 A - 1| rises from 0 to 1.

    Found by simulation: see the coverage table in the documentation.
    """
    library = moments.library
    largest = moments.estimate * (1 - moments.estimate)
    estimate, variances, sizes = of_fewer(moments, (largest, largest))
    area = interior(estimate, sizes)
    u = area * (1 - area)
    variance = spread = third = library.zeros_like(u)
    for s2, n in zip(variances, sizes, strict=True):
        rho = _beta_share(s2, n, u, _PSEUDO_AUC)
        skewness, excess = beta_shape(area, rho)
        part = rho * u / n
        variance = variance + part
        third = third + skewness * part * library.sqrt(part / n)
        spread = spread + spread_of(part, (excess + skewness**2 / 2) / 2, n)
    t = distributions.t_quantile((1 + level) / 2, degrees(variance, spread, _FEWEST_DF))

    skewness = third / (variance * library.sqrt(variance))
    curvature = library.sqrt(variance) / u * (2 * area - 1) / 2  # of the logit: see `_of_skewed`
    near = towards_the_end(t, area, level)
    below, above = library.where(area > 0.5, t, near), library.where(area > 0.5, near, t)
    quantiles = _of_skewed((below, above), skewness, curvature)
    limits = around_logit(area, variance, quantiles)
    limits = ends(estimate, limits, sizes, level)
    n0, n1 = sizes
    limits = inside(limits, wilson(area, n0 * n1 / (n0 + n1), level))
    classes = [(known(s2, n, u), n) for s2, n in zip(variances, sizes, strict=True)]
    return around(estimate, of_whole_failures(limits, area, classes, level))


def partial_auc(moments: Moments, level: Any, max_fpr: Array, tpr_at_max_fpr: Array) -> Limits:
    """The limits of the area under the ROC curve up to `max_fpr`, divided by `max_fpr`.

    expit(logit e - sqrt(V0 + V1) / (e (1 - e)) T(+-t)). The window holds only m = n0 max_fpr
    negatives, which biases the estimate upwards; e is the estimate without the bias, of
    `centre_of_window`. V1 is as in `auc`, but the weight of the pseudo-observation rises with the
    area. V0 depends on the m negatives alone, so it is shrunk towards the variance of a power law,
    ROC(u) = r (u / max_fpr)^h, with h a function of e and `max_fpr`. A sample that lacks high
    negatives has too large an estimate and too small a V0: T removes half of the skewness that the
    power law gives the negatives' part. The quantile above is at least the normal one.

    Three cases widen the interval. Where hardly a positive is missed, or found, it is as wide as
    Jeffreys's for the positives, and for the negatives in the window if they are fewer. Where
    hardly a positive is missed, it allows for negatives above all positives that were not drawn.
    Where the positives hardly vary, it allows for rare positives that were not drawn.

    `moments` are those of the divided area. `tpr_at_max_fpr` is the height of the curve, or the
    middle of the step if `max_fpr` falls on one.

    Found by simulation: see the coverage table in the documentation. Unreliable with fewer than
    about three negatives in the window.
    """
    library = moments.library
    largest = moments.estimate * (1 - moments.estimate)
    estimate, (s2_0, s2_1), sizes = of_fewer(moments, (largest / max_fpr, largest))
    n0, n1 = sizes
    m = n0 * max_fpr

    area = interior(estimate, sizes)
    centre = centre_of_window(area, sizes, max_fpr, tpr_at_max_fpr)
    u = centre * (1 - centre)

    pseudo = _PSEUDO_PARTIAL + (1 - _PSEUDO_PARTIAL) * area
    rho = _beta_share(s2_1, n1, area * (1 - area), pseudo)
    v1 = rho * u / n1
    _, excess = beta_shape(centre, rho)

    s2_0 = known(s2_0, n0, u / max_fpr)
    v0 = (m * s2_0 + PRIOR * power_law_variance(centre, max_fpr)) / (m + PRIOR) / n0

    variance = v0 + v1
    spread = spread_of(v1, excess / 2, n1) + v0**2 / (m + PRIOR + 2)
    t = distributions.t_quantile((1 + level) / 2, degrees(variance, spread, _FEWEST_DF))
    share = v0 / variance
    skewness = _SKEWNESS * power_law_skewness(centre, max_fpr) * share * library.sqrt(share / n0)
    below, above = _of_skewed((t, t), skewness)
    above = library.maximum(above, distributions.normal_quantile((1 + level) / 2))
    limits = around_logit(centre, variance, (below, above))
    limits = ends(estimate, limits, sizes, level)
    limits = inside(limits, wilson(centre, n1 * m / (n1 + m), level))
    share = library.clip(estimate, 0.0, 1.0)
    limits = of_few_failures(limits, share, n1, _FEWEST_POSITIVES, level)
    fewest = library.minimum(n1, m)
    low, high = of_few_failures(limits, share, fewest, _FEWEST, level)
    lowest = library.minimum(low, library.maximum(1 - (1 - all_of(n0, level)) / max_fpr, 0.0))
    limits = towards(low, lowest, fewest * (1 - share), _FEWEST), high
    positives = known(s2_1, n1, area * (1 - area)), n1
    return around(estimate, of_rare_items(limits, area, [positives], level))


def centre_of_window(
    area: Array, sizes: tuple[Array, Array], max_fpr: Array, tpr_at_max_fpr: Array
) -> Array:
    """The partial area without the upward bias that few negatives in the window give it.

    The bias is about H h (1 - max_fpr) / (2 m), with m = n0 max_fpr, H the height of the curve at
    `max_fpr` and h the exponent of a power law. For H h (`height` below) this takes a mean of the
    observed H (H / area - 1), with weight m, and of the power law's area (1 + h) h, with weight
    `PRIOR`. The bias is taken to be at most half of the area.
    """
    library = numerics.namespace(area, *sizes, max_fpr, tpr_at_max_fpr)
    m = sizes[0] * max_fpr
    observed = tpr_at_max_fpr * library.clip(tpr_at_max_fpr / area - 1, 0.0, 1.0)
    h = power(area, max_fpr)
    height = (m * observed + PRIOR * area * (1 + h) * h) / (m + PRIOR)
    bias = library.minimum(height * (1 - max_fpr) / (2 * m), area / 2)
    return interior(area - bias, sizes)


def power(area: Array, max_fpr: Array) -> Array:
    """The approximate exponent h of ROC curves r (u / max_fpr)^h with this divided partial area."""
    library = numerics.namespace(area, max_fpr)
    return library.minimum((0.55 + 0.65 * library.sqrt(max_fpr)) * (1 - area), 1.0)


def power_law_variance(area: Array, max_fpr: Array) -> Array:
    """The variance of a negative's influence on the partial area, if the curve is the power law."""
    h = power(area, max_fpr)
    return (area * h) ** 2 * (2 * (1 + h) / (1 + 2 * h) - max_fpr) / max_fpr


def height_variance(height: Array, max_fpr: Array) -> Array:
    """The variance of a negative's influence on the height at `max_fpr`, under the power law."""
    h = power(height / (1 + power(height, max_fpr)), max_fpr)  # the argument is about the area
    return (height * h) ** 2 * (1 - max_fpr) / max_fpr


def power_law_skewness(area: Array, max_fpr: Array) -> Array:
    """The skewness of a negative's influence on the partial area, if the curve is the power law.

    The influence is (u / max_fpr)^h - 1 within the window, and 0 outside.
    """
    h = power(area, max_fpr)
    # `second` and `third` are E (1 - v^h)^k / (E (1 - v^h))^k, for v uniform on [0, 1].
    second = 2 * (1 + h) / (1 + 2 * h)
    third = second * 3 * (1 + h) / (1 + 3 * h)
    centred = third - 3 * max_fpr * second + 2 * max_fpr**2
    rest, root = second - max_fpr, numerics.namespace(area, max_fpr).sqrt
    return -centred / (rest * root(max_fpr * rest))


def _of_skewed(quantiles: Limits, skewness: Array, curvature: Any = 0.0) -> Limits:
    """Quantiles below and above an estimate, corrected for the skewness of its distribution.

    T(x) = y (1 + |b y|) where b y < 0, else y / (1 + |b y|), with y = x - skewness / 6 and
    b = skewness / 3 + curvature. `curvature` is f'' SE / (2 f'), for limits on the scale f.
    """
    library = numerics.namespace(skewness, *quantiles)
    bend = skewness / 3 + curvature

    def transformed(x: Array) -> Array:
        y = x - skewness / 6
        bent = abs(bend * y)
        return library.where(bend * y < 0, y * (1 + bent), y / (1 + bent))

    below, above = quantiles
    return transformed(below), -transformed(-above)


def beta_shape(mean: Array, rho: Array) -> tuple[Array, Array]:
    """The skewness of the Beta, and its kurtosis less the least possible one, 1 + skewness^2."""
    library = numerics.namespace(mean, rho)
    skewness = 2 * (1 - 2 * mean) * library.sqrt(rho / (mean * (1 - mean))) / (1 + rho)
    return skewness, 2 * (1 - rho) / (1 + 2 * rho) * (1 + skewness**2 / 4)


def _beta_share(s2: Array, n: Array, largest: Array, pseudo: Array | float) -> Array:
    """rho, the variance over its largest value, shrunk towards 1 with weight `pseudo` / n."""
    rho = numerics.namespace(s2, n, largest).minimum(known(s2, n, largest) / largest, 1.0)
    return rho + pseudo / n * (1 - rho)
