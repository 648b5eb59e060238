"""Closed-form intervals: from an estimate and its variance, by class, to confidence limits.

The functions here are parts of the rules of all metrics. They are written over the array library:
NumPy's, or JAX's within `double_precision()`. Arguments are in float64, may be arrays, may be
traced, and broadcast. A NaN estimate has NaN limits; any other estimate has finite limits if all
sizes are at least 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.types import Array
from jaxmetrics.inference._intervals import distributions
from jaxmetrics.inference._intervals.beta import beta_quantile, may_exceed
from jaxmetrics.inference._intervals.distributions import special

Limits = tuple[Array, Array]
Classes = Sequence[tuple[Array, Array]]

ROUNDING = 1e-12  # an estimate this near to 0 or 1 differs from it by rounding only
_ENDLESS = 1e200  # in place of infinity, whose product with 0 would be NaN in slopes
SIZE_ROUNDING = 1e-9  # of an effective size, relative to it

# The variance of a class amounts to a number of whole failures. Up to the first number it is not
# trusted, and from the second on it is.
_UNSEEN = (1 / 50, 1 / 25)

# From so many whole failures on, their limits differ from those of the variance by a few per cent
# of a width only, and their quantiles are saved.
MANY_FAILURES = (50.0, 100.0)


class Moments(NamedTuple):
    """The input of a closed-form interval: by class, the variance of the influence values.

    The metric is from 0 to 1, and here the influence values of each class have the estimate as
    their mean. Under weights the size of a class is its effective size (sum w)^2 / sum w^2, and the
    variance is this size times sum (w / sum w)^2 (influence - estimate)^2 * n / (n - 1).
    """

    estimate: Array  # [...]
    variances: tuple[Array, Array]  # unbiased, of negatives and of positives
    sizes: tuple[Array, Array]  # of negatives and of positives

    @property
    def library(self) -> Any:
        return numerics.namespace(self.estimate, *self.variances, *self.sizes)

    def of_each_value(self) -> Moments:
        """The moments of one row, once for each value of its estimate; NaN where that is NaN."""
        undefined = 0 * self.estimate
        negatives, positives = (x + undefined for x in self.variances)
        of_row = (self.library.broadcast_to(x, undefined.shape) for x in self.sizes)
        of_negatives, of_positives = of_row
        return Moments(self.estimate, (negatives, positives), (of_negatives, of_positives))


def standard_error(moments: Moments) -> Array:
    """sqrt(s0^2 / n0 + s1^2 / n1); NaN if a class has one item, as its variance is unknown."""
    library = moments.library

    def of_class(s2: Array, n: Array) -> Array:
        known = unrounded(numerics.without_nan(s2), moments.estimate)
        part = numerics.divide(known, library.where(n > 1, n, 0), library.nan)
        return library.where(library.isnan(s2), library.nan, part)

    of_classes = map(of_class, moments.variances, moments.sizes)
    return numerics.root(sum(of_classes))


def sixth_of_skewness(contributions: Array) -> Array:
    """S3 / S2^1.5 / 6, with S_k the sums of the k-th powers along the last axis."""
    library = numerics.namespace(contributions)
    squares = contributions**2
    second, third = (library.sum(x, axis=-1) for x in (squares, squares * contributions))
    return numerics.divide(third, second**1.5, 0.0) / 6


def logit_t(moments: Moments, level: Any) -> Limits:
    """expit(logit(A) -+ t sqrt(V) / (A (1 - A))), with A the estimate, V = s0^2 / n0 + s1^2 / n1.

    t has the degrees of freedom of Welch and Satterthwaite, V^2 / sum((s^2 / n)^2 / (n - 1)), at
    least 1. For any metric from 0 to 1.
    """
    variance, df = variance_by_welch(moments, 3.0)
    estimate, _, sizes = moments
    limits = on_logit(interior(estimate, sizes), variance, df, level)
    return around(estimate, ends(estimate, limits, sizes, level, variance))


def variance_by_welch(moments: Moments, kurtosis: float) -> tuple[Array, Array]:
    """The variance of `logit_t`, and its degrees of freedom.

    For the negatives n - 1 is divided by (kurtosis - 1) / 2, with the kurtosis of their influence.
    """
    estimate, variances, sizes = moments
    centre = interior(estimate, sizes)
    u = centre * (1 - centre)
    parts = [known(s2, n, u) / n for s2, n in zip(variances, sizes, strict=True)]
    variance = parts[0] + parts[1]
    spread = spread_of(parts[0], (kurtosis - 1) / 2, sizes[0])
    spread = spread + spread_of(parts[1], 1.0, sizes[1])
    return variance, degrees(variance, spread, 1.0)


def on_logit(centre: Array, variance: Array, df: Array, level: Any) -> Limits:
    """expit(logit(centre) -+ t sqrt(variance) / (centre (1 - centre)))."""
    t = distributions.t_quantile((1 + level) / 2, df)
    return around_logit(centre, variance, (t, t))


def around_logit(centre: Array, variance: Array, quantiles: tuple[Array, Array]) -> Limits:
    """The limits of `on_logit`, with a quantile for each side."""
    library = numerics.namespace(centre, variance, *quantiles)
    scale = numerics.root(variance) / (centre * (1 - centre))
    middle = special(library).logit(centre)
    below, above = quantiles
    low, high = (special(library).expit(middle + x * scale) for x in (-below, above))
    return low, high


def towards_the_end(t: Array, estimate: Array, level: Any) -> Array:
    """The quantile on the side of the nearer end of the scale: t + |2 A - 1| (z - t).

    A sample that lacks rare items has too small a variance and an estimate too near to an end. So
    the limit on the side of 1/2 needs the wider quantile t, and the other one does not.
    """
    z = distributions.normal_quantile((1 + level) / 2)
    return t + abs(2 * estimate - 1) * (z - t)


def draws_of_share(share: Array, variance: Array, most: Array) -> Array:
    """The number of draws for which a proportion p has variance V: p (1 - p) / V, up to `most`."""
    library = numerics.namespace(share, variance, most)
    size = numerics.divide(share * (1 - share), variance, library.inf)
    as_many = size > (1 - SIZE_ROUNDING) * most
    return library.where((share * (1 - share) <= ROUNDING) | as_many, most, size)


def wilson(estimate: Array, n: Array, level: Any) -> Limits:
    """The range of p with |estimate - p| <= z sqrt(p (1 - p) / n), for a proportion of `n` draws.

    `n` may be fractional; for n = 0 the limits are 0 and 1. E. B. Wilson, "Probable inference, the
    law of succession, and statistical inference", JASA 22, 1927.
    """
    library = numerics.namespace(estimate, n)
    z2 = distributions.normal_quantile((1 + level) / 2) ** 2
    middle = n * estimate + z2 / 2
    margin = library.sqrt(z2 * (n * estimate * (1 - estimate) + z2 / 4))
    low, high = (middle - margin) / (n + z2), (middle + margin) / (n + z2)
    return around(estimate, (library.maximum(low, 0.0), library.minimum(high, 1.0)))


def of_few_failures(
    limits: Limits, share: Array, n: Array, fewest: tuple[float, float], level: Any
) -> Limits:
    """Limits widened to Beta ones where hardly a failure, or hardly a success, has been seen.

    A sample without a rare low positive looks like one of a perfect model, and has its variance.
    For n A soft successes of n, Jeffreys's lower limit is BetaInv(alpha / 2; n A + 1/2,
    n (1 - A) + 1/2). The lower limit moves to it, if that is lower, as n (1 - A) falls from the
    second of the numbers `fewest` to the first; the upper one likewise, by n A.
    """
    library = numerics.namespace(share, n, *limits)
    successes, failures = n * share, n * (1 - share)
    low, high = limits
    if library is np and not np.any(np.minimum(successes, failures) < fewest[1]):
        return limits  # Beta quantiles of many slices take longer than all else
    needed = (lacking(count, fewest) > 0 for count in (failures, successes))
    lower, upper = jeffreys(successes, n, level, *needed)
    low = towards(low, library.minimum(low, lower), failures, fewest)
    high = towards(high, library.maximum(high, upper), successes, fewest)
    return low, high


def of_rare_items(limits: Limits, share: Array, classes: Classes, level: Any) -> Limits:
    """Limits widened for rare items that a sample may lack, where a class hardly varies.

    `classes` are pairs of a variance s^2 and a size n. If a few of the n items of a class failed
    wholly, and all others had one influence, their number would be n s^2 / A^2. As this number
    falls from 1/25 to 1/50, the lower limit moves to A BetaInv(alpha / 2; n + 1/2, 1/2), if that is
    lower: A times Jeffreys's limit for n successes of n. The upper one likewise, by 1 - A. Of the
    limits for the two classes, the further one counts.
    """
    library = numerics.namespace(share, *limits)
    low, high = limits
    for s2, n in classes:
        failures, successes = (n * s2 / x**2 for x in (share, 1 - share))
        least = all_of(n, level, lacking(library.minimum(failures, successes), _UNSEEN) > 0)
        lower, upper = share * least, 1 - (1 - share) * least
        lower = towards(limits[0], library.minimum(limits[0], lower), failures, _UNSEEN)
        upper = towards(limits[1], library.maximum(limits[1], upper), successes, _UNSEEN)
        low, high = library.minimum(low, lower), library.maximum(high, upper)
    return low, high


def of_whole_failures(limits: Limits, share: Array, classes: Classes, level: Any) -> Limits:
    """Limits widened for rare items, by the number of failures that a variance amounts to.

    Unlike `of_rare_items`, it does not depend on a number below which a variance is not trusted. If
    f = n s^2 / A^2 of the n items of a class failed wholly, and all others had one influence, s^2
    would be the variance. The share of such items would have the upper limit
    p = BetaInv(1 - alpha / 2; f + 1/3, n - f + 1/3), or Jeffreys's with 1/2 where nothing varies.
    The lower limit is at most A (1 - (p - f / n)). The upper one likewise, by 1 - A. For many
    failures (`MANY_FAILURES`) the limits stay as they are.
    """
    library = numerics.namespace(share, *limits)
    (v0, n0), (v1, n1) = classes
    low, high, share, v0, n0, v1, n1 = library.broadcast_arrays(*limits, share, v0, n0, v1, n1)
    near = library.stack([low, 1 - high])[:, None]  # [sides, classes, ...], as all that follows
    parts = library.stack([share, 1 - share])[:, None]
    s2, n = library.stack([v0, v1]), library.stack([n0, n1])
    failures = n * s2 / parts**2
    limit = parts * (1 - unseen(failures, n, level, 1 - near / parts))
    lower, upper = towards(near, library.minimum(near, limit), failures, MANY_FAILURES).min(axis=1)
    return library.minimum(low, lower), library.maximum(high, 1 - upper)


def unseen(count: Array, n: Array, level: Any, room: Array) -> Array:
    """How far the upper limit of a share exceeds count / n; 0 where it surely is within `room`."""
    library = numerics.namespace(count, n, room)
    seen = library.minimum(count, n)
    added = library.where(count > ROUNDING, 1 / 3, 1 / 2)
    a, b, tail = seen + added, n - seen + added, (1 + level) / 2
    needed = lacking(count, MANY_FAILURES) > 0
    needed = needed & may_exceed(library.clip(seen / n + room, 0.0, 1.0), tail, a, b)
    most = beta_quantile(tail, a, b, needed)
    return library.where(needed, library.maximum(most - seen / n, 0.0), 0.0)


def all_of(n: Array, level: Any, needed: Any = True) -> Array:
    """The lower limit of a share that all of n items have: BetaInv(alpha / 2; n + 1/2, 1/2)."""
    return jeffreys_limit(-1, n, n, level, needed)


def towards(limit: Array, other: Array, count: Array, fewest: tuple[float, float]) -> Array:
    """From `limit` to `other` as a count falls from the second number of `fewest` to the first."""
    share = lacking(count, fewest)
    return numerics.namespace(share).where(share == 0, limit, limit + share * (other - limit))


def lacking(count: Array, fewest: tuple[float, float]) -> Array:
    """From 0 to 1 as a count falls from the second number of `fewest` to the first."""
    last, first = fewest
    return numerics.namespace(count).clip((first - count) / (first - last), 0.0, 1.0)


def jeffreys(
    successes: Array, n: Array, level: Any, low_needed: Any = True, high_needed: Any = True
) -> Limits:
    """BetaInv(alpha / 2; k + 1/2, n - k + 1/2) and BetaInv(1 - alpha / 2; the same)."""
    sides = (-1, low_needed), (1, high_needed)
    low, high = jeffreys_limits(*((side, successes, n, level, needed) for side, needed in sides))
    return low, high


def jeffreys_limit(side: int, successes: Array, n: Array, level: Any, needed: Any = True) -> Array:
    """Jeffreys's lower limit for side -1, or the upper one for side 1."""
    return jeffreys_limits((side, successes, n, level, needed))[0]


