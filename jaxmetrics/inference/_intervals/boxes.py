"""Confidence bands of the ROC curve from order statistics: no resamples and no density.

Each class has a share of its items at or above a threshold, with Beta limits from the count in the
sample. So each threshold gives a box of FPR x TPR. The true curve rises, so it lies between the
lines through the upper left and through the lower right corners of the boxes.
Where positives and negatives tie, these lines are oblique, as the curve itself is.

With weights or clusters, the share of a class at or above a threshold varies as that of fewer draws
would, and the limits are those of so many.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jaxmetrics._base import numerics, varying
from jaxmetrics._base.types import Array
from jaxmetrics._roc.limits import limit_of_fpr
from jaxmetrics._roc.placements import Placements
from jaxmetrics.inference._intervals.beta import beta_cdf, beta_quantile
from jaxmetrics.inference._intervals.distributions import special
from jaxmetrics.inference._intervals.local_level import local_level
from jaxmetrics.inference._intervals.rates import Rates
from jaxmetrics.inference._intervals.rules import Limits

_STEPS = 32  # bisections that find a count below 2^32
_FEWEST = 0.5  # draws, fewer than which have no lower limit above 0


def simultaneous(placed: Placements, fpr: Array, level: float, *, exact: bool) -> Limits:
    """The limits of the whole curve at these FPRs, of simultaneous coverage `level`.

    If `exact`, the limits of each class hold with probability sqrt(level), so the boxes of all
    thresholds hold with `level`. Otherwise each class has the local level for `level`, whose normal
    quantile is multiplied by `shrinkage`.
    """
    library = placed.library
    sizes = n0, _ = placed.total_negatives, placed.total_positives
    tails, chances = _tails(sizes, level, exact=exact)
    # The last threshold whose box has its left side within the FPR, and the last whose right side
    # is. A Beta quantile is at most the FPR where the tail there has reached its probability.
    last = _largest(lambda k: beta_cdf(fpr, k, n0 - k + 1) >= chances, n0, chances + 0 * fpr)
    left, right = last[0], last[1] - 1
    counts = library.stack([left, library.maximum(right, 0)])
    before, after, caught, caught_after = placed.corners(limit_of_fpr(numerics.rates(counts, n0)))
    ends = (library.stack(x, axis=1) for x in ((before, after), (caught, caught_after)))
    corners = library.stack([*ends], axis=1)  # [lines, axes, ends, points]
    n = library.stack(list(sizes))[:, None, None]
    return _lines(fpr, corners, n, tails, (left < n0, right >= 0))


def _tails(sizes: tuple[Array, Array], level: float, *, exact: bool) -> tuple[Array, Array]:
    """The probability that the lower limit of a share misses it, `[classes]`, of these sizes.

    Also `[lines, 1]`, the probabilities that the tail of a count of negatives reaches at the left
    and at the right side of a box.
    """
    factor = np.float64(1) if exact else shrinkage(*sizes)
    chance = level**0.5 if exact else level
    negatives, positives = (_tail(local_level(n, chance), factor) for n in sizes)
    library = numerics.namespace(negatives, positives)
    of_sides = library.stack([negatives, 1 - negatives])[:, None]
    return library.stack([negatives, positives]), of_sides


def shrinkage(n0: Array, n1: Array) -> Array:
    """The factor of the normal quantiles of boxes, if the band need only contain the curve.

    The curve leaves the band where the errors of both classes together exceed the sides of a box
    together. The two errors are independent, so shorter sides suffice: by the factor
    sqrt(n0 + n1) / (sqrt(n0) + sqrt(n1)) for a box with the proportions of the chance curve. Where
    the curve has steps, one class errs at a time. There, in simulations, 0.95 - 0.3 / m^(1/3) was
    needed, with m items of the smaller class. The larger of the two factors holds.
    """
    library = numerics.namespace(n0, n1)
    root0, root1 = library.sqrt(n0), library.sqrt(n1)
    apart = library.sqrt(n0 + n1) / (root0 + root1)
    fewest = library.maximum(library.minimum(n0, n1), 1)
    return library.maximum(apart, 0.95 - 0.3 / library.cbrt(fewest))


def _lines(
    fpr: Array, counts: Array, n: Array, tails: Array, inside: tuple[Array, Array]
) -> Limits:
    """The heights of both lines; the upper one is 1, and the lower one 0, where not `inside`.

    `counts` `[lines, axes, ends, points]` of `n` draws are at or above the corners' thresholds: the
    upper line comes first, and the axes are FPR and TPR. The program of a Beta quantile is long, so
    one call computes all limits.
    """
    library = numerics.namespace(counts)
    # Upper left, lower right: the upper limit is 1 - the lower one of the remaining items.
    remaining = (library.arange(2)[:, None] != library.arange(2))[..., None, None]
    counts = library.where(remaining, n - counts, counts)
    limits = _lower(counts, n, tails[:, None, None])
    high = _on_line(fpr, limits[0, 0], 1 - limits[0, 1])
    low = library.where(inside[1], _on_line(fpr, 1 - limits[1, 0], limits[1, 1]), 0.0)
    return library.where(fpr < 1, low, 1.0), library.where(inside[0], high, 1.0)


def simultaneous_of_rates(rates: Rates, fpr: Array, level: float) -> Limits:
    """`simultaneous` of items with weights or clusters."""
    negatives, positives = rates.negatives, rates.positives
    library = numerics.namespace(negatives.draws)
    tails, chances = _tails((negatives.draws[-1], positives.draws[-1]), level, exact=False)
    rows = len(negatives.draws) - 1
    line = library.arange(2)[:, None]

    def within(row: Array) -> Array:
        """Whether the left side of the box of a row is; whether the right side of one before is."""
        at = library.clip(row.astype(np.int32) - line, 0, rows)
        n, count = negatives.drawn(at)
        few = library.where(line == 0, count, n - count) < _FEWEST
        a, b = (library.where(few, 1.0, x) for x in (count + line, n - count + 1 - line))
        return library.where(few, line == 0, beta_cdf(fpr, a, b) >= chances)

    last = _largest(within, negatives.draws.dtype.type(rows + 1), chances + 0 * fpr)
    left, right = library.minimum(last[0], rows), last[1] - 1
    first = library.stack([left, library.maximum(right, 0)]).astype(np.int32)
    at = library.stack([first, library.minimum(first + 1, rows)], axis=1)  # [lines, ends, points]
    found = zip(negatives.drawn(at), positives.drawn(at), strict=True)
    n, counts = (library.stack(x, axis=1) for x in found)
    return _lines(fpr, counts, n, tails, (left < rows, right >= 0))


def _on_line(at: Array, x: Any, y: Any) -> Array:
    """The height at `at` of the line between two points; the first one's if they have one x."""
    share = numerics.divide(at - x[0], x[1] - x[0], 0.0)
    return y[0] + (y[1] - y[0]) * numerics.namespace(share).clip(share, 0.0, 1.0)


