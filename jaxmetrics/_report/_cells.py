"""The cells of a table: numbers as text, the same for a terminal and a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._base.words import (
    decimals_of_metric,
    enumerated,
    fixed,
    limits_in_words,
    p_value,
    percent_text,
    threshold_in_words,
    visible,
)
from jaxmetrics._report._evaluation import Measure, Points, Slices, has_width

# Why no difference of two models has an interval.
WHY_NONE = "because there are too few items or the models are equal in all resamples"
_FEWEST_DIGITS, _MOST_DIGITS = 4, 10  # of thresholds


class Cell(NamedTuple):
    """A value of one model.

    Attributes:
      value: the number, or "best".
      interval: the limits of its interval, if that is defined.
      best: whether it is highlighted, as the best or as significantly better.
      worse: whether it is highlighted as significantly worse.
      mark: the mark after it, padded to the same width in all rows; the caption explains it.
      bounds: guaranteed bounds of the exact value, if the file was read in batches.
    """

    value: str
    interval: tuple[str, str] | None = None
    best: bool = False
    mark: str = ""
    bounds: tuple[str, str] | None = None
    worse: bool = False


def value_cells(measure: Measure) -> list[Cell]:
    """Values with their intervals; `*` marks the best of several models."""
    interval: Any = measure.interval
    if measure.name == "threshold":
        limits = zip(interval.estimate, interval.low, interval.high, strict=True)
        return [_threshold_cell(*x) for x in limits]
    digits = decimals_of_metric(interval.high - interval.low)
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


def _threshold_cell(value: float, low: float, high: float) -> Cell:
    """A threshold, with enough significant digits to differ from its limits.

    Decimals would not do: a threshold is on the scale of the scores.
    """
    three = (value, low, high)
    texts = [
        [threshold_in_words(x, digits) for x in three]
        for digits in range(_FEWEST_DIGITS, _MOST_DIGITS)
    ]
    differ = len({x for x in three if not math.isnan(x)})
    told = next((x for x in texts if len({*x} - {"-"}) == differ), texts[-1])
    known = low < high  # not of one that is given
    return Cell(told[0], (told[1], told[2]) if known else None)


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
    digits, known = decimals_of_metric(highs - lows), measure.has_intervals[:, best]
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


class SliceTable(NamedTuple):
    """A table about slices.

    Attributes:
      corner: the heading of the rows.
      rows: their names, one for each cell of a column.
    """

    title: str
    corner: str
    rows: Sequence[str]
    columns: list[tuple[str, list[Cell]]]
    about: str


def slice_tables(slices: Slices, names: Sequence[str]) -> list[SliceTable]:
    """The differences of each later model from the first one, within slices."""
    if not slices.tested:
        return []
    about = (
        f"{percent_text(slices.compared[0].confidence_level)} confidence intervals and p-values "
        "are simultaneous for all slices" + " and pairs of models" * (len(names) > 2)
    )
    if not all(has_width(x.models)[:, 1:, 0].all() for _, x in slices.tested):
        about += (
            f"; a difference without brackets is not tested, because there are {slices.too_few}, "
            "or the models rank the items of the slice alike"
        )
    return [
        SliceTable(
            f"{name} minus {names[0]}, by {visible(slices.column)}",
            slices.column,
            slices.values,
            counts_in(slices)
            + [(measure.heading, slice_cells(found.models, i)) for measure, found in slices.tested],
            about,
        )
        for i, name in enumerate(names)
        if i
    ]


def counts_in(slices: Slices) -> list[tuple[str, list[Cell]]]:
    """The columns of the sizes of slices."""
    return [
        (heading, [Cell(f"{n:,}") for n in found])
        for heading, found in (("items", slices.n_items), ("positive", slices.n_positive))
    ]


def values_tables(slices: Slices, names: Sequence[str]) -> list[SliceTable]:
    """The metrics of each model in slices, if there are any."""
    columns = counts_in(slices)
    for measure in slices.defined:
        limits: Any = measure.interval
        for i, name in enumerate(names):
            digits = decimals_of_metric(limits.high[:, i] - limits.low[:, i])
            heading = measure.heading + f"\n{visible(name)}" * (len(names) > 1)
            columns.append((heading, values_in(measure, i, digits)))
    each = percent_text(slices.measures[0].interval.confidence_level)
    about = (
        f"In brackets, intervals that hold for all slices at once, with {slices.level} confidence; "
        f"each by itself has the level {each}"
    )
    title = f"By {visible(slices.column)}"
    table = SliceTable(title, slices.column, slices.values, columns, about)
    return [table] if slices.defined else []


def values_in(measure: Measure, i: int, digits: int) -> list[Cell]:
    """The values of model `i` in each slice."""
    limits: Any = measure.interval
    return [
        Cell(fixed(value, digits), limits_of(low, high, digits))
        for value, low, high in zip(
            *(x[:, i] for x in (limits.estimate, limits.low, limits.high)), strict=True
        )
    ]


def slice_cells(differences: Any, i: int) -> list[Cell]:
    """Model `i` minus the first in each slice, marked where significantly worse or better."""
    found = {
        name: getattr(differences, name)[:, i, 0]
        for name in ("difference", "simultaneous_p_value", "simultaneous_low", "simultaneous_high")
    }
    digits = decimals_of_metric(found["simultaneous_high"] - found["simultaneous_low"])
    cells = []
    for known, difference, p, low, high in zip(
        has_width(differences)[:, i, 0], *found.values(), strict=True
    ):
        value = fixed(difference, digits)
        if not known:
            cells.append(Cell(value, mark=" " * 7))
            continue
        better, worse = bool(low > 0), bool(high < 0)
        mark = " worse " if worse else " better" if better else " " * 7
        text, limits = f"{value}, {p_value(p)}", limits_of(low, high, digits)
        cells.append(Cell(text, limits, better, mark, worse=worse))
    return cells


def limits_of(low: float, high: float, digits: int) -> tuple[str, str] | None:
    """The limits of an interval, if it is defined."""
    return None if math.isnan(low) or math.isnan(high) else limits_in_words(low, high, digits)


def about_limits(measures: Sequence[Measure]) -> str:
    """Why a value has no brackets, if there is such a value."""
    intervals: list[Any] = [x.interval for x in measures]
    lacking = any(
        ((np.isnan(x.low) | np.isnan(x.high)) & ~np.isnan(x.estimate)).any() for x in intervals
    )
    return "; a value without brackets has too few items for an interval" if lacking else ""


def about_points(points: Sequence[Points]) -> str:
    """The caption of the tables of thresholds."""
    measures = [x for found in points for x in found.measures]
    level = percent_text(measures[0].interval.confidence_level)
    about = (
        f"What score ≥ threshold flags, with {level} confidence intervals of what the same "
        "threshold does to new items; the interval of a threshold says where its rule would put "
        "it with unlimited data; thresholds are rounded down"
    )
    prevalence = next((x.prevalence for x in measures if x.prevalence is not None), None)
    if prevalence is not None:
        numbers = ["precision", "NPV", "share flagged"]
        numbers += ["cost"] * any(x.name == "cost" for x in measures)
        at = f"a prevalence of {percent_text(prevalence)}"
        about += f"; {enumerated(numbers)} are those at {at}"
    return about


def about_untested(measures: Sequence[Measure]) -> str:
    """By which metrics no two models are compared, and why, if there are such metrics."""
    names = [x.called for x in measures if x.comparison and not x.has_intervals.any()]
    return f"no difference in {enumerated(names)} has an interval, {WHY_NONE}" if names else ""


def about_differences(measures: Sequence[Measure]) -> str:
    """Why a difference has no interval, if there is such a difference."""
    if not any(x.lacks_intervals for x in measures):
        return ""
    return (
        "a difference without brackets has no interval, because there are too few items or it is 0 "
        "in all resamples"
    )
