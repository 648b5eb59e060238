"""Limits of the false positives, and how many of them a limit allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._base.numerics import as_constant, namespace, next_above, rates

MANY = 8  # limits, from which on ways that do not depend on their number are faster

_NEAR = np.array([-1.0, 0.0, 1.0])


class Limit(NamedTuple):
    """What false positives must not exceed.

    Attributes:
      rate: returns, from their number and that of all negatives, a rate that rises with the former.
      bound: the highest that is allowed, `[]` or `[limits]`.
      share: the share of the negatives that it allows, up to rounding.
    """

    rate: Callable[[Any, Any], Any]
    bound: Any
    share: Any

    @property
    def highest(self) -> Any:
        """The share of the negatives that is allowed if rates are compared in the bound's dtype.

        Rates that are higher by less than half a unit of that dtype equal the bound.
        """
        bound = as_constant(self.bound)
        unit = next_above(bound).astype(np.float64) - bound.astype(np.float64)
        return self.share + unit / 2


def limit_of_fpr(max_fpr: Any) -> Limit:
    """Of the FPR itself."""
    return Limit(rates, max_fpr, max_fpr)


def limit_of_specificity(min_specificity: Any) -> Limit:
    """Of the specificity with the other sign, which rises with the false positives."""

    def rate(fps: Any, total: Any) -> Any:
        return -rates(total - fps, total)

    return Limit(rate, -min_specificity, 1 - min_specificity.astype(np.float64))


def reaches(rate: Any, limit: Any, slack: float) -> Any:
    """Whether a rate is at least the limit, in the digits of the limit and as sums may round it."""
    return (rate * (1 + slack)).astype(limit.dtype) >= limit


def slackened(bound: Any, slack: float) -> Any:
    """A bound of a rate as sums of weights may reach it, of a rate that may be negative."""
    return bound + abs(bound) * slack


def most_within(limit: Limit, total: Any, slack: float) -> Any:
    """The largest number of false positives within the limit; whole if there is no slack."""
    share, bound, library = limit.share, limit.bound, namespace(limit.bound, total)
    if slack:
        return slackened(share, slack) * total
    nearest = library.minimum((limit.highest * total).round(), total)
    counts = nearest + _NEAR.reshape(-1, *(1,) * bound.ndim)
    within = (limit.rate(counts, total).astype(bound.dtype) <= bound) & (counts <= total)
    most = library.where(within, counts, 0.0).max(axis=0)
    return library.where(library.isnan(bound), library.nan, most)
