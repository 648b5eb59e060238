"""The evaluation of a file in batches, for files that are larger than memory."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import jax
import numpy as np
import numpy.typing as npt

import jaxmetrics as jm
from jaxmetrics._base.host import memory_size
from jaxmetrics._base.types import FloatArray
from jaxmetrics._base.warned import texts_of
from jaxmetrics._base.words import enumerated, percent_text, visible
from jaxmetrics._report._columns import notes_of_dropped
from jaxmetrics._report._evaluation import Drawing, Evaluation, Measure, notes_of_direction
from jaxmetrics._report._figures import drawings_of
from jaxmetrics._report._files import check_has_columns, n_rows_of
from jaxmetrics._report._items import items_of
from jaxmetrics._report._metrics import ABOUT, classification_metrics, costs_in_facts, least_cost
from jaxmetrics._report._settings import InputError, Settings, Tell
from jaxmetrics._report._sources import ENDINGS, Source, ending_of, source_of
from jaxmetrics._report._texts import name_of
from jaxmetrics.streaming._intervals import are_coarse

STREAMED = (*ENDINGS, ".parquet")
_ROWS = 1 << 17  # rows of each update, which is compiled once

# The most by which the chance that two items tie may be larger in bins than by scores.
_MOST_TIED = 1e-3

# More rows take minutes in memory, and seconds in batches.
MOST_ROWS = 2_000_000

_NOT_COMPARED = (
    "rows were read in batches, so that models are not compared and thresholds are not evaluated: "
    "--no-stream reads all rows into memory"
)


class Interrupted(InputError):
    """The user stopped the reading; the message says how far it got."""

    exit_code = 130


def is_too_large(given: Path | str | Source) -> bool:
    """Whether a source has too many rows, or more bytes than a quarter of memory."""
    paths = [file.path for file in source_of(given).files]
    if not all(ending_of(path) in STREAMED for path in paths):
        return False
    if sum(path.stat().st_size for path in paths) > memory_size() / 4:
        return True
    try:
        return sum(n_rows_of(path) for path in paths) > MOST_ROWS
    except Exception:  # parsers differ in what they raise; reading will say what is wrong
        return False


def evaluate_stream(
    given: Path | str | Source,
    settings: Settings,
    tell: Tell,
    *,
    label: str,
    scores: Sequence[str],
    positive: str | None,
    with_figures: bool = False,
) -> Evaluation:
    """Every metric of every model with guaranteed bounds and intervals, in one pass of a file."""
    source, dropped = source_of(given), Counter[str]()
    bins: Any = None
    state: Any = None
    made_for: Any = None
    rounded: list[str] = []
    n_items, n_positive = 0, 0
    check_has_columns(source, [label, *scores])
    for file in source.files:
        if ending_of(file.path) not in STREAMED:
            raise InputError(
                f"{file.path.name} cannot be read in batches: leave --stream out, or convert it to "
                f"one of {', '.join(STREAMED)}"
            )
    try:
        for batch in items_of(
            source, tell, label=label, scores=scores, positive=positive, dropped=dropped
        ):
            labels, rows = batch.labels, _rounded_down(batch.scores)
            if bins is None:
                first = slice(_ROWS)
                made_for = batch.scores[:, first]
                bins, rounded = _bins_for(made_for, rows[:, first], scores)
                state = jm.streaming.init(bins, (len(scores),))
            for i in range(0, len(labels), _ROWS):
                state = _updated(state, rows[:, i : i + _ROWS], labels[i : i + _ROWS], bins)
            n_items, n_positive = n_items + len(labels), n_positive + int(labels.sum())
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted after {n_items:,} rows of {source.name}") from None
    facts = {
        "file": source.given,
        "label": label,
        "n_items": n_items,
        "n_positive": n_positive,
    }
    others_follow = made_for is not None and n_items > made_for.shape[-1]
    if others_follow and bins != jm.streaming.float16_bins():
        rounded += _notes_of_order(made_for, scores)
    notes = (*rounded, _NOT_COMPARED, *notes_of_dropped(dropped, n_items))
    return _evaluation(state, bins, settings, tell, facts, tuple(scores), with_figures, notes)


def _bins_for(
    given: FloatArray, rows: npt.NDArray[np.float32], names: Sequence[str]
) -> tuple[jm.streaming.Bins, list[str]]:
    """float16 bins; or quantile bins, if float16 ties many scores of a first batch `[models, n]`.

    Also returns notes of the models whose scores float32 ties.
    """
    with np.errstate(over="ignore"):
        halves = rows.astype(np.float16)
    ties = np.array([[_share_of_ties(x) for x in each] for each in (given, rows, halves)])
    notes = [
        f"scores {visible(name)} are beyond the range or the precision of float32, in which "
        "batches are counted: --no-stream reads all rows into memory"
        for name, more in zip(names, ties[1] - ties[0], strict=True)
        if more > _MOST_TIED
    ]
    if (ties[2] - ties[1]).max() > _MOST_TIED and np.isfinite(rows).any():
        return jm.streaming.quantile_bins(rows, 1 << 16), notes
    return jm.streaming.float16_bins(), notes


def _notes_of_order(given: FloatArray, names: Sequence[str]) -> list[str]:
    """Notes of the models whose first scores `[models, n]` only fall or only rise."""
    return [
        f"scores {visible(name)} fall or rise from row to row of the first {len(x):,}, so that the "
        "bins, made for these, are wide for others: shuffle the rows, or pass --no-stream"
        for name, x in zip(names, given, strict=True)
        if x[0] != x[-1] and (np.all(x[1:] <= x[:-1]) or np.all(x[1:] >= x[:-1]))
    ]


def _share_of_ties(scores: npt.NDArray[Any]) -> float:
    """The chance that two items, drawn with replacement, have the same score."""
    _, counts = np.unique(scores, return_counts=True)
    return float(np.sum((counts / counts.sum()) ** 2))


def _rounded_down(scores: FloatArray) -> npt.NDArray[np.float32]:
    """Scores as float32, rounded down: `score >= threshold` then holds for both or for neither.

    That is true of each threshold of the bins, because these are float32.
    """
    with np.errstate(over="ignore"):
        rounded = scores.astype(np.float32)
    return np.where(rounded > scores, np.nextafter(rounded, np.float32(-np.inf)), rounded)


def _updated(
    state: jm.streaming.State,
    rows: npt.NDArray[Any],
    labels: npt.NDArray[np.bool_],
    bins: jm.streaming.Bins,
) -> jm.streaming.State:
    fill = _ROWS - len(labels)
    return jm.streaming.update(
        state,
        np.pad(rows, ((0, 0), (0, fill))),
        np.pad(labels, (0, fill)),
        bins=bins,
        where=np.arange(_ROWS) < len(labels),
    )


def _notes_of_coarse(measures: Sequence[Measure], names: Sequence[str]) -> Iterator[str]:
    """Notes of the models for which the bins give only wide bounds of some metrics."""
    wide: dict[str, list[str]] = {}
    for x in measures:
        low, high = cast(jm.streaming.Bounds, x.bounds)
        coarse = are_coarse((low, high), (x.interval.low, x.interval.high))
        for i in np.flatnonzero(coarse).tolist():
            wide.setdefault(names[i], []).append(f"{x.called} ({low[i]:.3g} to {high[i]:.3g})")
    for name, metrics in wide.items():
        yield (
            f"many scores {visible(name)} share a bin, so that the bounds of "
            f"{enumerated(metrics)} are wide: --no-stream reads all rows into memory"
        )


def _evaluation(
    state: jm.streaming.State,
    bins: jm.streaming.Bins,
    settings: Settings,
    tell: Tell,
    facts: dict[str, Any],
    names: tuple[str, ...],
    with_figures: bool,
    notes: tuple[str, ...],
) -> Evaluation:
    measures = []
    drawings: tuple[Drawing, ...] = ()
    metrics = classification_metrics(settings.max_fpr)
    with jax.enable_x64(True), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # It names no model; `_notes_of_coarse` does.
        warnings.filterwarnings("ignore", "many scores share a bin")
        for i, x in enumerate(metrics):
            tell(f"Evaluating: {x.name.replace('_', ' ')}", i / len(metrics))
            bounds = jm.streaming.bounds(x.function, state, bins=bins)
            interval = jm.streaming.interval(
                x.function,
                state,
                bins=bins,
                confidence_level=settings.confidence_level,
                key=jax.random.key(settings.seed),
                n_resamples=settings.n_resamples,
            )
            interval, bounds = jax.tree.map(np.asarray, (interval, bounds))
            found = Measure(x.name, x.heading, interval, max_fpr=x.max_fpr, scale=x.scale)
            measures.append(found._replace(bounds=bounds))
        if with_figures:
            table = jm.streaming.table(state, bins=bins)
            if settings.costs is not None:
                facts = {**facts, "least_cost": least_cost(table, names, settings)}
            drawings = drawings_of(table, names, settings, measures)
    n_items, n_positive = facts["n_items"], facts["n_positive"]
    notes = (
        *notes,
        *notes_of_direction(measures, names),
        *_notes_of_coarse(measures, names),
        *texts_of(caught),
    )
    return Evaluation(
        names,
        {
            **facts,
            "streamed": True,
            "max_fpr": settings.max_fpr,
            **costs_in_facts(settings),
        },
        ("max_fpr", "scale"),
        f"{name_of(facts['file'])}, {facts['label']}: {n_items:,} items, {n_positive:,} positive "
        f"({percent_text(n_positive / n_items)}), read in batches",
        f"; below them, guaranteed bounds of the exact value{ABOUT}",
        tuple(measures),
        notes,
        drawings,
    )
