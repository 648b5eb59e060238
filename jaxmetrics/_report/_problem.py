"""The problem of an evaluation: scores of models for labelled items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jaxmetrics._base.types import FloatArray
from jaxmetrics._report._columns import ids_of, joined, notes_of_dropped
from jaxmetrics._report._items import items_of
from jaxmetrics._report._settings import InputError, Tell, untold
from jaxmetrics._report._slices import Column, column_of
from jaxmetrics._report._sources import Source, source_of
from jaxmetrics._report._texts import quoted


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
    notes: tuple[str, ...] = ()  # of the reading


def problem_of_file(
    given: Path | str | Source,
    tell: Tell = untold,
    *,
    label: str,
    scores: Sequence[str],
    positive: str | None = None,
    weight: str | None = None,
    amount: str | None = None,
    cluster: str | None = None,
    slices: Sequence[str] = (),
) -> Problem:
    """The columns of a source, checked so that every metric is defined."""
    source, dropped = source_of(given), Counter[str]()
    slices = tuple(dict.fromkeys(slices))
    others = (*slices, *(() if cluster is None else (cluster,)))
    batches = list(
        items_of(
            source,
            tell,
            label=label,
            scores=scores,
            positive=positive,
            weight=weight,
            amount=amount,
            others=others,
            whole=() if cluster is None else (cluster,),
            dropped=dropped,
        )
    )
    labels = np.concatenate([batch.labels for batch in batches])
    rows = np.concatenate([batch.scores for batch in batches], axis=1)
    weights = _joined_numbers([batch.weights for batch in batches])
    amounts = _joined_numbers([batch.amounts for batch in batches])
    columns = {
        name: joined([batch.others[name] for batch in batches], ids=name == cluster)
        for name in others
    }
    notes = notes_of_dropped(dropped, len(labels))
    if amounts is not None:
        amounts, more = _known(amounts, labels, amount)
        notes = (*notes, *more)
    if weights is not None:
        for name, members in (("positives", labels), ("negatives", ~labels)):
            if not weights[members].any():
                raise InputError(
                    f"the weights {quoted(weight)} of the {name} are all 0: raise some"
                )
    clusters = None
    if cluster is not None:
        clusters = ids_of(
            "cluster",
            cluster,
            columns[cluster],
            "pass a column with an id for each group of items that belong together, or leave "
            "--cluster out",
        )
    parts = tuple(column_of(name, columns[name]) for name in slices)
    return Problem(
        source.given,
        label,
        tuple(scores),
        rows,
        labels,
        weights,
        amounts,
        cluster,
        clusters,
        parts,
        notes,
    )


def _known(
    amounts: FloatArray, labels: npt.NDArray[np.bool_], name: str | None
) -> tuple[FloatArray, tuple[str, ...]]:
    """Amounts with 0 where they are missing, which leaves an item out of recall by amount alone."""
    missing, n = np.isnan(amounts), int(labels.sum())
    found = np.where(missing, 0.0, amounts)
    refuse_no_amounts(found)
    if not missing.any():
        return found, ()
    note = (
        f"{missing.sum():,} of {n:,} positives have no amount in column {quoted(name)}: recall by "
        "amount leaves them out, and all other metrics count them"
    )
    return found, (note,)


def refuse_no_amounts(amounts: FloatArray) -> None:
    """Refuse amounts that are all 0 among positives, of which recall by amount is undefined."""
    if not amounts.any():
        raise InputError(
            "no positive has an amount above 0: pass other amounts, or leave --amount out"
        )


def _joined_numbers(parts: Sequence[FloatArray | None]) -> FloatArray | None:
    return None if parts[0] is None else np.concatenate(parts)  # type: ignore[arg-type]
