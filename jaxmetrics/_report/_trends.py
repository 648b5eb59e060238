"""Trends over slices in order of time: in words, in tables, and in records."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import jaxmetrics as jm
from jaxmetrics._base.words import (
    decimals_of,
    enumerated,
    fixed,
    p_number,
    p_value,
    percent_text,
    visible,
    with_limits,
)
from jaxmetrics._report._cells import Cell, SliceTable, limits_of
from jaxmetrics._report._evaluation import Slices


def sentences_of(slices: Slices, names: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """For each measure: its heading, the significant trends, and details on their certainty."""
    for measure, _, trend in slices.trending:
        lines = list(_lines(trend, names))
        clear = [x for x in lines if _excludes_0(x[1])]
        answers = [f"{who} {_moves(line)} per {slices.unit}" for who, line in clear]
        unknown = [who for who, line in lines if math.isnan(line["low"])]
        if rest := [who for who, line in lines if not _excludes_0(line) and who not in unknown]:
            answers.append(f"no significant trend of {enumerated(rest)}")
        if unknown:
            answers.append(f"too few {slices.unit}s for a trend of {enumerated(unknown)}")
        any_change = ", ".join(
            f"{who} {p_value(line['f_p_value'])}"
            for who, line in lines
            if not math.isnan(line["f_p_value"])
        )
        detail = f"{percent_text(trend.confidence_level)} confidence intervals, each alone"
        if any_change:
            detail += f"; tests of any change: {any_change}"
        if out := _left_out(slices, trend):
            detail += f"; left out: {enumerated(out)}"
        heading = f"{measure.called}, trend over {visible(slices.column)}"
        yield heading, "; ".join(answers), detail


def trend_tables(slices: Slices, names: Sequence[str]) -> list[SliceTable]:
    """The slopes of each model, and of the later models minus the first one."""
    if not slices.trending:
        return []
    columns = []
    for measure, _, trend in slices.trending:
        lines = [line for _, line in _lines(trend, names)]
        digits = _digits(lines)
        slopes = [
            Cell(
                _with_p(line, digits),
                limits_of(line["low"], line["high"], digits),
                mark=" *" if _excludes_0(line) else "  ",
            )
            for line in lines
        ]
        any_change = [Cell(p_number(line["f_p_value"])) for line in lines]
        columns.append((f"{measure.heading}\nper {slices.unit}", slopes))
        if np.isfinite(trend.f_p_value).any():  # not of two slices
            columns.append(("p of any\nchange", any_change))
    about = (
        f"Slopes of a line over time, with {percent_text(trend.confidence_level)} confidence "
        "intervals and p-values, each alone; * marks those that exclude 0"
    )
    outs = {
        measure.called: enumerated(_left_out(slices, trend))
        for measure, _, trend in slices.trending
    }
    if any(outs.values()):
        about += f"; left out, with {slices.too_few}, or without a time: "
        of = [f"of {metric} {out or 'none'}" for metric, out in outs.items()]
        about += next(iter(outs.values())) if len(set(outs.values())) == 1 else "; ".join(of)
    rows = [who for who, _ in _lines(trend, names)]
    return [SliceTable(f"Trend over {visible(slices.column)}", "", rows, columns, about)]


def trend_records(slices: Slices, names: Sequence[str]) -> dict[str, Any] | None:
    """For JSON, by metric: the slopes of models, and of the differences of pairs."""
    return {
        measure.name: {
            "unit": slices.unit,
            "left_out": _left_out(slices, trend),
            **{
                name: int(np.asarray(getattr(slices, name))[np.asarray(trend.used)].sum())
                for name in ("n_items", "n_positive")
            },
            "models": {name: _record(trend, (i,)) for i, name in enumerate(names)},
            "differences": [
                {"model": names[i], "minus": names[j], **_record(trend.models, (i, j))}
                for i in range(len(names))
                for j in range(i + 1, len(names))
            ]
            or None,
        }
        for measure, trend in zip(slices.measures, slices.trends, strict=False)
    } or None


def trend_rows(slices: Slices, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """For CSV: a row for each slope."""
    records = trend_records(slices, names) or {}
    for measure in slices.measures[: len(slices.trends)]:
        found = records[measure.name]
        about = {
            "metric": f"{measure.name}_slope",
            "max_fpr": measure.max_fpr,
            "scale": measure.scale,
            "slice": f"{slices.column}, per {slices.unit}",
            "n_items": found["n_items"],
            "n_positive": found["n_positive"],
        }
        for name, record in found["models"].items():
            yield {**about, "model": name, **record}
        for record in found["differences"] or ():
            yield {**about, **record}


def _lines(trend: jm.Trend, names: Sequence[str]) -> Iterator[tuple[str, dict[str, float]]]:
    """Each model, and each later model minus the first one."""
    for i, name in enumerate(names):
        yield name, _numbers(trend, (i,))
    for i in range(1, len(names)):
        yield f"{names[i]} minus {names[0]}", _numbers(trend.models, (i, 0))


def _numbers(trend: Any, at: tuple[int, ...]) -> dict[str, float]:
    fields = ("slope", "low", "high", "standard_error", "p_value", "f_p_value")
    return {field: float(getattr(trend, field)[at]) for field in fields}


def _record(trend: Any, at: tuple[int, ...]) -> dict[str, float | None]:
    numbers = _numbers(trend, at)
    names = {"slope": "value", "f_p_value": "any_change_p_value"}
    return {
        names.get(field, field): x if math.isfinite(x) else None for field, x in numbers.items()
    }


def _excludes_0(line: dict[str, float]) -> bool:
    return line["low"] > 0 or line["high"] < 0


def _digits(lines: Sequence[dict[str, float]]) -> int:
    widths = np.array([line["high"] - line["low"] for line in lines])
    return decimals_of(widths)


def _moves(line: dict[str, float]) -> str:
    digits = _digits([line])
    verb, sign = ("rises", 1) if line["slope"] > 0 else ("falls", -1)
    low, high = sorted((sign * line["low"], sign * line["high"]))
    slope = with_limits(sign * line["slope"], low, high, digits=digits)
    return f"{verb} by {slope}, {p_value(line['p_value'])},"


def _with_p(line: dict[str, float], digits: int) -> str:
    value = fixed(line["slope"], digits)
    return value if math.isnan(line["p_value"]) else f"{value}, {p_value(line['p_value'])}"


def _left_out(slices: Slices, trend: jm.Trend) -> list[str]:
    return [x for x, used in zip(slices.values, np.asarray(trend.used), strict=True) if not used]
