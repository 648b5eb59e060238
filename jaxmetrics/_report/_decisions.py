"""What the thresholds that a reader asked for do, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from jaxmetrics._base.words import percent_text
from jaxmetrics._report._cells import Cell, value_cells
from jaxmetrics._report._evaluation import Points

# What a rule leaves to be the lowest, in words; other rules leave the recall to be the highest.
_LOWEST = {
    "least_cost": ("cost", "costs {} an item"),
    "min_recall": ("fpr", "has an FPR of {}"),
}


def decisions_of(
    points: Sequence[Points], names: Sequence[str]
) -> Iterator[tuple[str, list[str], str]]:
    """For each rule: its title, a part for each model, the best one first, and their certainty.

    An FPR has none: the recalls at it are among the metrics, and are compared.
    """
    for found in points:
        if found.rule == "max_fpr":
            continue
        measures = {x.name: x for x in found.measures}
        name, words = _LOWEST.get(found.rule, ("recall", "has a recall of {}"))
        interval: Any = measures[name].interval
        sign = 1 if found.rule in _LOWEST else -1
        values, thresholds = value_cells(measures[name]), value_cells(measures["threshold"])
        parts = [
            f"{names[i]} {words.format(_with_limits(values[i]))}, {_at(thresholds[i])}"
            for i in np.argsort(sign * interval.estimate, kind="stable").tolist()  # NaN is last
        ]
        detail = f"In brackets, {percent_text(interval.confidence_level)} confidence intervals"
        shares = {x.prevalence for x in found.measures if x.prevalence is not None}
        detail += "".join(f", at a prevalence of {percent_text(x)}" for x in shares)
        if len(names) > 1:
            detail += "; the models are not compared at these thresholds"
        yield found.title, parts, detail


def _with_limits(cell: Cell) -> str:
    return f"{cell.value} [{', '.join(cell.interval)}]" if cell.interval else cell.value


def _at(threshold: Cell) -> str:
    return "flagging nothing" if threshold.value == "inf" else f"flagging score ≥ {threshold.value}"
