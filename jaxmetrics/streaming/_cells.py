"""Cells of similar scores: what they hold, and which of them must be sorted for a metric."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.double import double_precision
from jaxmetrics._base.host import of_all_processes
from jaxmetrics._base.sorting import descending_keys, scores_of_keys
from jaxmetrics._base.types import HostArray
from jaxmetrics._roc.table import ScoreTable

_BITS = 16  # bits of a key that one pass resolves
Batches: TypeAlias = Callable[[], Iterable[tuple[Any, ...]]]
Rows: TypeAlias = tuple[HostArray, HostArray, HostArray]


class Keep(enum.Enum):
    """What a metric needs of a sorted cell: its rows, their area or their precisions."""

    ROWS = enum.auto()
    AREA = enum.auto()
    PRECISION = enum.auto()


class Limits(NamedTuple):
    """The limits of FPR and of TPR among the options of a metric."""

    fpr: tuple[float, ...]
    tpr: tuple[float, ...]


# Each of these returns `[cells]` bool: the cells in which the order of the items changes a metric.


def order_matters(cells: Cells, limits: Limits) -> HostArray:
    """Cells with items of both classes."""
    both: HostArray = (cells.positives > 0) & (cells.negatives > 0)
    return both


def order_matters_to_precision(cells: Cells, limits: Limits) -> HostArray:
    """Cells of several items that have positives, unless no negative is in or above the cell.

    Cells of positives alone count too: each positive has its own precision.
    """
    (_, high), _ = cells.rates()
    some: HostArray = (cells.positives > 0) & (high > 0) & (cells.counts > 1)
    return some


def order_matters_in_window(cells: Cells, limits: Limits) -> HostArray:
    """Cells with both classes that overlap the window of a partial area."""
    (low, high), (_, rise) = cells.rates()
    start, end = limits.fpr
    return order_matters(cells, limits) & (high > start) & (low < end) & (rise > limits.tpr[0])


def order_matters_at_limit(cells: Cells, limits: Limits) -> HostArray:
    """Cells with both classes that contain the limit of the false positive rate."""
    (low, high), _ = cells.rates()
    return order_matters(cells, limits) & _within(low, limits.fpr[0], high)


def order_matters_to_threshold(cells: Cells, limits: Limits) -> HostArray:
    """Cells that contain the limit, and the last two with positives up to it.

    The threshold is in one of them.
    """
    (low, high), _ = cells.rates()
    at = _within(low, limits.fpr[0], high)
    above = np.flatnonzero((cells.positives > 0) & (low <= limits.fpr[0]))[-2:]
    at[above] = True
    return at & (cells.counts > 0)


def _within(low: HostArray, limit: float, high: HostArray) -> HostArray:
    slack = 1e-9  # wider than the tolerance of the metric: a cell too many does no harm
    inside: HostArray = (low <= limit + slack) & (high >= limit - slack)
    return inside


class Cells:
    """Intervals of sort keys, and the items in each; keys ascend as scores fall.

    Attributes:
      starts: `[cells]`, the first key of each cell.
      like: an empty array with the dtype of the scores.
      positives, negatives, counts: `[cells]`, the weight of each class, and the number of items.
      settled: `[cells]`, whether the cell needs no further pass.
      rows: of each sorted cell, by its first key: the keys, positives and negatives of its rows.
      sums: of each sorted cell, by its first key: its sum of weight times precision.
      n_nan: number of items without a score.
    """

    def __init__(self, starts: HostArray, like: HostArray) -> None:
        self.starts, self.like = starts, like
        self.positives = self.negatives = np.zeros(len(starts))
        self.counts = np.zeros(len(starts), np.int64)
        self.settled = np.zeros(len(starts), bool)
        self.rows: dict[int, tuple[HostArray, HostArray, HostArray]] = {}
        self.sums: dict[int, float] = {}
        self.n_nan = 0

    @classmethod
    def initial(cls, batches: Batches) -> Cells:
        """Cells by the first 16 bits of the keys, for scores with the dtype of the first batch."""
        like = next((scores for scores, *_ in _items(batches, None)), np.zeros(0, np.float32))
        word = descending_keys(like[:0]).dtype
        shift = word.type(8 * word.itemsize - _BITS)
        return cls(np.arange(1 << _BITS, dtype=word) << shift, like[:0])

    def count(self, batches: Batches) -> None:
        """Count all items, in one pass."""
        n = len(self.starts)
        totals, self.counts, self.n_nan = np.zeros((2, n)), np.zeros(n, np.int64), 0
        for scores, labels, weights, n_nan in _items(batches, self.like):
            cell = self._cell(descending_keys(scores))
            self.n_nan += n_nan
            self.counts += np.bincount(cell, minlength=n)
            totals += np.bincount(cell + n * labels, weights, minlength=2 * n).reshape(2, n)
        self.negatives, self.positives = totals

    def _cell(self, keys: HostArray) -> HostArray:
        found: HostArray = np.searchsorted(self.starts, keys, side="right") - 1
        return found

    def divide(self, which: HostArray) -> None:
        """Divide some cells into smaller ones, which must be counted again."""
        ends = np.append(self.starts[1:] - self.starts.dtype.type(1), ~self.starts.dtype.type(0))
        parts, settled = [], []
        for start, end, done, divided in zip(self.starts, ends, self.settled, which, strict=True):
            width = int(end) - int(start) + 1
            n = min(width, 1 << _BITS) if divided else 1
            first = [int(start) + i * width // n for i in range(n)]
            parts.append(np.array(first, self.starts.dtype))
            # All items of a cell of one key tie: it need not be sorted.
            settled.append(np.full(n, done or (divided and n == width)))
        self.starts, self.settled = np.concatenate(parts), np.concatenate(settled)

    def rates(self) -> tuple[tuple[HostArray, HostArray], tuple[HostArray, HostArray]]:
        """FPR and TPR before and after each cell; 0 where a class is absent."""

        def of_class(weights: HostArray) -> tuple[HostArray, HostArray]:
            after = np.cumsum(weights)
            total = after[-1] or 1.0
            return (after - weights) / total, after / total

        return of_class(self.negatives), of_class(self.positives)

    def settle(self, batches: Batches, chosen: HostArray, keep: Keep, limits: Limits) -> None:
        """Sort the items of some cells, read in one pass, and keep what the metric needs."""
        wanted = np.zeros(len(self.starts), bool)
        wanted[chosen] = True
        parts = []
        for scores, labels, weights, _ in _items(batches, self.like):
            keys = descending_keys(scores)
            inside = wanted[self._cell(keys)]
            weight = np.ones(len(keys)) if weights is None else weights
            parts.append((keys[inside], labels[inside], weight[inside]))
        keys, labels, weights = (np.concatenate(x) for x in zip(*parts, strict=True))
        check_same(int(self.counts[chosen].sum()), len(keys))
        order = np.argsort(keys, kind="stable")
        keys, labels, weights = keys[order], labels[order], weights[order]
        edges = np.searchsorted(self._cell(keys), [chosen, chosen + 1])
        above = [np.cumsum(x) - x for x in (self.positives, self.negatives)]
        (low, high), (fall, rise) = self.rates()
        cut = np.zeros(len(self.starts), bool)
        for limit in limits.fpr:
            cut |= _within(low, limit, high)
        for limit in limits.tpr:
            cut |= _within(fall, limit, rise)
        for cell, start, end in zip(chosen, *edges, strict=True):
            rows = _rows(keys[start:end], labels[start:end], weights[start:end])
            first = int(self.starts[cell])
            if keep is Keep.PRECISION:
                self.sums[first] = _precisions(rows, above[0][cell], above[1][cell])
            elif keep is Keep.AREA and not cut[cell]:
                self.rows[first] = _of_area(rows)
            else:
                self.rows[first] = rows
        self.settled |= wanted

    def precisions(self) -> HostArray:
        """Sum over the positives of each cell of weight times precision."""
        tps, fps = np.cumsum(self.positives), np.cumsum(self.negatives)
        some = self.positives > 0
        whole = np.divide(self.positives * tps, tps + fps, out=np.zeros(len(tps)), where=some)
        for i in np.flatnonzero(some):
            whole[i] = self.sums.get(int(self.starts[i]), whole[i])
        return whole

    def table(self) -> ScoreTable:
        """The score table of all rows; a cell that was not sorted is one row."""
        parts = []
        for i in np.flatnonzero(self.counts):
            alone = self.starts[i : i + 1], self.positives[i : i + 1], self.negatives[i : i + 1]
            parts.append(self.rows.get(int(self.starts[i]), alone))
        keys, positives, negatives = (np.concatenate(x) for x in zip(*parts, strict=True))
        if numerics.is_inexact(self.like):  # a cell may start at keys of NaN, just before +inf's
            keys = np.maximum(keys, descending_keys(np.array([np.inf], self.like.dtype)))
        # Padded to a power of two, as a metric is compiled for each length.
        fill = 0, (1 << (len(keys) - 1).bit_length()) - len(keys)
        keys = np.pad(keys, fill, mode="edge")
        positives, negatives = np.pad(positives, fill), np.pad(negatives, fill)
        with double_precision():
            thresholds = np.asarray(scores_of_keys(jnp.asarray(keys), self.like))
        return ScoreTable(thresholds, positives, negatives)  # type: ignore[arg-type]


def from_the_start(batches: Batches) -> Batches:
    """`batches` with checks: refuses what is not a function, and an iterator returned twice."""
    if not callable(batches):
        once = ", which can be read once" if isinstance(batches, Iterator) else ""
        raise TypeError(
            "batches must be a function that returns all batches each time, got "
            f"{type(batches).__name__}{once}: write def batches(): yield scores, labels; of a list "
            "lambda: batches"
        )
    before: list[Any] = []

    def checked() -> Iterable[tuple[Any, ...]]:
        found = batches()
        if any(found is x for x in before):
            raise ValueError(
                "batches() must return all batches each time, got the same "
                f"{type(found).__name__} twice, which can be read once: open the data in batches()"
            )
        if isinstance(found, Iterator):
            before[:] = [found]
        return found

    return checked


def check_same(before: int, after: int) -> None:
    """Refuse batches that differ between passes."""
    if before != after:
        raise ValueError(
            f"batches() must return the same items each time, got {before} items, then {after}"
        )


def _items(
    batches: Batches, like: HostArray | None
) -> Iterator[tuple[HostArray, HostArray, HostArray | None, int]]:
    """Scores, labels and weights of each batch on the host, and its number of NaN scores.

    NaN scores and weights of 0 are left out.
    """
    for batch in batches():
        if not isinstance(batch, tuple) or len(batch) not in (2, 3):
            raise TypeError(
                "a batch must be (scores, labels) or (scores, labels, weights), got "
                f"{type(batch).__name__}: write yield scores, labels"
            )
        items = of_all_processes(checks.check_items(*batch))
        scores, labels = np.asarray(items.scores), np.asarray(items.labels) == 1
        if scores.ndim != 1 or labels.ndim != 1:
            raise ValueError(
                f"a batch must be [n], got scores {scores.shape}, labels {labels.shape}"
            )
        if like is not None and scores.dtype != like.dtype:
            raise ValueError(
                f"batches must have scores of one dtype, got {like.dtype}, then {scores.dtype}"
            )
        weights = None if items.weights is None else np.asarray(items.weights, np.float64)
        there = ~numerics.is_nan(scores)
        if weights is not None:
            n_nan = int(np.sum(~there & (weights > 0)))
            there &= weights > 0
            weights = weights[there]
        else:
            n_nan = int(np.sum(~there))
        yield scores[there], labels[there].astype(np.int64), weights, n_nan


def _rows(keys: HostArray, labels: HostArray, weights: HostArray) -> Rows:
    """One row for each distinct key: ties share a row."""
    distinct, row = np.unique(keys, return_inverse=True)
    n = len(distinct)
    negatives, positives = np.bincount(row + n * labels, weights, minlength=2 * n).reshape(2, n)
    return distinct, positives, negatives


def _of_area(rows: Rows) -> Rows:
    """Two rows with the totals of `rows` and the area below their part of the ROC curve."""
    keys, positives, negatives = rows
    rise, width = positives.sum(), negatives.sum()
    area = np.sum(negatives * (np.cumsum(positives) - positives / 2))
    first = np.array([2 * area / width - rise, 0.0])
    if first[0] < 0:  # below the diagonal
        first = np.array([0.0, width - 2 * area / rise])
    first = np.clip(first, 0.0, [rise, width])  # against rounding
    last = np.array([rise, width]) - first
    found = np.stack([first, last], axis=1)
    return keys[[0, -1]], found[0], found[1]


def _precisions(rows: Rows, tps: float, fps: float) -> float:
    """Sum of weight times precision over rows below `tps` true and `fps` false positives."""
    _, positives, negatives = rows
    above = tps + np.cumsum(positives)
    found = positives * above / (above + fps + np.cumsum(negatives))
    return float(np.sum(found[positives > 0]))
