"""The problem of an evaluation: scores of models for labelled items."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jaxmetrics._base.types import FloatArray
from jaxmetrics._report._columns import (
    ids_of,
    labels_of,
    nonnegative_of,
    numbers_of,
    refuse_twice,
)
from jaxmetrics._report._files import read_columns
from jaxmetrics._report._settings import InputError
from jaxmetrics._report._slices import Column, column_of


class Problem(NamedTuple):
    """The scores of several models for the same labelled items."""

    source: str
    label: str
    names: tuple[str, ...]
    scores: FloatArray  # [models, n]
    labels: npt.NDArray[np.bool_]  # [n]
    weights: FloatArray | None = None  # [n]
    amounts: FloatArray | None = None  # [n]
    cluster: str | None = None
    clusters: npt.NDArray[np.int64] | None = None  # [n]
    slices: tuple[Column, ...] = ()


def problem_of_file(
    path: Path,
    *,
    label: str,
    scores: Sequence[str],
    positive: str | None = None,
    weight: str | None = None,
    amount: str | None = None,
    cluster: str | None = None,
    slices: Sequence[str] = (),
) -> Problem:
    """The columns of a file, checked so that every metric is defined."""
    refuse_twice([label, *scores])
    extra = [name for name in (weight, amount, cluster, *slices) if name is not None]
    frame = read_columns(path, [label, *scores, *extra])
    labels = labels_of(label, frame[label], positive)
    weights = amounts = clusters = None
    if weight is not None:
        weights = nonnegative_of("weight", weight, frame[weight])
        for name, members in (("positives", labels), ("negatives", ~labels)):
            if not weights[members].any():
                raise InputError(f"the weights {weight!r} of the {name} are all 0: raise some")
    if amount is not None:
        # Only the positives' amounts count, so only those are checked.
        amounts = np.zeros(len(labels))
        amounts[labels] = nonnegative_of("positives' amount", amount, frame[amount][labels])
    if cluster is not None:
        clusters = ids_of(
            "cluster",
            cluster,
            frame[cluster],
            "pass a column with an id for each group of items that belong together, or leave "
            "--cluster out",
        )
    rows = np.stack([numbers_of("score", name, frame[name]) for name in scores])
    columns = tuple(column_of(name, frame[name]) for name in dict.fromkeys(slices))
    return Problem(
        str(path), label, tuple(scores), rows, labels, weights, amounts, cluster, clusters, columns
    )