def jeffreys_limits(*asked: tuple[int, Array, Array, Any, Any]) -> Array:
    """Many of `jeffreys_limit`, `[limits, ...]`, in one call: a Beta quantile's program is long."""
    library = numerics.namespace(*(x for one in asked for x in one[1:4]))
    columns = [
        ((1 + side * level) / 2, k + 0.5, n - k + 0.5, needed)
        for side, k, n, level, needed in asked
    ]
    if len(columns) == 1:
        return beta_quantile(*columns[0])[None]
    each = library.broadcast_arrays(*(x for column in columns for x in column))
    return beta_quantile(*(library.stack(each[i::4]) for i in range(4)))


def spread_of(variance: Array, factor: Any, n: Array) -> Array:
    """variance^2 / df of a class, with df = (n - 1) / factor; as good as infinite for one item."""
    library, several = numerics.namespace(variance, n), n > 1
    return library.where(
        several, variance**2 * factor / library.where(several, n - 1, 1.0), _ENDLESS
    )


def degrees(variance: Array, spread: Array, fewest: float) -> Array:
    """The degrees of freedom of a sum of variances: Welch 1947, Satterthwaite 1946."""
    library = numerics.namespace(variance, spread)
    return library.maximum(numerics.divide(variance**2, spread, library.inf), fewest)


