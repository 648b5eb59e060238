"""The exact value for data that are read again and again: cells first, then the items that matter.

The first pass counts items in cells of like scores. A metric depends on the order within few of
them, or on that within many but only by an area or a sum each; so in further passes the items of
as many cells as fit the memory are sorted, and each cell is then put down to what the metric needs
of it. A cell of more items than fit is first divided. On the host, as it is for data on disk.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.host import is_concrete
from jaxmetrics._base.types import Array
from jaxmetrics._roc.metric import MetricLike, Options, choose
from jaxmetrics._roc.table import evaluate
from jaxmetrics.streaming._cells import Batches, Cells, Keep, Limits, check_same
from jaxmetrics.streaming._metrics import streamed


def exact(
    metric: MetricLike,
    batches: Batches,
    *,
    memory_items: int = 1 << 24,
    ignore_nan: bool = False,
) -> Array:
    """The metric of data that are read in batches, several times, exactly.

    It is what the metric gives for all batches at once. Pass 1 counts the items of each class by
    the first 16 bits of their scores. Then only the items of the cells that matter are sorted: for
    areas and average precision those that hold both classes, for thresholds those in which they
    lie.

    Args:
      metric: as for `bounds`, with one value.
      batches: a function that returns the batches from the first on, each `(scores, labels)` or
        `(scores, labels, weights)` of `[n]`; it is called once a pass,
        and once to see the dtype of the first.
      memory_items: how many items may be in memory besides a batch; fewer make more passes.
      ignore_nan: leave items without a score out, instead of a value that is NaN.

    Returns:
      `[]`, in JAX's default float.

    Raises:
      TypeError, ValueError: a batch is not what it should be, batches differ from one pass to the
        next, or the metric is none of those.

    NaN where the metric is undefined, or an item had no score. Time O(passes n log(cells)), with
    about 1 + (items of cells that matter) / memory_items passes.

    Example:
      >>> import jaxmetrics as jm
      >>> def batches():
      ...     yield [.1, .4], [0, 0]
      ...     yield [.35, .8], [1, 1]
      >>> print(jm.streaming.exact(jm.roc_auc, batches))
      0.75

    Reference: J. I. Munro and M. S. Paterson, "Selection and sorting with limited storage",
    Theoretical Computer Science 12, 1980.
    """
    chosen, arrays = choose(metric)
    known = streamed(chosen, arrays)
    checks.check_count("memory_items", memory_items)
    checks.check_flag("ignore_nan", ignore_nan)
    limits = _limits(arrays)
    cells = Cells.initial(batches)
    cells.count(batches)
    n_items, n_nan = cells.counts.sum(), cells.n_nan
    if (n_nan and not ignore_nan) or not n_items:
        return jnp.full((), jnp.nan, numerics.default_float())
    while True:
        matter = known.matters(cells, limits) & ~cells.settled
        if not matter.any():
            break
        if (cells.counts[matter] > memory_items).any():
            cells.divide(matter & (cells.counts > memory_items))
            cells.count(batches)
            check_same(n_items, cells.counts.sum())
        else:
            which = np.flatnonzero(matter)
            which = which[np.cumsum(cells.counts[which]) <= memory_items]
            cells.settle(batches, which, known.keep, limits)
    if known.keep is Keep.PRECISION:
        sums = np.sum(cells.precisions())
        total = np.sum(cells.positives)
        value = sums / total if total else 0.0
        return jnp.asarray(value, numerics.default_float())
    found: Array = evaluate(chosen.metric.function, cells.table(), chosen.options(arrays))
    return found


def _limits(arrays: Options) -> Limits:
    """The rates among the options of a metric, which must be known."""
    for name, value in arrays.items():
        if not is_concrete(value):
            raise TypeError(f"{name} must be known: data are read from outside of programs")
        if np.ndim(value):
            raise ValueError(f"{name} must be one number: take one limit at a time")
    known = {k: float(v) for k, v in arrays.items()}
    fpr = [known[k] for k in ("min_fpr", "max_fpr") if k in known]
    tpr = [known[k] for k in ("min_tpr",) if k in known]
    return Limits(tuple(fpr), tuple(tpr))
