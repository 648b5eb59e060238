"""Metric, the record of a metric, and how a function and its options are taken for one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks
from jaxmetrics._base.double import double_precision
from jaxmetrics._base.keywords import of_partials, refuse_missing
from jaxmetrics._base.parts import AxisName
from jaxmetrics._base.types import Items
from jaxmetrics._roc.host_batches import evaluate_batch
from jaxmetrics._roc.host_rows import evaluate_on_host
from jaxmetrics._roc.mesh_values import evaluate_on_mesh
from jaxmetrics._roc.placements import OfTable, Part, order_of_all
from jaxmetrics._roc.reported import Decision, no_decision
from jaxmetrics._roc.selection import evaluate_by_selection, selects
from jaxmetrics._roc.table import ScoreTable
from jaxmetrics._roc.table_values import evaluate, evaluate_by_numpy, static_options

Options: TypeAlias = dict[str, Any]
# A metric, a functools.partial of one, or a plain function of a ScoreTable.
MetricLike: TypeAlias = Callable[..., Any]

# A batch of rows with fewer items takes less time in one program than row by row by NumPy.
_SHORT = 1 << 11
_SHORT_UNSORTED = 1 << 13  # the same for metrics that sort nothing


@dataclass(frozen=True)
class Metric:
    """The record of a metric: all that other packages need to know of it. Hashable.

    Attributes:
      name: its name in errors.
      function: computes the value from a ScoreTable `[rows]`, in double precision, and the options.
      settings: returns all options, checked, from those that the caller gave.
      smooth: whether the gradient with respect to weights is its influence function.
      of_roc_curve: whether it depends on the ROC curve alone, as a set of points.
      amounts: whether it takes `amounts`.
      decision: returns, from the options, the decision whose threshold the value is, or None.
      of_placements: computes the value from `Placements` and the options; None without such a form.
      of_items: computes the value from Items and the options, where that takes less time than a
        table does, or returns None; None without such a form.
      on_mesh: whether it takes `axis_name`.
      orders: returns, from the options, the `Part` of the items' order that `of_placements` needs.
    """

    name: str
    function: Callable[..., Any]
    settings: Callable[[Options], Options] = dict
    smooth: bool = False
    of_roc_curve: bool = False
    amounts: bool = False
    decision: Decision = no_decision
    of_placements: Callable[..., Any] | None = None
    of_items: Callable[..., Any] | None = None
    on_mesh: bool = False
    orders: Callable[..., Part] = order_of_all

    def evaluated(
        self, source: Items | ScoreTable, options: Options, axis_name: AxisName = None
    ) -> Any:
        """The value of each row of a batch of items, or of each table.

        For items, it takes the first way that applies: NumPy, if the data are in the CPU's memory;
        a selection, if that takes less time than a sort; else the score table. With an axis, the
        items are the part that this device holds, and the value is that of all devices.
        """
        if self.of_placements is not None and isinstance(source, Items):
            order = self.orders(**options)
            if axis_name is not None:
                return evaluate_on_mesh(self.of_placements, source, options, order, axis_name)
            short = _SHORT_UNSORTED if order is Part.NONE else _SHORT
            value = evaluate_batch(self.of_placements, source, options, self.decision, order)
            if value is not None:
                return value
            value = evaluate_on_host(
                self.of_placements, source, options, self.decision, short=short
            )
            if value is not None:
                return value
            if selects(source, order):
                return evaluate_by_selection(self.of_placements, source, options, self.decision)
        if self.of_items is not None and isinstance(source, Items):
            value = self.of_items(source, **options)
            if value is not None:
                return value
        if not isinstance(self.function, OfDoubles):
            value = evaluate_by_numpy(self.function, source, options, self.decision)
            if value is not None:
                return value
        return evaluate(self.function, source, options, self.decision)


class Chosen(NamedTuple):
    """A metric with those of its options that are compile-time constants. Hashable.

    Attributes:
      metric: its record.
      constants: the names and values of these options, in order of name.
    """

    metric: Metric
    constants: tuple[tuple[str, Any], ...]

    def options(self, arrays: Options) -> Options:
        """All options: the constants and the `arrays`."""
        return {**arrays, **dict(self.constants)}

    def value(self, table: ScoreTable, arrays: Options) -> Any:
        """The value of one table, in double precision."""
        return self.metric.function(table, **self.options(arrays))

    def value_of_resample(self, table: ScoreTable, arrays: Options) -> Any:
        """The value of the table of a resample, which is never differentiated."""
        of_placements = self.metric.of_placements
        if of_placements is None:
            return self.value(table, arrays)
        return of_placements(OfTable(table, constant=True), **self.options(arrays))

    def evaluated(self, source: Items | ScoreTable, arrays: Options) -> Any:
        """The value of each table of a batch."""
        return self.metric.evaluated(source, self.options(arrays))

    def refuse_tree(self, arrays: Options, n_rows: int) -> None:
        """Refuse a metric whose value is not one array, before any work."""
        if not isinstance(self._result(arrays, n_rows), jax.ShapeDtypeStruct):
            self._refuse_results()

    def _refuse_results(self) -> None:
        own = "return_threshold" in dict(self.constants)
        way = "leave return_threshold out" if own else "write a function that returns one of them"
        raise TypeError(f"{self.metric.name} has several results where one is needed: {way}")

    def size(self, arrays: Options, n_rows: int) -> int:
        """How many numbers the value of one table holds."""
        return sum(x.size for x in jax.tree.leaves(self._result(arrays, n_rows)))

    def refuse_several(self, arrays: Options, n_rows: int) -> None:
        """Refuse a metric with several values per table, before any work."""
        self.refuse_shapes(self._result(arrays, n_rows))

    def _result(self, arrays: Options, n_rows: int) -> Any:
        given = tuple(sorted((k, x.shape, np.dtype(x.dtype)) for k, x in arrays.items()))
        # The options alone shape a value of placements: other rows need no trace of their own.
        n_rows = 1 if self.metric.of_placements is not None else max(n_rows, 1)
        return _result_of(self, given, n_rows)

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


@dataclass(frozen=True)
class OfDoubles:
    """A user's function, called with counts in float64, so its sums and products cannot overflow.

    The library's own functions take integer counts as they are.
    """

    function: Callable[..., Any]

    def __call__(self, table: ScoreTable, **options: Any) -> Any:
        return self.function(ScoreTable(*(x.astype(jnp.float64) for x in table)), **options)


def record_of(metric: MetricLike) -> Metric:
    """The record of a metric, of a partial of one, or of a plain function of a table.

    The record of a plain function claims nothing, such as `smooth`. Two records of one function are
    equal.
    """
    function, options = _unwrapped(metric)
    found = getattr(function, "record", None)
    if isinstance(found, Metric):
        return found
    name = getattr(function, "__name__", repr(function))
    _refuse_other_arguments(name, function, options)
    return Metric(name, OfDoubles(function))


def _has_arguments(function: Callable[..., Any]) -> bool:
    """Whether a function names positional arguments, and is no wrapper that passes all on."""
    return bool(getattr(getattr(function, "__code__", None), "co_argcount", 0))


def _refuse_other_arguments(name: str, function: Callable[..., Any], options: Options) -> None:
    """Refuse a function that needs more than a table, such as a metric of ranked lists."""
    written = inspect.unwrap(function, stop=_has_arguments)
    code = getattr(written, "__code__", None)
    if code is None or hasattr(function, "__self__"):
        return
    n_needed = code.co_argcount - len(getattr(written, "__defaults__", None) or ())
    others = [x for x in code.co_varnames[1:n_needed] if x not in options]
    if others:
        wanted = f"{name} is no function of one ScoreTable, as it also needs {', '.join(others)}"
        if name in ("one_vs_rest", "one_vs_one", "multilabel"):
            raise TypeError(
                f"{wanted}: for each class against the rest pass the metric itself, with scores.T "
                "and labels == numpy.arange(n_classes)[:, None], or labels.T of multilabel; for an "
                'average see "Intervals of any other metric" among the recipes'
            )
        raise TypeError(
            f"{wanted}: if it "
            "has a value for each list or item, write mean_interval(values), with values [..., "
            "lists], or compare_means(values), with values [models, lists]; if it is a metric with "
            "options, write functools.partial(jm.partial_auc, max_fpr=0.1); for any other function "
            'of items see "Intervals of any other metric" among the recipes'
        )


def choose(metric: MetricLike) -> tuple[Chosen, Options]:
    """The record and the constant options of `metric`, and separately the options that are arrays.

    Partials are unwrapped: two with the same content share one compiled program.
    """
    record, (function, options) = record_of(metric), _unwrapped(metric)
    refuse_missing(function, options)
    constants, arrays = static_options(record.settings(options))
    return Chosen(record, constants), arrays


def _unwrapped(metric: MetricLike) -> tuple[Callable[..., Any], Options]:
    """The function within partials, and the keywords that they fix."""
    function, arguments, options = of_partials(metric)
    if arguments:
        raise TypeError("fix options by keyword, as in functools.partial(metric, max_fpr=0.1)")
    check_metric(function)
    return function, options


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
