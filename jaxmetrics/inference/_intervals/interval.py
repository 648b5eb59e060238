"""The type of an interval, and intervals from bootstrap replicates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.double import as_default, library_program
from jaxmetrics._base.results import STATIC, Result, Table, interval_columns
from jaxmetrics._base.types import Array
from jaxmetrics.inference._intervals.distributions import normal_quantile, special


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Interval(Result):
    """A confidence interval, or several `[...]`.

    Attributes:
      estimate: `[...]`, the metric of the data.
      low: `[...]`, the lower limit.
      high: `[...]`, the upper limit.
      standard_error: `[...]`, the standard error of the estimate.
      method: the method of the limits, as `confidence_interval` names it.
      confidence_level: the nominal coverage, the share of such intervals that contain the true
        value.
    """

    estimate: Array
    low: Array
    high: Array
    standard_error: Array
    method: str = field(metadata=STATIC)
    confidence_level: float = field(metadata=STATIC)

    def _table(self) -> Table:
        columns = interval_columns(
            self._caption.metric,
            self.estimate,
            self.low,
            self.high,
            self.standard_error,
            self.confidence_level,
        )
        shape, names = np.shape(self.estimate), self._caption.names
        several = [x for x in names.get("option", ()) if (len(names[x]),) == shape[-1:]]
        index = self._rows(shape, "model", *several)
        return Table(self._caption.metric, index, columns, (self.method,))


def interval_of(numbers: Iterable[Any], method: str, level: float) -> Interval:
    """The Interval of an estimate, its limits and its standard error, in this order."""
    estimate, low, high, error = map(as_default, numbers)
    return Interval(estimate, low, high, error, method, level)


@library_program()
def standard_deviation(replicates: Array) -> Array:
    """The standard deviation over the first axis, ignoring NaN; NaN for fewer than two values."""
    library, known = numerics.namespace(replicates), replicates == replicates
    values = library.where(known, replicates, 0).astype(np.float64)
    n = library.sum(known, axis=0)
    mean = library.sum(values, axis=0) / library.maximum(n, 1)
    squares = library.sum(library.where(known, values - mean, 0) ** 2, axis=0)
    variance = library.where(n > 1, squares / library.maximum(n - 1, 1), library.nan)
    return library.sqrt(variance).astype(replicates.dtype)


@library_program("method")
def limits_of_replicates(
    estimate: Array, replicates: Array, acceleration: Array, level: Array, method: str
) -> tuple[Array, Array]:
    """Limits from replicates `[n_resamples, ...]`; replicates that are NaN are left out.

    percentile: the quantiles at alpha / 2 and 1 - alpha / 2. basic: these, reflected at the
    estimate. bca: the quantiles at Phi(z0 + (z0 + z) / (1 - a (z0 + z))), with z0 the normal
    quantile of the share of replicates below the estimate, ties counted half, a the acceleration
    and z the normal quantile of alpha / 2 or 1 - alpha / 2.
    """
    dtype, library = replicates.dtype, numerics.namespace(estimate, replicates)
    replicates, estimate = replicates.astype(np.float64), estimate.astype(np.float64)
    count = library.sum(~library.isnan(replicates), axis=0)
    shares = [library.full_like(estimate, (1 + sign * level) / 2) for sign in (-1, 1)]
    if method == "bca":
        below = library.sum(replicates < estimate, axis=0)
        below = below + library.sum(replicates == estimate, axis=0) / 2
        # The normal quantile is infinite at 0 and 1: stay half a replicate away.
        bias = normal_quantile(library.clip(below / count, 0.5 / count, 1 - 0.5 / count))
        z = [bias + normal_quantile(share) for share in shares]
        normal = special(library)
        shares = [normal.ndtr(bias + x / (1 - acceleration * x)) for x in z]
    ordered = library.sort(replicates, axis=0)  # NaN come last
    low, high = (_quantile(ordered, count, share) for share in shares)
    if method == "basic":
        low, high = 2 * estimate - high, 2 * estimate - low
    return low.astype(dtype), high.astype(dtype)


def _quantile(ordered: Any, count: Any, share: Any) -> Any:
    """The quantile of the first `count` entries along the first axis, on a line between two."""
    library = numerics.namespace(ordered)
    place = library.where(library.isnan(share), 0.0, share) * library.maximum(count - 1, 0)
    whole = library.floor(place)
    at = library.stack([whole, library.ceil(place)]).astype(np.int32)
    low, high = library.take_along_axis(ordered, at, axis=0)
    between = low * (1 - (place - whole)) + high * (place - whole)
    between = library.where(low == high, low, between)  # infinity times 0 is NaN
    return library.where(library.isnan(share), np.nan, between)
