"""The evaluation of a file in batches, for files that are larger than memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import numpy.typing as npt

import jaxmetrics as jm
from jaxmetrics._base.types import FloatArray
from jaxmetrics._report._evaluation import Drawing, Evaluation, Measure, percent
from jaxmetrics._report._figures import drawings_of
from jaxmetrics._report._files import check_has_columns, format_of
from jaxmetrics._report._items import items_of
from jaxmetrics._report._metrics import ABOUT, classification_metrics, least_cost
from jaxmetrics._report._settings import InputError, Settings, Tell

STREAMED = (".csv", ".csv.gz", ".parquet")
_ROWS = 1 << 17  # rows of each update, which is compiled once

# More rows take minutes in memory, and seconds in batches.
MOST_ROWS = 2_000_000


class Interrupted(InputError):
    """The user stopped the reading; the message says how far it got."""

    exit_code = 130


def is_too_large(path: Path) -> bool:
    """Whether a file has too many rows, or more bytes than a quarter of memory."""
    found = format_of(path)
    if not path.is_file() or found is None or not path.name.lower().endswith(STREAMED):
        return False
    if hasattr(os, "sysconf"):  # not on Windows
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if path.stat().st_size > memory / 4:
            return True
    try:
        return found.n_rows(path) > MOST_ROWS
    except Exception:  # parsers differ in what they raise; reading will say what is wrong
        return False


def evaluate_stream(
    path: Path,
    settings: Settings,
    tell: Tell,
    *,
    label: str,
    scores: Sequence[str],
    positive: str | None,
    with_figures: bool = False,
) -> Evaluation:
    """Every metric of every model with guaranteed bounds and intervals, in one pass of a file."""
    bins = jm.streaming.float16_bins()
    state = jm.streaming.init(bins, (len(scores),))
    n_items, n_positive = 0, 0
    check_has_columns(path, [label, *scores])
    if not path.name.lower().endswith(STREAMED):
        raise InputError(
            f"{path.name} cannot be read in batches: leave --stream out, or convert it to one of "
            f"{', '.join(STREAMED)}"
        )
    try:
        for batch in items_of(path, tell, label=label, scores=scores, positive=positive):
            labels, rows = batch.labels, _rounded_down(batch.scores)
            for i in range(0, len(labels), _ROWS):
                state = _updated(state, rows[:, i : i + _ROWS], labels[i : i + _ROWS], bins)
            n_items, n_positive = n_items + len(labels), n_positive + int(labels.sum())
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted after {n_items:,} rows of {path.name}") from None
    facts = {
        "file": str(path),
        "label": label,
        "n_items": n_items,
        "n_positive": n_positive,
    }
    return _evaluation(state, bins, settings, tell, facts, tuple(scores), with_figures)


def _rounded_down(scores: FloatArray) -> npt.NDArray[np.float32]:
    """Scores as float32, never above: `score >= threshold` then holds of both or of neither.

    It does for each threshold of the bins, because these are float32.
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


def _evaluation(
    state: jm.streaming.State,
    bins: jm.streaming.Bins,
    settings: Settings,
    tell: Tell,
    facts: dict[str, Any],
    names: tuple[str, ...],
    with_figures: bool,
) -> Evaluation:
    measures = []
    drawings: tuple[Drawing, ...] = ()
    metrics = classification_metrics(settings.max_fpr)
    with jax.enable_x64(True):
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
            measures.append(
                Measure(x.name, x.heading, interval, None, x.max_fpr, None, None, bounds, x.scale)
            )
        if with_figures:
            table = jm.streaming.table(state, bins=bins)
            facts = {**facts, "least_cost": least_cost(table, names, settings)}
            drawings = drawings_of(table, names, settings, measures)
    n_items, n_positive = facts["n_items"], facts["n_positive"]
    return Evaluation(
        names,
        {
            **facts,
            "streamed": True,
            "max_fpr": settings.max_fpr,
            "fp_cost": settings.fp_cost,
            "fn_cost": settings.fn_cost,
        },
        ("max_fpr", "scale"),
        f"{Path(facts['file']).name}, {facts['label']}: {n_items:,} items, {n_positive:,} positive "
        f"({percent(n_positive / n_items)}), read in batches",
        f"; below them, guaranteed bounds of the exact value{ABOUT}",
        tuple(measures),
        (),
        drawings,
    )
