"""The metrics of classifiers that are reported, and what they are called."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jaxmetrics as jm
from jaxmetrics._report._evaluation import percent

FPR_LIMITS = (0.01, 0.05)


class Metric(NamedTuple):
    """A metric with one value a model.

    Attributes:
      name: in JSON and CSV.
      heading: of a column.
      function: of scores and labels, or of a table.
      max_fpr: up to which it is, if to any.
      compared: whether models are compared by it.
    """

    name: str
    heading: str
    function: Callable[..., Any]
    max_fpr: float | None = None
    compared: bool = False


def classification_metrics(max_fpr: float) -> tuple[Metric, ...]:
    """In the order of columns; recall at the usual limits, too."""
    at = percent(max_fpr)
    area = partial(jm.partial_auc, max_fpr=max_fpr, scale="mcclish")
    return (
        Metric("roc_auc", "AUC", jm.roc_auc, compared=True),
        Metric("partial_auc", f"Partial\nAUC to\n{at} FPR", area, max_fpr, True),
        *(
            Metric(
                "recall_at_fpr",
                f"Recall\nat\n{percent(limit)} FPR",
                partial(jm.recall_at_fpr, max_fpr=limit),
                limit,
                limit == max_fpr,
            )
            for limit in sorted({*FPR_LIMITS, max_fpr})
        ),
        Metric("average_precision", "Average\nprecision", jm.average_precision),
    )


ABOUT = "; partial AUC on McClish's scale, .5 for chance"
