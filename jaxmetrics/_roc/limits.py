"""Limits on the false positives, and how many false positives a limit allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._base.numerics import as_constant, namespace, next_above, rates

MANY = 8  # above so many limits, methods whose time does not depend on their number are faster

_NEAR = np.array([-1.0, 0.0, 1.0])


class Limit(NamedTuple):
    """A limit on the false positives.

    Attributes:
      rate: `rate(fps, total)` of the weights of the false positives and of all negatives; it rises
        with `fps`.
      bound: the highest rate that is allowed, `[]` or `[limits]`.
      share: the share of the negatives that the bound allows, up to rounding.
    """

    rate: Callable[[Any, Any], Any]
    bound: Any
    share: Any

    @property
    def highest(self) -> Any:
        """The share of the negatives that is allowed if rates are compared in the bound's dtype.

        A rate that exceeds the bound by less than half a unit of that dtype is rounded to it.
        """
        bound = as_constant(self.bound)
        unit = next_above(bound).astype(np.float64) - bound.astype(np.float64)
        return self.share + unit / 2

    def slackened_bound(self, slack: float) -> Any:
        """The bound, with room for the rounding of sums of weights.

        It is relative to the share: a specificity of nearly 0 is what it leaves of all the weight.
        """
        library = namespace(self.bound, self.share)
        bound, share = library.asarray(self.bound), library.asarray(self.share)
        return bound + (share * slack).astype(bound.dtype)


def limit_of_fpr(max_fpr: Any) -> Limit:
    """A limit on the FPR itself."""
    return Limit(rates, max_fpr, max_fpr)


def limit_of_specificity(min_specificity: Any) -> Limit:
    """A limit on minus the specificity, which rises with the false positives."""

    def rate(fps: Any, total: Any) -> Any:
        return -rates(total - fps, total)

    return Limit(rate, -min_specificity, 1 - min_specificity.astype(np.float64))


def reaches(rate: Any, limit: Any, slack: float) -> Any:
    """Whether a rate is at least the limit, in the limit's dtype and up to the rounding of sums."""
    return (rate * (1 + slack)).astype(limit.dtype) >= limit


def slackened_share(share: Any, slack: float) -> Any:
    """A share, with room for the rounding of sums of weights."""
    return share + share * slack


def most_within(limit: Limit, total: Any, slack: float) -> Any:
    """The largest weight of false positives within the limit; a whole number without slack."""
    share, bound, library = limit.share, limit.bound, namespace(limit.bound, total)
    if slack:
        return slackened_share(share, slack) * total
    nearest = library.minimum((limit.highest * total).round(), total)
    counts = nearest + _NEAR.reshape(-1, *(1,) * bound.ndim)
    within = (limit.rate(counts, total).astype(bound.dtype) <= bound) & (counts <= total)
    most = library.where(within, counts, 0.0).max(axis=0)
    return library.where(library.isnan(bound), library.nan, most)
