"""The answer in sentences: which models are not significantly worse than the best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._base.words import (
    decimals_of_metric,
    fixed,
    p_value,
    percent_text,
    some_of,
    visible,
    with_limits,
)
from jaxmetrics._report._cells import WHY_NONE
from jaxmetrics._report._decisions import decisions_of
from jaxmetrics._report._evaluation import Evaluation, Measure, Slices, has_width
from jaxmetrics._report._trends import sentences_of
from jaxmetrics.plots._names import short_names

LONGEST_IN_TEXT = 60  # columns of a name outside of the table of values, which has all of it

_MOST_DETAILS = 2  # models or slices in a sentence with a number each; the tables have all


class Finding(NamedTuple):
    """What a metric says: a short answer, and its confidence, unless that was just said."""

    metric: str
    answer: str
    detail: str


def findings_of(evaluation: Evaluation) -> list[Finding]:
    """A finding for each metric that compares models, also within slices, each rule of a threshold
    that was asked for, and each trend.

    Slices in which a model is worse come before thresholds, and others after them. If no metric
    compares models, each metric has a finding with its values, and thresholds follow the first.
    """
    names = short_names(evaluation.names, LONGEST_IN_TEXT)
    compared = [x for x in evaluation.measures if x.comparison is not None]
    trends = [Finding(*x) for part in evaluation.slices for x in sentences_of(part, names)]
    decisions = [
        Finding(title, "; ".join(_first(parts)), detail)
        for title, parts, detail in decisions_of(evaluation.points, names)
    ]
    if compared:
        within = [x for part in evaluation.slices for x in _of_slices(part, names)]
        worse, others = ([x for is_worse, x in within if is_worse == y] for y in (True, False))
        first = [_of_comparison(x, names) for x in compared]
        return [*first, *worse, *decisions, *others, *trends]
    values, *rest = [_of_values(x, names) for x in evaluation.measures]
    same = [x._replace(detail="") for x in rest]  # as that of the first
    return [values, *decisions, *same, *trends]


def _of_values(measure: Measure, names: Sequence[str]) -> Finding:
    parts = [
        f"{name} {value}" if len(names) > 1 else value
        for name, value in zip(names, _values_and_intervals(measure), strict=True)
    ]
    level = f"{percent_text(measure.interval.confidence_level)} confidence intervals"
    detail = f"In brackets, {level}"
    if measure.bounds is not None:
        detail += "; the file was read in batches, so models are not compared"
    return Finding(measure.called, "; ".join(_first(parts)), detail)


def _of_comparison(measure: Measure, names: Sequence[str]) -> Finding:
    found: Any = measure.comparison
    if np.isnan(found.estimate).any():
        return Finding(measure.called, "undefined", "The models are not compared by it")
    known = measure.has_intervals
    tops = np.flatnonzero(found.estimate == found.estimate.max()).tolist()
    best = tops[0]
    others = [i for i in range(len(names)) if i not in tops and known[best, i]]
    equal = [names[i] for i in others if found.best_set[i]]
    worse = [i for i in others if not found.best_set[i]]
    unknown = [names[i] for i in range(len(names)) if i not in tops and not known[best, i]]
    answer = _highest(measure, names, tops)
    if equal:
        answer += f"; not significantly worse: {some_of(equal)}"
    elif worse and (found.simultaneous_low[np.ix_(tops, worse)] > 0).all():
        verb = "is" if len(tops) == 1 else "are"
        than = f" than {some_of([names[i] for i in worse])}" if unknown else " than all others"
        answer += f", and {verb} significantly better{than if len(names) > 2 else ''}"
    elif worse:  # the best set rests on one-sided limits, which are closer
        rest = "the other model is" if len(names) == 2 else "the others are"
        answer += f"; by one-sided tests {rest} significantly worse, by two-sided ones not all"
    if unknown:
        answer += f"; nothing can be said of the difference from {some_of(unknown)}"
    return Finding(measure.called, answer, _detail(measure, names, best, worse))


def _of_slices(slices: Slices, names: Sequence[str]) -> Iterator[tuple[bool, Finding]]:
    """In which slices models are significantly worse than the first, and in how many it is open.

    Yields a finding for each metric, after whether there are such slices.
    """
    values = short_names(slices.values, LONGEST_IN_TEXT)
    for measure, compared in slices.tested:
        found: Any = compared.models
        known = has_width(found)[:, 1:, 0]
        worse = known & (found.simultaneous_high[:, 1:, 0] < 0)
        better = known & (found.simultaneous_low[:, 1:, 0] > 0)
        somewhere = worse.any(axis=0)
        groups = [np.array([i]) for i in np.flatnonzero(somewhere)]
        if not somewhere.all():
            groups.append(np.flatnonzero(~somewhere))
        tested = np.flatnonzero(compared.tested)
        shown = [values[s] for s in tested]
        kind = "slices" if len(shown) == len(values) else "tested slices"
        answers = [
            _within(names, shown, worse[np.ix_(tested, i)], better[np.ix_(tested, i)], i + 1, kind)
            for i in groups
        ]
        details = [
            f"{values[s]}: {f'{names[i]} ' if len(names) > 2 else ''}{_lower(found, s, i)}"
            for group in groups
            for i in group + 1
            for s in np.flatnonzero(worse[:, i - 1]).tolist()
        ]
        level = percent_text(compared.confidence_level)
        about = "; ".join([*_first(details), f"{level} intervals are simultaneous for all slices"])
        if small := [x for x, tested in zip(values, compared.tested, strict=True) if not tested]:
            about += f"; {slices.too_few}, so not tested: {some_of(small)}"
        called = f"{measure.called}, by {visible(slices.column)}"
        yield bool(somewhere.any()), Finding(called, "; ".join(answers), about)


def _within(
    names: Sequence[str], values: Sequence[str], worse: Any, better: Any, models: Any, kind: str
) -> str:
    """In which slices some models are worse or better, by the flags `[slices, models]`."""
    who = some_of([names[i] for i in models])
    where = some_of([x for x, one in zip(values, worse.any(axis=1), strict=True) if one])
    verb = "is" if len(models) == 1 else "are"
    answer = f"{who} {verb} significantly worse than {names[0]} in {where or 'no slice'}"
    n, unit = worse.size, kind if len(models) == 1 else f"{kind} of models"
    if better.any():
        answer += f", and significantly better in {_so_many(int(better.sum()), n, unit)}"
    if unknown := n - int(worse.sum() + better.sum()):
        answer += f"; in {_so_many(unknown, n, unit)} it cannot be said which is better"
    return answer


def _so_many(some: int, n: int, unit: str) -> str:
    if n == 1:
        return f"the only {unit.removesuffix('s')}"
    return f"all {n} {unit}" if some == n else f"{some} of {n} {unit}"


def _lower(found: Any, s: int, i: int) -> str:
    """By how much a model is lower than the first one in a slice."""
    lows, highs = found.simultaneous_low[:, i, 0], found.simultaneous_high[:, i, 0]
    digits = decimals_of_metric(highs - lows)
    return (
        f"lower by {with_limits(-found.difference[s, i, 0], -highs[s], -lows[s], digits=digits)}, "
        f"{p_value(found.simultaneous_p_value[s, i, 0])}"
    )


def _highest(measure: Measure, names: Sequence[str], tops: Sequence[int]) -> str:
    """Which models have the highest value, and the value."""
    if len(tops) == 1:
        value = _values_and_intervals(measure)[tops[0]]
        return f"{names[tops[0]]} has the highest value, {value}"
    interval: Any = measure.interval
    value = fixed(interval.estimate[tops[0]], decimals_of_metric(interval.high - interval.low))
    if len(tops) == len(names):
        return f"all models have the value {value}"
    return f"{some_of([names[i] for i in tops])} have the highest value, {value}"


def _detail(measure: Measure, names: Sequence[str], best: int, worse: Sequence[int]) -> str:
    """By how much models are worse than the best, and what the intervals are."""
    found: Any = measure.comparison
    if not measure.has_intervals.any():
        return (
            f"No difference of two models has an interval, {WHY_NONE}; nothing can be said of "
            "which is better"
        )
    level = percent_text(found.confidence_level)
    values = found.difference, found.simultaneous_low, found.simultaneous_high
    digits = decimals_of_metric((found.simultaneous_high - found.simultaneous_low)[:, best])
    details = [
        f"{names[i]} is lower by {with_limits(*(x[best, i] for x in values), digits=digits)}, "
        f"{p_value(found.simultaneous_p_value[best, i])}"
        for i in worse
    ]
    if details:
        return f"By simultaneous {level} intervals of all pairs, {'; '.join(_first(details))}"
    pairs = "Pairs" if measure.lacks_intervals else "All pairs"
    text = f"{pairs} of models are compared, with simultaneous {level} intervals"
    if measure.enough is not None:
        size = measure.enough
        if size.n_clusters is None:
            enough = f"{float(size.n_positives):,.0f} positives, and negatives in proportion,"
        else:
            enough = f"{float(size.n_clusters):,.0f} clusters such as these"
        text += (
            f"; if the first two differ by as much as here, {enough} would show it with a power of "
            "80 %"
        )
    return text


def _values_and_intervals(measure: Measure) -> list[str]:
    """For each model, its value and its interval, all with the same decimals."""
    interval: Any = measure.interval
    digits = decimals_of_metric(interval.high - interval.low)
    values = zip(interval.estimate, interval.low, interval.high, strict=True)
    return [_value_and_interval(*x, digits) for x in values]


def _first(details: Sequence[str]) -> list[str]:
    """The first details, and how many more there are."""
    more = [f"{len(details) - _MOST_DETAILS} more"] if len(details) > _MOST_DETAILS else []
    return [*details[:_MOST_DETAILS], *more]


def _value_and_interval(value: float, low: float, high: float, digits: int) -> str:
    if np.isnan(value):
        return "undefined"
    if np.isnan(low + high):
        return f"{fixed(value, digits)}, without an interval, because there are too few items"
    return with_limits(value, low, high, digits=digits)
