"""The evaluation as tables for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from jaxmetrics._report._evaluation import Evaluation, Measure
from jaxmetrics._types import FloatArray


def tables_of(evaluation: Evaluation, console: Console) -> list[Table]:
    """The evaluation as tables for a terminal: values, values by amount, and differences.

    What is too wide for the console is several tables, one below the other.
    """
    names, measures = evaluation.names, evaluation.measures
    level = f"{100 * measures[0].interval.confidence_level:g} %"
    about = f"In brackets, {level} confidence intervals{evaluation.about}"
    if len(names) > 1:
        about += "; * best of its column"
    counted = [x for x in measures if not x.name.startswith("amount")]
    columns = [_Column(x.heading, _value_cells(x), _queries(x)) for x in counted]
    tables = _tables(evaluation.title, about, names, columns, console)
    if by_amount := [x for x in measures if x.name.startswith("amount")]:
        columns = [_Column(x.heading, _value_cells(x)) for x in by_amount]
        tables += _tables("By amount", "", names, columns, console)
    if compared := [x for x in measures if x.comparison is not None]:
        about = (
            f"{level} intervals and p-values hold for all pairs of models of a column at once; "
            f"the best is, with {level} confidence, among those marked +"
        )
        columns = [_Column(x.heading, _difference_cells(x)) for x in compared]
        tables += _tables("Difference from the best", about, names, columns, console)
    return tables


class _Column(NamedTuple):
    heading: str
    cells: list[Text]  # one a model
    queries: str | None = None  # how many count


def _tables(
    title: str, caption: str, names: Sequence[str], columns: Sequence[_Column], console: Console
) -> list[Table]:
    """Tables as wide as the console allows, the first with the title, the last with the caption."""
    unbounded = console.options.update(width=10_000)

    def fits(some: Sequence[_Column]) -> bool:
        table = _table("", "", names, some, console.width)
        return Measurement.get(console, unbounded, table).maximum <= console.width

    parts: list[list[_Column]] = [[]]
    for column in columns:
        if parts[-1] and not fits([*parts[-1], column]):
            parts.append([])
        parts[-1].append(column)
    return [
        _table(
            title if i == 0 else "",
            caption if i == len(parts) - 1 else "",
            names,
            part,
            console.width,
        )
        for i, part in enumerate(parts)
    ]


def _table(
    title: str, caption: str, names: Sequence[str], columns: Sequence[_Column], width: int
) -> Table:
    """A row a model and a column a metric."""
    table = Table(
        title=Text(title) if title else None,
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
        caption=Text(caption) if caption else None,
        caption_justify="left",
    )
    table.add_column("Model", overflow="fold", max_width=width // 3)
    for column in columns:
        table.add_column(column.heading, justify="right", no_wrap=True)
    for name, *row in zip(names, *(column.cells for column in columns), strict=True):
        table.add_row(Text(name), *row)
    if any(column.queries for column in columns):
        table.add_section()
        table.add_row("queries", *(column.queries for column in columns), style="dim")
    return table


def _queries(measure: Measure) -> str | None:
    return None if measure.n_queries is None else f"{measure.n_queries:,} "


def _value_cells(measure: Measure) -> list[Text]:
    """Values, the best of several marked, above their intervals."""
    interval: Any = measure.interval
    digits = _digits(interval.high - interval.low)
    best = (interval.estimate == np.max(interval.estimate)) & (len(interval.estimate) > 1)
    rows = zip(interval.estimate, interval.low, interval.high, best, strict=True)
    cells = [
        _cell(_fixed(value, digits), low, high, digits, "*" if mark else " ")
        for value, low, high, mark in rows
    ]
    if measure.bounds is not None:
        for cell, low, high in zip(cells, *measure.bounds, strict=True):
            cell.append(f"\n{_fixed(low, 5)} to {_fixed(high, 5)}", "dim")
    return cells


def _difference_cells(measure: Measure) -> list[Text]:
    """Differences from the best, above their intervals; a p-value beside each."""
    found: Any = measure.comparison
    if np.isnan(found.estimate).any():
        return [Text("-  ") for _ in found.estimate]
    best = int(np.argmax(found.estimate))
    lows, highs = found.simultaneous_low[:, best], found.simultaneous_high[:, best]
    digits = _digits(highs - lows)
    cells = []
    for i, marked in enumerate(found.best_set):
        difference = _fixed(found.difference[i, best], digits)
        what = f"{difference}, {_p_value(found.simultaneous_p_value[i, best])}"
        mark = " +" if marked else "  "
        if i == best:
            cells.append(Text(f"best{mark}", "bold green"))
        else:
            cells.append(_cell(what, lows[i], highs[i], digits, mark))
    return cells


def _cell(value: str, low: float, high: float, digits: int, mark: str) -> Text:
    first = Text(f"{value}{mark}", "bold green" if mark.strip() else "")
    if value == "-":
        return first
    return Text.assemble(first, f"\n[{_fixed(low, digits)}, {_fixed(high, digits)}]")


def _digits(widths: FloatArray) -> int:
    """So many that the narrowest interval has two digits that differ, from 3 to 6."""
    widths = widths[widths > 1e-6]  # neither NaN nor 0 but for rounding
    return int(np.clip(1 - np.floor(np.log10(widths.min(initial=1))), 3, 6))


def _fixed(value: float, digits: int) -> str:
    """Without the zero before the point; a dash where undefined."""
    return "-" if math.isnan(value) else f"{value:z.{digits}f}".replace("0.", ".", 1)


def _p_value(p: float) -> str:
    if math.isnan(p):
        return "p = -"
    return "p < .001" if p < 0.001 else f"p = {_fixed(p, 3)}"
