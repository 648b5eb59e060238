"""The cells of a table: numbers as text, the same for a terminal and a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._base import words
from jaxmetrics._base.types import FloatArray
from jaxmetrics._base.words import fixed as fixed
from jaxmetrics._base.words import p_value as p_value
from jaxmetrics._report._evaluation import NARROWEST, Measure


class Cell(NamedTuple):
    """A value of one model.

    Attributes:
      value: the number, or "best".
      interval: its limits, if it is defined.
      best: whether the table highlights it.
      mark: the mark after it, as wide in each row; the caption explains it.
      bounds: guaranteed bounds of the exact value, of a file read in batches.
    """

    value: str
    interval: tuple[str, str] | None = None
    best: bool = False
    mark: str = ""
    bounds: tuple[str, str] | None = None


def value_cells(measure: Measure) -> list[Cell]:
    """Values with their intervals; `*` marks the best of several models."""
    interval: Any = measure.interval
    digits = decimals_of(interval.high - interval.low)
    best = (interval.estimate == np.max(interval.estimate)) & measure.has_a_best
    bounds: Any = measure.bounds or ([None] * len(best),) * 2
    return [
        Cell(
            fixed(value, digits),
            limits_of(low, high, digits),
            bool(first),
            "*" if first else " ",
            None if least is None else (fixed(least, 5), fixed(most, 5)),
        )
        for value, low, high, first, least, most in zip(
            interval.estimate, interval.low, interval.high, best, *bounds, strict=True
        )
    ]


def difference_cells(measure: Measure) -> list[Cell]:
    """Differences from the best, with simultaneous intervals; `+` marks the best set.

    A difference without an interval has no p-value and no mark. If all models are equal and no
    difference has an interval, none is called the best.
    """
    found: Any = measure.comparison
    if np.isnan(found.estimate).any():
        return [Cell("-", mark="  ") for _ in found.estimate]
    best = int(np.argmax(found.estimate))
    lows, highs = found.simultaneous_low[:, best], found.simultaneous_high[:, best]
    digits, known = decimals_of(highs - lows), measure.has_intervals[:, best]
    cells = []
    for i, marked in enumerate(found.best_set):
        first = i == best or (found.estimate[i] == found.estimate[best] and not known[i])
        first = first and measure.has_a_best
        mark = " +" if marked and (known[i] or (first and known.any())) else "  "
        if first:
            cells.append(Cell("best", best=True, mark=mark))
            continue
        difference = fixed(found.difference[i, best], digits)
        if not known[i]:
            cells.append(Cell(difference, mark=mark))
            continue
        what = f"{difference}, {p_value(found.simultaneous_p_value[i, best])}"
        cells.append(Cell(what, limits_of(lows[i], highs[i], digits), bool(marked), mark))
    return cells


def limits_of(low: float, high: float, digits: int) -> tuple[str, str] | None:
    """The limits of an interval, if it is defined."""
    return None if math.isnan(low + high) else (fixed(low, digits), fixed(high, digits))


def about_limits(measures: Sequence[Measure]) -> str:
    """Why a value has no brackets, if there is such a value."""
    intervals: list[Any] = [x.interval for x in measures]
    lacking = any((np.isnan(x.low + x.high) & ~np.isnan(x.estimate)).any() for x in intervals)
    return "; a value without brackets has too few items for an interval" if lacking else ""


def about_differences(measures: Sequence[Measure]) -> str:
    """Why a difference has no interval, if there is such a difference."""
    if not any(x.lacks_intervals for x in measures):
        return ""
    return (
        "a difference without brackets has no interval, because there are too few items or it is 0 "
        "in all resamples"
    )


def decimals_of(widths: FloatArray) -> int:
    """The decimals, 3 to 6, that show two significant digits of the narrowest interval's width."""
    return words.decimals_of(widths[widths > NARROWEST], fewest=3, most=6)
