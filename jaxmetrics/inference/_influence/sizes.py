"""How many observations the items of each class count as, under masks, weights and clusters."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.double import double_precision, library_program
from jaxmetrics._base.host import (
    all_concrete,
    as_numpy,
    is_concrete,
    is_divided,
    near_tree,
    on_cpu,
)
from jaxmetrics._base.items import batch_of, class_masks, class_weights, items_at_hand
from jaxmetrics._base.types import Array, Items
from jaxmetrics._base.warned import FewItems, warn
from jaxmetrics._base.words import some_of
from jaxmetrics._roc.record import MetricLike, choose
from jaxmetrics.inference._influence.clusters import Clusters
from jaxmetrics.inference._intervals.effective import clusters_of_one_size, effective_size

FEWEST = 10  # items of a class, or clusters with it, that a comparison needs


class Sizes(NamedTuple):
    """Effective sizes (sum w)^2 / sum w^2, each shaped to broadcast with values of a metric.

    With clusters, the number of clusters of equal size that have the same degrees of freedom. Items
    of weight 0 and masked items do not count.
    """

    negatives: Array
    positives: Array
    all: Array


def sizes_of(items: Items, ids: Clusters | None, ndim: int) -> Sizes:
    """The sizes, with axes to broadcast with values of `ndim` axes, the batch's first."""
    index, n_clusters = (None, 0) if ids is None else ids
    # Only the number of axes of the scores matters: they may be traced, and stay where they are.
    items = items._replace(scores=np.zeros((1,) * items.scores.ndim, np.float32))
    return Sizes(*_sizes(items_at_hand(items), index, n_clusters, ndim))


@library_program("n_clusters", "ndim")
def _sizes(items: Items, ids: Array | None, n_clusters: int, ndim: int) -> tuple[Array, ...]:
    positives, negatives = class_weights(items)
    counted = items.weights is None and items.amounts is None

    def size(weights: Array) -> Array:
        if ids is None and counted:
            found = weights.sum(axis=-1).astype(np.float64)
        elif ids is None:
            found = effective_size(weights)
        else:
            found = clusters_of_one_size(
                numerics.sums_at(ids, weights.astype(np.float64), n_clusters)
            )
        lacking = max(min(items.scores.ndim - 1, ndim) - found.ndim, 0)
        found = found.reshape((1,) * lacking + found.shape)
        return found.reshape(found.shape + (1,) * (ndim - found.ndim))

    return size(negatives), size(positives), size(positives + negatives)


def too_few(items: Items, ids: Clusters | None, fewest: float = FEWEST) -> list[tuple[str, float]]:
    """By name, the sizes of classes, or of clusters with them, below `fewest`; none if traced.

    With so few, the sample may lack items on which a comparison depends.
    """
    return few_among(smallest_sizes(items, ids) or {}, fewest)


def few_among(sizes: dict[str, float], fewest: float = FEWEST) -> list[tuple[str, float]]:
    """By name, the sizes that are above 0 and below `fewest`."""
    return [(what, size) for what, size in sizes.items() if 0 < size < fewest]


def warn_of_few_inside(metric: MetricLike, sizes: dict[str, float], found: str) -> None:
    """Warn that a limit of a rate leaves few items that decide.

    The warning says what simulations with so few items `found`.
    """
    _, arrays = choose(metric)
    option = next((x for x in _LIMITS if x in arrays), None)
    if option is None or not is_concrete(arrays[option]):
        return
    kind, complement = _LIMITS[option]
    what = next((x for x in sizes if x.endswith(kind)), kind)  # clusters with them, too
    limits = np.asarray(arrays[option], float)
    limit = limits.max() if complement else limits.min()
    size = sizes.get(what, 0)
    inside = float(1 - limit if complement else limit) * size
    if size > 0 and not enough_inside(inside):
        some = f"{inside:.3g} {what} are" if f"{inside:.3g}" != "1" else f"1 of the {what} is"
        where = f"{'beyond' if complement else 'within'} {option}={limit:g}"
        only = f"only {some} {where}"
        if what != kind:
            only = f"the {kind} {where} count as only {inside:.3g} clusters of one size"
        few = f"{only}: in simulations with fewer than {FEWEST_INSIDE}"
        warn(FewItems(few, found, f"add {what}", f"{what} {where}"))


def counted_as(size: float, what: str) -> str:
    """The size in words: clusters of unequal sizes count as fewer of one size."""
    if size != round(size) and what.startswith("clusters"):
        return f"{what} that count as {size:.3g} of one size"
    return f"{size:.3g} {what}"


def times_as_heavy(positives: Array, negatives: Array) -> Array:
    """How many times the weight of a positive is that of a negative, both means by weight."""
    light, heavy = (
        numerics.divide(x.sum(axis=-1), effective_size(x), 0.0) for x in (positives, negatives)
    )
    return numerics.divide(heavy, light, 1.0)


def enough_inside(n: Any) -> Any:
    """Whether n items are enough to decide, up to the rounding of a limit to 32 bits."""
    return n > FEWEST_INSIDE * (1 - 1e-6)


FEWEST_INSIDE = 3  # items within the limit of a rate that intervals and comparisons need
OF_INTERVALS = "95 % intervals cover 83 to 100 %, and are wide"
# For each limit, the class that it is a share of, and whether the complement of it decides.
_LIMITS = {
    "max_fpr": ("negatives", False),
    "min_specificity": ("negatives", True),
    "min_sensitivity": ("positives", True),
}


def warn_of_undefined(estimate: Any, kind: str = "", names: Any = None) -> None:
    """Warn where the estimate of a metric is NaN, unless it is traced.

    With a `kind`, the values `[n]` are compared, and the warning has the names or numbers of those
    that are NaN.
    """
    if not is_concrete(estimate):
        return
    lost = np.isnan(as_numpy(estimate))
    if not lost.any():
        return
    of, some, then = "", "", ""
    if lost.all():
        pass
    elif kind:
        which = [str(i if names is None else names[i]) for i in np.flatnonzero(lost)]
        of = f" of {kind}{'s' * (len(which) > 1)} {some_of(which)}"
        then = f"; the other {kind}s are compared without"
    else:
        some = f" in {lost.sum()} of {lost.size} values"
    warn(
        f"the metric{of} is undefined{some}, as a class is absent or a score is NaN: leave "
        f"such items out by where=~isnan(scores){then}"
    )


def smallest_sizes(items: Items, ids: Clusters | None) -> dict[str, float] | None:
    """The smallest size in the batch of each class, or of its clusters, by name; None if traced."""
    if not all_concrete(*(x for x in items[1:] if x is not None)):
        return None
    counted = ids is None and items.weights is None and items.amounts is None
    flags = [x for x in (items.labels, items.where) if x is not None]
    near = on_cpu() or all(isinstance(x, np.ndarray) for x in flags)
    if counted and near and not any(map(is_divided, items)):
        # Counts, by NumPy: a program takes longer than the sort of a small sample.
        names = "negatives", "positives"
        counted_of = zip(names, class_masks(items), strict=True)
        return {name: float(np.sum(x, axis=-1).min()) for name, x in counted_of}
    batch = batch_of(items)
    with double_precision():
        found = sizes_of(items, ids, len(batch))
        if not all_concrete(*found):
            return None
        negatives, positives, _ = (float(np.min(x, initial=np.inf)) for x in near_tree(found))
    of = "" if ids is None else "clusters with "
    by = "" if items.amounts is None else " by amount"
    return {f"{of}positives{by}": positives, f"{of}negatives": negatives}
