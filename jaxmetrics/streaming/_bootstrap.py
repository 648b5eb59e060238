"""The bootstrap of a state: the items of each class are resampled over its bins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base.double import double_program
from jaxmetrics._base.host import in_threads, is_concrete, of_all_processes
from jaxmetrics._base.keywords import takes_metric
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.numerics import next_power_of_two
from jaxmetrics._base.types import Array, HostArray
from jaxmetrics._roc.record import Chosen, MetricLike, Options
from jaxmetrics.inference._bootstrap.bootstrap import result_of
from jaxmetrics.inference._bootstrap.random import words_of
from jaxmetrics.inference._bootstrap.request import Request
from jaxmetrics.inference._bootstrap.result import BootstrapResult
from jaxmetrics.inference._bootstrap.run import Replicates
from jaxmetrics.streaming._bins import Bins
from jaxmetrics.streaming._ends import Counted
from jaxmetrics.streaming._items import (
    ScoresOf,
    are_few,
    request_of,
    resample_counted,
    scores_that_tie,
)
from jaxmetrics.streaming._question import Held, Question, question
from jaxmetrics.streaming._state import State, refuse_weights
from jaxmetrics.streaming._tables import descending, tied, undefined_of

_AT_ONCE = 1 << 20  # bins times resamples in one call, which bounds the memory
# Computes one value or several from the bins of one state.
OfBins: TypeAlias = Callable[[Chosen, Options, Counted], Any]


@takes_metric
@on_any_mesh
def bootstrap(
    metric: MetricLike,
    state: State,
    *,
    bins: Bins,
    key: Array,
    n_resamples: int = 2000,
    ignore_nan: bool = False,
) -> BootstrapResult:
    """The bootstrap of a metric from a state; its cost does not depend on the stream's length.

    theta*_b = metric of a table whose bins count c_b, with c_b multinomial within each class. The
    counts have this distribution when the items themselves are resampled with replacement. Items
    of one bin tie, as in `table`; `interval` also covers the error of the binning.

    Args:
      metric: any metric of a score table, a functools.partial of one, or a function of a
        ScoreTable; it may return several values.
      state: from `update` or `merge`, without weights.
      bins: the bins given to `init`.
      key: a JAX random key. The same key gives the same result.
      n_resamples: number of resamples, at least 1.
      ignore_nan: leave out items without a score; by default they make all replicates NaN.

    Returns:
      A BootstrapResult, whose replicates are `[n_resamples, ...]`. The states of a batch are
      resampled independently: a state does not record which items two models share.

    Raises:
      TypeError: state is not a State, has weights or is traced, or key is not a JAX key.
      ValueError: the state has other bins, its sums have overflowed, or n_resamples is below 1.

    NaN where the metric is undefined, or an item has no score. With few items, at most 4,194,304,
    the items themselves are resampled, in the time of `jaxmetrics.bootstrap`. Otherwise the time is
    O(n_resamples bins), about 60 ns of a processor for each resample of each bin that is not empty.
    Memory O(n_resamples + bins), plus the items where they are few.

    Example:
      >>> import jax
      >>> import jax.numpy as jnp
      >>> import jaxmetrics as jm
      >>> bins, scores = jm.streaming.float16_bins(), jnp.arange(100) / 100
      >>> state = jm.streaming.init(bins)
      >>> state = jm.streaming.update(state, scores, jnp.sin(900 * scores) > 0.7, bins=bins)
      >>> result = jm.streaming.bootstrap(jm.roc_auc, state, bins=bins, key=jax.random.key(0))
      >>> print(result.replicates.shape)
      (2000,)

    Reference: that of `jaxmetrics.bootstrap`.
    """
    asked = question(metric, state, bins, ignore_nan)
    refuse_weights(state)
    request = Request(key, n_resamples)
    return result_of(resample_bins(metric, _tied_value, scores_that_tie, asked, request))


def _tied_value(chosen: Chosen, arrays: Options, bins: Counted) -> Any:
    return chosen.value(tied(bins.positives, bins.negatives, bins.lowest, bins.undefined), arrays)


def resample_bins(
    metric: MetricLike,
    of_bins: OfBins,
    scores_of: ScoresOf | None,
    asked: Question,
    request: Request,
) -> Replicates:
    """`of_bins` of the state's counts, then of each resample of them; `[1 + n_resamples, ...]`.

    Where the items are few, the items themselves are resampled: `scores_of` gives them scores for
    which `metric` has the values of `of_bins`.
    """
    request.check()
    if not (is_concrete(asked.held.digits) and is_concrete(request.key)):
        raise TypeError(
            "a state is resampled outside of jit, got a traced state or key: return the state first"
        )
    *counts, undefined = map(np.asarray, of_all_processes(_columns(asked.held, asked.ignore_nan)))
    batch, n = undefined.shape, counts[0].shape[-1]
    counts = [x.reshape(-1, n) for x in counts]
    ends: Any = asked.held.levels
    lost: Any = np.zeros(2)

    def of_state(number: int) -> Any:
        positives, negatives, bad = (x[number] for x in (*counts, undefined.ravel()))
        bins = Counted(positives, negatives, ends[0], ends[1], bad, lost)
        own = request_of(request, number)
        if scores_of is not None and are_few(metric, bins):
            return resample_counted(metric, bins, scores_of, own)
        return _resample_tables(of_bins, asked, bins, own)

    found = list(map(of_state, range(undefined.size)))
    values = jax.tree.map(lambda *x: np.stack(x, axis=1), *found)
    values = jax.tree.map(lambda x: x.reshape(len(x), *batch, *x.shape[2:]), values)
    defined = ~undefined & np.all([np.any(x > 0, axis=-1).reshape(batch) for x in counts], axis=0)
    return Replicates(values, np.broadcast_to(defined, (request.n_resamples + 1, *batch)))


def _resample_tables(of_bins: OfBins, asked: Question, bins: Counted, request: Request) -> Any:
    """`of_bins` of the counts and of each resample; threads compute parts of the resamples."""
    classes: list[Any] = [bins.positives, bins.negatives]
    rows, wanted = _rows_of(classes[0] + classes[1] > 0), request.n_resamples + 1
    drawn_from = [x[rows] for x in classes]
    ends = bins.lowest[rows], bins.highest[rows]
    at_once = min(max(_AT_ONCE // len(rows), 1), wanted)
    starts = range(0, wanted, at_once)
    seeds = np.random.SeedSequence(np.asarray(words_of(request.key)).tolist()).spawn(len(starts))

    def part(first: int, seed: np.random.SeedSequence) -> Any:
        generator, size = np.random.default_rng(seed), min(at_once, wanted - first)
        # Padded to one length: the metric is compiled once.
        drawn = [_drawn(generator, x, size, first == 0, at_once) for x in drawn_from]
        values = _values(tuple(drawn), ends, bins.undefined, asked.arrays, of_bins, asked.chosen)
        return jax.tree.map(lambda x: np.asarray(x)[:size], values)

    begun = part(0, seeds[0])  # alone, so that only one thread compiles
    rest = in_threads(part, starts[1:], seeds[1:])
    return jax.tree.map(lambda *x: np.concatenate(x), begun, *rest)


@double_program("ignore_nan")
def _columns(held: Held, ignore_nan: bool) -> tuple[Array, Array, Array]:
    undefined = undefined_of(held.digits, held.fingerprint, ignore_nan)
    return *descending(held.digits), undefined


def _rows_of(there: HostArray) -> HostArray:
    """The non-empty bins, and empty ones up to a power of two, so that few sizes are compiled."""
    n = min(next_power_of_two(there.sum()), len(there))
    return np.sort(np.argsort(~there, kind="stable")[:n])


def _drawn(
    generator: np.random.Generator, counts: HostArray, size: int, as_is: bool, n: int
) -> HostArray:
    """`[n, bins]`: `size` resamples, then zeros; with `as_is` the first one is the counts."""
    drawn, there = np.zeros((n, len(counts))), counts > 0
    if there.any():  # NumPy gives the remainder of rounding to the last bin: no empty one
        shares = counts[there] / counts.sum()
        drawn[as_is:size, there] = generator.multinomial(int(counts.sum()), shares, size - as_is)
    if as_is:
        drawn[0] = counts
    return drawn


@double_program("of_bins", "chosen")
def _values(
    drawn: tuple[Array, Array],
    levels: tuple[Array, Array],
    undefined: Array,
    arrays: Options,
    of_bins: OfBins,
    chosen: Chosen,
) -> Any:
    """The values of resamples `[n, bins]`; one resample at a time fits the processor's cache."""

    def of_one(counts: tuple[Array, Array]) -> Any:
        values = of_bins(chosen, arrays, Counted(*counts, *levels, undefined, jnp.zeros(2)))
        return jax.tree.map(
            lambda x: jnp.where(undefined, jnp.nan, jnp.asarray(x, jnp.float64)), values
        )

    return jax.lax.map(of_one, drawn)
