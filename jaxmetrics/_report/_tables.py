"""The evaluation as tables for a terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from jaxmetrics._report._evaluation import Evaluation, Measure
from jaxmetrics._report._problem import Problem
from jaxmetrics._report._settings import Settings
from jaxmetrics._types import FloatArray


def tables_of(problem: Problem, settings: Settings, evaluation: Evaluation) -> list[Table]:
    """The evaluation as tables for a terminal: values, values by amount, and differences."""
    names, measures = problem.names, evaluation.measures
    n, positives = len(problem.labels), int(problem.labels.sum())
    title = f"{Path(problem.source).name}, {problem.label}: "
    title += f"{n:,} items, {positives:,} positive ({_percent(positives / n)})"
    level = f"{100 * settings.confidence_level:g} %"
    about = f"In brackets, {level} confidence intervals"
    if problem.clusters is not None:
        about += f" for {len(np.unique(problem.clusters)):,} clusters ({problem.cluster})"
    about += "; partial AUC on McClish's scale, .5 for chance"
    if len(names) > 1:
        about += "; * best of its column"
    counted = [x for x in measures if not x.name.startswith("amount")]
    tables = [_table(title, about, names, counted, _value_cells)]
    if by_amount := [x for x in measures if x.name.startswith("amount")]:
        tables.append(_table("By amount", "", names, by_amount, _value_cells))
    if compared := [x for x in measures if x.comparison is not None]:
        about = (
            f"{level} intervals and p-values hold for all pairs of models of a column at once; "
            f"the best is, with {level} confidence, among those marked +"
        )
        tables.append(_table("Difference from the best", about, names, compared, _difference_cells))
    return tables


def _table(
    title: str,
    caption: str,
    names: Sequence[str],
    measures: Sequence[Measure],
    cells: Callable[[Measure], list[Text]],
) -> Table:
    """A row a model and a column a metric."""
    table = Table(
        title=Text(title),
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
        caption=Text(caption) if caption else None,
        caption_justify="left",
    )
    table.add_column("Model", overflow="fold")
    for measure in measures:
        table.add_column(_heading(measure), justify="right", no_wrap=True)
    for name, *row in zip(names, *map(cells, measures), strict=True):
        table.add_row(Text(name), *row)
    return table


def _value_cells(measure: Measure) -> list[Text]:
    """Values, the best of several marked, above their intervals."""
    interval: Any = measure.interval
    digits = _digits(interval.high - interval.low)
    best = (interval.estimate == np.max(interval.estimate)) & (len(interval.estimate) > 1)
    rows = zip(interval.estimate, interval.low, interval.high, best, strict=True)
    return [
        _cell(_fixed(value, digits), low, high, digits, "*" if mark else " ")
        for value, low, high, mark in rows
    ]


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


def _heading(measure: Measure) -> str:
    if measure.max_fpr is None:
        return {"roc_auc": "AUC", "average_precision": "Average\nprecision"}[measure.name]
    what = "Partial\nAUC to" if measure.name == "partial_auc" else "Recall\nat"
    return f"{what}\n{_percent(measure.max_fpr)} FPR"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
