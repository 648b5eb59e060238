"""The evaluation as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from jaxmetrics._base.words import percent_text, visible
from jaxmetrics._report._cells import (
    Cell,
    about_differences,
    about_limits,
    about_points,
    about_untested,
    difference_cells,
    slice_tables,
    value_cells,
    values_tables,
)
from jaxmetrics._report._evaluation import Evaluation, Measure
from jaxmetrics._report._findings import LONGEST_IN_TEXT
from jaxmetrics._report._trends import trend_tables
from jaxmetrics.plots._names import short_names


def tables_of(evaluation: Evaluation, console: Console) -> list[Table | Text]:
    """The evaluation as tables for a terminal: values, differences, thresholds and slices.

    A table that is too wide for the console becomes several, one below the other, and its caption
    a text below these.
    """
    names, measures = [visible(name) for name in evaluation.names], evaluation.measures
    level = percent_text(measures[0].interval.confidence_level)
    about = f"In brackets, {level} confidence intervals{visible(evaluation.about)}"
    about += about_limits(measures)
    if len(names) > 1:
        about += "; * marks the best of a column"
    counted = [x for x in measures if not x.by_amount]
    columns = [_Column(x.heading, value_cells(x), _queries(x)) for x in counted]
    tables = _tables_of_width(visible(evaluation.title), about, names, columns, console)
    if by_amount := [x for x in measures if x.by_amount]:
        columns = [_Column(x.heading, value_cells(x)) for x in by_amount]
        tables += _tables_of_width("By amount", "", names, columns, console)
    untested = about_untested(measures)
    if compared := [x for x in measures if x.has_intervals.any()]:
        about = (
            f"{level} confidence intervals and p-values are simultaneous for all pairs in a column"
            "; models marked + are not significantly worse than the best, by one-sided tests"
        )
        if unknown := about_differences(compared):
            about += f"; {unknown}"
        about += f"; {untested}" * bool(untested)
        columns = [
            _Column(x.heading + "\nby amount" * x.by_amount, difference_cells(x)) for x in compared
        ]
        tables += _tables_of_width("Difference from the best", about, names, columns, console)
    elif untested:
        tables.append(Text(f"{untested[0].upper()}{untested[1:]}"))
    for i, found in enumerate(evaluation.points, start=1):
        about = about_points(evaluation.points) if i == len(evaluation.points) else ""
        columns = [_Column(x.heading, value_cells(x)) for x in found.measures]
        tables += _tables_of_width(f"Threshold: {found.title}", about, names, columns, console)
    for part in evaluation.slices:
        short = short_names(evaluation.names, LONGEST_IN_TEXT)
        within = slice_tables(part, short) or values_tables(part, short)
        for x in (*within, *trend_tables(part, short)):
            rows, columns = map(visible, x.rows), [_Column(*column) for column in x.columns]
            tables += _tables_of_width(
                x.title, x.about, [*rows], columns, console, visible(x.corner)
            )
    return tables


class _Column(NamedTuple):
    heading: str
    cells: list[Cell]  # one a row
    queries: str | None = None  # number of queries in the mean


def _tables_of_width(
    title: str,
    caption: str,
    names: Sequence[str],
    columns: Sequence[_Column],
    console: Console,
    corner: str = "Model",
) -> list[Table | Text]:
    """Tables that fit the console, the first with the title, and the caption of all."""
    unbounded = console.options.update(width=10_000)

    def fits(some: Sequence[_Column]) -> bool:
        table = _rich_table("", "", corner, names, some, console.width)
        return Measurement.get(console, unbounded, table).maximum <= console.width

    parts: list[list[_Column]] = [[]]
    for column in columns:
        if parts[-1] and not fits([*parts[-1], column]):
            parts.append([])
        parts[-1].append(column)
    if len(parts) == 1:
        return [_rich_table(title, caption, corner, names, columns, console.width)]
    # The last table may be as narrow as one column, and would fold its caption into that.
    titles = [title, *[""] * (len(parts) - 1)]
    tables = [
        _rich_table(x, "", corner, names, part, console.width)
        for x, part in zip(titles, parts, strict=True)
    ]
    return [*tables, Text(caption)] if caption else [*tables]


def _rich_table(
    title: str,
    caption: str,
    corner: str,
    names: Sequence[str],
    columns: Sequence[_Column],
    width: int,
) -> Table:
    """A table with a row for each model or slice, and a column for each metric."""
    table = Table(
        title=Text(title) if title else None,
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
        caption=Text(caption) if caption else None,
        caption_justify="left",
    )
    table.add_column(Text(corner), overflow="fold", max_width=width // 3)
    for column in columns:
        table.add_column(column.heading, justify="right", no_wrap=True)
    for name, *row in zip(names, *(column.cells for column in columns), strict=True):
        table.add_row(Text(name), *map(_text, row))
    if any(column.queries for column in columns):
        table.add_section()
        table.add_row("queries", *(column.queries for column in columns), style="dim")
    return table


def _queries(measure: Measure) -> str | None:
    return None if measure.n_queries is None else f"{measure.n_queries:,} "


def _text(cell: Cell) -> Text:
    """The value, its interval and its bounds, one below the other."""
    style = "bold green" if cell.best else "bold red" if cell.worse else ""
    lines = [Text(f"{cell.value}{cell.mark}", style)]
    if cell.interval is not None:
        lines.append(Text("[{}, {}]".format(*cell.interval)))
    if cell.bounds is not None:
        lines.append(Text("{} to {}".format(*cell.bounds), "dim"))
    return Text("\n").join(lines)
