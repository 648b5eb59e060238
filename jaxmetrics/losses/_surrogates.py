"""The loss of a pair of a positive and a negative, as a function of their difference."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from jaxmetrics._base import checks
from jaxmetrics._base.types import Array
from jaxmetrics.losses._pair_sums import Kernel, power, sigmoid, softplus, square
from jaxmetrics.losses._rows import Row, std_of_negatives

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


def placed(row: Row, surrogate: str, **numbers: Array) -> Row:
    """The row, shifted and scaled: the loss of a pair is `kernel_of` (negative - positive)."""
    if surrogate in _MARGIN:
        places = row.scores + jnp.where(row.negatives > 0, numbers["margin"], 0)
    elif surrogate == "logistic":
        places = row.scores / numbers["temperature"]
    else:
        places = row.scores / (numbers["temperature"] * std_of_negatives(row))
    return row._replace(scores=places)


def kernel_of(surrogate: str, dtype: Any) -> Kernel:
    """The loss of a pair as a function of (negative - positive), both as `placed` returns them."""
    if surrogate in ("logistic", "sigmoid"):
        return softplus(dtype) if surrogate == "logistic" else sigmoid(dtype)
    return square() if surrogate == "square" else power(1 if surrogate == "hinge" else 2)
