"""The line through the values of slices, and the test of any change between them."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.double import library_program
from jaxmetrics._base.types import Array
from jaxmetrics.inference._intervals.distributions import f_survival, t_quantile, t_survival


@library_program()
def fit_line(
    estimate: Array,
    error: Array,
    width: Array,
    sizes: tuple[Array, Array],
    times: Array,
    used: Array,
    level: Any,
    shared: tuple[Array, Array] | None = None,
) -> dict[str, Array]:
    """Fields of a Trend, from values `[slices, ...]`, their errors and the widths of intervals.

    `shared` is None, or the correlation `[slices, slices, ...]` of slices that share clusters and
    the effective numbers of clusters with each class in all slices.
    """
    library = numerics.namespace(estimate, error, times)
    deep = (slice(None), *(None,) * (estimate.ndim - 1))
    used, at, *n = (x[deep] for x in (used, times.astype(np.float64), *sizes))
    h = library.where(used, numerics.divide(n[0] * n[1], n[0] + n[1], 0.0), 0.0)
    h = h.astype(np.float64)
    df_of_slice = library.maximum(library.minimum(*n) - 1, 1)
    values = library.where(used, estimate.astype(np.float64), 0.0)
    least = width / (2 * t_quantile((1 + level) / 2, df_of_slice))
    raised = library.fmax(error, least - error).astype(np.float64)
    errors = library.where(used, raised, 0.0)
    correlation, most = None, np.inf
    if shared is not None:
        correlation, n_clusters = (x.astype(np.float64) for x in shared)
        most = library.maximum(library.min(n_clusters) - 1, 1)

    def total(x: Array) -> Array:
        return library.sum(x, axis=0)

    def variance_of(shares: Array) -> Array:
        """Of the sum of the values times the shares; 0 where it is the rounding of 0."""
        parts = shares * errors
        if correlation is None:
            return total(parts**2)
        found = total(parts * total(correlation * parts[:, None]))
        return numerics.above_rounding(found, numerics.SLACK * total(abs(parts)) ** 2)

    def degrees(parts: Array) -> Array:
        """Those of a sum of independent parts of a variance, by Satterthwaite."""
        found = numerics.divide(total(parts) ** 2, total(parts**2 / df_of_slice), np.inf)
        return library.minimum(found, most)

    whole = total(h)
    moved = library.where(used, at, 0.0)
    centre = numerics.divide(total(h * moved), whole, np.nan)
    moved = library.where(used, at - centre, 0.0)
    c = numerics.divide(h * moved, total(h * moved**2), np.nan)
    mean = numerics.divide(total(h * values), whole, np.nan)
    apart = library.where(used, values - mean, 0 * mean)
    rounded = library.all(abs(apart) <= numerics.SLACK, axis=0)  # equal values
    apart = library.where(rounded, 0.0, apart)
    slope, deviation = total(c * apart), library.sqrt(variance_of(c))
    df = degrees((c * errors) ** 2)
    undefined = library.where(slope == 0, 0.0, np.nan)
    p_value = t_survival(numerics.divide(slope, deviation, undefined), df)
    margin = t_quantile((1 + level) / 2, df) * deviation
    between = total(h * apart**2)
    parts = h * (1 - numerics.divide(h, whole, np.nan)) * errors**2
    within, df_between, df_within = total(parts), total(1.0 * used) - 1, degrees(parts)
    if correlation is not None:
        covariance = correlation * errors * errors[:, None]
        product = h[:, None] * (
            covariance - numerics.divide(total(h[:, None] * covariance), whole, np.nan)
        )
        trace = library.einsum("ss...->...", product)
        within = numerics.above_rounding(trace, numerics.SLACK * total(parts))
        squared = library.einsum("sr...,rs...->...", product, product)
        df_between = numerics.divide(within**2, squared, df_between)
    f = numerics.divide(between, within, library.where(between == 0, 0.0, np.nan))
    return {
        "slope": slope,
        "standard_error": deviation,
        "df": df,
        "low": slope - margin,
        "high": slope + margin,
        "p_value": p_value,
        "f": f,
        "f_p_value": f_survival(f, df_between, df_within),
        "fitted": mean + slope * (at - centre),
    }
