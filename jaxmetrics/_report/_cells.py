"""What a table shows of a measure: numbers as text, the same for a terminal and a page."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._base.types import FloatArray
from jaxmetrics._report._evaluation import Measure


class Cell(NamedTuple):
    """A value of one model.

    Attributes:
      value: the number, or "best".
      interval: its limits, if it is defined.
      best: whether it is to be seen at once.
      mark: what stands behind it, as wide in each row; explained below the table.
      bounds: between which a value of bins must be.
    """

    value: str
    interval: tuple[str, str] | None = None
    best: bool = False
    mark: str = ""
    bounds: tuple[str, str] | None = None


def value_cells(measure: Measure) -> list[Cell]:
    """Values with their intervals, the best of several marked `*`."""
    interval: Any = measure.interval
    digits = decimals_of(interval.high - interval.low)
    best = (interval.estimate == np.max(interval.estimate)) & (len(interval.estimate) > 1)
    bounds: Any = measure.bounds or ([None] * len(best),) * 2
    return [
        Cell(
            fixed(value, digits),
            None if math.isnan(value) else (fixed(low, digits), fixed(high, digits)),
            bool(first),
            "*" if first else " ",
            None if least is None else (fixed(least, 5), fixed(most, 5)),
        )
        for value, low, high, first, least, most in zip(
            interval.estimate, interval.low, interval.high, best, *bounds, strict=True
        )
    ]


def difference_cells(measure: Measure) -> list[Cell]:
    """Differences from the best, with simultaneous intervals; those in the best set marked `+`."""
    found: Any = measure.comparison
    if np.isnan(found.estimate).any():
        return [Cell("-", mark="  ") for _ in found.estimate]
    best = int(np.argmax(found.estimate))
    lows, highs = found.simultaneous_low[:, best], found.simultaneous_high[:, best]
    digits = decimals_of(highs - lows)
    cells = []
    for i, marked in enumerate(found.best_set):
        mark = " +" if marked else "  "
        if i == best:
            cells.append(Cell("best", best=True, mark=mark))
            continue
        difference = fixed(found.difference[i, best], digits)
        what = f"{difference}, {p_value(found.simultaneous_p_value[i, best])}"
        limits = fixed(lows[i], digits), fixed(highs[i], digits)
        cells.append(Cell(what, limits, bool(marked), mark))
    return cells


def decimals_of(widths: FloatArray) -> int:
    """So many that the narrowest interval has two digits that differ, from 3 to 6."""
    widths = widths[widths > 1e-6]  # neither NaN nor 0 but for rounding
    return int(np.clip(1 - np.floor(np.log10(widths.min(initial=1))), 3, 6))


def fixed(value: float, digits: int) -> str:
    """Without the zero before the point; a dash where undefined."""
    return "-" if math.isnan(value) else re.sub(r"^(-?)0\.", r"\1.", f"{value:z.{digits}f}")


def p_value(p: float) -> str:
    """With its sign of equality."""
    if math.isnan(p):
        return "p = -"
    return "p < .001" if p < 0.001 else f"p = {fixed(p, 3)}"
