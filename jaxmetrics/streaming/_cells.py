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
from jaxmetrics._base.sorting import descending_keys, largest_key, scores_of_keys
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
    return (cells.positives > 0) & (cells.negatives > 0)


def order_matters_to_precision(cells: Cells, limits: Limits) -> HostArray:
    """Cells of several items that have positives, unless no negative is in or above the cell.

    Cells of positives alone count too: each positive has its own precision.
    """
    (_, high), _ = cells.rates()
    return (cells.positives > 0) & (high > 0) & (cells.counts > 1)


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
    return (low <= limit + slack) & (high >= limit - slack)


class Cells:
    """Intervals of sort keys, and the items in each; keys ascend as scores fall.

    There are at most about 2^17, plus two for each cell that does not fit in memory, unless the
    metric needs rows.

    Attributes:
      starts: `[cells]`, the first key of each cell.
      like: an empty array with the dtype of the scores.
      positives, negatives, counts: `[cells]`, the weight of each class, and the number of items.
      settled: `[cells]`, whether the cell needs no further pass.
      has_rows: `[cells]`, whether the rows of the cell are in `rows`.
      found: `[cells]`, of a cell without rows that was sorted or joined, the mean weight of the
        positives above a negative within the cell, or the sum of weight times precision of its
        positives; NaN of other cells.
      rows: the rows of some cells, of each pass that sorted such.
      n_nan: number of items without a score.
    """

    def __init__(self, starts: HostArray, like: HostArray) -> None:
        self.starts, self.like = starts, like
        self.positives = self.negatives = np.zeros(len(starts))
        self.counts = np.zeros(len(starts), np.int64)
        self.settled = _widths(starts) == 1  # the items of a cell of one key tie
        self.has_rows = np.zeros(len(starts), bool)
        self.found = np.full(len(starts), np.nan)
        self.rows: list[Rows] = []
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
        return np.searchsorted(self.starts, keys, side="right") - 1

    def divide(self, which: HostArray) -> None:
        """Divide some cells into about 2^16 smaller ones, which must be counted again.

        A cell is divided by its share of the items, into two parts at least.
        """
        which = np.flatnonzero(which)[: 1 << (_BITS - 1)]
        widths, parts = _widths(self.starts), np.ones(len(self.starts), np.uint64)
        share = self.counts[which] / self.counts[which].sum()
        parts[which] = np.minimum(np.maximum(share * (1 << _BITS), 2), widths[which])
        times = parts.astype(np.int64)
        part = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
        # Below 2^64, as only cells of at most 2^48 keys are divided.
        beyond = part.astype(np.uint64) * np.repeat(widths, times) // np.repeat(parts, times)
        self.starts = np.repeat(self.starts, times) + beyond.astype(self.starts.dtype)
        self.settled = np.repeat(self.settled, times) | (_widths(self.starts) == 1)
        self.has_rows, self.found = (np.repeat(x, times) for x in (self.has_rows, self.found))

    def join(self, matter: HostArray, keep: Keep, limits: Limits) -> HostArray:
        """Join neighbours whose items need no order, except at a limit; `matter` of the new cells.

        At a limit, join those of the same class, whose part of the ROC curve is one line. Where the
        metric needs rows, join only cells without items.
        """
        free, line = self.counts == 0, np.zeros((2, len(matter)), bool)
        if keep is not Keep.ROWS:
            free |= ~matter & ~self.has_rows & ~self._at(limits)
        if keep is Keep.AREA:
            line = np.stack([self.positives == 0, self.negatives == 0])
        kind = np.select([free, *line], [0, 1, 2], -1)
        begins = np.append(True, (kind[1:] != kind[:-1]) | (kind[1:] < 0))
        first, group = np.flatnonzero(begins), np.cumsum(begins) - 1
        several = np.bincount(group) > 1
        found, before = self.values(keep), _before(self.positives, group)
        settled, negatives, alone = self.settled[first], self.negatives, self.found[first]
        self.starts, self.has_rows = self.starts[first], self.has_rows[first]
        self.counts, self.positives, self.negatives = (
            np.add.reduceat(x, first) for x in (self.counts, self.positives, self.negatives)
        )
        if keep is Keep.AREA:
            share = _ratio(negatives, self.negatives[group])
            found = share * (before + found)
        self.found = np.where(several, np.add.reduceat(found, first), alone)
        self.settled = settled | several
        return matter[first]

    def rates(self) -> tuple[tuple[HostArray, HostArray], tuple[HostArray, HostArray]]:
        """FPR and TPR before and after each cell; 0 where a class is absent."""

        def of_class(weights: HostArray) -> tuple[HostArray, HostArray]:
            after = np.cumsum(weights)
            total = after[-1] or 1.0
            return (after - weights) / total, after / total

        return of_class(self.negatives), of_class(self.positives)

    def _at(self, limits: Limits) -> HostArray:
        """Which cells contain a limit."""
        (low, high), (fall, rise) = self.rates()
        at = np.zeros(len(self.starts), bool)
        for limit in limits.fpr:
            at |= _within(low, limit, high)
        for limit in limits.tpr:
            at |= _within(fall, limit, rise)
        return at

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
        items = [np.concatenate(x) for x in zip(*parts, strict=True)]
        check_same(int(self.counts[chosen].sum()), len(items[0]))
        keys, positives, negatives = _rows(*items)
        cell = self._cell(keys)
        tps, fps = (_before(x, cell) + x for x in (positives, negatives))
        if keep is Keep.PRECISION:
            tps, fps = tps + _above(self.positives)[cell], fps + _above(self.negatives)[cell]
            found = positives * (tps / (tps + fps))
        else:
            share = _ratio(negatives, self.negatives[cell])
            found = share * (tps - positives / 2)
        with_rows = wanted & (keep is Keep.ROWS or (keep is Keep.AREA and self._at(limits)))
        sums = np.bincount(cell, found, minlength=len(wanted))
        self.found = np.where(wanted & ~with_rows, sums, self.found)
        if with_rows.any():
            inside = with_rows[cell]
            self.rows.append((keys[inside], positives[inside], negatives[inside]))
        self.has_rows |= with_rows
        self.settled |= wanted

    def values(self, keep: Keep) -> HostArray:
        """`found` of each cell, whose items tie if it was not sorted."""
        if keep is Keep.PRECISION:
            tps, fps = np.cumsum(self.positives), np.cumsum(self.negatives)
            tied = self.positives * _ratio(tps, tps + fps)
        else:
            tied = self.positives / 2
        return np.where(np.isnan(self.found), tied, self.found)

    def table(self) -> ScoreTable:
        """The score table of all rows; a cell without rows is one row, or two of its area."""
        some = (self.counts > 0) & ~self.has_rows
        alone = self.starts[some], self.positives[some], self.negatives[some]
        parts = [*self.rows, *_of_area(*alone, self.found[some])]
        keys, positives, negatives = (np.concatenate(x) for x in zip(*parts, strict=True))
        order = np.argsort(keys, kind="stable")
        keys, positives, negatives = keys[order], positives[order], negatives[order]
        if numerics.is_inexact(self.like):  # a cell may start at keys of NaN, just before +inf's
            keys = np.maximum(keys, descending_keys(np.array([np.inf], self.like.dtype)))
        # Padded to a power of two, as a metric is compiled for each length.
        fill = 0, numerics.next_power_of_two(len(keys)) - len(keys)
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


