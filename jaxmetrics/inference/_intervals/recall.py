"""The closed-form interval of recall at a false positive rate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jaxmetrics._base import numerics
from jaxmetrics._base.types import Array
from jaxmetrics.inference._intervals import distributions
from jaxmetrics.inference._intervals.areas import centre_of_window, power
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

_FEWEST = (2.0, 3.0)  # positives missed, or found, between which Wilson's limit begins to hold
_STRICT = 1 / 40  # of alpha, beyond which no limit is
_PRIOR = 2.0  # the number of negatives around the limit that the power law's slope counts as


class Heights(NamedTuple):
    """What the interval needs of the ROC curve, `[...]`; heights are the largest TPR within an FPR.

    Attributes:
      at: the height at `max_fpr`.
      before: the height just before it.
      lower, upper: the heights at `max_fpr` -+ `nearby`.
      area: the partial area up to `max_fpr`, divided by `max_fpr`.
    """

    at: Array
    before: Array
    lower: Array
    upper: Array
    area: Array


class Box(NamedTuple):
    """The heights at numbers of negatives that are likely above the threshold.

    Attributes:
      fewest: just below the last of the fewest.
      last, most: just below the last of the most, and up to the next one.
      lowest, highest: those of fewest and most, of numbers that are hardly ever beyond.
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
    """The square of the slope of the curve at the limit, shrunk to that of a power law.

    (M slope^2 + 2 s^2) / (M + 2), with the slope of the chord between the limits of `around_limit`,
    between which there are M negatives, and s = e (1 + h) h / max_fpr of the curve
    r (u / max_fpr)^h with the partial area e.
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
    """The middle of the step where `max_fpr` falls on one."""
    return (heights.at + heights.before) / 2


def likely_counts(max_fpr: Array, n0: Array, level: Any) -> tuple[Array, ...]:
    """Shares of the negatives between which that above the true threshold is likely to be.

    Their number is binomial; these are its quantiles at q and 1 - q, both also without the last
    negative: fewest - 1, most - 1 and most. Where the most are all, nothing is left out. Then
    fewest - 1 and most at a fortieth of alpha.
    """
    library = numerics.namespace(max_fpr, n0)
    q, strict = _liberal(level), _STRICT * (1 - level)
    chances = (q, 1 - q, strict, 1 - strict)
    fewest, most, lowest, highest = distributions.binomial_quantiles(chances, n0, max_fpr)
    before, last, lowest = (
        numerics.rates(library.maximum(x - 1, -1.0), n0) for x in (fewest, most, lowest)
    )
    most, highest = (library.minimum(numerics.rates(x, n0), 1.0) for x in (most, highest))
    return before, library.where(most < 1, last, 1.0), most, lowest, highest


def box_of(height: Callable[..., Sequence[Array]], max_fpr: Array, n0: Array, level: Any) -> Box:
    """The box of the heights at these FPRs; that below 0 is 0."""
    counts = likely_counts(max_fpr, n0, level)
    library = numerics.namespace(*counts)
    heights = zip(counts, height(*counts), strict=True)
    return Box(*(library.where(count < 0, 0.0, x) for count, x in heights))


def recall(
    moments: Moments,
    heights: Heights,
    box: Box,
    max_fpr: Array,
    level: Any,
) -> Limits:
    """The limits of the recall at a false positive rate: the hull of two intervals.

    Wilson's, of the middle R' of the step at `max_fpr` and n = p (1 - p) / V draws, n1 at most, of
    p = (n1 R' + 1/2) / (n1 + 1) and V = p (1 - p) / n1 + slope^2 max_fpr (1 - max_fpr) / n0, with
    `of_fewer` items of each class where weights go with the scores; widened to Jeffreys's next to
    an end of the scale. And a box that knows no slope: the negatives above the true threshold are
    binomial, and Jeffreys's limits, of the positives above the fewest and the most likely number of
    them. The curve rises between the last of the most and the next one: to the middle of this step,
    or of 2 slope / n0 if ties make it higher, but of one positive at least. Both of its levels are
    liberal, q = min(2 alpha, 0.45).

    No limit is further away than the conservative one of such a box, with a fortieth of
    alpha for the negatives and one for the positives: Wilson's of less than one draw would be,
    where many ties make the curve jump just above the limit. But where weights go with the scores
    of negatives, their numbers are not binomial.

    Found by simulation: see the coverage table in the documentation. Unreliable with fewer than
    about three negatives in the window.
    """
    library = moments.library
    estimate = moments.estimate
    squared = squared_slope(heights, max_fpr, moments.sizes)
    # Ties may leave a lower rate than the limit.
    largest = squared * _of_draw(library.minimum(max_fpr, 0.5)), _of_draw(estimate)
    n0, n1 = of_fewer(moments, largest).sizes
    p = (n1 * middle(heights) + 0.5) / (n1 + 1)
    n = draws_of_share(p, _of_draw(p) / n1 + squared * _of_draw(max_fpr) / n0, n1)
    low, high = wilson(middle(heights), n, level)
    found = n1 * middle(heights)
    step = library.maximum(2 * library.sqrt(squared) / n0, 1 / n1)  # where none tie, at the most
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
    """The variance of yes and no."""
    return share * (1 - share)


def _liberal(level: Any) -> Array:
    found: Array = numerics.namespace(level).minimum(2 * (1 - level), 0.45)
    return found
