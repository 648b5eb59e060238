"""The closed-form interval of recall at a false positive rate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jaxmetrics._base import numerics
from jaxmetrics._base.types import Array
from jaxmetrics.inference._intervals import distributions
from jaxmetrics.inference._intervals.areas import centre_of_window, power
from jaxmetrics.inference._intervals.effective import nearly_whole, to_ends
from jaxmetrics.inference._intervals.informative import of_fewer
from jaxmetrics.inference._intervals.rules import (
    Limits,
    Moments,
    around,
    draws_of_share,
    interior,
    jeffreys_limits,
    lacking,
    towards,
    wilson,
)

# Jeffreys's limit holds up to the first number of positives that are missed, or found, and Wilson's
# from the second on.
_FEWEST = (2.0, 3.0)
_LIBERAL = 0.46  # times z^1.5: the normal quantile of the box's tails, which are 2 alpha at 95 %
_STRICT = 1 / 40  # this part of alpha is the tail probability of the outermost limits
_PRIOR = 2.0  # the power law's slope counts as this many negatives around the limit


class Heights(NamedTuple):
    """What the interval needs of the ROC curve, `[...]`; heights are the largest TPR within an FPR.

    Attributes:
      at: the height at `max_fpr`.
      before: the height just before it.
      lower, upper: the heights at the two FPRs of `around_limit`.
      area: the partial area up to `max_fpr`, divided by `max_fpr`.
    """

    at: Array
    before: Array
    lower: Array
    upper: Array
    area: Array


class Box(NamedTuple):
    """Heights of the curve for likely numbers k of negatives above the true threshold.

    The TPR is then between a lower height, at FPR (k - 1) / n0, and an upper height, at k / n0.

    Attributes:
      fewest: the lower height for the smallest likely k.
      last, most: the lower and the upper height for the largest likely k.
      lowest, highest: the lower height for a smallest k and the upper one for a largest k that are
        hardly ever exceeded.
    """

    fewest: Array
    last: Array
    most: Array
    lowest: Array
    highest: Array


def around_limit(max_fpr: Array, n0: Array) -> tuple[Array, Array]:
    """max_fpr -+ min(max_fpr / 2, sqrt(max_fpr (1 - max_fpr) / n0)), at most 1."""
    library = numerics.namespace(max_fpr, n0)
    nearby = library.minimum(max_fpr / 2, library.sqrt(max_fpr * (1 - max_fpr) / n0))
    return max_fpr - nearby, library.minimum(max_fpr + nearby, 1.0)


def squared_slope(heights: Heights, max_fpr: Array, sizes: tuple[Array, Array]) -> Array:
    """The square of the slope of the curve at the limit, shrunk towards that of a power law.

    (M slope^2 + 2 s^2) / (M + 2). slope is that of the chord between the two limits of
    `around_limit`, M = n0 times their distance, and s = e (1 + h) h / max_fpr is the slope of the
    curve r (u / max_fpr)^h with the partial area e.
    """
    low, high = around_limit(max_fpr, sizes[0])
    m = sizes[0] * (high - low)
    slope = numerics.divide(heights.upper - heights.lower, high - low, 0.0)
    area = interior(heights.area, sizes)
    centre = centre_of_window(area, sizes, max_fpr, middle(heights))
    h = power(centre, max_fpr)
    prior = centre * (1 + h) * h / max_fpr
    return (m * slope**2 + _PRIOR * prior**2) / (m + _PRIOR)


def middle(heights: Heights) -> Array:
    """The height at `max_fpr`; the middle of the step if it falls on one."""
    return (heights.at + heights.before) / 2


def likely_counts(max_fpr: Array, n0: Array, level: Any) -> tuple[Array, ...]:
    """The FPRs of the heights of Box, in its order: numbers of negatives over n0.

    The number of negatives above the true threshold is binomial. With `fewest` and `most` its
    quantiles at q and 1 - q, these are fewest - 1, most - 1 and most; where most is n0, most - 1 is
    n0, too. Then come fewest - 1 and most with alpha / 40 in place of q.
    """
    library, n0 = numerics.namespace(max_fpr, n0), nearly_whole(n0)
    q, strict = _liberal(level), _STRICT * (1 - level)
    chances = (q, 1 - q, strict, 1 - strict)
    fewest, most, lowest, highest = distributions.binomial_quantiles(chances, n0, max_fpr)
    before, last, lowest = (
        numerics.rates(library.maximum(x - 1, -1.0), n0) for x in (fewest, most, lowest)
    )
    most, highest = (library.minimum(numerics.rates(x, n0), 1.0) for x in (most, highest))
    return before, library.where(most < 1, last, 1.0), most, lowest, highest


def box_of(height: Callable[..., Sequence[Array]], max_fpr: Array, n0: Array, level: Any) -> Box:
    """The Box: `height` at the FPRs of `likely_counts`, and 0 at FPRs below 0."""
    counts = likely_counts(max_fpr, n0, level)
    library = numerics.namespace(*counts)
    heights = zip(counts, height(*counts), strict=True)
    return Box(*(library.where(count < 0, 0.0, to_ends(x)) for count, x in heights))


def recall(
    moments: Moments,
    heights: Heights,
    box: Box,
    max_fpr: Array,
    level: Any,
) -> Limits:
    """The limits of the recall at a false positive rate: the hull of two intervals.

    The first is Wilson's around R', the middle of the step at `max_fpr`, for n = p (1 - p) / V
    draws, n1 at most, with p = (n1 R' + 1/2) / (n1 + 1) and
    V = p (1 - p) / n1 + slope^2 max_fpr (1 - max_fpr) / n0. `of_fewer` lowers n0 and n1 where
    weights depend on the scores. Near an end of the scale it is widened to Jeffreys's.

    The second is a box that needs no slope. The number of negatives above the true threshold is
    binomial. The box has Jeffreys's lower limit for the height at the smallest likely number, and
    the upper one for the height at the largest. There the curve rises by a step, and its middle
    counts. Ties may make the step high: it is taken as 2 slope / n0 at most, or as one positive if
    that is more. The tail probabilities for negatives and for positives are both liberal, as both
    errors are seldom large together: q = min(2 alpha, P(Z > 0.46 z^1.5)), with z the normal
    quantile, which at low levels leaves the box to tell little.

    No limit is further away than that of a conservative box, with tail probabilities alpha / 40
    for negatives and for positives. Wilson's limits for less than one draw would be, where many
    ties make the curve jump just above the limit. Where weights depend on the scores of negatives
    this does not apply, as their number is then not binomial.

    Found by simulation: see the coverage table in the documentation. Unreliable with fewer than
    about three negatives in the window.
    """
    library = moments.library
    estimate = moments.estimate
    squared = squared_slope(heights, max_fpr, moments.sizes)
    # With ties the rate r may be below `max_fpr`: r (1 - r) is at most that of min(max_fpr, 1/2).
    largest = squared * _of_draw(library.minimum(max_fpr, 0.5)), _of_draw(estimate)
    n0, n1 = of_fewer(moments, largest).sizes
    p = (n1 * middle(heights) + 0.5) / (n1 + 1)
    n = draws_of_share(p, _of_draw(p) / n1 + squared * _of_draw(max_fpr) / n0, n1)
    low, high = wilson(middle(heights), n, level)
    found = n1 * middle(heights)
    step = library.maximum(2 * library.sqrt(squared) / n0, 1 / n1)  # the most without ties
    most = box.most - library.minimum(box.most - box.last, step) / 2
    few = [lacking(count, _FEWEST) > 0 for count in (found, n1 - found)]
    liberal, strict = (1 - 2 * x for x in (_liberal(level), _STRICT * (1 - level)))
    lower, upper, least, greatest, lowest, highest = jeffreys_limits(
        (-1, n * middle(heights), n, level, few[0]),
        (1, n * middle(heights), n, level, few[1]),
        (-1, n1 * box.fewest, n1, liberal, box.fewest > 0),
        (1, n1 * most, n1, liberal, most < 1),
        (-1, n1 * box.lowest, n1, strict, box.lowest > 0),
        (1, n1 * box.highest, n1, strict, box.highest < 1),
    )
    low = towards(low, library.minimum(low, lower), found, _FEWEST)
    high = towards(high, library.maximum(high, upper), n1 - found, _FEWEST)
    low = library.minimum(low, library.where(box.fewest > 0, least, 0.0))
    high = library.maximum(high, library.where(most < 1, greatest, 1.0))
    binomial = n0 == moments.sizes[0]
    low = library.maximum(low, library.where(binomial & (box.lowest > 0), lowest, 0.0))
    high = library.minimum(high, library.where(binomial & (box.highest < 1), highest, 1.0))
    # All is flagged at an FPR of 1.
    low, high = (library.where(max_fpr < 1, x, estimate) for x in (low, high))
    return around(estimate, (low, high))


def _of_draw(share: Array) -> Array:
    """The variance of a Bernoulli draw."""
    return share * (1 - share)


def _liberal(level: Any) -> Array:
    """The tail probability q of the box, of negatives and of positives."""
    z = distributions.normal_quantile((1 + level) / 2)
    tail = distributions.normal_cdf(-_LIBERAL * z**1.5)
    return numerics.namespace(level).minimum(2 * (1 - level), tail)
