"""What results have in common: they show themselves as text, as HTML and as a data frame.

Each class of results defines its rows and columns in `_table`; the rest follows from that. Public
functions attach a caption with the names of the metric and the models after the computation. The
caption is not part of the pytree: a program is not compiled anew for each name, and results of
models with different names have the same structure. It is lost in `jit` and `jax.tree.map`: see
`named`.
"""

from __future__ import annotations

import abc
import copy
import html
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self, TypeVar

import jax
import numpy as np

from jaxmetrics._base.frames import names_in
from jaxmetrics._base.primitives import is_concrete
from jaxmetrics._base.types import HostArray
from jaxmetrics._base.words import (
    decimals_of,
    fixed,
    limits_in_words,
    metric_in_words,
    number,
    p_number,
    percent_text,
    rounded_down,
    several_in,
    visible,
)

STATIC = {"static": True}  # metadata of a field that is a constant of programs

_MOST_ROWS = 20  # shown in text and in HTML; a frame has all rows

R = TypeVar("R", bound="Result")


class Column(NamedTuple):
    """A column of a table, which may be several columns of a frame.

    Attributes:
      heading: above the column; empty if only a frame shows the column.
      parts: arrays of one number for each row, by their names in a frame: a value, the two limits
        of an interval, or a value and its limits.
      scale: the widths or errors of the numbers. Numbers are shown to two digits of the smallest;
        without a scale, to three digits of the largest number.
      form: "number", "threshold" (rounded down), "p" for p-values, or "plain" for all else.
    """

    heading: str
    parts: dict[str, Any]
    scale: Any = None
    form: str = "number"


class Table(NamedTuple):
    """The rows and columns of a result.

    Attributes:
      title: what the table shows.
      rows: the names of the rows by kind, such as `{"model": ["old", "new"]}`; empty for one row.
      columns: the columns.
      notes: statements about all rows.
    """

    title: str
    rows: dict[str, list[Any]]
    columns: list[Column]
    notes: tuple[str, ...] = ()


class Caption(NamedTuple):
    """The name of the metric of a result, and the names of its rows by kind, such as "model".

    `names` also has, if a metric has several values of an option, the last axis, the name of the
    "option"; for a comparison, the index of its "reference", or the "value" that is subtracted; for
    the size of a study, its "aim"; for a trend, the "unit" of time.
    """

    metric: str = "estimate"
    names: Mapping[str, tuple[Any, ...]] = {}


