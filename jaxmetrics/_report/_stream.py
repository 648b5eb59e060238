"""The evaluation of a file in batches, for files that are larger than memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import numpy.typing as npt
import pandas
import pyarrow
import pyarrow.csv
import pyarrow.parquet

import jaxmetrics as jm
from jaxmetrics._report._columns import labels_of, numbers_of, positives_of, refuse_twice
from jaxmetrics._report._evaluation import Drawing, Evaluation, Measure, percent
from jaxmetrics._report._figures import drawings_of
from jaxmetrics._report._files import check_has_columns
from jaxmetrics._report._metrics import ABOUT, classification_metrics, least_cost
from jaxmetrics._report._settings import InputError, Settings, Tell

STREAMED = (".csv", ".csv.gz", ".parquet")
_ROWS = 1 << 17  # rows of each update, which is compiled once
_BLOCK = 1 << 22  # bytes of a CSV file at a time; more takes memory, not less time


class Interrupted(InputError):
    """The user stopped the reading; the message says how far it got."""

    exit_code = 130


def is_too_large(path: Path) -> bool:
    """Whether a file is larger than a quarter of memory, so that its columns may not fit."""
    if not path.is_file() or not path.name.lower().endswith(STREAMED):
        return False
    if not hasattr(os, "sysconf"):  # on Windows
        return False
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return path.stat().st_size > memory / 4


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
    refuse_twice([label, *scores])
    bins = jm.streaming.float16_bins()
    state = jm.streaming.init(bins, (len(scores),))
    n_items, n_positive, share = 0, 0, 0.0
    values: set[Any] = set()
    check_has_columns(path, [label, *scores])
    if not path.name.lower().endswith(STREAMED):
        raise InputError(
            f"{path.name} cannot be read in batches: leave --stream out, or convert it to one of "
            f"{', '.join(STREAMED)}"
        )
    tell(f"Reading {path.name}", share)
    read = _parquet_batches if path.name.lower().endswith(".parquet") else _csv_batches

    def so_far() -> str:
        return f"after {n_items:,} rows, {share:.0%} of {path.name}"

    try:
        for batch, done in read(path, label, scores):
            frame = batch.to_pandas()
            labels = _labels_of_batch(label, frame[label], positive, values)
            rows = np.stack([numbers_of("score", name, frame[name]) for name in scores])
            for i in range(0, len(labels), _ROWS):
                state = _updated(state, rows[:, i : i + _ROWS], labels[i : i + _ROWS], bins)
            n_items, n_positive, share = n_items + len(labels), n_positive + int(labels.sum()), done
            tell(f"Reading {path.name}: {n_items:,} rows", share)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted {so_far()}") from None
    except (pyarrow.ArrowException, OSError, EOFError) as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        raise InputError(f"{path.name} cannot be read further, {so_far()}: {reason}") from None
    if len(values) == 2 and not n_positive:
        labels_of(label, pandas.Series(sorted(values)), positive)  # raises, and names the values
    if not 0 < n_positive < n_items:
        raise InputError(
            f"label {label!r} has only one class in {n_items:,} rows: pass a file with positives "
            "and negatives"
        )
    facts = {
        "file": str(path),
        "label": label,
        "n_items": n_items,
        "n_positive": n_positive,
    }
    return _evaluation(state, bins, settings, tell, facts, tuple(scores), with_figures)


def _updated(
    state: jm.streaming.State,
    rows: npt.NDArray[Any],
    labels: npt.NDArray[np.bool_],
    bins: jm.streaming.Bins,
) -> jm.streaming.State:
    fill = _ROWS - len(labels)
    return jm.streaming.update(
        state,
        np.pad(rows.astype(np.float32), ((0, 0), (0, fill))),
        np.pad(labels, (0, fill)),
        bins=bins,
        where=np.arange(_ROWS) < len(labels),
    )


def _labels_of_batch(
    name: str, column: Any, positive: str | None, values: set[Any]
) -> npt.NDArray[np.bool_]:
    """Labels of a batch, which may have one class; `values` collects those of all batches."""
    if column.isna().any():
        labels_of(name, column, positive)  # raises
    numeric = pandas.api.types.is_numeric_dtype(column)
    column = column if numeric else column.astype(str)
    values.update(column.unique().tolist())
    if len(values) > 2 or (positive is None and not values <= {0, 1}):
        both = [*values, *({0, 1} - values if len(values) == 1 else ())]
        labels_of(name, pandas.Series(both), positive)
    return np.asarray(column.isin(positives_of(values, positive)), bool)


def _csv_batches(path: Path, label: str, scores: Sequence[str]) -> Iterator[tuple[Any, float]]:
    size = path.stat().st_size
    with path.open("rb") as raw:
        packed = path.name.lower().endswith(".gz")
        source = pyarrow.CompressedInputStream(raw, "gzip") if packed else raw
        reader = pyarrow.csv.open_csv(
            source,
            read_options=pyarrow.csv.ReadOptions(block_size=_BLOCK, use_threads=False),
            convert_options=pyarrow.csv.ConvertOptions(
                include_columns=[label, *scores],
                # Otherwise the first rows, whose scores may be whole numbers, decide the type.
                column_types=dict.fromkeys(scores, pyarrow.float64()),
            ),
        )
        for batch in reader:
            yield batch, min(raw.tell() / size, 1.0)


def _parquet_batches(path: Path, label: str, scores: Sequence[str]) -> Iterator[tuple[Any, float]]:
    # Read-ahead would hold all columns of a row group in memory.
    with pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file:
        done, total = 0, max(file.metadata.num_rows, 1)
        for batch in file.iter_batches(batch_size=2 * _ROWS, columns=[label, *scores]):
            done += len(batch)
            yield batch, done / total


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
        for i, (name, heading, metric, limit, _) in enumerate(metrics):
            tell(f"Evaluating: {name.replace('_', ' ')}", i / len(metrics))
            bounds = jm.streaming.bounds(metric, state, bins=bins)
            interval = jm.streaming.interval(
                metric,
                state,
                bins=bins,
                confidence_level=settings.confidence_level,
                key=jax.random.key(settings.seed),
                n_resamples=settings.n_resamples,
            )
            interval, bounds = jax.tree.map(np.asarray, (interval, bounds))
            measures.append(Measure(name, heading, interval, None, limit, bounds=bounds))
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
        ("max_fpr",),
        f"{Path(facts['file']).name}, {facts['label']}: {n_items:,} items, {n_positive:,} positive "
        f"({percent(n_positive / n_items)}), read in batches",
        f"; below them, guaranteed bounds of the exact value{ABOUT}",
        tuple(measures),
        (),
        drawings,
    )
