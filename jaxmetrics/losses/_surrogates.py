"""The loss of a pair of a positive and a negative, as a function of their difference."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
from jax import lax

from jaxmetrics._base import checks
from jaxmetrics._base.parts import AxisName, sum_over
from jaxmetrics._base.types import Array
from jaxmetrics.losses._kernels import Kernel, power, sigmoid, softplus, square
from jaxmetrics.losses._rows import Row, lowest_and_highest, of_negatives

_MARGIN = ("hinge", "squared_hinge", "square")
SURROGATES = (*_MARGIN, "logistic", "sigmoid")


def surrogate_numbers(
    surrogate: str, margin: float | Array | None, temperature: float | Array | None
) -> dict[str, float | Array]:
    """The numeric option that a surrogate takes, under its name."""
    checks.check_choice("surrogate", surrogate, SURROGATES)
    if surrogate in _MARGIN:
        if temperature is not None:
            raise TypeError(
                f"surrogate {surrogate!r} takes a margin, not a temperature: write margin= instead"
            )
        return {"margin": 1.0 if margin is None else margin}
    if margin is not None:
        raise TypeError(
            f"surrogate {surrogate!r} takes a temperature, not a margin: write temperature= instead"
        )
    if temperature is None:
        temperature = 0.2 if surrogate == "sigmoid" else 1.0
    return {"temperature": temperature}


def placed(row: Row, surrogate: str, axis_name: AxisName = None, **numbers: Array) -> Row:
    """The row, shifted and scaled: the loss of a pair is `kernel_of` (negative - positive)."""
    if surrogate in _MARGIN:
        places = row.scores + jnp.where(row.is_negative, numbers["margin"], 0)
    elif surrogate == "logistic":
        places = row.scores / numbers["temperature"]
    else:
        negatives = of_negatives(row, axis_name)
        places = negatives.scores / (numbers["temperature"] * negatives.std)
    return row._replace(scores=places)


def within_reach(row: Row, surrogate: str, axis_name: AxisName = None) -> Row:
    """The row from `placed`, with items that cost nothing moved to the nearest place without cost.

    Powers of a score of -1e30, which rules a negative out, are then not large. An ascending row
    stays ascending. But items that are moved to one place tie, and would share the set of a window.
    """
    if surrogate in ("square", "sigmoid"):
        return row
    places = row.scores

    def reach(place: Array) -> Array:
        """How far from a place of one class items of the other cost nothing."""
        if surrogate != "logistic":
            return jnp.zeros_like(place)
        units = -2 * math.log(jnp.finfo(place.dtype).tiny)  # exp(-units) is 0
        return jnp.maximum(units, jnp.abs(place))  # more than the rounding of the place

    lowest, _ = lowest_and_highest(places, row.is_positive, axis_name)
    _, highest = lowest_and_highest(places, row.is_negative, axis_name)
    highest = jnp.where(highest > -jnp.inf, highest, jnp.minimum(lowest, 0))  # without negatives
    highest += reach(highest)
    lowest = jnp.minimum(lowest, highest)  # positives above `highest` are moved to it first
    lowest -= reach(lowest)
    moved = lax.stop_gradient(jnp.clip(places, lowest, highest))
    return row._replace(scores=jnp.where((places < lowest) | (places > highest), moved, places))


def slopes_in_scores(
    slopes: Array, row: Row, surrogate: str, axis_name: AxisName, **numbers: Array
) -> Array:
    """The slopes in the scores of the row, from slopes `[n]` in what `placed` returns."""
    if surrogate in _MARGIN:
        return slopes
    slopes = slopes / numbers["temperature"]
    if surrogate == "logistic":
        return slopes
    unit, scores, shares, away, std, varies = of_negatives(row, axis_name)
    slopes = slopes / std
    together = sum_over(jnp.sum(slopes * scores), axis_name)
    return (slopes - jnp.where(varies, together * shares * away / std**2, 0)) / unit


def kernel_of(surrogate: str, dtype: Any) -> Kernel:
    """The loss of a pair as a function of (negative - positive), both as `placed` returns them."""
    if surrogate in ("logistic", "sigmoid"):
        return softplus(dtype) if surrogate == "logistic" else sigmoid(dtype)
    return square() if surrogate == "square" else power(1 if surrogate == "hinge" else 2)
