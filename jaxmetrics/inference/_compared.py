"""Comparisons of models or samples, from their estimates and the errors of the differences."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.double import as_default, library_program
from jaxmetrics._base.host import as_jax
from jaxmetrics._base.results import STATIC, Column, Result, Table, difference_columns, digits_for
from jaxmetrics._base.types import Array, HostArray
from jaxmetrics._base.words import fixed
from jaxmetrics._roc.record import MetricLike
from jaxmetrics.inference._influence.differences import (
    NO_VARIANCE,
    differences_of,
    lost_models,
    of_differences,
    root_of,
)
from jaxmetrics.inference._intervals.distributions import (
    hotelling_survival,
    t_quantile,
    t_survival,
)
from jaxmetrics.inference._intervals.ranges import ends_of_range
from jaxmetrics.inference._maxima import maxima
from jaxmetrics.inference._pairs import Pairs

_PAIRWISE = (
    *("difference", "standard_error", "low", "high", "z", "df", "p_value"),
    *("simultaneous_low", "simultaneous_high", "simultaneous_p_value"),
    *("one_sided_low", "one_sided_high", "noninferiority_p_value", "equivalence_p_value"),
)


_OF_MARGIN = (
    ("p, not worse", "noninferiority_p_value"),
    ("p, equivalent", "equivalence_p_value"),
)


_ROUNDING = 1e-9  # relative to the largest difference
_SEEN = 1e-12  # of the largest variance of a difference: `maxima` has no digits of smaller ones
_FAR = 1e6  # squared difference over its variance, from which on the variance counts as none
_MOST_TOLD = 20  # models named in a line below a table


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Comparison(Result):
    """Pairwise differences of models, with tests and confidence intervals.

    Pairwise arrays are `[models, models]`, row minus column; with a reference they are `[models]`,
    each model minus the reference.

    Attributes:
      estimate: `[models]`, the metric of each model.
      difference: pairwise, the difference of the metric.
      standard_error: pairwise, the standard error of the difference.
      low: pairwise, the lower limit of the difference, for this pair alone.
      high: pairwise, the upper limit of the difference, for this pair alone.
      z: pairwise, the difference over the error that the tests and the limits use. For limits that
        are not symmetric, the normal quantile at which a limit is 0; for average precision, the
        quantile of t at which a limit is 0.
      df: pairwise, the degrees of freedom of that error; infinite if the error counts as known.
      p_value: pairwise, two-sided, of the hypothesis that the two models are equal.
      simultaneous_low: pairwise, the lower limit, simultaneous for all comparisons.
      simultaneous_high: pairwise, the upper limit, simultaneous for all comparisons.
      simultaneous_p_value: pairwise, two-sided, adjusted for all comparisons.
      best_set: `[models]` bool, the models that are not significantly worse than the best, by
        one-sided tests. The set contains the truly best model with probability `confidence_level`
        or more. A model whose metric is NaN, which is not known to be worse, is in it.
      chi2: `[]`, the statistic of the hypothesis that all models are equal; NaN if they differ in a
        direction in which no variance was seen.
      chi2_df: `[]`, its degrees of freedom.
      chi2_p_value: `[]`, its p-value; NaN if the degrees of freedom of a difference are fewer than
        `chi2_df`.
      one_sided_low: pairwise, the one-sided lower limit of the difference.
      one_sided_high: pairwise, the one-sided upper limit of the difference.
      noninferiority_p_value: pairwise, one-sided, of the hypothesis that the row is worse than the
        column by the margin or more; None without a margin.
      equivalence_p_value: pairwise, of the hypothesis that the two differ by the margin or more,
        the larger one of two one-sided tests; None without a margin.
      confidence_level: the nominal coverage of the limits and of the set.
      margin: the margin of the tests of non-inferiority and equivalence; None without these tests.
    """

    estimate: Array
    difference: Array
    standard_error: Array
    low: Array
    high: Array
    p_value: Array
    simultaneous_low: Array
    simultaneous_high: Array
    simultaneous_p_value: Array
    best_set: Array
    chi2: Array
    chi2_df: Array
    chi2_p_value: Array
    confidence_level: float = field(metadata=STATIC)
    z: Array | None = None
    df: Array | None = None
    one_sided_low: Array | None = None
    one_sided_high: Array | None = None
    noninferiority_p_value: Array | None = None
    equivalence_p_value: Array | None = None
    margin: float | None = field(default=None, metadata=STATIC)

    def _table(self) -> Table:
        """A row for each pair, both ways with a margin; or for each model minus the reference."""
        estimate, shape = np.asarray(self.estimate), np.shape(self.difference)
        kind = "group" if "group" in self._caption.names else "model"
        n = estimate.shape[-1] if estimate.ndim else 1
        paired = len(shape) > estimate.ndim
        base = () if len(shape) != 1 else self._caption.names.get("reference", ())
        chosen = ~np.isin(np.arange(np.prod(shape, dtype=int)), base)
        if paired:  # tests against a margin have a direction
            one_way = np.triu(np.ones((n, n), bool), 1)
            both_ways = ~np.eye(n, dtype=bool)
            directed = self.noninferiority_p_value is not None
            chosen = np.broadcast_to(both_ways if directed else one_way, shape).ravel()

        def flat(values: Any) -> HostArray:
            return np.broadcast_to(np.asarray(values), shape).ravel()[chosen]

        parts = {name: getattr(self, name) for name in _PAIRWISE}
        parts = {name: flat(x) for name, x in parts.items() if x is not None}
        parts["estimate"] = flat(estimate[..., None] if paired else estimate)
        if paired or base:
            parts["minus_estimate"] = flat(estimate[..., None, :] if paired else estimate[[*base]])
        columns = difference_columns(parts, self.confidence_level, several=n > 2)
        columns += [Column(x, {y: parts[y]}, form="p") for x, y in _OF_MARGIN if y in parts]
        shown = {name for column in columns for name in column.parts}
        columns.append(Column("", {x: y for x, y in parts.items() if x not in shown}))
        kinds = [*["model"] * (kind == "group"), kind, *["minus"] * paired]
        rows = self._rows(shape, *kinds)
        index = {x: [*itertools.compress(names, chosen)] for x, names in rows.items()}
        if base:
            index["minus"] = [self._labels(kind, n)[base[0]]] * (n - 1)
        (value,) = self._caption.names.get("value", ("",))
        title = f"Differences of {self._caption.metric}{value and f' from {value}'}"
        return Table(title, index, columns, self._notes(kind, parts["high"] - parts["low"]))

    def _notes(self, kind: str, width: Any) -> tuple[str, ...]:
        """The metric of each model, and the best set."""
        estimate = np.asarray(self.estimate)
        digits = digits_for(width, estimate)
        if estimate.ndim != 1:
            given = self._caption.names.get("value", ()) if not estimate.ndim else ()
            return tuple(
                f"{self._caption.metric} {fixed(float(estimate), digits)} against {x}"
                for x in given
            )
        names = self._labels(kind, len(estimate))
        values = [f"{name} {fixed(x, digits)}" for name, x in zip(names, estimate, strict=True)]
        about = (f"{self._caption.metric}: {_some(values)}", *self._of_margin(names))
        if np.isnan(width).all():  # no comparison is defined
            return about
        defined = np.asarray(self.best_set) & ~np.isnan(self.estimate)
        best = [str(name) for name, x in zip(names, defined, strict=True) if x]
        return (*about, f"not significantly worse than the best: {_some(best)}")

    def _of_margin(self, names: Sequence[Any]) -> tuple[str, ...]:
        """The margin, and which models are not worse than a reference by it."""
        base = self._caption.names.get("reference", ())
        if self.margin is None:
            return ()
        if not base:
            return (f"margin {self.margin:g}",)
        p_values = np.asarray(self.noninferiority_p_value)
        shown = [
            f"{names[i]}"
            for i in range(len(names))
            if i != base[0] and p_values[i] < 1 - self.confidence_level
        ]
        level = fixed(100 * (1 - self.confidence_level), 3).rstrip("0").rstrip(".")
        found = _some(shown) if shown else "none"
        than = f"not worse than {names[base[0]]} by {self.margin:g}"
        return (f"{than}, one-sided at {level} %: {found}",)


def _some(words: Sequence[str]) -> str:
    more = len(words) - _MOST_TOLD
    return ", ".join([*words[:_MOST_TOLD], *([f"and {more:,} more"] if more > 0 else [])])


def check_margin(margin: float | None, metric: MetricLike | None = None) -> float | None:
    """The margin as a float; refuses anything but None and a finite constant above 0.

    With a metric it also refuses a margin as wide as the range of the metric, or wider.
    """
    if margin is None:
        return None
    low, high = (0.0, np.inf) if metric is None else ends_of_range(metric)
    return checks.check_above("margin", margin, 0, high - low)


def comparison_of(
    estimate: Array,
    covariance: Array,
    pairs: Pairs,
    level: float,
    reference: int | None,
    margin: float | None,
) -> Comparison:
    """A Comparison from estimates `[models]`, their covariance and the errors of the pairs.

    Differences of the covariance alone count, so that `between_models` may take its place.
    """
    at = np.float64(level)
    best_set, values = _compared(estimate, covariance, pairs, at, margin, reference)
    numbers: dict[str, Any] = {name: as_default(x) for name, x in values.items()}
    known: Any = {"confidence_level": level, "margin": margin}
    found = Comparison(**numbers, best_set=as_jax(best_set), **known)
    return found if reference is None else found._captioned_as(reference=(reference,))


@library_program("margin", "reference")
def _compared(
    estimate: Array,
    covariance: Array,
    pairs: Pairs,
    level: Array,
    margin: float | None,
    reference: int | None,
) -> tuple[Array, dict[str, Array]]:
    """The best set, and the other arrays of a Comparison by name."""
    library = numerics.namespace(estimate, covariance)
    estimate = estimate.astype(np.float64)
    n_models = len(estimate)
    lost = lost_models(estimate, covariance)
    without = lost[:, None] | lost | library.isnan(pairs.standard_error)
    difference = differences_of(estimate, pairs.standard_error)
    # Numbers in place of NaN until the end, as in `lost_models`.
    pairs, known = pairs.with_pairs(without, 1.0), library.where(without, 0.0, difference)
    own = library.where(lost, 0.0, estimate)
    # A lost model is a copy of another one: without variance it would have none from any model.
    there = library.where(lost, library.argmin(lost), np.arange(n_models))
    covariance = numerics.without_nan(covariance[there][:, there])
    z = pairs.quantile(known, library.where(known == 0, 0.0, library.nan))
    size = library.abs(z)
    n_others = n_models - 1
    n_pairs = n_others if reference is not None else n_models * n_others // 2
    shares = np.array([0.5, 1, 0.5 / n_pairs, 1 / n_others])[:, None, None]
    of_pair, ahead, *bounds = t_quantile(1 - (1 - level) * shares, pairs.df)
    p_value = t_survival(size, pairs.df)
    if n_models == 2:
        of_all, adjusted, lead = of_pair, p_value, ahead
    else:
        variances = of_differences(covariance)
        error = root_of(variances, covariance, own)
        seen = ~without & (variances > _SEEN * library.max(variances))
        left = pairs._replace(standard_error=library.where(seen, error, 0.0))
        largest = maxima(covariance, left, reference)
        compared = ~without & (error > 0)
        unseen = library.any(compared & ~seen)
        quantiles = library.where(unseen, library.inf, largest.quantile(level))
        # Bonferroni's bounds limit quantiles that are too far out for the points of `maxima`, and
        # take the place of those without all pairs.
        most, most_ahead = (library.max(library.where(compared, x, 0.0)) for x in bounds)
        of_all = library.maximum(library.minimum(quantiles[0], most), of_pair)
        # `maxima` leaves out models without variance, whose errors are raised.
        lead = library.maximum(library.minimum(quantiles[1:], most_ahead)[:, None], ahead)
        first = largest._replace(lengths=largest.lengths[0])
        together = library.where(unseen, library.inf, first.survival(size))
        adjusted = library.clip(together, p_value, n_pairs * p_value)
    (low, high), (all_low, all_high), (one_low, one_high) = (
        (difference - below, difference + above)
        for below, above in map(pairs.margins, (of_pair, of_all, ahead))
    )
    pairwise = {
        "standard_error": pairs.standard_error,
        "low": low,
        "high": high,
        "z": z,
        "df": pairs.df,
        "p_value": p_value,
        "simultaneous_low": all_low,
        "simultaneous_high": all_high,
        "simultaneous_p_value": library.minimum(adjusted, 1.0),
        "one_sided_low": one_low,
        "one_sided_high": one_high,
    }
    if margin is not None:
        pairwise |= _against_margin(known, pairs, margin)
    pairwise = {name: library.where(without, np.nan, x) for name, x in pairwise.items()}
    pairwise["difference"] = difference
    if reference is not None:
        pairwise = {name: x[:, reference] for name, x in pairwise.items()}
    alone = library.eye(n_models, dtype=bool) | without
    behind = library.any(~alone & (-z > lead), axis=1)  # False where z is NaN
    chi2, df = _equality(own, known[there][:, there], covariance, lost)
    fewest = library.min(library.where((pairs.error > 0) & ~without, pairs.df, np.inf))
    of_all_equal = hotelling_survival(chi2, df, fewest)
    if n_models == 2 and pairs.below is not None:
        of_all_equal = p_value[0, 1]  # that of the one pair, by its limits
    equal = library.where(library.isnan(chi2), np.nan, of_all_equal)
    rest = {"chi2": chi2, "chi2_df": df, "chi2_p_value": equal}
    return ~behind, {"estimate": estimate, **pairwise, **rest}


def _against_margin(difference: Array, pairs: Pairs, margin: float) -> dict[str, Array]:
    """The p-values of non-inferiority and of equivalence."""
    library = numerics.namespace(difference)

    def beyond(distance: Array) -> Array:
        """P(T > q), with q the quantile at which the lower limit is `distance` below."""
        z = pairs.quantile(distance, 0.0)  # infinity would have a NaN slope
        half = t_survival(library.abs(z), pairs.df) / 2
        found = library.where(z > 0, half, 1 - half)
        surely = library.where(distance > 0, 0.0, 1.0)
        return library.where(pairs.error == 0, surely, found)

    below = beyond(difference + margin)
    above = below.T  # column minus row
    both: Array = library.maximum(below, above)
    return {"noninferiority_p_value": below, "equivalence_p_value": both}


def _equality(
    estimate: Array, difference: Array, covariance: Array, lost: Array
) -> tuple[Array, Array]:
    """The chi-squared statistic of equal models, and its degrees of freedom.

    `lost` models are copies of another one, and change neither. The statistic is NaN where
    the models differ in a direction that has no variance.
    """
    library = numerics.namespace(estimate, covariance)
    differences = difference[1:, 0]
    contrast = covariance[1:, 1:] - covariance[1:, :1] - covariance[:1, 1:] + covariance[0, 0]
    values, vectors = numerics.eigh(contrast)
    # The pseudo-inverse: directions without variance have no degree of freedom.
    sizes = (library.max(library.abs(library.diagonal(x))) for x in (covariance, contrast))
    least = 1e-10 * library.maximum(*sizes)
    counted = values > library.maximum(least, NO_VARIANCE * library.max(estimate**2))
    along = vectors.T @ differences
    apart = library.abs(along) > _ROUNDING * library.max(library.abs(differences))
    apart = apart & (along**2 > _FAR * library.maximum(values, 0))
    none = (library.sum(~lost) < 2) | library.any(apart & ~counted)
    chi2 = library.sum(library.where(counted, along**2 / library.where(counted, values, 1), 0))
    return library.where(none, library.nan, chi2), library.sum(counted).astype(np.float64)
