"""The values that a metric may have, and the share of the negatives that decides them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.host import all_concrete
from jaxmetrics._base.types import Array
from jaxmetrics._roc.record import MetricLike, choose
from jaxmetrics.inference._intervals.areas import height_variance, power_law_variance
from jaxmetrics.inference._intervals.metrics import error_bars_of, share_of


class Range(NamedTuple):
    """The values that a metric may have.

    Attributes:
      low, high: the ends.
      max_fpr: the share of the negatives, the highest ones, that decide; None if all do.
      of_height: bool, whether the metric is the height of the curve there, and not an area.
      min_tpr: the height from which on an area counts.
      kurtosis, curvature: those of `ErrorBars`.
    """

    low: Any
    high: Any
    max_fpr: Any = None
    of_height: Any = None
    min_tpr: Any = None
    kurtosis: Any = np.float64(3)
    curvature: Any = None

    def share_of(self, value: Array) -> Array:
        """A value as a share of the range."""
        share = (value - self.low) / (self.high - self.low)
        return numerics.namespace(share).clip(share, 0, 1)

    def variance_of_window(self, share: Array, max_fpr: Array) -> Array:
        """The variance of a negative's influence on the share, if the curve is a power law.

        The power law holds up to `max_fpr`. For an area between two limits this is an upper bound.
        """
        library, above = numerics.namespace(share, max_fpr), 1 - self.min_tpr
        inside = library.clip(1 - above * (1 - share), _NEAR, 1 - _NEAR)
        of_height, of_area = (
            variance(inside, max_fpr) for variance in (height_variance, power_law_variance)
        )
        return library.where(self.of_height, of_height, of_area) / above**2


_NEAR = 1e-6  # to an end of the range


def range_of(metric: MetricLike) -> Range | None:
    """The Range of a metric, in float64; None if it is not known."""
    chosen, _ = choose(metric)
    if error_bars_of(chosen.metric).closed_form is None:
        return None
    share = share_of(metric)
    of_share, arrays = choose(share.metric)
    if all_concrete(*arrays.values()):
        arrays = {name: np.asarray(x, np.float64) for name, x in arrays.items()}
    options = of_share.options(arrays)
    ends: Any = np.array([0.0, 1.0])
    low, high = share.value_of(ends, options)
    known = error_bars_of(of_share.metric)
    if "max_fpr" not in options:
        return Range(low, high, kurtosis=known.kurtosis, curvature=known.curvature)
    floor = options.get("min_tpr", 0.0)
    floor = np.float64(floor) if isinstance(floor, float) else floor
    return Range(low, high, options["max_fpr"], np.bool_(known.decision is not None), floor)


def ends_of_range(metric: MetricLike) -> tuple[float, float]:
    """The lowest and the highest possible value over all limits; infinite if not known."""
    found = range_of(metric)
    if found is None or not all_concrete(found.low, found.high):
        return -np.inf, np.inf
    return float(np.min(found.low)), float(np.max(found.high))
