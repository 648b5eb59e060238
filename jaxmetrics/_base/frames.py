"""Scores with names: dicts and frames, whose keys or columns are models."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np


def is_frame(value: Any) -> bool:
    """Whether it is a data frame, as of pandas or polars: rows of items, and named columns."""
    return hasattr(value, "columns") and len(getattr(value, "shape", ())) == 2


def names_in(scores: Any) -> tuple[str, ...] | None:
    """The names of the models, if the scores have them."""
    if isinstance(scores, (np.ndarray, jax.Array, list)):
        return None
    if isinstance(scores, dict):
        return tuple(map(str, scores))
    return tuple(map(str, scores.columns)) if is_frame(scores) else None
