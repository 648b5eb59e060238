"""The threshold that a rule chooses, and what is flagged there."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._base import checks
from jaxmetrics._base.numerics import SLACK, divide, namespace, slack
from jaxmetrics._base.types import Array
from jaxmetrics._roc.curves import cheapest, operating_points
from jaxmetrics._roc.limits import reaches
from jaxmetrics._roc.metric import library_metric
from jaxmetrics._roc.record import Options
from jaxmetrics._roc.table import ScoreTable

# The options that ask for a rule.
NUMERIC_RULES = ("max_fpr", "min_recall", "min_precision", "threshold")
RULES = (*NUMERIC_RULES, "criterion")
COSTS = ("fp_cost", "fn_cost")


class Point(NamedTuple):
    """A threshold and the weights of the items that it flags, and of all items."""

    threshold: Array
    tp: Array
    fp: Array
    positives: Array
    negatives: Array
    caught: Array  # the amount of the flagged positives; 0 without amounts
    amount: Array  # of all positives


def check_rule(given: Options) -> Options:
    """The given options, checked; exactly one rule must be among them."""
    options = {name: value for name, value in given.items() if value is not None}
    costs = [name for name in COSTS if name in options]
    if len(costs) == 1:
        raise TypeError(
            f"costs come in pairs, got {costs[0]} alone: write fp_cost=1.0, fn_cost=10.0"
        )
    rules = [name for name in RULES if name in options]
    if len(rules) > 1 or not (rules or costs):
        raise TypeError(
            f"one rule must choose the threshold, got {' and '.join(rules) or 'none'}: write one of"
            " max_fpr=0.01, min_recall=0.9, min_precision=0.5, threshold=0.7, "
            "criterion='youden', or fp_cost=1.0 and fn_cost=10.0"
        )
    for name in NUMERIC_RULES:
        if np.ndim(options.get(name, 0.0)):
            raise ValueError(
                f"{name} must be one number, got {np.size(options[name])}: call once for each"
            )
    return checks.check_options(options)


@partial(library_metric, check=check_rule)
def chosen_point(
    table: ScoreTable,
    *,
    min_precision: Any = None,
    threshold: Any = None,
    fp_cost: Any = None,
    fn_cost: Any = None,
    criterion: Any = None,
    prevalence: Any = None,
    amounts: Any = None,
) -> Point:
    """The Point at the threshold that the rule chooses. `amounts` `[rows]` go with table rows.

    The threshold of `max_fpr` and `min_recall` is a metric's: callers choose it, and pass it.
    """
    library = namespace(*table)
    fps, tps, thresholds = operating_points(table)
    total, every = tps[-1], fps[-1]
    if threshold is not None:
        found = library.asarray(threshold, np.float64)
    else:
        terms = min_precision, fp_cost, fn_cost, criterion, prevalence
        tolerance = slack(table.positives)
        costs = objective(fps, tps, total, every, tolerance, *terms)
        found = thresholds[cheapest(costs, tolerance)]
    found = library.where((total > 0) & (every > 0), found, np.nan)
    flagged = table.thresholds >= found
    weights = (table.positives, table.negatives, np.zeros(1) if amounts is None else amounts)
    flagged_amounts = np.zeros(1, bool) if amounts is None else flagged
    tp, fp, caught = (
        library.sum(library.where(x, w, 0)).astype(np.float64)
        for x, w in zip((flagged, flagged, flagged_amounts), weights, strict=True)
    )
    return Point(found, tp, fp, total, every, caught, library.sum(weights[2]))


def objective(
    fps: Any,
    tps: Any,
    positives: Any,
    negatives: Any,
    tolerance: float,
    min_precision: Any,
    fp_cost: Any,
    fn_cost: Any,
    criterion: Any,
    prevalence: Any,
) -> Any:
    """What rules of precision, cost and criterion minimise; of ties, the highest threshold wins."""
    if min_precision is not None:
        library = namespace(tps, fps)
        limit = precision_in_sample(min_precision, prevalence, positives, negatives)
        limit = library.asarray(limit)  # `reaches` rounds the precision to its dtype
        enough = reaches(divide(tps, tps + fps, 1.0), limit, tolerance)
        return positives - library.where(enough, tps, 0)
    costs = costs_in_sample(positives, negatives, fp_cost, fn_cost, criterion, prevalence)
    return costs[0] * fps + costs[1] * (positives - tps)


def costs_in_sample(
    positives: Any, negatives: Any, fp_cost: Any, fn_cost: Any, criterion: Any, prevalence: Any
) -> tuple[Any, Any]:
    """The costs of a false positive and of a false negative in the sample, as the rule implies.

    Their total is least where the rule is best. For a criterion they are whole numbers if the
    counts are, so that operating points of equal cost tie exactly.
    """
    if criterion is not None:
        return positives, negatives
    if prevalence is None:
        return fp_cost, fn_cost
    return fp_cost * (1 - prevalence) * positives, fn_cost * prevalence * negatives


def precision_in_sample(precision: Any, prevalence: Any, positives: Array, negatives: Array) -> Any:
    """The precision in the sample of a threshold that has `precision` at this prevalence."""
    if prevalence is None:
        return precision
    odds = precision * (1 - prevalence) * positives
    other = (1 - precision) * prevalence * negatives
    # Lowered, as a threshold of exactly `precision` reaches this only up to rounding.
    return divide(odds, odds + other, 1.0) * (1 - SLACK)
