"""The result of a bootstrap: replicates, their standard error, and intervals of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jaxmetrics._base import checks
from jaxmetrics._base.double import library_program
from jaxmetrics._base.host import as_jax, at_hand
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.results import Column, Result, Table
from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics.inference._intervals.distributions import normal_quantile
from jaxmetrics.inference._intervals.interval import (
    Interval,
    limits_of_replicates,
)
from jaxmetrics.inference._intervals.means import (
    Sample,
    interval_of_mean,
    warn_of_few_values,
)

REPLICATE_METHODS = ("percentile", "basic", "bca", "wald")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BootstrapResult(Result):
    """The estimate of a metric and its bootstrap replicates.

    Attributes:
      estimate: `[...]`, the metric of the data.
      replicates: `[n_resamples, ...]`, the metric of each resample; NaN where it is undefined, as
        in resamples that lack a class.
      standard_error: `[...]`, the standard deviation of the replicates that are not NaN.
      n_undefined: `[...]`, the number of resamples that lack a class, or in which the metric is NaN
        all the same. The standard error and intervals leave them out.
      sample: moments of the values of `bootstrap_mean`, which the interval "mean" rests on: mean,
        standard_error, skewness, n (the effective size) and is_share (all values are from 0 to 1),
        `[...]` each. None for other metrics.
    """

    estimate: Any
    replicates: Any
    standard_error: Any
    n_undefined: Array
    sample: Sample | None = None

    def _is_readable(self) -> bool:
        values = jax.tree.leaves(self.estimate)
        of_one = all(np.shape(x) == np.shape(self.n_undefined) for x in values)
        return of_one and super()._is_readable()

    def _table(self) -> Table:
        """The values, each with its error, and with its name if the metric has several."""
        name, errors = self._caption.metric, jax.tree.leaves(self.standard_error)
        columns = []
        for (path, value), error in zip(
            jax.tree.leaves_with_path(self.estimate), errors, strict=True
        ):
            of = jax.tree_util.keystr(path).strip(".[]'")
            columns.append(Column(of or name, {of or "estimate": value}, error))
            parts = {f"{of}_standard_error".strip("_"): error}
            columns.append(Column("standard error", parts, error))
        columns.append(Column("", {"n_undefined": self.n_undefined}))
        # Of all axes, as vmap puts those of its batch before the resamples.
        drawn = np.size(jax.tree.leaves(self.replicates)[0]) // max(np.size(self.n_undefined), 1)
        notes = [f"{drawn:,} resamples"]
        if most := int(np.max(self.n_undefined, initial=0)):
            notes.append(f"undefined in up to {most:,} of them")
        return Table(name, self._rows(np.shape(self.n_undefined), "model"), columns, tuple(notes))

    @on_any_mesh
    def interval(
        self,
        *,
        method: str = "auto",
        confidence_level: float = 0.95,
        acceleration: ArrayLike = 0.0,
    ) -> Interval:
        """A confidence interval from the replicates or, for a mean, from the moments of its values.

        - percentile, basic, bca: quantiles of the replicates.
        - wald: estimate -+ z standard errors.
        - mean: Hall's transformed t, for `bootstrap_mean`. Values from 0 to 1 are taken for shares.
          The limits of a share lie within Wilson's. Where the values add up to less than 4, the
          upper limit goes over to Wilson's; where 1 - value does, the lower one. Other values have
          the hull of Hall's limits and Student's t. The interval does not use the replicates, and
          its standard error is sqrt(s^2 / n), with n the effective size.
        - auto: "mean" for `bootstrap_mean`, else "percentile".

        Args:
          method: "auto", "percentile", "basic", "bca", "wald" or, for a mean, "mean".
          confidence_level: in (0, 1), the nominal coverage.
          acceleration: the skewness correction of "bca", which `confidence_interval` computes. The
            default of 0 corrects for bias alone.

        Returns:
          An Interval `[...]` in the unit of the metric; its `method` is the one that "auto" chose.

        Raises:
          TypeError, ValueError: the method is none of these, the level is not in (0, 1), or the
            metric returns several arrays.

        NaN where the metric is NaN; "mean" is also NaN for a single value. A warning says where the
        values are too few for "mean". Differences of two models that are from 0 to 1 in every query
        are taken for shares, too: compare models by the differences of their replicates. Time
        O(n_resamples log n_resamples) for each value of the metric; O(1) for "wald" and "mean".

        Example:
          >>> import jax
          >>> import jaxmetrics as jm
          >>> scores, labels = [.1, .4, .35, .8, .7, .2], [0, 0, 1, 1, 1, 0]
          >>> result = jm.bootstrap(jm.roc_auc, scores, labels, key=jax.random.key(0))
          >>> found = result.interval(confidence_level=0.9)
          >>> print(found.method, bool(found.low < found.estimate < found.high))
          percentile True

        References: B. Efron, "Better bootstrap confidence intervals", JASA 82, 1987, for bca; P.
        Hall, "On the removal of skewness by transformation", JRSS B 54, 1992, for mean.
        """
        methods = REPLICATE_METHODS if self.sample is None else ("mean", *REPLICATE_METHODS)
        if method == "auto":
            method = methods[0]
        checks.check_choice("method", method, methods)
        level = checks.check_level(confidence_level)
        if method == "mean" and self.sample is not None:
            warn_of_few_values(self.sample)
            return interval_of_mean(self.sample, level)
        if not isinstance(self.replicates, (jax.Array, np.ndarray)):
            raise TypeError(
                "the metric has several results, and an interval is for one: write "
                "dataclasses.replace(result, estimate=result.estimate.value, ...).interval(...)"
            )
        # Those that were saved are NumPy's.
        own = map(as_jax, (self.estimate, self.replicates, self.standard_error))
        skew = checks.as_array("acceleration", acceleration)
        estimate, replicates, error, skew = at_hand(*own, skew)
        limits: Any
        if method == "wald":
            limits = wald_limits(estimate, error, np.float64(level))
        else:
            if replicates.shape[1:] != estimate.shape:
                raise ValueError(
                    f"replicates must be [n_resamples, *estimate.shape]; got {replicates.shape} "
                    f"and estimates {estimate.shape}: for a batch of results, as of vmap, write "
                    "jax.vmap(lambda result: result.interval())(results)"
                )
            limits = limits_of_replicates(estimate, replicates, skew, np.float64(level), method)
        estimate, low, high, error = map(as_jax, (estimate, *limits, error))
        return Interval(estimate, low, high, error, method, level)


@library_program()
def wald_limits(estimate: Array, error: Array, level: Array) -> tuple[Array, Array]:
    """estimate -+ z standard errors."""
    margin = normal_quantile((1 + level) / 2) * error
    return (estimate - margin).astype(estimate.dtype), (estimate + margin).astype(estimate.dtype)
