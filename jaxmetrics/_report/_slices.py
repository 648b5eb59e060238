"""Slices: the metrics of the items that share a value of a column."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from numbers import Number
from typing import Any, NamedTuple

import jax
import numpy as np
import numpy.typing as npt
import pandas

import jaxmetrics as jm
from jaxmetrics._base import checks
from jaxmetrics._base.host import in_threads
from jaxmetrics._base.types import FloatArray, Items
from jaxmetrics._base.warned import FewItems, warn
from jaxmetrics._base.words import enumerated, some_of, visible
from jaxmetrics._report._columns import MOST_VALUES, as_texts
from jaxmetrics._report._evaluation import FEWEST, Measure, Slices
from jaxmetrics._report._metrics import Metric, classification_metrics
from jaxmetrics._report._settings import InputError, Settings
from jaxmetrics._report._times import no_date_among, seem_dated, times_of, unit_of_name
from jaxmetrics.inference._confidence import warn_of_small_classes
from jaxmetrics.inference._slices import slices_of_items

_PARTS = 5  # of a column with more numbers


class Column(NamedTuple):
    """A column that divides the items into slices.

    Attributes:
      codes: `[n]`, the value of each item.
      times: `[values]`, the time of each value in units, if values are times; NaN if missing.
      note: how the column was taken, for the report.
    """

    name: str
    values: tuple[str, ...]
    codes: npt.NDArray[np.intp]
    times: FloatArray | None = None
    unit: str = ""
    note: str = ""


def column_of(name: str, column: Any) -> Column:
    """The column with its values in order; missing is a value, many numbers become fifths."""
    if (found := times_of(name, column)) is not None:
        codes, values = _with_missing(found.codes, found.values)
        lacking = len(values) - len(found.values)
        notes = [found.note] if found.note else []
        if unit_of_name(name) is None and pandas.api.types.is_numeric_dtype(column):
            first, unit = int(column.dropna().iloc[0]), found.given or found.unit
            notes.append(
                f"whole numbers of slice {name!r} are taken as {unit}s, such as {first}: write "
                f"them as texts, such as s{first}, if they are none"
            )
        if found.given is not None:
            months = ": for months, write them as 2026-03" * (found.unit == "week")
            notes.append(
                f"slice {name!r} has too many {found.given}s, so slices are by {found.unit}{months}"
            )
        times = np.append(found.times, lacking * [np.nan])
        return Column(name, values, codes, times, found.unit, "; ".join(notes))
    odd = no_date_among(name, column.dropna().unique().tolist())
    notes = []
    numeric = pandas.api.types.is_numeric_dtype(column)
    if numeric and (n := column.nunique()) > MOST_VALUES:
        if (column.dropna() % 1 == 0).all():
            instead = f"are ids, pass a column of groups of ids with at most {MOST_VALUES} values"
            if unit_of_name(name) is not None and odd is None:
                instead = "count days, write dates, as 2026-03-15, which become weeks or months"
            notes.append(
                f"slice {name!r} has {n:,} distinct whole numbers, so slices are ranges of them: "
                f"if they {instead}"
            )
        column = column.astype(np.float64)
        # Between two infinite values there is no mean.
        shares = np.arange(1, _PARTS) / _PARTS
        edges = np.unique(column.quantile(shares, interpolation="lower"))
        parts = np.searchsorted(edges, column)
        ends = column.groupby(parts).agg(["min", "max"]).dropna().to_numpy()
        codes = np.where(column.isna(), -1, np.unique(parts, return_inverse=True)[1])
        column = pandas.Series(pandas.Categorical.from_codes(codes, _ranges(ends)))
    elif not isinstance(column.dtype, pandas.CategoricalDtype):
        column = column.astype("category")
    else:
        column = column.cat.remove_unused_categories()
    codes = np.asarray(column.cat.codes, np.intp)
    categories = column.cat.categories
    values = tuple(as_texts(categories).tolist())
    dated = seem_dated(values) and not all(isinstance(x, Number) for x in categories)
    if len(values) > MOST_VALUES:
        instead = "pass a column with fewer values"
        if dated:  # in a form that is not read, or of more years than there may be slices
            instead = "write dates as 2026-03-15, or decades if they are of many years"
        raise InputError(
            f"slice {name!r} has {len(values)} distinct values, more than {MOST_VALUES}: {instead}"
        )
    codes, values = _with_missing(codes, values)
    alike = [x for x, n in Counter(values).items() if n > 1]
    if alike:
        raise InputError(
            f"slice {name!r} has several values that are written {alike[0]}, such as a number and "
            "a text: make them one, or write them differently"
        )
    if odd is not None:
        notes.append(
            f"slice {name!r} is not taken as time, because {odd} is no date: write it as "
            "2026-03-15, or drop it"
        )
    elif dated:
        notes.append(
            f"slice {name!r} is in the order of its texts: write dates as 2026-03 or 2026-03-15"
        )
    return Column(name, values, codes, note="; ".join(notes))


def _with_missing(
    codes: npt.NDArray[np.intp], values: tuple[str, ...]
) -> tuple[npt.NDArray[np.intp], tuple[str, ...]]:
    """Codes and values; codes below 0 become those of one more value, "missing"."""
    if (codes < 0).any():
        rest = "missing" if "missing" not in values else "(missing)"
        codes, values = np.where(codes < 0, len(values), codes), (*values, rest)
    return codes, values


def _ranges(ends: FloatArray) -> list[str]:
    """The range of each part as text, or its only value; ends that differ look different."""
    for digits in range(6, 18):
        texts = [[f"{end:.{digits}g}" for end in part] for part in ends]
        if len({text for part in texts for text in part}) == len(np.unique(ends)):
            break
    return [" to ".join(dict.fromkeys(part)) for part in texts]


def ranks_of(scores: FloatArray) -> npt.NDArray[np.int32]:
    """The ranks of scores `[models, n]`. Areas need no more, and 32 bits sort faster than 64."""
    ranks = in_threads(lambda row: np.unique(row, return_inverse=True)[1], scores)
    return np.stack(ranks).astype(np.int32)


def measured_in(
    column: Column,
    scores: Any,
    labels: Any,
    settings: Settings,
    *,
    weights: Any,
    clusters: Any,
    tests: bool,
    progress: Callable[[int], None],
) -> tuple[list[jm.Interval], list[jm.Slices]]:
    """AUC and partial AUC `[slices, models]`, and the models compared if there are `tests`.

    A model's intervals hold for all slices at once: by Bonferroni, each has the level
    1 - (1 - level) / slices. Comparisons are adjusted for all slices.
    """
    level = 1 - (1 - settings.confidence_level) / len(column.values)
    items = Items(scores, labels, weights)
    ids = checks.check_clusters(clusters, items)
    metrics, found, intervals = _metrics(settings), [], []
    for i, x in enumerate(metrics, 1):
        result = slices_of_items(
            x.function,
            items,
            column.values,
            column.codes,
            ids,
            min_items=FEWEST,
            level=settings.confidence_level,
            level_alone=level,
        )
        of_slices, of_level = jax.tree.map(np.asarray, result)
        found.append(of_slices)
        intervals.append(of_level)
        progress(settings.n_resamples * i // len(metrics))
    _warn_of_small(column, metrics, found[0].effective, clustered=ids is not None)
    return intervals, found if tests else []


def _warn_of_small(
    column: Column, metrics: Sequence[Metric], sizes_in: Any, *, clustered: bool
) -> None:
    """Warn of small classes in the first slice that has them, and name the others."""
    values_of: dict[Any, list[str]] = {}
    first: dict[Any, str] = {}
    of = "clusters with " if clustered else ""
    for value, (negatives, positives) in zip(column.values, sizes_in.tolist(), strict=True):
        sizes = {f"{of}positives": positives, f"{of}negatives": negatives}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for x in metrics:
                warn_of_small_classes(x.function, sizes, "closed form", clustered=clustered)
        for kind, text in {_kind(x.message): str(x.message) for x in caught}.items():
            first.setdefault(kind, text)
            values_of.setdefault(kind, []).append(value)
    for kind, (value, *others) in values_of.items():
        likewise = f"; likewise, each with its own number, {some_of(others)}" if others else ""
        warn(f"{column.name} {value}: {first[kind]}{likewise}")


def _kind(message: Warning | str) -> Any:
    """The same for warnings that differ by a number alone."""
    return (message.what, message.found) if isinstance(message, FewItems) else str(message)


def slices_of(
    column: Column,
    labels: Any,
    settings: Settings,
    intervals: Sequence[jm.Interval],
    compared: Sequence[jm.Slices],
    *,
    clustered: bool,
) -> Slices:
    """The slices of a column, with their counts and measures, and trends if they have times."""
    n = len(column.values)
    counts = [np.bincount(column.codes[some], minlength=n) for some in (slice(None), labels)]
    n_items, n_positive = (tuple(int(x) for x in count) for count in counts)
    measures = tuple(
        Measure(x.name, x.heading, interval, max_fpr=x.max_fpr, scale=x.scale)
        for x, interval in zip(_metrics(settings), intervals, strict=True)
    )
    trends: tuple[jm.Trend, ...] = ()
    if column.times is not None:
        with jax.enable_x64(True):
            found = [jm.trend(x, times=column.times) for x in compared]
        trends = tuple(jax.tree.map(np.asarray, found))
    return Slices(
        column.name,
        column.values,
        n_items,
        n_positive,
        measures,
        tuple(compared),
        trends,
        column.unit,
        clustered,
    )


def notes_of(slices: Slices, n_models: int) -> Iterator[str]:
    """Why slices have no metrics, or models or times are not compared by some of these."""
    column, few = visible(slices.column), slices.too_few
    if not slices.defined:
        yield f"slices by {column} have no metrics, because each has items of one class alone"
        return
    tested = {x.name for x, _ in slices.tested}
    names = [x.called for x in slices.measures if x.name not in tested]
    if n_models > 1 and names:
        yield (
            f"models are not compared by {enumerated(names)} within slices by {column}: each slice "
            f"has {few}, or the models rank its items alike"
        )
    trending = {x.name for x, *_ in slices.trending}
    names = [x.called for x in slices.measures[: len(slices.trends)] if x.name not in trending]
    if names:
        yield (
            f"there is no trend of {enumerated(names)} over {column}: fewer than two "
            f"{slices.unit}s can be tested, as others have {few}"
        )


def _metrics(settings: Settings) -> list[Metric]:
    """The metrics whose intervals are closed forms."""
    metrics = classification_metrics(settings.max_fpr)
    return [x for x in metrics if x.name in ("roc_auc", "partial_auc")]
