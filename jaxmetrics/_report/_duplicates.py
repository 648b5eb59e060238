"""Rows that repeat others: those of items that were copied, as where files overlap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas

from jaxmetrics._base.types import FloatArray
from jaxmetrics._report._problem import Problem
from jaxmetrics._report._queries import Queries

# Repeated rows that matter: at least this share of the rows.
_LEAST = 0.01


def n_duplicates_of(problem: Problem | Queries) -> int:
    """The number of rows of label and scores, and query, that repeat an earlier one."""
    return int(_rows(problem).duplicated().sum())


def notes_of_duplicates(problem: Problem | Queries, n_more: int) -> list[str]:
    """A note of copied items, if rows repeat, are mostly distinct and do not repeat by chance.

    `n_more` is that of `n_duplicates_of`.
    """
    n = problem.scores.shape[-1]
    if n_more < _LEAST * n or 3 * n_more > 2 * n:
        return []
    repeated = int(_rows(problem).duplicated(keep=False).sum()) - n_more  # distinct, with copies
    if repeated < _LEAST * n or repeated <= 2 * min(map(_n_steps, problem.scores)):
        return []
    what = "query, label" if isinstance(problem, Queries) else "label"
    return [
        f"{n_more:,} of {n:,} rows repeat the {what} and scores of an earlier row, and count "
        "again: if items were copied, as where files overlap, drop their copies"
    ]


def _rows(problem: Problem | Queries) -> pandas.DataFrame:
    columns: list[Any] = (
        [problem.segments, problem.grades] if isinstance(problem, Queries) else [problem.labels]
    )
    return pandas.DataFrame(dict(enumerate([*columns, *problem.scores])))


def _n_steps(scores: FloatArray) -> int:
    """How many neighbouring values differ by one step, the least in their power of two.

    Scores that are rounded, as to decimals or to float32, tie by chance, and then also differ by
    one step of the rounding: about twice as many pairs of values do so as scores have ties.
    """
    values = np.unique(scores[np.isfinite(scores)])
    gaps = pandas.Series(np.diff(values))
    smaller = np.minimum(np.abs(values[1:]), np.abs(values[:-1]))  # the finer one, of floats
    steps = gaps.groupby(np.frexp(smaller)[1]).transform("min")
    return int((gaps <= 1.5 * steps).sum())
