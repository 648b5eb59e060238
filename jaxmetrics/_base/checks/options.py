"""Options of the metrics of the ROC family, each checked by its name."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxmetrics._base.checks.values import check_flag, number, one_of
from jaxmetrics._base.double import ordinary_promotion
from jaxmetrics._base.host import all_concrete, is_concrete
from jaxmetrics._base.quoting import cut
from jaxmetrics._base.types import HostOrDeviceArray

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
CRITERIA = ("youden",)
# The sum of a billion such costs is still in the range of float32.
MOST_COST = 1e29

_OPTIONS: dict[str, Any] = {
    "max_fpr": number(0, 1, open_low=True),
    "min_fpr": number(0, 1, open_high=True),
    "min_tpr": number(0, 1, open_high=True),
    "min_recall": number(0, 1),
    "min_precision": number(0, 1),
    "min_specificity": number(0, 1),
    "min_sensitivity": number(0, 1),
    "fp_cost": number(0, MOST_COST, several=False),
    "fn_cost": number(0, MOST_COST, several=False),
    "threshold": number(-math.inf, math.inf, several=False),
    "criterion": one_of(CRITERIA),
    "prevalence": number(0, 1, open_low=True, open_high=True, several=False),
    "scale": one_of(("raw", "range", "mcclish")),
    "method": one_of(("step", "linear", "quantile")),
    "quantile_method": one_of(QUANTILE_METHODS),
    "return_threshold": check_flag,
}


def check_options(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a library metric, each checked by its name; numbers become arrays.

    A lower limit that is a single 0 becomes a constant: programs without it are shorter.
    """
    checked = {name: _OPTIONS[name](name, value) for name, value in options.items()}
    limits = {k: v.shape for k, v in checked.items() if hasattr(v, "shape")}
    try:
        if any(limits.values()):
            np.broadcast_shapes(*limits.values())
    except ValueError:
        listed = ", ".join(f"{name} {list(shape)}" for name, shape in limits.items())
        raise ValueError(f"limits must be single numbers or broadcast, got {listed}") from None
    if "min_fpr" in checked and "max_fpr" in checked:
        window = _window(checked["min_fpr"], checked["max_fpr"])
        checked["min_fpr"], checked["max_fpr"] = window
    for name in ("min_fpr", "min_tpr"):
        limit = checked.get(name)
        if limit is not None and is_concrete(limit) and not limit.ndim and not limit:
            checked[name] = 0.0
    return checked


def _window(low: HostOrDeviceArray, high: HostOrDeviceArray) -> tuple[Any, Any]:
    """Both ends of the window; if they are out of order, a traced one becomes NaN."""
    if all_concrete(low, high):
        if not (np.asarray(low) < np.asarray(high)).all():
            given = cut(f"{low} and {high}")
            raise ValueError(f"min_fpr must be below max_fpr, got {given}")
        return low, high
    with ordinary_promotion():
        # Copies concrete ends, as JAX assumes that a NumPy array has one dtype within a program.
        ends = (np.array(x) if is_concrete(x) else x for x in (low, high))
        in_order = jnp.less(*ends)
        if is_concrete(high):
            return jnp.where(in_order, low, jnp.nan), high
        return low, jnp.where(in_order, high, jnp.nan)
