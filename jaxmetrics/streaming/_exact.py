"""The exact value for data that are read several times: counts first, then the items that matter.

The first pass counts the items in cells of similar scores. The order of the items changes a metric
in few cells, or in many, but then the metric needs only an area or a sum of each. So each further
pass sorts the items of as many cells as fit in memory, and keeps of each cell what the metric
needs. A cell with more items than fit is divided, when all others are sorted and joined. All of it
runs on the host, for data on disk.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.host import is_concrete
from jaxmetrics._base.keywords import takes_metric
from jaxmetrics._base.types import Array
from jaxmetrics._roc.record import MetricLike, Options, choose
from jaxmetrics.streaming._cells import Batches, Cells, Keep, Limits, check_same, from_the_start
from jaxmetrics.streaming._metrics import streamed


@takes_metric
def exact(
    metric: MetricLike,
    batches: Batches,
    *,
    memory_items: int = 1 << 24,
    ignore_nan: bool = False,
) -> Array:
    """The exact metric of data that are read in batches, several times.

    The result is the metric of all batches at once. Pass 1 counts the items of each class in cells
    by the first 16 bits of their scores. Further passes sort the items of the cells that matter:
    for most metrics the cells with both classes, for average precision also those of positives
    alone, for `recall_at_fpr` and `threshold_at_fpr` only the few cells at the limit.

    Args:
      metric: as for `bounds`, with one value.
      batches: a function that returns all batches, each `(scores, labels)` or
        `(scores, labels, weights)` with arrays `[n]`. It is called once a pass, and once more to
        see the dtype of the first batch; each time it must return the batches from the start.
      memory_items: number of items that may be in memory besides a batch; fewer make more passes.
        Metrics that search all thresholds, such as `precision_at_recall`, also keep a row for each
        distinct score of the cells that matter.
      ignore_nan: leave out items without a score; by default they make the value NaN.

    Returns:
      `[]`, in JAX's default float.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; batches is not a function, or
        returns an iterator that it has returned before; a batch is not a tuple, scores change their
        dtype, batches differ between passes, or bounds of the metric are not known.

    NaN where the metric is undefined, or an item has no score. Time O(passes n log(cells)), with
    about 1 + (items of cells that matter) / memory_items passes, and two more for each time that
    cells are divided. Memory O(memory_items + cells), with at most about 2^17 cells at once.

    Example:
      >>> import jaxmetrics as jm
      >>> def batches():
      ...     yield [0.1, 0.4], [0, 0]
      ...     yield [0.35, 0.8], [1, 1]
      >>> print(jm.streaming.exact(jm.roc_auc, batches))
      0.75

    Reference: J. I. Munro and M. S. Paterson, "Selection and sorting with limited storage",
    Theoretical Computer Science 12, 1980.
    """
    chosen, arrays = choose(metric)
    known = streamed(chosen, arrays)
    chosen.refuse_tree(arrays, 1)  # refuses thresholds: an unsorted cell's is no item's score
    checks.check_count("memory_items", memory_items)
    checks.check_flag("ignore_nan", ignore_nan)
    limits, batches = _limits(chosen.options(arrays)), from_the_start(batches)
    cells = Cells.initial(batches)
    cells.count(batches)
    n_items, n_nan = cells.counts.sum(), cells.n_nan
    if (n_nan and not ignore_nan) or not n_items:
        return jnp.full((), jnp.nan, numerics.default_float())
    while True:
        matter = known.matters(cells, limits) & ~cells.settled
        matter = cells.join(matter, known.keep, limits)
        fit = np.flatnonzero(matter & (cells.counts <= memory_items))
        if len(fit):
            fit = fit[np.cumsum(cells.counts[fit]) <= memory_items]
            cells.settle(batches, fit, known.keep, limits)
        elif matter.any():  # only now, so that no more cells are open than one division makes
            cells.divide(matter)
            cells.count(batches)
            check_same(n_items, cells.counts.sum())
        else:
            break
    if known.keep is Keep.PRECISION:
        sums = np.sum(cells.values(known.keep))
        total = np.sum(cells.positives)
        value = sums / total if total else 0.0
        return jnp.asarray(value, numerics.default_float())
    return chosen.evaluated(cells.table(), arrays)


def _limits(options: Options) -> Limits:
    """The limits among the options of a metric; refuses those that are traced or several."""
    for name, value in options.items():
        if not is_concrete(value):
            raise TypeError(f"{name} must not be traced: exact reads the data outside of jit")
        if np.ndim(value):
            raise ValueError(
                f"{name} must be one number, got shape {np.shape(value)}: take one limit at a time"
            )
    fpr = [float(options[k]) for k in ("min_fpr", "max_fpr") if k in options]
    tpr = [float(options[k]) for k in ("min_tpr",) if k in options]
    return Limits(tuple(fpr), tuple(tpr))
