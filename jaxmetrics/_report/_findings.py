"""The answer in sentences: which models are not significantly worse than the best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._report._cells import decimals_of, fixed, p_value
from jaxmetrics._report._evaluation import Evaluation, Measure
from jaxmetrics.plots._style import percent_text


class Finding(NamedTuple):
    """What a metric says: a short answer, and its confidence."""

    metric: str
    answer: str
    detail: str


def findings_of(evaluation: Evaluation) -> list[Finding]:
    """A finding for each metric that compares models; if none does, for each metric."""
    compared = [x for x in evaluation.measures if x.comparison is not None]
    if compared:
        return [_of_comparison(x, evaluation.names) for x in compared]
    return [_of_values(x, evaluation.names) for x in evaluation.measures]


def _of_values(measure: Measure, names: Sequence[str]) -> Finding:
    parts = [
        f"{name} {value}" if len(names) > 1 else value
        for name, value in zip(
            names, map(_value_and_interval, *_estimates_and_digits(measure)), strict=True
        )
    ]
    level = f"{percent_text(measure.interval.confidence_level)} confidence intervals"
    detail = f"In brackets, {level}"
    if measure.bounds is not None:
        detail += "; the file was read in batches, so models are not compared"
    return Finding(_called(measure), "; ".join(parts), detail)


def _of_comparison(measure: Measure, names: Sequence[str]) -> Finding:
    found: Any = measure.comparison
    if np.isnan(found.estimate).any():
        return Finding(_called(measure), "undefined", "The models are not compared by it")
    best = int(np.argmax(found.estimate))
    level = percent_text(found.confidence_level)
    others = [i for i in range(len(names)) if i != best]
    equal = [names[i] for i in others if found.best_set[i]]
    worse = [i for i in others if not found.best_set[i]]
    value = _value_and_interval(*(x[best] for x in _estimates_and_digits(measure)))
    answer = f"{names[best]} has the highest value, {value}"
    if equal:
        answer += f"; not significantly worse: {_enumerated(equal)}"
    elif all(found.simultaneous_low[best, i] > 0 for i in others):
        answer += (
            ", and is significantly better than all others"
            if len(others) > 1
            else ", and is significantly better"
        )
    else:  # the best set rests on one-sided limits, which are closer
        answer += "; every other model is significantly worse, but not by every two-sided interval"
    digits = decimals_of((found.simultaneous_high - found.simultaneous_low)[:, best])
    details = [
        f"{names[i]} is lower by {fixed(found.difference[best, i], digits)} "
        f"[{fixed(found.simultaneous_low[best, i], digits)}, "
        f"{fixed(found.simultaneous_high[best, i], digits)}], "
        f"{p_value(found.simultaneous_p_value[best, i])}"
        for i in worse
    ]
    detail = f"All pairs of models are compared, with simultaneous {level} intervals"
    if details:
        detail = f"By simultaneous {level} intervals of all pairs, {'; '.join(details)}"
    return Finding(_called(measure), answer, detail)


def _estimates_and_digits(measure: Measure) -> tuple[Any, Any, Any, Any]:
    interval: Any = measure.interval
    digits = decimals_of(interval.high - interval.low)
    return interval.estimate, interval.low, interval.high, [digits] * len(interval.estimate)


def _value_and_interval(value: float, low: float, high: float, digits: int) -> str:
    if np.isnan(value):
        return "undefined"
    return f"{fixed(value, digits)} [{fixed(low, digits)}, {fixed(high, digits)}]"


def _called(measure: Measure) -> str:
    return measure.title + (" by amount" if measure.by_amount else "")


def _enumerated(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
