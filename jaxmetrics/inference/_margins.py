"""Limits of the difference of two independent estimates, from the limits of both.

Written over the array library: NumPy's, or JAX's inside `double_precision()`.

With limits l and u of each estimate, the lower limit of the difference A - B is
A - B - sqrt((A - l_A)^2 + (u_B - B)^2), and the upper one A - B + sqrt((u_A - A)^2 + (B - l_B)^2).
So the limits of a difference of shares are skewed where those of the shares are, and hold for few
items where those do. As functions of the normal quantile the limits also give p-values.

Reference: G. Y. Zou and A. Donner, "Construction of confidence limits about effect measures: a
general approach", Statistics in Medicine 27, 2008.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy

from jaxmetrics._base import cumulative, numerics
from jaxmetrics._base.double import library_program
from jaxmetrics._base.types import Array, HostArray
from jaxmetrics.inference._intervals.distributions import normal_quantile

# Normal quantiles of the levels at which limits are computed. P-values and simultaneous limits need
# levels in between, and are interpolated.
_GRID = np.array([0.5, *np.arange(1, 3, 0.25), 3, 3.5, 4, 5, 6])


class Margins(NamedTuple):
    """The distances of the lower, or of the upper, limits from an estimate, by level.

    Attributes:
      quantiles: `[levels]`, the normal quantiles z of the levels P(|Z| < z), ascending from 0.
      sizes: `[..., levels]`, the distances, which never decrease with the level.
    """

    quantiles: Array
    sizes: Array

    @classmethod
    def of(cls, quantiles: Array, sizes: Array) -> Margins:
        """Margins from quantiles in any order, with 0 added at quantile 0, made non-decreasing."""
        library = numerics.namespace(quantiles, sizes)
        order = library.argsort(quantiles, stable=True)
        none = library.zeros_like(sizes[..., :1])
        sizes = library.concatenate([none, sizes[..., order]], axis=-1)
        quantiles = library.concatenate([library.zeros(1), quantiles[order]])
        return cls(quantiles, -cumulative.running_minimum(-sizes))

    def at(self, quantile: Array) -> Array:
        """The margin `[...]` at a normal quantile `[...]`, by interpolation."""
        return _interpolated(self._quantiles(), self.sizes, quantile)

    def reaches(self, distance: Array) -> Array:
        """The normal quantile `[...]` at which the margin is a distance `[...]` of 0 or more."""
        return _interpolated(self.sizes, self._quantiles(), distance)

    def _quantiles(self) -> Array:
        return numerics.namespace(self.sizes).broadcast_to(self.quantiles, self.sizes.shape)


def _interpolated(x: Array, y: Array, at: Array) -> Array:
    """Linear interpolation of y at x = `at`, by the first segment that has it, or the last."""
    library = numerics.namespace(x, y, at)
    k = library.clip(library.sum(x < at[..., None], axis=-1), 1, x.shape[-1] - 1)

    def ends(values: Array) -> tuple[Array, Array]:
        lower, upper = (
            library.take_along_axis(values, (k - i)[..., None], axis=-1)[..., 0] for i in (1, 0)
        )
        return lower, upper

    (x0, x1), (y0, y1) = ends(x), ends(y)
    return y0 + numerics.divide(at - x0, x1 - x0, 0.0) * (y1 - y0)


class ByLevel(NamedTuple):
    """Estimates, and the distances of their limits, by level.

    Attributes:
      estimate: `[...]`.
      known: `[...]`, their standard errors.
      error: `[...]`, the standard errors that the limits imply: half the width of the interval at
        the first level, over its normal quantile.
      below, above: the distances of the lower and of the upper limits from the estimates; 0 where
        an error is NaN, which would be NaN in the slopes of the others, too.
    """

    estimate: Array
    known: Array
    error: Array
    below: Margins
    above: Margins


@library_program()
def limits_at(
    estimate: tuple[Array, ...],
    low: tuple[Array, ...],
    high: tuple[Array, ...],
    error: tuple[Array, ...],
    levels: Array,
) -> ByLevel:
    """The ByLevel of several estimates `[]`, from the limits `[levels]` of each."""
    library = numerics.namespace(*estimate, *error)
    values, known = (library.stack([*x]).astype(np.float64) for x in (estimate, error))
    quantiles, unknown = quantiles_of(levels), library.isnan(known)

    def margins(limits: tuple[Array, ...]) -> Margins:
        distances = library.stack([*limits]) - values[:, None]
        return Margins.of(quantiles, library.abs(library.where(unknown[:, None], 0.0, distances)))

    below, above = margins(low), margins(high)
    z = library.broadcast_to(quantiles[0], values.shape)
    implied = library.where(unknown, library.nan, (below.at(z) + above.at(z)) / (2 * z))
    return ByLevel(values, known, implied, below, above)


def levels_for(level: float) -> HostArray:
    """The two-sided levels at which limits are computed: `level`, 2 level - 1 and those of _GRID.

    Each limit at 2 level - 1 is a one-sided limit at `level`, where that is above 1/2.
    """
    grid = 2 * scipy.special.ndtr(_GRID) - 1
    return np.array([level, *({2 * level - 1} if level > 0.5 else ()), *grid])


def quantiles_of(levels: Any) -> Array:
    """The normal quantiles of two-sided levels."""
    return normal_quantile((1 + levels) / 2)
