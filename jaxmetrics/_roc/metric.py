"""How a function of a score table, or of placements, becomes a metric."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, Protocol, TypeVar, overload

from jaxmetrics._base import checks
from jaxmetrics._base.keywords import REQUIRED, keywords
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.parts import AxisName
from jaxmetrics._base.types import ArrayLike, P, R_co
from jaxmetrics._roc.placements import OfPlacements, Placements
from jaxmetrics._roc.record import Metric, OfDoubles, Options
from jaxmetrics._roc.table import ScoreTable

R = TypeVar("R")


class TableMetric(Protocol[P, R_co]):
    """A metric of the ROC family: takes one ScoreTable, or scores and labels."""

    @property
    def record(self) -> Metric:
        """The record of the metric."""

    @overload
    def __call__(self, table: ScoreTable, /, *args: P.args, **options: P.kwargs) -> R_co: ...

    # A ParamSpec cannot be joined with keywords. With weights, a mask or amounts, a type checker
    # therefore accepts any option; the call itself refuses wrong ones.
    @overload
    def __call__(
        self, scores: ArrayLike, labels: ArrayLike, *args: P.args, **options: P.kwargs
    ) -> R_co: ...

    @overload
    def __call__(
        self,
        scores: ArrayLike,
        labels: ArrayLike,
        *,
        weights: ArrayLike,
        where: ArrayLike | None = None,
        **options: Any,
    ) -> R_co: ...

    @overload
    def __call__(
        self, scores: ArrayLike, labels: ArrayLike, *, where: ArrayLike, **options: Any
    ) -> R_co: ...

    @overload
    def __call__(
        self,
        scores: ArrayLike,
        labels: ArrayLike,
        *,
        axis_name: AxisName,
        weights: ArrayLike | None = None,
        where: ArrayLike | None = None,
        **options: Any,
    ) -> R_co: ...

    @overload
    def __call__(
        self, scores: ArrayLike, labels: ArrayLike, *, amounts: ArrayLike, **options: Any
    ) -> R_co: ...


@overload
def table_metric(
    function: Callable[Concatenate[ScoreTable, P], R],
    *,
    check: Callable[[Options], Options] = ...,
    amounts: bool = ...,
    smooth: bool = ...,
    of_roc_curve: bool = ...,
) -> TableMetric[P, R]: ...


@overload
def table_metric(
    *,
    check: Callable[[Options], Options] = ...,
    amounts: bool = ...,
    smooth: bool = ...,
    of_roc_curve: bool = ...,
) -> Callable[[Callable[Concatenate[ScoreTable, P], R]], TableMetric[P, R]]: ...


def table_metric(
    function: Any = None,
    *,
    check: Callable[[Options], Options] = dict,
    amounts: bool = False,
    smooth: bool = False,
    of_roc_curve: bool = False,
) -> Any:
    """A metric like the library's own, made from a function of one ScoreTable.

    The metric takes `(scores, labels, *, weights=None, where=None, **options)` or one ScoreTable.
    Leading axes are a batch. It is compiled once for each input shape. Define it once, outside of
    loops: each new `function` is a new program, which JAX keeps. It calls `function` with one table
    `[rows]`, in double precision in any x64 mode; `function` returns an array or a pytree. Rows may
    have weight 0, also the first ones: guard quotients, as tp / maximum(tp + fp, 1e-30).

    Args:
      function: `function(table, *, option=default, ...)`. Options are keyword-only. Those that
        are arrays are traced; others are compile-time constants.
      check: called with all options before any work. It returns the options to use, or raises.
      amounts: also accept `amounts=` `[..., n]`, which multiply the weights of positives.
      smooth: whether the gradient of the value with respect to the weights of items is its
        influence function. This is your claim. It is true of integrals of a curve, and false of a
        maximum over thresholds and of a rate at one threshold. `influence`, `covariance` and the
        closed-form errors need it. Without it, errors come from resampling; "auto" of
        `confidence_interval` resamples in either case.
      of_roc_curve: whether the value depends only on the ROC curve with straight lines between its
        points: neither on thresholds nor on how many rows a straight part has. The bootstrap is
        then faster, as it draws neighbouring rows of one class as one.

    Returns:
      The metric. It works under `jit` and `vmap`. If JAX can differentiate `function`, the metric
      can be differentiated in the weights, in forward and reverse mode, any number of times. The
      fields `threshold` and `thresholds` of a NamedTuple are rounded as the library's thresholds.

    Raises:
      TypeError: `function` cannot be called, or an option of it is not keyword-only, or has the
        name of an array, such as `weights`; or, when called, the metric is given an option that
        `function` does not have.

    The value is NaN where a valid score is NaN or no item is valid. Time O(n log n) and memory O(n)
    for the table, plus the cost of `function`.

    Example:
      >>> import jax.numpy as jnp
      >>> import jaxmetrics as jm
      >>> @jm.table_metric
      ... def youden(table):
      ...     '''The largest vertical distance of the ROC curve from the diagonal.'''
      ...     tpr = jnp.cumsum(table.positives) / jnp.sum(table.positives)
      ...     fpr = jnp.cumsum(table.negatives) / jnp.sum(table.negatives)
      ...     return jnp.max(tpr - fpr)
      >>> print(youden([.1, .4, .35, .8], [0, 0, 1, 1]))
      0.5

    Reference: W. J. Youden, "Index for rating diagnostic tests", Cancer 3, 1950.
    """
    if function is None:
        return functools.partial(
            table_metric, check=check, amounts=amounts, smooth=smooth, of_roc_curve=of_roc_curve
        )
    if not callable(function):
        given = checks.brief(function)
        raise TypeError(f"table_metric takes a function of a ScoreTable, got {given}")
    flags = {"amounts": amounts, "smooth": smooth, "of_roc_curve": of_roc_curve}
    return _metric(function, OfDoubles(function), check, **flags)


def library_metric(
    function: Callable[Concatenate[ScoreTable, P], R],
    *,
    check: Callable[[Options], Options] = checks.check_options,
    **fields: Any,
) -> TableMetric[P, R]:
    """`table_metric` for the library's own: checks options by name, and keeps integer counts.

    `fields` are those of its `Metric`.
    """
    return _metric(function, function, check, **fields)


def placement_metric(
    function: Callable[Concatenate[Placements, P], R],
    *,
    check: Callable[[Options], Options] = checks.check_options,
    **fields: Any,
) -> TableMetric[P, R]:
    """`library_metric` for a function of placements."""
    evaluated = OfPlacements(function)
    return _metric(function, evaluated, check, of_placements=function, **fields)


def _metric(
    function: Callable[..., Any],
    evaluated: Callable[..., Any],
    check: Callable[[Options], Options],
    **fields: Any,
) -> Any:
    # `function` gives the name, the text and the options of the metric, `evaluated` its values.
    def settings(given: Options) -> Options:
        return check(options.filled(given))

    record = Metric(function.__name__, evaluated, settings, **fields)
    amounts, on_mesh = record.amounts, record.on_mesh
    per_item = ("weights", "where", "amounts") if amounts else ("weights", "where")
    of_mesh = ("axis_name",) if on_mesh else ()
    options = keywords(function, {"scores": REQUIRED, "labels": None}, per_item, of_mesh)

    @on_any_mesh
    @functools.wraps(function)
    def metric(
        scores: ArrayLike | ScoreTable,
        labels: ArrayLike = None,
        *others: Any,
        weights: ArrayLike = None,
        where: ArrayLike = None,
        **given: Any,
    ) -> Any:
        if others:
            raise TypeError(
                f"{record.name} takes options by name, got {checks.brief(others[0])} in place; it "
                f"is called as {record.name}{options.signature}"
            )
        per_item = (weights, where, given.pop("amounts", None) if amounts else None)
        axis_name = checks.check_axis_name(given.pop("axis_name", None)) if on_mesh else None
        chosen = settings(given)
        if not isinstance(scores, ScoreTable):
            if labels is None and hasattr(scores, "_fields"):
                raise TypeError(
                    f"labels are missing, and scores are a {type(scores).__name__}: pass both, or "
                    "one ScoreTable, as jm.streaming.table(state, bins=bins) makes of a stream"
                )
            items = checks.check_items(scores, labels, *per_item)
            return record.evaluated(items, chosen, axis_name)
        if axis_name is not None:
            raise TypeError(
                "a ScoreTable is of all items: leave axis_name out, or pass scores and labels"
            )
        if any(x is not None for x in (labels, *per_item)):
            raise TypeError(
                "a ScoreTable already holds labels and weights: pass it alone, "
                "or build it with score_table(scores, labels, weights=..., where=...)"
            )
        return record.evaluated(scores, chosen)

    public: Any = metric
    public.record, public.__signature__ = record, options.signature
    return public
