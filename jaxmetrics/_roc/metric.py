"""Functions of a score table made metrics, and what inference has to know of one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Concatenate, NamedTuple, Protocol, TypeVar, overload

import jax.numpy as jnp

from jaxmetrics._base import checks
from jaxmetrics._base.keywords import REQUIRED, keywords
from jaxmetrics._base.types import ArrayLike, P, R_co
from jaxmetrics._roc.table import ScoreTable, evaluate

R = TypeVar("R")


class TableMetric(Protocol[P, R_co]):
    """A metric of the ROC family: takes one ScoreTable, or scores and labels."""

    @property
    def table_function(self) -> Callable[..., R_co]:
        """The function of one unbatched ScoreTable that the metric evaluates."""

    @overload
    def __call__(self, table: ScoreTable, /, *args: P.args, **options: P.kwargs) -> R_co: ...

    # A ParamSpec cannot be joined with keywords, so that options beside weights, a mask or amounts
    # are checked when the metric is called, not before.
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
        self, scores: ArrayLike, labels: ArrayLike, *, amounts: ArrayLike, **options: Any
    ) -> R_co: ...


class Traits(NamedTuple):
    """What inference has to know of a metric.

    Attributes:
      public: the function as its author wrote it.
      smooth: whether the gradient with respect to weights is its influence function.
      of_roc_curve: whether it depends on the ROC curve alone, as a set of points.
      amounts: whether it takes amounts.
    """

    public: Callable[..., Any]
    smooth: bool = True
    of_roc_curve: bool = False
    amounts: bool = False


@dataclass(frozen=True)
class _OfDoubles:
    """A user's function of a table in float64, for whom sums and products of counts are safe.

    The library's own take integer counts as they come.
    """

    function: Callable[..., Any]

    def __call__(self, table: ScoreTable, **options: Any) -> Any:
        return self.function(ScoreTable(*(x.astype(jnp.float64) for x in table)), **options)


@overload
def table_metric(
    function: Callable[Concatenate[ScoreTable, P], R],
    *,
    check: Callable[[dict[str, Any]], dict[str, Any]] = ...,
    amounts: bool = ...,
    of_roc_curve: bool = ...,
) -> TableMetric[P, R]: ...


@overload
def table_metric(
    *,
    check: Callable[[dict[str, Any]], dict[str, Any]] = ...,
    amounts: bool = ...,
    of_roc_curve: bool = ...,
) -> Callable[[Callable[Concatenate[ScoreTable, P], R]], TableMetric[P, R]]: ...


def table_metric(
    function: Any = None,
    *,
    check: Callable[[dict[str, Any]], dict[str, Any]] = dict,
    amounts: bool = False,
    of_roc_curve: bool = False,
) -> Any:
    """Make a function of one ScoreTable into a metric like the library's own.

    The result takes `(scores, labels, *, weights=None, where=None, **options)` or one ScoreTable,
    with any leading axes as a batch, and is compiled once a shape. `function` is given one table
    `[rows]`, in double precision whatever the x64 mode, and returns an array or a pytree of them.

    Args:
      function: `function(table, *, option=default, ...)`. Options are keyword-only; those that
        are arrays are traced, others are compile-time constants.
      check: called with the options before any work, returns those to use; raises what is wrong.
      amounts: also accept `amounts=` `[..., n]`, by which the positives' weights are multiplied.
      of_roc_curve: whether the value depends on the ROC curve alone, drawn with straight lines
        between its points: neither on thresholds nor on how many rows a straight part has. Its
        bootstrap is then faster, as neighbouring rows of one class are drawn as one.

    Returns:
      The metric. It works under `jit` and `vmap`, and is differentiable with respect to weights, to
      any order and in both modes.

    Raises:
      TypeError: the metric is given an option that `function` does not have.

    The value is NaN where a valid score is NaN or no item is valid. Time O(n log n) and memory O(n)
    for the table, and what `function` takes.

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
            table_metric, check=check, amounts=amounts, of_roc_curve=of_roc_curve
        )
    traits = Traits(function, True, of_roc_curve, amounts)
    return _metric(function, _OfDoubles(function), check, traits)


def library_metric(
    function: Callable[Concatenate[ScoreTable, P], R],
    *,
    amounts: bool = False,
    smooth: bool = False,
    of_roc_curve: bool = False,
) -> TableMetric[P, R]:
    """`table_metric` for the library's own: options are checked, and counts stay integers."""
    traits = Traits(function, smooth, of_roc_curve, amounts)
    metric: TableMetric[P, R] = _metric(function, function, checks.check_options, traits)
    return metric


def _metric(
    function: Callable[..., Any],
    evaluated: Callable[..., Any],
    check: Callable[[dict[str, Any]], dict[str, Any]],
    traits: Traits,
) -> Any:
    amounts = traits.amounts
    per_item = ("weights", "where", "amounts") if amounts else ("weights", "where")
    options = keywords(function, {"scores": REQUIRED, "labels": None}, per_item)

    def settings(given: dict[str, Any]) -> dict[str, Any]:
        return check(options.filled(given))

    @functools.wraps(function)
    def metric(
        scores: ArrayLike | ScoreTable,
        labels: ArrayLike = None,
        *,
        weights: ArrayLike = None,
        where: ArrayLike = None,
        **given: Any,
    ) -> Any:
        per_item = (weights, where, given.pop("amounts", None) if amounts else None)
        chosen = settings(given)
        if not isinstance(scores, ScoreTable):
            return evaluate(evaluated, checks.check_items(scores, labels, *per_item), **chosen)
        if any(x is not None for x in (labels, *per_item)):
            raise TypeError(
                "a ScoreTable already holds labels and weights: pass it alone, "
                "or build it with score_table(scores, labels, weights=..., where=...)"
            )
        return evaluate(evaluated, scores, **chosen)

    public: Any = metric
    public.table_function, public.settings, public.traits = evaluated, settings, traits
    public.__signature__ = options.signature
    return public


def resolve(metric: Callable[..., Any]) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The function of a table, and its options, that a metric or a partial of one stands for.

    Partials are taken apart, so that two that say the same share one compiled program.
    """
    options: dict[str, Any] = {}
    while isinstance(metric, functools.partial):
        if metric.args:
            raise TypeError("fix options by keyword, as in functools.partial(metric, max_fpr=0.1)")
        options = {**metric.keywords, **options}
        metric = metric.func
    settings = getattr(metric, "settings", None)
    if settings is None:
        return _OfDoubles(metric), options
    return metric.table_function, settings(options)  # type: ignore[attr-defined]


def traits(metric: Callable[..., Any]) -> Traits:
    """The traits of a metric, of a partial of one, or of a plain function of a table."""
    while isinstance(metric, functools.partial):
        metric = metric.func
    found: Traits = getattr(metric, "traits", Traits(metric))
    return found
