"""Metric, the record of a metric, and how a function of a score table becomes a metric."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Concatenate, NamedTuple, Protocol, TypeAlias, TypeVar, overload

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks
from jaxmetrics._base.double import double_precision
from jaxmetrics._base.keywords import REQUIRED, keywords
from jaxmetrics._base.types import ArrayLike, P, R_co
from jaxmetrics._roc.reported import Decision, no_decision
from jaxmetrics._roc.table import ScoreTable, evaluate, static_options

R = TypeVar("R")
Options: TypeAlias = dict[str, Any]
# A metric, a functools.partial of one, or a plain function of a ScoreTable.
MetricLike: TypeAlias = Callable[..., Any]


@dataclass(frozen=True)
class Metric:
    """The record of a metric: all that other packages need to know of it. Hashable.

    Attributes:
      name: its name in errors.
      function: returns its value from a ScoreTable `[rows]`, in double precision, and options.
      settings: returns all options, checked, from those that are given.
      smooth: whether the gradient with respect to weights is its influence function.
      of_roc_curve: whether it depends on the ROC curve alone, as a set of points.
      amounts: whether it takes `amounts`.
      decision: returns, from the options, for which decision its value is the threshold.
    """

    name: str
    function: Callable[..., Any]
    settings: Callable[[Options], Options] = dict
    smooth: bool = False
    of_roc_curve: bool = False
    amounts: bool = False
    decision: Decision = no_decision


class Chosen(NamedTuple):
    """A metric with those of its options that are compile-time constants. Hashable.

    Attributes:
      metric: its record.
      constants: names and values of these options, in order of name.
    """

    metric: Metric
    constants: tuple[tuple[str, Any], ...]

    def options(self, arrays: Options) -> Options:
        """All options: the constants and the `arrays`."""
        return {**arrays, **dict(self.constants)}

    def value(self, table: ScoreTable, arrays: Options) -> Any:
        """The value of one table, in double precision."""
        return self.metric.function(table, **self.options(arrays))

    def evaluated(self, source: Any, arrays: Options) -> Any:
        """The value of each table of a batch, from Items or a ScoreTable."""
        record = self.metric
        return evaluate(record.function, source, self.options(arrays), record.decision)

    def refuse_tree(self, arrays: Options, n_rows: int) -> None:
        """Refuse a metric whose value is not one array, before any work."""
        if not isinstance(self._result(arrays, n_rows), jax.ShapeDtypeStruct):
            self._refuse_results()

    def _refuse_results(self) -> None:
        raise TypeError(
            f"{self.metric.name} has several results where one is needed: leave return_threshold "
            "out, or write a function of a table that returns one of them"
        )

    def size(self, arrays: Options, n_rows: int) -> int:
        """How many numbers the value of one table holds."""
        return sum(x.size for x in jax.tree.leaves(self._result(arrays, n_rows)))

    def refuse_several(self, arrays: Options, n_rows: int) -> None:
        """Refuse a metric with several values per table, before any work."""
        self.refuse_shapes(self._result(arrays, n_rows))

    def _result(self, arrays: Options, n_rows: int) -> Any:
        given = tuple(sorted((k, x.shape, np.dtype(x.dtype)) for k, x in arrays.items()))
        return _result_of(self, given, max(n_rows, 1))

    def refuse_shapes(self, result: Any) -> None:
        """Refuse a result of one table that is not a single number."""
        shapes = [list(x.shape) for x in jax.tree.leaves(result)]
        if len(shapes) > 1:
            self._refuse_results()
        if shapes != [[]]:
            raise ValueError(
                f"{self.metric.name} must have one value per table, got arrays of shape "
                f"{', '.join(map(str, shapes))}: take one limit at a time, or write bootstrap(...)"
            )


@functools.lru_cache(maxsize=256)
def _result_of(chosen: Chosen, arrays: tuple[tuple[str, Any, Any], ...], n_rows: int) -> Any:
    """The shapes of the value of a table of `n_rows` rows."""
    with double_precision():
        column: Any = jax.ShapeDtypeStruct((n_rows,), jnp.float64)
        given = {name: jax.ShapeDtypeStruct(shape, dtype) for name, shape, dtype in arrays}
        return jax.eval_shape(chosen.value, ScoreTable(column, column, column), given)


class TableMetric(Protocol[P, R_co]):
    """A metric of the ROC family: takes one ScoreTable, or scores and labels."""

    @property
    def record(self) -> Metric:
        """What the metric is."""

    @overload
    def __call__(self, table: ScoreTable, /, *args: P.args, **options: P.kwargs) -> R_co: ...

    # A ParamSpec cannot be joined with keywords: beside weights, a mask or amounts, no type checker
    # sees wrong options. The call refuses them.
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


@dataclass(frozen=True)
class _OfDoubles:
    """A user's function, called with counts in float64, so its sums and products cannot overflow.

    The library's own functions take integer counts as they are.
    """

    function: Callable[..., Any]

    def __call__(self, table: ScoreTable, **options: Any) -> Any:
        return self.function(ScoreTable(*(x.astype(jnp.float64) for x in table)), **options)


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
    Leading axes are a batch. It is compiled once for each input shape. It calls `function` with one
    table `[rows]`, in double precision in any x64 mode; `function` returns an array or a pytree.
    Rows may have weight 0, also the first ones: guard quotients, as tp / maximum(tp + fp, 1e-30).

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
      TypeError: an option of `function` is not keyword-only, or has the name of an array, such as
        `weights`; or, when called, the metric is given an option that `function` does not have.

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
    return _metric(
        function,
        _OfDoubles(function),
        check,
        amounts=amounts,
        smooth=smooth,
        of_roc_curve=of_roc_curve,
    )


def library_metric(
    function: Callable[Concatenate[ScoreTable, P], R],
    *,
    amounts: bool = False,
    smooth: bool = False,
    of_roc_curve: bool = False,
    decision: Decision = no_decision,
) -> TableMetric[P, R]:
    """`table_metric` for the library's own: checks options by name, and keeps integer counts."""
    metric: TableMetric[P, R] = _metric(
        function,
        function,
        checks.check_options,
        amounts=amounts,
        smooth=smooth,
        of_roc_curve=of_roc_curve,
        decision=decision,
    )
    return metric


