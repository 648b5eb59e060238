"""The type of an interval, and intervals from bootstrap replicates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr

from jaxmetrics._base import numerics
from jaxmetrics._base.double import as_default, double_program, library_program
from jaxmetrics._base.results import STATIC, Result, Table, interval_columns
from jaxmetrics._base.types import Array
from jaxmetrics.inference._intervals.distributions import normal_quantile


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


@double_program("method")
def limits_of_replicates(
    estimate: Array, replicates: Array, acceleration: Array, level: Array, method: str
) -> tuple[Array, Array]:
    """Limits from replicates `[n_resamples, ...]`; replicates that are NaN are left out.

    percentile: the quantiles at alpha / 2 and 1 - alpha / 2. basic: these, reflected at the
    estimate. bca: the quantiles at Phi(z0 + (z0 + z) / (1 - a (z0 + z))), with z0 the normal
    quantile of the share of replicates below the estimate, ties counted half, a the acceleration
    and z the normal quantile of alpha / 2 or 1 - alpha / 2.
    """
    dtype = replicates.dtype
    replicates, estimate = replicates.astype(jnp.float64), estimate.astype(jnp.float64)
    shares = [jnp.full_like(estimate, (1 - level) / 2), jnp.full_like(estimate, (1 + level) / 2)]
    if method == "bca":
        count = jnp.sum(~jnp.isnan(replicates), axis=0)
        below = jnp.sum(replicates < estimate, axis=0) + jnp.sum(replicates == estimate, axis=0) / 2
        # The normal quantile is infinite at 0 and 1: stay half a replicate away.
        bias = normal_quantile(jnp.clip(below / count, 0.5 / count, 1 - 0.5 / count))
        z = [bias + normal_quantile(share) for share in shares]
        shares = [ndtr(bias + x / (1 - acceleration * x)) for x in z]
    quantile = jnp.vectorize(jnp.nanquantile, signature="(n),()->()")
    low, high = (quantile(jnp.moveaxis(replicates, 0, -1), share) for share in shares)
    if method == "basic":
        low, high = 2 * estimate - high, 2 * estimate - low
    return low.astype(dtype), high.astype(dtype)
