"""The closed-form interval of average precision."""

from __future__ import annotations

from typing import Any

from jaxmetrics._base.types import Array
from jaxmetrics.inference._intervals.distributions import special
from jaxmetrics.inference._intervals.rules import Limits, Moments, jeffreys, logit_t, towards

# The soft successes n1 A below which the upper limit is a Beta one, and above which it is not.
_FEW = (4.0, 6.0)

# The soft failures n1 (1 - A) below which the lower limit is a Beta one, and above which it is not.
_FEWEST = (0.5, 1.0)

# Of the influence of the negatives: a few high ones have most of it.
_KURTOSIS = 21.0


def average_precision(moments: Moments, level: Any, without_itself: Array) -> Limits:
    """The limits of average precision: logit ones, moved for its bias and for few successes.

    A positive counts itself in its own precision, so the estimate A is biased upwards. In A', which
    is `without_itself`, each precision C / (C + F) is (C - 1/2) / (C - 1/2 + F). The lower limit is
    moved by logit A' - logit A, if that lowers it. The degrees of freedom of the negatives are
    those of a variance with heavy tails. The upper limit misses the high positives that were not
    drawn: of k = n1 A soft successes, it is at least BetaInv(1 - alpha / 2; k + 1/2,
    n1 - k + 1/2) for k below 4, and between the two up to 6. The lower limit misses the high
    negatives that were not drawn: it is at most BetaInv(alpha / 2; the same) for n1 - k below 1/2,
    and between the two up to 1.

    Found by simulation: see the coverage table in the documentation.
    """
    library = moments.library
    estimate, _, (_, n1) = moments
    low, high = logit_t(moments, level, kurtosis=_KURTOSIS)
    logit, expit = special(library).logit, special(library).expit
    inner = [library.clip(x, 1e-300, 1 - 2.0**-53) for x in (without_itself, estimate, low)]
    moved = expit(logit(inner[0]) - (logit(inner[1]) - logit(inner[2])))
    edge = (without_itself <= 0) | (low <= 0) | (estimate <= 0)
    edge = edge | (without_itself >= 1) | (low >= 1) | (estimate >= 1)
    low = library.where(edge, low, library.minimum(low, moved))

    k = n1 * library.clip(estimate, 0.0, 1.0)
    lower, upper = jeffreys(k, n1, level)
    low = towards(low, library.minimum(low, lower), n1 - k, _FEWEST)
    return low, towards(high, library.maximum(high, upper), k, _FEW)
