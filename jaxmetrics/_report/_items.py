"""Labelled items of a file, in batches: one reader, whether the file fits in memory or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from jaxmetrics._base.types import FloatArray
from jaxmetrics._report._columns import (
    AMOUNT,
    complete_rows,
    is_boolean,
    labels_of,
    nonnegative_of,
    notes_of_dropped,
    numbers_of,
    positives_among,
    refuse_twice,
)
from jaxmetrics._report._files import batches_of, refuse_none_left
from jaxmetrics._report._settings import InputError, Tell
from jaxmetrics._report._sources import Source
from jaxmetrics._report._texts import quoted


class LabelledRows(NamedTuple):
    """Rows of a file: items with their labels and the scores of several models."""

    labels: npt.NDArray[np.bool_]  # [n]
    scores: FloatArray  # [models, n]
    weights: FloatArray | None  # [n]
    amounts: FloatArray | None  # [n], 0 for negatives, NaN for positives without one
    others: dict[str, Any]  # columns as they are


def items_of(
    source: Source,
    tell: Tell,
    *,
    label: str,
    scores: Sequence[str],
    positive: str | None = None,
    weight: str | None = None,
    amount: str | None = None,
    others: Sequence[str] = (),
    whole: Sequence[str] = (),
    dropped: Counter[str],
) -> Iterator[LabelledRows]:
    """The rows of a source in batches, checked so that every metric of all of them is defined.

    If the source drops missing cells, rows without a label, a score, a weight or a value in a
    column of `whole` are left out. `dropped` counts them.
    """
    refuse_twice([label, *scores])
    extra = [name for name in (weight, amount, *others) if name is not None]
    texts = set(others).difference([label, *scores, weight, amount])
    seen: dict[Any, None] = {}
    flags: dict[str, bool] = {}
    n_items = 0
    needed = [x for x in (label, *scores, weight, *whole) if x is not None]
    tell(f"Reading {source.name}", 0.0)
    for frame, share in batches_of(source, [label, *scores, *extra], texts):
        if source.drops_missing:
            frame = frame[complete_rows(frame, needed, dropped)]
        labels = labels_of(label, frame[label], positive, seen)
        if not len(frame):
            continue
        weights = None if weight is None else nonnegative_of("weight", weight, frame[weight])
        amounts = None
        if amount is not None:
            given = frame[amount]
            known = labels & given.notna().to_numpy() if source.drops_missing else labels
            amounts = np.where(labels, np.nan, 0.0)
            amounts[known] = nonnegative_of(AMOUNT, amount, given[known])
        rows = np.stack([numbers_of("score", name, frame[name]) for name in scores])
        for name in scores:
            are_flags = is_boolean(frame[name])
            if flags.setdefault(name, are_flags) != are_flags:
                raise InputError(
                    f"score {quoted(name)} must hold numbers but also has true and false: "
                    "write 1 and 0"
                )
        n_items += len(labels)
        tell(f"Reading {source.name}: {n_items:,} rows", share)
        yield LabelledRows(labels, rows, weights, amounts, {name: frame[name] for name in others})
    refuse_none_left(source, n_items)
    left_out = notes_of_dropped(dropped, n_items)
    positives_among(label, seen, positive, complete=True, dropped=left_out)