def _lower(count: Array, n: Array, tail: Array) -> Array:
    """Clopper and Pearson's lower limit of a share that `count` of `n` items have."""
    library = numerics.namespace(count, n)
    some = count >= _FEWEST
    limit = beta_quantile(tail, library.where(some, count, 1), n - count + 1)
    return library.where(some, limit, 0.0)


def _tail(level: Any, factor: Any) -> Array:
    """The tail probability whose normal quantile is that of `level` / 2, times the factor."""
    functions = special(numerics.namespace(level, factor))
    return functions.ndtr(factor * functions.ndtri(level / 2))


def _largest(holds: Callable[[Array], Array], n: Array, like: Array) -> Array:
    """The largest count from 1 to `n` where `holds`, as it does for all smaller ones; else 0."""
    library = numerics.namespace(n, like)

    def halved(_: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = library.maximum(library.ceil((low + high) / 2), 1.0)
        true = holds(middle) & (middle <= high)
        return library.where(true, middle, low), library.where(true, high, middle - 1)

    found: tuple[Array, Array] = library.zeros_like(like), library.zeros_like(like) + n
    if library is np:
        for step in range(int(n).bit_length()):
            found = halved(step, found)
    else:
        found = varying.fori_loop(0, _STEPS, halved, found)
    return found[0]
