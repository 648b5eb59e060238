"""Limits of the difference of two independent estimates, from the limits of both.

Written over the array library: NumPy's, or JAX's inside `double_precision()`.

The difference A - B is at least A - B - sqrt((A - l_A)^2 + (u_B - B)^2), and at most as far above
with the other limits: skewed limits of a share stay so in a difference, and limits that hold for
few items do. As functions of a quantile of the normal distribution they also give p-values.

Reference: G. Y. Zou and A. Donner, "Construction of confidence limits about effect measures: a
general approach", Statistics in Medicine 27, 2008.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from jaxmetrics._base import numerics
from jaxmetrics._base.types import Array
from jaxmetrics.inference._intervals.distributions import normal_quantile


class Margins(NamedTuple):
    """How far one side's limits are from an estimate, by level.

    Attributes:
      quantiles: `[levels]`, the normal quantiles z of the levels P(|Z| < z), ascending from 0.
      sizes: `[..., levels]`, which do not fall.
    """

    quantiles: Array
    sizes: Array

    @classmethod
    def of(cls, quantiles: Array, sizes: Array) -> Margins:
        """From quantiles in any order; a margin is none at 0, and does not fall."""
        library = numerics.namespace(quantiles, sizes)
        order = library.argsort(quantiles, stable=True)
        none = library.zeros_like(sizes[..., :1])
        sizes = library.concatenate([none, sizes[..., order]], axis=-1)
        quantiles = library.concatenate([library.zeros(1), quantiles[order]])
        return cls(quantiles, -numerics.running_minimum(-sizes))

    def at(self, quantile: Array) -> Array:
        """The margin `[...]` at a normal quantile `[...]`, by interpolation."""
        return _interpolated(self._quantiles(), self.sizes, quantile)

    def reaches(self, distance: Array) -> Array:
        """The normal quantile at which the margin is this distance, `[...]`, not negative."""
        return _interpolated(self.sizes, self._quantiles(), distance)

    def _quantiles(self) -> Array:
        found: Array = numerics.namespace(self.sizes).broadcast_to(self.quantiles, self.sizes.shape)
        return found


def _interpolated(x: Array, y: Array, at: Array) -> Array:
    """y at x = `at`, beyond the last one as between the last two; 0 where all x are 0."""
    library = numerics.namespace(x, y, at)
    k = library.clip(library.sum(x <= at[..., None], axis=-1), 1, x.shape[-1] - 1)

    def ends(values: Array) -> tuple[Array, Array]:
        lower, upper = (
            library.take_along_axis(values, (k - i)[..., None], axis=-1)[..., 0] for i in (1, 0)
        )
        return lower, upper

    (x0, x1), (y0, y1) = ends(x), ends(y)
    found: Array = y0 + numerics.divide(at - x0, x1 - x0, 0.0) * (y1 - y0)
    return found


def quantiles_of(levels: Any) -> Array:
    """The normal quantiles of two-sided levels."""
    return normal_quantile((1 + levels) / 2)