class Result(abc.ABC):
    """A result that shows itself: `str` is a text, and `to_frame` has all numbers."""

    @abc.abstractmethod
    def _table(self) -> Table:
        """The rows and columns."""

    def _is_readable(self) -> bool:
        """Whether there are leaves, all numbers or arrays whose values this process knows.

        Results with names on their leading axis are also of one shape: a stack has no table.
        """

        def known(x: Any) -> bool:
            if isinstance(x, jax.Array):
                return is_concrete(x) and (x.is_fully_addressable or x.is_fully_replicated)
            return isinstance(x, (np.ndarray, np.generic, int, float))

        leaves = jax.tree.leaves(self)
        return bool(leaves) and all(map(known, leaves))

    @property
    def _caption(self) -> Caption:
        return self.__dict__.get("_captioned", Caption())

    def _captioned_as(self, metric: str | None = None, **names: Iterable[Any]) -> Self:
        """The same result, with these names in place of its own of the same kinds."""
        found, old = copy.copy(self), self._caption
        given = {
            kind: tuple(_plain(x) if isinstance(x, tuple) else x for x in some)
            for kind, some in names.items()
        }
        caption = Caption(metric or old.metric, {**old.names, **given})
        object.__setattr__(found, "_captioned", caption)
        for name, part in vars(self).items():
            if isinstance(part, Result):
                object.__setattr__(found, name, part._captioned_as(metric, **names))
        return found

    def _labels(self, kind: str, n: int) -> list[Any]:
        """The names of a kind, such as models, if there are n of them; otherwise 0 to n - 1."""
        names = self._caption.names.get(kind, ())
        return [*names] if len(names) == n else [*range(n)]

    def _rows(self, shape: Sequence[int], *kinds: str) -> dict[str, list[Any]]:
        """The names of the rows of arrays of this shape, by kind; `kinds` are of its last axes.

        The kind "minus" has the names of the kind before it: its rows are differences.
        """
        axes = [f"axis {i}" for i in range(len(shape) - len(kinds))]
        named = [*axes, *kinds[len(kinds) - len(shape) + len(axes) :]]
        places = np.indices(tuple(shape)).reshape(len(shape), math.prod(shape))
        of = [named[i - (kind == "minus")] for i, kind in enumerate(named)]
        labels = [self._labels(kind, n) for kind, n in zip(of, shape, strict=True)]
        return {
            kind: [label[i] for i in place]
            for kind, label, place in zip(named, labels, places, strict=True)
        }

    def named(self, *models: str, metric: str | None = None) -> Self:
        """The same result with names of the models, and of the metric if it is given.

        Results from a dict or a frame of scores have its names already. Those from arrays, and
        those that were in `jit`, `jax.tree.map`, `jax.device_get` or `dataclasses.replace`, have
        numbers in their place.

        Args:
          models: a name for each model, in the order of the scores; none to keep what there is. Of
            one model with several limits, a name for each limit.
          metric: the name of the metric.

        Returns:
          The result with these names and the same numbers.

        Raises:
          TypeError, ValueError: a list is given, or not as many names as models.

        Example:
          >>> import jax
          >>> import jaxmetrics as jm
          >>> scores = [[.1, .4, .35, .8, .7, .2], [.4, .3, .6, .9, .2, .1]]
          >>> test = jm.permutation_test(
          ...     jm.roc_auc, scores, [0, 0, 1, 1, 1, 0], key=jax.random.key(0), n_resamples=99)
          >>> print(list(test.named("old", "new").to_frame().model))
          ['old']
        """
        if any(isinstance(x, (list, tuple)) for x in models):
            raise TypeError("named takes each name by itself: write named(*names)")
        models, kind = tuple(map(str, models)), "model"
        if (option := self._caption.names.get("option", ())) and self._is_readable():
            rows = self._table().rows
            kind = kind if kind in rows else next((str(x) for x in option if x in rows), kind)
        found = self._captioned_as(metric, **({kind: models} if models else {}))
        if models and found._is_readable():
            index = found._table().rows
            shown = {*index.get(kind, models[:1]), *index.get("minus", ())}
            if shown != {*map(str, models)}:
                raise ValueError(f"named takes a name for each model, got {len(models)} names")
        return found

    def __str__(self) -> str:
        if not self._is_readable():
            return repr(self)
        table = self._table()
        headings, rows = _cells(table)
        notes = "; ".join(table.notes)
        if not table.rows:
            told = [f"{x} {y}".strip() for x, y in zip(headings, rows[0], strict=True)]
            whose = self._caption.names.get("model", ())
            begin = f"{visible(str(whose[0]))}: " if len(whose) == 1 else ""
            return begin + ", ".join([*told, *table.notes])
        kept = _shortened([headings, *rows])
        n_index = len(table.rows)
        widths = [max(map(len, column)) for column in zip(*kept, strict=True)]
        lines = [
            "  ".join(
                cell.ljust(width) if i < n_index else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in kept
        ]
        return "\n".join([table.title, *lines, *([notes] if notes else [])])

    def _repr_html_(self) -> str:
        if not self._is_readable():
            return f"<pre>{html.escape(repr(self))}</pre>"
        table = self._table()
        headings, rows = _cells(table)
        n_index = len(table.rows)

        def line(cells: Iterable[str], tag: str = "td") -> str:
            marked = []
            for i, cell in enumerate(cells):
                mark, side = ("th", "left") if i < n_index else (tag, "right")
                marked.append(f'<{mark} style="text-align: {side}">{html.escape(cell)}</{mark}>')
            return f"<tr>{''.join(marked)}</tr>"

        body = "".join(map(line, _shortened(rows)))
        notes = f"<p>{html.escape('; '.join(table.notes))}</p>" if table.notes else ""
        return (
            f"<table><caption>{html.escape(visible(table.title))}</caption>"
            f"<thead>{line(headings, 'th')}</thead><tbody>{body}</tbody></table>{notes}"
        )

    def to_frame(self) -> Any:
        """All numbers as a pandas DataFrame, with a row for each model, pair, slice or point.

        Returns:
          The DataFrame: first what names the rows, such as "model", where there are several or they
          have names; then the numbers, in columns with the names of the result's attributes.

        Raises:
          ImportError: pandas is missing; the `report` extra has it.
          TypeError: the values are not known, as in `jit`, or are those of several results.

        Example:
          >>> import jaxmetrics as jm
          >>> scores = {"old": [.1, .4, .35, .8, .7, .2], "new": [.4, .3, .6, .9, .2, .1]}
          >>> frame = jm.compare(jm.roc_auc, scores, [0, 0, 1, 1, 1, 0]).to_frame()
          >>> print(frame.model[0], frame.minus[0], f"{frame.difference[0]:.3f}")
          old new 0.111
        """
        try:
            import pandas
        except ImportError:
            raise ImportError(
                "to_frame needs pandas: pip install 'jaxmetrics-exact[report]'"
            ) from None
        if not self._is_readable():
            raise TypeError(
                "to_frame needs known numbers of one result: call it outside of jit and vmap, and "
                "for each result of a stack"
            )
        table = self._table()
        n_rows = _n_rows(table)
        parts = {name: x for column in table.columns for name, x in column.parts.items()}
        columns = {name: np.broadcast_to(np.ravel(x), n_rows) for name, x in parts.items()}
        return pandas.DataFrame({**table.rows, **columns})


def _n_rows(table: Table) -> int:
    return len(next(iter(table.rows.values()))) if table.rows else 1


def _cells(table: Table) -> tuple[list[str], list[list[str]]]:
    """The headings and the rows as texts."""
    shown = [column for column in table.columns if column.heading]
    columns = [_texts(column, _n_rows(table)) for column in shown]
    index = [[visible(_plain(x)) for x in names] for names in table.rows.values()]
    headings = [*table.rows, *(visible(column.heading) for column in shown)]
    return headings, [list(row) for row in zip(*index, *columns, strict=True)]


def _texts(column: Column, n_rows: int) -> list[str]:
    parts = [np.broadcast_to(np.ravel(np.asarray(x)), n_rows) for x in column.parts.values()]
    if column.form == "plain":
        return [_plain(x) for x in parts[0].tolist()]
    numbers = [x.astype(np.float64) for x in parts]
    if column.form == "p":
        return [p_number(x) for x in numbers[0]]
    digits = digits_for(column.scale, *numbers)
    if column.form == "threshold":
        numbers = [np.array([rounded_down(y, digits) for y in x.tolist()]) for x in numbers]
    return [_joined(row, digits) for row in zip(*numbers, strict=True)]


def digits_for(scale: Any, *numbers: Any) -> int:
    """The decimals of numbers whose widths or errors are `scale`."""
    widths = np.zeros(0) if scale is None else np.ravel(np.asarray(scale, np.float64))
    if not (np.isfinite(widths) & (widths > 0)).any():
        sizes = np.abs(np.concatenate([np.ravel(x) for x in numbers]))
        widths = np.max(sizes, initial=0, where=np.isfinite(sizes), keepdims=True) / 10
    return decimals_of(widths)


def _joined(numbers: Sequence[float], digits: int) -> str:
    """A number, the limits of an interval, or a number and its limits."""
    first = fixed(numbers[0], digits)
    if len(numbers) < 2:
        return first
    texts = limits_in_words(numbers[-2], numbers[-1], digits)
    limits = "-" if texts == ("-", "-") else " to ".join(texts)
    return limits if len(numbers) == 2 else f"{first} ({limits})"


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, (int, float)):
        return number(value, 10)
    return str(value)


