"""Effective sizes of classes whose weights depend on the values of their items.

Kish's size is for weights that are independent of the values. Where rare values have large weights,
such as items that were sampled less often, an estimate varies more than it could with that many
draws.
"""

from __future__ import annotations

from typing import NamedTuple

from jaxmetrics._base import numerics
from jaxmetrics._base.types import Array
from jaxmetrics.inference._intervals.effective import nearly_whole
from jaxmetrics.inference._intervals.rules import SIZE_ROUNDING, Moments, draws_of_share


def excess(variance: Array, n: Array, largest: Array) -> Array:
    """The variance over `largest` / (n - 1), which a mean of n draws cannot exceed; at least 1.

    `largest` is the largest variance of one draw. The ratio exceeds 1 where weights, or the sizes
    of clusters, depend on the values.
    """
    library = numerics.namespace(variance, n, largest)
    times = numerics.divide((n - 1) * variance, largest, 1.0)
    return library.where(times > 1 + SIZE_ROUNDING, times, 1.0)


class Sums(NamedTuple):
    """The sum of the weights of some items, and that of their squares, in a unit near these."""

    weights: Array
    squares: Array
    unit: Array

    @classmethod
    def of(cls, weights: Array) -> Sums:
        library, highest = numerics.namespace(weights), weights.max(axis=-1)
        unit = numerics.power_near(highest)
        weights = weights / unit[..., None]
        unit = library.where(highest > 0, unit, 0)
        return cls(weights.sum(axis=-1), (weights**2).sum(axis=-1), unit)

    def plus(self, other: Sums) -> Sums:
        unit: Array = numerics.namespace(self.unit).maximum(self.unit, other.unit)
        (weights, squares), (others, more) = (x.in_unit(unit) for x in (self, other))
        return Sums(weights + others, squares + more, unit)

    def in_unit(self, unit: Array) -> tuple[Array, Array]:
        times = numerics.divide(self.unit, unit, 0.0)
        return self.weights * times, self.squares * times**2


def draws_of_part(part: Sums, rest: Sums) -> Array:
    """The Bernoulli draws whose mean varies as the share of `part` does; at most Kish's size.

    0 of no items, without NaN, which would make slopes NaN.
    """
    total, squares, unit = part.plus(rest)
    n = nearly_whole(numerics.divide(total**2, squares, 0.0))
    (weight, of_part), (others, of_rest) = (x.in_unit(unit) for x in (part, rest))
    share, other = (numerics.divide(x, total, 0.0) for x in (weight, others))
    variance = numerics.divide(of_part * other**2 + of_rest * share**2, total**2, 0.0)
    return draws_of_share(share, variance, n)


def of_fewer(moments: Moments, largest: tuple[Array, Array]) -> Moments:
    """Moments with the same variance of the estimate, and sizes at which that is possible.

    n items whose variance is E (`excess`) times the largest possible one become n / E, at least 1.
    """
    estimate, variances, sizes = moments

    def of_class(s2: Array, n: Array, most: Array) -> tuple[Array, Array]:
        library, known = numerics.namespace(s2, n, most), numerics.without_nan(s2)
        times = library.minimum(excess(known / n, n, most), library.maximum(n, 1.0))
        return library.where(library.isnan(s2), s2, known / times), n / times

    (v0, n0), (v1, n1) = map(of_class, variances, sizes, largest)
    return Moments(estimate, (v0, v1), (n0, n1))