def _metric(
    function: Callable[..., Any],
    evaluated: Callable[..., Any],
    check: Callable[[Options], Options],
    *,
    amounts: bool,
    smooth: bool,
    of_roc_curve: bool,
    decision: Decision = no_decision,
) -> Any:
    per_item = ("weights", "where", "amounts") if amounts else ("weights", "where")
    options = keywords(function, {"scores": REQUIRED, "labels": None}, per_item)

    def settings(given: Options) -> Options:
        return check(options.filled(given))

    record = Metric(function.__name__, evaluated, settings, smooth, of_roc_curve, amounts, decision)

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
            items = checks.check_items(scores, labels, *per_item)
            return evaluate(evaluated, items, chosen, decision)
        if any(x is not None for x in (labels, *per_item)):
            raise TypeError(
                "a ScoreTable already holds labels and weights: pass it alone, "
                "or build it with score_table(scores, labels, weights=..., where=...)"
            )
        return evaluate(evaluated, scores, chosen, decision)

    public: Any = metric
    public.record, public.__signature__ = record, options.signature
    return public


def record_of(metric: MetricLike) -> Metric:
    """The record of a metric, of a partial of one, or of a plain function of a table.

    Of the last nothing is claimed. Two records of one function are equal.
    """
    function, options = _unwrapped(metric)
    found = getattr(function, "record", None)
    if isinstance(found, Metric):
        return found
    name = getattr(function, "__name__", repr(function))
    _refuse_other_arguments(name, function, options)
    return Metric(name, _OfDoubles(function))


def _refuse_other_arguments(name: str, function: Callable[..., Any], options: Options) -> None:
    """Refuse a function that needs more than a table, such as a metric of ranked lists."""
    code = getattr(function, "__code__", None)
    if code is None or hasattr(function, "__self__"):
        return
    n_needed = code.co_argcount - len(getattr(function, "__defaults__", None) or ())
    others = [x for x in code.co_varnames[1:n_needed] if x not in options]
    if others:
        raise TypeError(
            f"{name} is no function of one ScoreTable, as it also needs {', '.join(others)}: if it "
            "has a value for each list or item, write bootstrap_mean(values, key=key), with values "
            "[..., lists]; of values [models, lists], differences of replicates compare the models"
        )


def choose(metric: MetricLike) -> tuple[Chosen, Options]:
    """The metric and the options that `metric` stands for; options that are arrays apart.

    Partials are taken apart, so that two with the same content share one compiled program.
    """
    record, (_, options) = record_of(metric), _unwrapped(metric)
    constants, arrays = static_options(record.settings(options))
    return Chosen(record, constants), arrays


def _unwrapped(metric: MetricLike) -> tuple[Callable[..., Any], Options]:
    """The function within partials, and the keywords that they fix."""
    options: Options = {}
    while isinstance(metric, functools.partial):
        if metric.args:
            raise TypeError("fix options by keyword, as in functools.partial(metric, max_fpr=0.1)")
        options = {**metric.keywords, **options}
        metric = metric.func
    check_metric(metric)
    return metric, options


def check_metric(metric: MetricLike) -> None:
    """Refuse anything but a function."""
    if isinstance(metric, str):
        raise TypeError(
            f"metric must be a function, got {checks.brief(metric)}: write jaxmetrics.{metric[:40]}"
            " without quotes"
        )
    if not callable(metric):
        raise TypeError(
            f"metric must be a function of a ScoreTable, got {checks.brief(metric)}: write "
            "jaxmetrics.roc_auc, or functools.partial(jaxmetrics.partial_auc, max_fpr=0.1)"
        )


def evaluate_chosen(metric: MetricLike, source: Any) -> Any:
    """The value of a metric, or of a partial of one, for Items or a ScoreTable."""
    chosen, arrays = choose(metric)
    return chosen.evaluated(source, arrays)