def _shortened(rows: list[list[str]]) -> list[list[str]]:
    if len(rows) <= _MOST_ROWS + 1:
        return rows
    half = _MOST_ROWS // 2
    return [*rows[: half + 1], ["..."] * len(rows[0]), *rows[-half:]]


def width_between(low: Any, high: Any) -> HostArray:
    """The width of an interval; NaN where both ends are infinite."""
    with np.errstate(invalid="ignore"):
        return np.asarray(high, np.float64) - np.asarray(low, np.float64)


def interval_columns(
    heading: str, value: Any, low: Any, high: Any, error: Any, level: float
) -> list[Column]:
    """A value, the limits of its interval and its standard error."""
    width = width_between(low, high)
    if not (np.isfinite(width) & (width > 0)).any():
        width = np.asarray(error)
    return [
        Column(heading, {"estimate": value}, width),
        Column(f"{percent_text(level)} interval", {"low": low, "high": high}, width),
        Column("", {"standard_error": error}),
    ]


def difference_columns(
    parts: Mapping[str, Any], level: float | None, several: bool
) -> list[Column]:
    """Columns of differences, intervals and p-values; simultaneous ones too if `several`.

    `parts` has the arrays by their names in a frame.
    """
    width = parts["high"] - parts["low"]
    interval = "interval" if level is None else f"{percent_text(level)} interval"
    columns = [
        Column("difference", {"difference": parts["difference"]}, width),
        Column(interval, {x: parts[x] for x in ("low", "high")}, width),
        Column("p", {"p_value": parts["p_value"]}, form="p"),
    ]
    if not several:
        return columns
    together = {x: parts[x] for x in ("simultaneous_low", "simultaneous_high")}
    p = {"simultaneous_p_value": parts["simultaneous_p_value"]}
    return [*columns, Column("simultaneous", together, width), Column("p", p, form="p")]


def introduced(value: R | Any, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """A result, with the names that its function's arguments have; any other value as it is."""
    if not isinstance(value, Result):
        return value
    if arguments and isinstance(arguments[0], Result):
        return with_names_of(value, arguments[0])
    scores = scores_among(arguments, options)
    metric = options.get("metric", arguments[0] if arguments else None)
    words = metric_in_words(metric) if callable(metric) else None
    named: dict[str, Any] = several_in(metric) if callable(metric) else {}
    if (names := names_in(scores)) is not None:
        named["model"] = names
    return value._captioned_as(words, **named)


def scores_among(arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """The scores or values that a function is given, after its metric if it has one."""
    given = [x for x in arguments[:2] if not callable(x)]
    return options.get("scores", options.get("values", given[0] if given else None))


def with_names_of(value: Any, like: Any) -> Any:
    """`value`, if it is a result, with the names of the result `like` added to its own."""
    if not isinstance(value, Result):
        return value
    metric, names = like._caption
    return value._captioned_as(metric, **{**names, **value._caption.names})
