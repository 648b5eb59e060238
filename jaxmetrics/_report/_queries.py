"""The problem of a ranking: scores of models for the graded documents of queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from jaxmetrics._base.types import FloatArray
from jaxmetrics._report._columns import (
    complete_rows,
    ids_of,
    joined,
    nonnegative_of,
    notes_of_dropped,
    numbers_of,
    refuse_twice,
)
from jaxmetrics._report._files import batches_of, refuse_none_left
from jaxmetrics._report._settings import InputError, Tell, untold
from jaxmetrics._report._sources import Source, source_of
from jaxmetrics._report._texts import quoted

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
    notes: tuple[str, ...] = ()  # of the reading
    cluster: str | None = None
    clusters: npt.NDArray[np.int64] | None = None  # [n_queries], from 0

    @property
    def n_clusters(self) -> int | None:
        return None if self.clusters is None else int(self.clusters.max()) + 1


def queries_of_file(
    given: Path | str | Source,
    tell: Tell = untold,
    *,
    group: str,
    label: str,
    scores: Sequence[str],
    gain: str,
    cluster: str | None = None,
) -> Queries:
    """The columns of a source, checked so that there is something to rank."""
    source, dropped = source_of(given), Counter[str]()
    ids = (group,) if cluster is None else (group, cluster)
    names = [*ids, label, *scores]
    refuse_twice(names)
    frames = []
    tell(f"Reading {source.name}", 0.0)
    for frame, share in batches_of(source, names, ids):
        tell(f"Reading {source.name}: {frame.index.stop:,} rows", share)
        if source.drops_missing:
            frame = frame[complete_rows(frame, names, dropped)]
        frames.append(frame)
    refuse_none_left(source, sum(map(len, frames)))
    columns = {name: joined([frame[name] for frame in frames], ids=name in ids) for name in names}
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
    clusters = None
    if cluster is not None:
        clusters = _clusters_of(cluster, columns[cluster], group, segments)
    return Queries(
        source.given,
        label,
        group,
        tuple(scores),
        rows,
        grades,
        segments,
        n_queries,
        notes_of_dropped(dropped, len(grades)),
        cluster,
        clusters,
    )


def _clusters_of(
    name: str, column: Any, group: str, segments: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """The cluster of each query; refused where one query has several."""
    advice = (
        "pass a column with an id for each group of queries that belong together, such as users"
    )
    ids = ids_of("cluster", name, column, f"{advice}, or leave --cluster out")
    clusters = np.zeros(segments.max() + 1, np.int64)
    clusters[segments] = ids
    if several := len(np.unique(segments[clusters[segments] != ids])):
        raise InputError(
            f"cluster {quoted(name)} has several values in {several:,} of {len(clusters):,} "
            f"queries of {quoted(group)}: if users share the ids of queries, pass ids of each "
            "user's own queries as --group"
        )
    return clusters
