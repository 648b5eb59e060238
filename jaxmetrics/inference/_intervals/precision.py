"""The closed-form interval of average precision."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.types import Array
from jaxmetrics.inference._intervals import distributions
from jaxmetrics.inference._intervals.distributions import special
from jaxmetrics.inference._intervals.rules import (
    MANY_FAILURES,
    ROUNDING,
    Limits,
    Moments,
    all_of,
    around,
    around_logit,
    interior,
    jeffreys_limit,
    known,
    lacking,
    of_rare_items,
    towards,
    towards_the_end,
    unseen,
    variance_by_welch,
)

# The upper limit is a Beta one up to the first number of soft successes n1 A, and a logit one from
# the second on; likewise for the number of positives above all negatives.
_FEW = (4.0, 6.0)
_FEW_ABOVE = (1.0, 2.0)

# The lower limit is a Beta one up to the first number of soft failures n1 (1 - A), and a logit one
# from the second on.
_FEWEST = (0.5, 1.0)

# The kurtosis of the influence of the negatives: a few high ones have most of it.
KURTOSIS = np.float64(21)

# The curvature of the margins of differences. Two estimates that are d apart by chance also have
# variances that are too small by chance: if the logit has a constant variance, that of A is
# proportional to (A (1 - A))^2. Around A = 1/2 it is 1 + 2 d^2 times as large halfway between the
# two as at them. With y = t sqrt(V) the root of d^2 = y^2 (1 + 2 d^2) is d = y + y^3, up to y^5.
CURVATURE = np.float64(1)

_MANY = 100.0  # odds from which on the series of the logarithm is exact to 1e-13
_TINY = 1e-150  # whose reciprocal has a finite square, which is in a slope


class Precisions(NamedTuple):
    """What the interval needs beside the moments.

    Attributes:
      without_itself: the average of (C - 1/2) / (C - 1/2 + F) over the positives, with C true and F
        false positives at the score of a positive.
      odds: the number of negatives per positive.
    """

    without_itself: Array
    odds: Array


def average_precision(moments: Moments, level: Any, numbers: Precisions) -> Limits:
    """The limits of average precision: logit ones, moved for its bias and for items not drawn.

    A positive counts itself in its own precision, so the estimate A is biased upwards. In A', which
    is `without_itself`, each precision C / (C + F) is (C - 1/2) / (C - 1/2 + F). The lower limit is
    moved by logit A' - logit A, if that lowers it. The degrees of freedom of the negatives are
    those of a variance with heavy tails. The quantile of the upper limit moves from Student's to
    the normal one as A goes from 1/2 to 1. Where a class hardly varies, for example where all
    scores tie, `of_rare_items` widens the limits.

    The logit limits ignore high positives that were not drawn. Suppose that a share p of the
    positives is above all negatives and the rest below: A determines p, and k = n1 p. Where n1 A is
    below 4 or k is below 1, the upper limit is at least both of these: the average precision with
    p = BetaInv(1 - alpha / 2; k + 1/2, n1 - k + 1/2); and the one where a share
    BetaInv(alpha / 2; n0 + 1/2, 1/2) of the negatives is above all positives. It moves back to the
    logit limit as n1 A rises to 6 and k to 2.

    They also ignore low positives that were not drawn: for n1 (1 - A) below 1/2 the lower limit is
    at most BetaInv(alpha / 2; n1 A + 1/2, n1 (1 - A) + 1/2), and it moves back as n1 (1 - A) rises
    to 1. `_of_high_negatives` lowers it for high negatives that were not drawn. No limit is below
    the average precision of reversed scores.

    Found by simulation: see the coverage table in the documentation.
    """
    library = moments.library
    estimate, _, sizes = moments
    n0, n1 = sizes
    odds = numbers.odds
    area = interior(estimate, sizes)
    variance, df = variance_by_welch(moments, KURTOSIS)
    t = distributions.t_quantile((1 + level) / 2, df)
    above = library.where(area > 0.5, towards_the_end(t, area, level), t)
    limits = around_logit(area, variance, (t, above))
    low, high = (library.where(variance > 0, x, area) for x in limits)
    low, high = _at_one(estimate, (low, high), sizes, odds, level)
    low = _without_itself(low, estimate, numbers.without_itself)
    low, high = _of_rare_items(moments, (low, high), odds, level)

    seen = all_of(n0, level)
    k = n1 * library.clip(_share_above(estimate, odds), 0.0, 1.0)
    successes = n1 * library.clip(estimate, 0.0, 1.0)
    few = (lacking(successes, _FEW) > 0) | (lacking(k, _FEW_ABOVE) > 0)
    drawn = _of_share_above(jeffreys_limit(1, k, n1, level, few), odds)
    widest = library.maximum(high, library.maximum(drawn, _of_odds(odds * seen)))
    high = library.maximum(
        towards(high, widest, successes, _FEW), towards(high, widest, k, _FEW_ABOVE)
    )
    failures = n1 - successes
    of_positives = jeffreys_limit(-1, successes, n1, level, lacking(failures, _FEWEST) > 0)
    low = towards(low, library.minimum(low, of_positives), failures, _FEWEST)
    low = _of_high_negatives(low, moments, odds, level)
    return around(estimate, (library.maximum(low, _of_odds(odds)), high))


def _at_one(
    estimate: Array, limits: Limits, sizes: tuple[Array, Array], odds: Array, level: Any
) -> Limits:
    """The limits, replaced where the estimate is 1.

    The upper one is 1. The lower one is the lowest of three: the one given; Clopper and Pearson's
    for n1 successes of n1; and, with L theirs for n0 successes of n0, the average precision where a
    share 1 - L of the negatives is above all positives.
    """
    library = numerics.namespace(estimate, *limits, *sizes)
    perfect = estimate >= 1 - ROUNDING
    of_negatives, of_positives = (((1 - level) / 2) ** (1 / n) for n in sizes)
    least = library.minimum(of_positives, _of_odds(odds * (1 - of_negatives)))
    low = library.where(perfect, library.minimum(limits[0], least), limits[0])
    return low, library.where(perfect, 1.0, limits[1])


def _of_rare_items(moments: Moments, limits: Limits, odds: Array, level: Any) -> Limits:
    """`of_rare_items` on the range of average precision: from that of reversed scores to 1."""
    estimate, variances, sizes = moments
    least = _of_odds(odds)
    reach = moments.library.maximum(1 - least, _TINY)
    share = interior((estimate - least) / reach, sizes)
    u = share * (1 - share)
    apart = [known(s2, n, 0 * reach) for s2, n in zip(variances, sizes, strict=True)]
    classes = [(known(s2 / reach**2, n, u), n) for s2, n in zip(apart, sizes, strict=True)]
    low, high = ((x - least) / reach for x in limits)
    low, high = of_rare_items((low, high), share, classes, level)
    # A low positive counts twice: it is not found, and it lowers the precision of those that are.
    twice = [(classes[1][0], sizes[1] / 2)]
    low, _ = of_rare_items((low, high), share, twice, level)
    return least + reach * low, least + reach * high


def _without_itself(low: Array, estimate: Array, without_itself: Array) -> Array:
    """The lower limit, moved on the logit scale as the estimate moves, if that lowers it."""
    library = numerics.namespace(low, estimate, without_itself)
    logit, expit = special(library).logit, special(library).expit
    inner = [library.clip(x, _TINY, 1 - 2.0**-53) for x in (without_itself, estimate, low)]
    moved = expit(logit(inner[0]) - (logit(inner[1]) - logit(inner[2])))
    edge = (without_itself <= 0) | (low <= 0) | (estimate <= 0)
    edge = edge | (without_itself >= 1) | (low >= 1) | (estimate >= 1 - ROUNDING)
    return library.where(edge, low, library.minimum(low, moved))


def _of_high_negatives(low: Array, moments: Moments, odds: Array, level: Any) -> Array:
    """The lower limit, lowered for high negatives that were not drawn.

    A share x of the negatives above all positives lowers A by L(x) = A (1 - g(odds x)), with g of
    `_of_odds`. The negatives' part V0 of the variance V amounts to f = V0 / L(1 / n0)^2 such
    negatives. Their true share may be as high as p, the upper limit of `unseen` for f of n0. The
    squared margin is therefore a mean of two: itself, with weight 1 - V0 / V, and
    (L(p) - L(f / n0))^2 if that is larger, with weight V0 / V. As f rises from 50 to 100, the
    limit moves back to the one that the variance gives.
    """
    library = moments.library
    estimate, variances, sizes = moments
    area, n0 = interior(estimate, sizes), sizes[0]
    largest = area * (1 - area)
    parts = [known(s2, n, largest) / n for s2, n in zip(variances, sizes, strict=True)]
    share = numerics.divide(parts[0], parts[0] + parts[1], 0.0)

    def lost(above: Array) -> Array:
        return area * (1 - _of_odds(odds * above))

    count = library.minimum(parts[0] / lost(1 / n0) ** 2, n0)
    most = count / n0 + unseen(count, n0, level, library.zeros_like(count))
    margin = lost(most) - lost(count / n0)
    own = (area - low) ** 2
    lowered = area - numerics.root(own + share * library.maximum(margin**2 - own, 0.0))
    return towards(low, library.minimum(low, lowered), count, MANY_FAILURES)


def _of_odds(odds: Array) -> Array:
    """The average precision with `odds` negatives per positive above all positives.

    The mean of t / (t + odds) over t from 0 to 1: 1 - odds log(1 + 1 / odds).
    """
    library = numerics.namespace(odds)
    odds = library.maximum(odds, _TINY)
    y = 1 / library.maximum(odds, _MANY)
    series = y * (1 / 2 - y * (1 / 3 - y * (1 / 4 - y * (1 / 5 - y * (1 / 6 - y / 7)))))
    return library.where(odds < _MANY, 1 - odds * library.log1p(1 / odds), series)


def _of_share_above(share: Array, odds: Array) -> Array:
    """The average precision if a share of the positives is above all negatives, the rest below."""
    return 1 - odds * numerics.namespace(share).log1p((1 - share) / (share + odds))


def _share_above(area: Array, odds: Array) -> Array:
    """The inverse of `_of_share_above`; below 0 if `area` is below that of reversed scores."""
    library = numerics.namespace(area, odds)
    return 1 + (1 + odds) * library.expm1((area - 1) / library.maximum(odds, _TINY))