def known(s2: Array, n: Array, largest: Array) -> Array:
    """The variance, or, for a class of one item, the largest possible one."""
    return numerics.namespace(s2, n, largest).where(n > 1, s2, largest)


def interior(estimate: Array, sizes: tuple[Array, Array]) -> Array:
    """The estimate, kept half a pair of items away from 0 and 1, where the logit is infinite."""
    margin = 1 / (2 * sizes[0] * sizes[1])
    return numerics.namespace(estimate, *sizes).clip(estimate, margin, 1 - margin)


def ends(
    estimate: Array,
    limits: Limits,
    sizes: tuple[Array, Array],
    level: Any,
    variance: Array | None = None,
) -> Limits:
    """The limits, replaced where the estimate is 0 or 1, or the variance is 0.

    The lower limit of a perfect sample is that of Clopper and Pearson, L, for n successes of n,
    with n the size of the smaller class, unless `limits` has a lower one. An estimate of 0 is the
    reverse. If `variance` is given (a perfect recall still varies by its threshold), L replaces the
    lower limit, and is for fewer draws: their variance at p = (n + 1/2) / (n + 1) is that of n
    draws plus `variance`. An estimate A in between with a `variance` of 0, as when scores all
    tie, counts as n draws that are all alike. A share 1 - L of other ones would move it to L A, or
    to 1 - L (1 - A).
    """
    library = numerics.namespace(estimate, *limits, *sizes)
    low, high = limits
    n: Any = library.minimum(*sizes)
    constant: Any = False
    if variance is not None:
        p = (n + 0.5) / (n + 1)
        n, constant = draws_of_share(p, p * (1 - p) / n + variance, n), variance <= 0
    lowest = ((1 - level) / 2) ** (1 / n)
    perfect, worst = estimate >= 1 - ROUNDING, estimate <= ROUNDING
    low, high = (
        library.where(constant, moved, x)
        for x, moved in ((low, lowest * estimate), (high, 1 - lowest * (1 - estimate)))
    )
    least, most = lowest, 1 - lowest
    if variance is None:
        least, most = library.minimum(low, least), library.maximum(high, most)
    low = library.where(worst, 0.0, library.where(perfect, least, low))
    high = library.where(perfect, 1.0, library.where(worst, most, high))
    return low, high


def unrounded(variance: Array, estimate: Array) -> Array:
    """The variance; 0 where it is the rounding of 0, as in sums over devices or clusters."""
    return numerics.above_rounding(variance, (ROUNDING * estimate) ** 2)


def unless_one(x: Array, n: Array) -> Array:
    """x, and NaN without a slope for a class of one item, whose variance is unknown."""
    return numerics.namespace(x, n).where(n == 1, np.nan, x)


def inside(limits: Limits, outer: Limits) -> Limits:
    library = numerics.namespace(*limits, *outer)
    return library.maximum(limits[0], outer[0]), library.minimum(limits[1], outer[1])


def hull(limits: Limits, others: Limits) -> Limits:
    library = numerics.namespace(*limits, *others)
    return library.minimum(limits[0], others[0]), library.maximum(limits[1], others[1])


def around(estimate: Array, limits: Limits) -> Limits:
    """Widened to contain the estimate, which a low level or a shifted centre may leave out."""
    library = numerics.namespace(estimate, *limits)
    return library.minimum(limits[0], estimate), library.maximum(limits[1], estimate)
