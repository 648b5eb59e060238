"""Effective sizes of classes whose weights depend on the values of their items.

Kish's size is for weights that are independent of the values. Where rare values have large weights,
such as items that were sampled less often, an estimate varies more than it could with that many
draws.
"""

from __future__ import annotations

from jaxmetrics._base import numerics
from jaxmetrics._base.types import Array
from jaxmetrics.inference._intervals.effective import kish
from jaxmetrics.inference._intervals.rules import Moments, draws_of_share

_ROUNDING = 1e-9


def excess(variance: Array, n: Array, largest: Array) -> Array:
    """The variance over `largest` / (n - 1), which a mean of n draws cannot exceed; at least 1.

    `largest` is the largest variance of one draw. The ratio exceeds 1 where weights, or the sizes
    of clusters, depend on the values.
    """
    library = numerics.namespace(variance, n, largest)
    times = numerics.divide((n - 1) * variance, largest, 1.0)
    found: Array = library.where(times > 1 + _ROUNDING, times, 1.0)
    return found


def draws_of_part(part: Array, weights: Array) -> Array:
    """The Bernoulli draws whose mean varies as the share of `part` does; at most Kish's size."""
    library = numerics.namespace(part, weights)
    n, shares = kish(weights)
    share = library.minimum(library.sum(shares * part, axis=-1), 1.0)  # above 1 by rounding only
    variance = library.sum((shares * (part - share[..., None])) ** 2, axis=-1)
    return draws_of_share(share, variance, n)


def of_fewer(moments: Moments, largest: tuple[Array, Array]) -> Moments:
    """Moments with the same variance of the estimate, and sizes at which that is possible.

    n items whose variance is E (`excess`) times the largest possible one become n / E, at least 1.
    """
    estimate, variances, sizes = moments

    def of_class(s2: Array, n: Array, most: Array) -> tuple[Array, Array]:
        library = numerics.namespace(s2, n, most)
        times = library.minimum(excess(s2 / n, n, most), library.maximum(n, 1.0))
        return s2 / times, n / times

    (v0, n0), (v1, n1) = map(of_class, variances, sizes, largest)
    return Moments(estimate, (v0, v1), (n0, n1))
