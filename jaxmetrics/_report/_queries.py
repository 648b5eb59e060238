"""The problem of a ranking: scores of models for the graded documents of queries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jaxmetrics._base.types import FloatArray
from jaxmetrics._report._columns import ids_of, joined, nonnegative_of, numbers_of, refuse_twice
from jaxmetrics._report._files import batches_of
from jaxmetrics._report._settings import InputError, Tell, untold

# The highest grade for 2^grade: above it, low grades would not count beside the highest.
HIGHEST_GRADE = 50


class Queries(NamedTuple):
    """The scores of several models for the same documents, each of one query."""

    source: str
    label: str
    group: str
    names: tuple[str, ...]
    scores: FloatArray  # [models, n]
    grades: FloatArray  # [n]
    segments: npt.NDArray[np.int64]  # [n], the query of each, from 0
    n_queries: int


def queries_of_file(
    path: Path, tell: Tell = untold, *, group: str, label: str, scores: Sequence[str], gain: str
) -> Queries:
    """The columns of a file, checked so that there is something to rank."""
    refuse_twice([group, label, *scores])
    names = [group, label, *scores]
    frames = []
    tell(f"Reading {path.name}", 0.0)
    for frame, share in batches_of(path, names, (group,)):
        frames.append(frame)
        tell(f"Reading {path.name}: {frame.index.stop:,} rows", share)
    columns = {name: joined([frame[name] for frame in frames]) for name in names}
    segments = ids_of(
        "group",
        group,
        columns[group],
        "pass the column of query ids; a mean and its interval need at least two queries",
    )
    grades = nonnegative_of("label", label, columns[label])
    if not grades.any():
        raise InputError(
            f"label {label!r} is 0 in all rows: grade relevant items above 0, as in 1 or 1 to 4"
        )
    if gain == "exponential" and grades.max() > HIGHEST_GRADE:
        raise InputError(
            f"label {label!r} has the grade {grades.max():g}, but a gain of 2^grade - 1 needs "
            f"grades of at most {HIGHEST_GRADE}: write --gain linear"
        )
    n_queries = int(segments.max()) + 1
    rows = np.stack([numbers_of("score", name, columns[name]) for name in scores])
    return Queries(str(path), label, group, tuple(scores), rows, grades, segments, n_queries)
