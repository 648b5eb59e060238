"""What an interval is, and the intervals that replicates of a bootstrap give."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtr

from jaxmetrics import _numerics
from jaxmetrics._types import Array
from jaxmetrics.inference._distributions import normal_quantile


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["estimate", "low", "high", "standard_error"],
    meta_fields=["method", "confidence_level"],
)
@dataclass(frozen=True)
class Interval:
    """A confidence interval, or several `[...]`.

    Attributes:
      estimate: the value of the metric.
      low: the lower limit.
      high: the upper limit.
      standard_error: of the estimate.
      method: how the limits were found.
      confidence_level: the share of such intervals that are to hold the true value.
    """

    estimate: Array
    low: Array
    high: Array
    standard_error: Array
    method: str
    confidence_level: float


def spread(replicates: Array) -> Array:
    """The standard deviation over the first axis, of those that are not NaN."""
    with _numerics.double_precision():
        result: Array = _spread(replicates)
    return result


@jax.jit
def _spread(replicates: Array) -> Array:
    def compute(replicates: Array) -> Array:
        return jnp.nanstd(replicates.astype(jnp.float64), axis=0, ddof=1).astype(replicates.dtype)

    result: Array = _numerics.in_double(compute)(replicates)
    return result


@functools.partial(jax.jit, static_argnums=4)
def limits_of_replicates(
    estimate: Array, replicates: Array, acceleration: Array, confidence_level: Array, method: str
) -> tuple[Array, Array]:
    """Limits from replicates `[n_resamples, ...]`, of which those that are NaN are left out.

    percentile: the quantiles at alpha / 2 and 1 - alpha / 2. basic: those reflected at the
    estimate. bca: the quantiles at Phi(z0 + (z0 + z) / (1 - a (z0 + z))), with z0 the normal
    quantile of the share of replicates below the estimate, ties by half, and a the acceleration.
    """

    def compute(
        estimate: Array, replicates: Array, acceleration: Array, level: Array
    ) -> tuple[Array, Array]:
        dtype = replicates.dtype
        replicates, estimate = replicates.astype(jnp.float64), estimate.astype(jnp.float64)
        tails = jnp.stack([(1 - level) / 2, (1 + level) / 2]).reshape(2, *(1,) * estimate.ndim)
        shares = jnp.broadcast_to(tails, (2, *estimate.shape))
        if method == "bca":
            count = jnp.sum(~jnp.isnan(replicates), axis=0)
            below = (
                jnp.sum(replicates < estimate, axis=0) + jnp.sum(replicates == estimate, axis=0) / 2
            )
            # Half a replicate from the ends, where the quantile is infinite.
            share = jnp.clip(below / count, 0.5 / count, 1 - 0.5 / count)
            bias = normal_quantile(share)
            z = bias + normal_quantile(shares)
            shares = ndtr(bias + z / (1 - acceleration * z))
        quantile = jnp.vectorize(jnp.nanquantile, signature="(n),()->()")
        columns = jnp.moveaxis(replicates, 0, -1)
        low, high = quantile(columns, shares[0]), quantile(columns, shares[1])
        if method == "basic":
            low, high = 2 * estimate - high, 2 * estimate - low
        return low.astype(dtype), high.astype(dtype)

    result: tuple[Array, Array] = _numerics.in_double(compute)(
        estimate, replicates, acceleration, confidence_level
    )
    return result
