"""Differences within and between slices, with limits that hold for all slices at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import jax
import numpy as np
import scipy

from jaxmetrics._base import cumulative, numerics
from jaxmetrics._base.pair_rows import each_pair_once
from jaxmetrics._base.results import Column, Result, Table, difference_columns
from jaxmetrics._base.types import Array, HostArray
from jaxmetrics.inference._influence.covariance import Covariance, Products
from jaxmetrics.inference._influence.differences import differences_of
from jaxmetrics.inference._intervals.distributions import t_quantile, t_survival
from jaxmetrics.inference._intervals.effective import to_ends
from jaxmetrics.inference._intervals.ranges import Range
from jaxmetrics.inference._margins import Margins, quantiles_of
from jaxmetrics.inference._pairs import Pairs, pairs_of
from jaxmetrics.inference._slice_values import SliceEstimates, SliceValues

# Levels at which the limits of slices are found, as normal quantiles; p-values between them are
# interpolated. The last one has a p-value of 2e-9.
_GRID = np.array([0.75, 1.5, 2.25, 3.0, 4.0, 5.0, 6.0])


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SliceDifferences(Result):
    """Differences with tests and limits, all of one shape.

    Attributes:
      difference: of the metric.
      standard_error: of the difference.
      low: the lower limit, for this difference alone.
      high: the upper limit, for this difference alone.
      p_value: two-sided, of the hypothesis that the difference is 0.
      simultaneous_low: the lower limit, simultaneous for all slices; NaN for slices too small.
      simultaneous_high: the upper limit, simultaneous for all slices.
      simultaneous_p_value: two-sided, adjusted for all slices.
      correlation: `[slices, slices, models, models]` of `Slices.models`, between slices that share
        clusters; None if no two do, and of `Slices.rest`.
    """

    difference: Array
    standard_error: Array
    low: Array
    high: Array
    p_value: Array
    simultaneous_low: Array
    simultaneous_high: Array
    simultaneous_p_value: Array
    correlation: Array | None = None

    def _table(self) -> Table:
        names = [x.name for x in fields(self) if x.name != "correlation"]
        parts = {x: np.asarray(getattr(self, x)) for x in names}
        columns = [
            *difference_columns(parts, None, several=True),
            Column("", {"standard_error": parts["standard_error"]}),
        ]
        shape = np.shape(self.difference)
        index = self._rows(shape, *("slice", "model", "minus")[: len(shape)])
        table = Table("Differences", index, columns)
        return each_pair_once(table, shape)


def levels_of(level: float, n_tests: int) -> HostArray:
    """`level`, the level of simultaneous limits by Sidak, and those of _GRID for p-values."""
    grid = 2 * scipy.special.ndtr(_GRID) - 1
    return np.concatenate([[level, level ** (1 / max(n_tests, 1))], grid])


def of_models(
    estimate: HostArray, pairs: Any, tested: HostArray, level: float
) -> dict[str, HostArray]:
    """The differences of the models within each slice, `[slices, models, models]`, of Pairs."""
    n_models = estimate.shape[1]
    n_tests = int(tested.sum()) * n_models * (n_models - 1) // 2
    difference: Any = differences_of(estimate, pairs.standard_error)
    with np.errstate(all="ignore"):
        undefined: Any = np.where(difference == 0, 0.0, np.nan)
        z: Any = pairs.quantile(difference, undefined)
        levels = levels_of(level, n_tests)[:2]
        alone, together = (pairs.margins(t_quantile((1 + x) / 2, pairs.df))[0] for x in levels)
    found: dict[str, Any] = {
        "difference": difference,
        "standard_error": pairs.standard_error,
        "low": difference - alone,
        "high": difference + alone,
        "p_value": t_survival(abs(z), pairs.df),
        "simultaneous_low": difference - together,
        "simultaneous_high": difference + together,
    }
    return _adjusted(found, tested[:, None, None], n_tests)


def pairs_of_items(found: SliceEstimates, bounds: Range | None) -> Pairs:
    """The Pairs of the models within each slice, where items are independent."""

    def of_slice(estimate: Any, of_classes: Any, n0: Any, n1: Any, between: Any) -> Pairs:
        own, more = (Products(x.sum(axis=0), x) for x in (of_classes, between))
        covariance = Covariance(*own, (n0, n1, n0 + n1), np.float64(0), between=more)
        return pairs_of(estimate, covariance, bounds)

    pairs = map(of_slice, found.estimate, found.of_classes, *found.sizes, found.between)
    return stacked([*pairs], bounds, found.estimate.shape[1])


def stacked(pairs: list[Pairs], bounds: Range | None, n_models: int) -> Pairs:
    """The Pairs of all slices, of which there may be none."""
    none: Any = np.zeros((0, n_models, n_models))
    found = Pairs(none, none, none, none, ())
    if pairs:
        found = jax.tree.map(lambda *x: np.stack(x), *(x._replace(curvature=None) for x in pairs))
    return found if bounds is None else found._replace(curvature=bounds.curvature)


def _pooled_errors(found: SliceValues) -> HostArray:
    """The standard errors `[slices, models]` if influence values vary as much in all slices."""
    n = found.sizes[..., None]
    variances = found.variances * n
    known = np.where(np.isfinite(variances), n, 0.0)
    with np.errstate(all="ignore"):
        pooled = np.where(known > 0, known * variances, 0.0).sum(axis=0) / known.sum(axis=0)
        return np.sqrt((pooled / n).sum(axis=1))


def from_rest(
    of_slices: SliceValues,
    limits: tuple[HostArray, HostArray],
    sizes: HostArray,
    tested: HostArray,
    levels: HostArray,
    correlation: HostArray | None,
) -> dict[str, HostArray]:
    """The difference of each slice from the mean of the others, `[slices, models]`.

    With A the value of the slice and B the mean of the others, weighted by `sizes` `[slices]`, the
    lower limit is A - B - sqrt((A - l_A)^2 + (u_B - B)^2), and the upper one likewise. l and u
    follow from the `limits` `[slices, models, levels]` of the slices. The distances of l_A and u_A
    from A are at least those of normal limits on the logit scale with the error
    P / ((B (1 - B))^(3/4) (A (1 - A))^(1/4)), P of `_pooled_errors`: a slice that is far above the
    rest by chance also has a small variance by chance. The powers were found by simulation. They
    lie between those of an error of the logit that does not depend on A and of one that does as for
    a proportion.
    With a `correlation` `[slices, slices, models]` of the slices, such as by clusters in several of
    them, the distances are added up as correlated errors.
    """
    estimate, error, pooled = of_slices.estimate, of_slices.error, _pooled_errors(of_slices)
    known = np.isfinite(estimate) & np.isfinite(error) & (sizes[:, None] > 0)
    weights = np.where(known, sizes[:, None], 0.0)
    others = _others(weights)
    with np.errstate(all="ignore"):
        low, high = (np.abs(estimate[..., None] - x) for x in limits)

        def mean(values: HostArray) -> HostArray:
            return _others(np.where(known, weights * values, 0)) / others

        def root(own: HostArray, values: HostArray) -> HostArray:
            """sqrt(own^2 + sum of (share value)^2), with shares of the weight of the others."""
            parts = np.where(known[..., None], weights[..., None] * values, 0.0)
            if correlation is not None:
                return _root(own, parts, others[..., None], correlation)
            return np.hypot(own, np.sqrt(_others(parts**2)) / others[..., None])

        rest = mean(estimate)
        difference = np.where(known, estimate - rest, np.nan)
        estimate, rest = (np.asarray(to_ends(x)) for x in (estimate, rest))
        spread = pooled / (rest * (1 - rest)) ** 0.75 / (estimate * (1 - estimate)) ** 0.25
        margin = spread[..., None] * scipy.special.ndtri((1 + levels) / 2)
        at = scipy.special.logit(estimate)[..., None]
        nearest = (scipy.special.expit(at + side * margin) for side in (-1, 1))
        least = (np.abs(estimate[..., None] - limit) for limit in nearest)
        own_low, own_high = map(np.fmax, (low, high), least)
        below: Any = root(own_low, high)
        above: Any = root(own_high, low)
        own_error = root(error[..., None], error[..., None])[..., 0]
    towards = np.where((difference > 0)[..., None], below, above)  # the side on which 0 is
    size: Any = np.abs(difference)
    p_value = 2 * scipy.special.ndtr(-Margins.of(quantiles_of(levels), towards).reaches(size))
    found = {
        "difference": difference,
        "standard_error": own_error,
        "low": difference - below[..., 0],
        "high": difference + above[..., 0],
        "p_value": np.where(np.isnan(difference), np.nan, p_value),
        "simultaneous_low": difference - below[..., 1],
        "simultaneous_high": difference + above[..., 1],
    }
    return _adjusted(found, tested[:, None], int(tested.sum()) * estimate.shape[1])


def _root(own: HostArray, parts: HostArray, others: HostArray, correlation: HostArray) -> HostArray:
    """The deviation of `own` minus the sum of `parts` of the other slices over `others`."""
    found = np.empty_like(own + parts)
    for i in range(correlation.shape[-1]):
        r, d, mine = correlation[..., i], parts[:, i], own[:, i]
        itself = np.diagonal(r)[:, None]
        products = r @ d
        squares = (d * products).sum(axis=0) - 2 * d * products + itself * d**2
        shared = mine * (products - itself * d)
        weight = others[:, i]
        found[:, i] = numerics.root(mine**2 + squares / weight**2 - 2 * shared / weight)
    return found


def _others(values: HostArray) -> HostArray:
    """For each slice the sum of all others."""
    of_slices: Any = np.moveaxis(values, 0, -1)
    return np.moveaxis(np.asarray(cumulative.others(of_slices)), -1, 0)


def _adjusted(found: dict[str, HostArray], tested: HostArray, n_tests: int) -> dict[str, HostArray]:
    """Add p-values adjusted by Sidak; simultaneous results become NaN for slices not `tested`."""
    with np.errstate(all="ignore"):
        adjusted = -np.expm1(n_tests * np.log1p(-found["p_value"]))
    found["simultaneous_p_value"] = adjusted
    together = ("simultaneous_low", "simultaneous_high", "simultaneous_p_value")
    return found | {name: np.where(tested, found[name], np.nan) for name in together}


def scaled(found: dict[str, HostArray], scale: Any, cast: Callable[[Any], Any]) -> SliceDifferences:
    """The differences in the unit of the metric: all but p-values times `scale`."""
    return SliceDifferences(
        **{name: cast(x if "p_value" in name else x * scale) for name, x in found.items()}
    )
