"""Options of the metrics of the ROC family, each checked by its name."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jaxmetrics._base.checks.values import flag, number, one_of
from jaxmetrics._base.host import is_concrete

QUANTILE_METHODS = (
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    "interpolated_inverted_cdf",
    "hazen",
    "weibull",
    "linear",
    "median_unbiased",
    "normal_unbiased",
    "lower",
    "higher",
    "midpoint",
    "nearest",
)


_OPTIONS: dict[str, Any] = {
    "max_fpr": number(0, 1, open_low=True),
    "min_fpr": number(0, 1, open_high=True),
    "min_tpr": number(0, 1, open_high=True),
    "min_recall": number(0, 1),
    "min_precision": number(0, 1),
    "min_specificity": number(0, 1),
    "min_sensitivity": number(0, 1),
    "fp_cost": number(0, math.inf, open_high=True, several=False),
    "fn_cost": number(0, math.inf, open_high=True, several=False),
    "scale": one_of(("raw", "range", "mcclish")),
    "method": one_of(("step", "linear", "quantile")),
    "quantile_method": one_of(QUANTILE_METHODS),
    "return_threshold": flag,
}


def check_options(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a library metric, each checked by its name; numbers become arrays."""
    checked = {name: _OPTIONS[name](name, value) for name, value in options.items()}
    limits = {k: v.shape for k, v in checked.items() if hasattr(v, "shape")}
    try:
        np.broadcast_shapes(*limits.values())
    except ValueError:
        listed = ", ".join(f"{name} {list(shape)}" for name, shape in limits.items())
        raise ValueError(f"limits must be single numbers or broadcast, got {listed}") from None
    window = [checked.get("min_fpr"), checked.get("max_fpr")]
    if all(end is not None and is_concrete(end) for end in window) and not np.all(
        np.asarray(window[0]) < np.asarray(window[1])
    ):
        raise ValueError(
            f"min_fpr must be below max_fpr, got {options['min_fpr']} and {options['max_fpr']}"
        )
    return checked