def _widths(starts: HostArray) -> HostArray:
    """The number of keys of each cell; 0 for 2^64."""
    ends = np.append(starts[1:] - starts.dtype.type(1), largest_key(starts))
    return (ends - starts).astype(np.uint64) + np.uint64(1)


def _ratio(part: HostArray, whole: HostArray) -> HostArray:
    """`part / whole`, or 0 where the whole is 0."""
    return np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)


def _above(weights: HostArray) -> HostArray:
    """The sum of the weights before each; no difference, which would round small ones away."""
    return np.append(0.0, np.cumsum(weights)[:-1])


def _before(weights: HostArray, group: HostArray) -> HostArray:
    """The sum of the weights before each, within its group; groups ascend."""
    before = _above(weights)
    return before - before[np.searchsorted(group, group)]


def _of_area(
    keys: HostArray, rise: HostArray, width: HostArray, height: HostArray
) -> tuple[Rows, Rows]:
    """A first and a last row of each cell, with its totals and its mean height of the ROC curve.

    The curve bends above the diagonal, or below it. A NaN height makes one row.
    """
    share = _ratio(2 * height, rise)
    above, below = 2 * (rise - height), width * share  # what ties with the whole other class
    last = np.where(share < 1, np.stack([rise, below]), np.stack([above, width]))
    last = np.where(np.isnan(height), 0.0, np.clip(last, 0.0, [rise, width]))
    rows = [(keys, *x) for x in (np.stack([rise, width]) - last, last)]
    first, second = (tuple(x[p + n > 0] for x in (k, p, n)) for k, p, n in rows)
    return first, second
