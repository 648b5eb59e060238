"""The area under the ROC curve from random pairs of a positive and a negative."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.compaction import first_indices
from jaxmetrics._base.cumulative import running_sum
from jaxmetrics._base.double import as_default, double_program
from jaxmetrics._base.host import near_tree
from jaxmetrics._base.items import at_least_one, batch_of, class_weights
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.types import Array, ArrayLike, Items
from jaxmetrics._roc.at_hand import in_jax, rows_at_hand
from jaxmetrics._roc.order import undefined

_SHORT = 1 << 11  # more than a few rows of fewer items take less time in one program


@on_any_mesh
def roc_auc_sampled(
    key: Array,
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    n_pairs: int,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """AUC by sampling: the share of random pairs whose positive outranks their negative.

    mean over pairs of [s_i > s_j] + [s_i = s_j] / 2, where i is drawn from the positives and j from
    the negatives, in proportion to weight. Its standard error is at most 0.5 / sqrt(n_pairs).

    Args:
      key: a JAX random key. All rows of a batch use the same random numbers.
      scores: `[..., n]`, higher is more positive.
      labels: `[..., n]`, bool or 0 and 1.
      n_pairs: number of pairs to draw, at least 1; the error falls with its square root.
      weights: `[..., n]`, not negative; an item of weight k counts as k items.
      where: `[..., n]` bool, False for items to leave out.

    Returns:
      `[...]`, from 0 to 1.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; for example `n_pairs` is a
        float, or below 1.

    NaN where a class is absent or a valid score is NaN. Which pairs are drawn depends on the order
    of the items. Time O(n + n_pairs log n), memory O(n + n_pairs).

    Example:
      >>> import jax
      >>> import jaxmetrics as jm
      >>> print(jm.roc_auc_sampled(jax.random.key(0), [1., 2., 3.], [0, 1, 1], n_pairs=100))
      1.0

    Reference: J. A. Hanley and B. J. McNeil, "The meaning and use of the area under a receiver
    operating characteristic (ROC) curve", Radiology 143, 1982.
    """
    checks.check_key(key)
    checks.check_count("n_pairs", n_pairs)
    instead = f"draw fewer, as the error is at most 0.5 / sqrt(n_pairs): {0.5 / n_pairs**0.5:.1g}"
    checks.check_fits("n_pairs", n_pairs, 5 * n_pairs, instead)  # draws, rows, and comparisons
    items = checks.check_items(scores, labels, weights, where)
    implementation = None
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        implementation, key = str(jax.random.key_impl(key)), jax.random.key_data(key)
    items, uniform = at_least_one(items), near_tree(_uniform(key, n_pairs, implementation))
    given = rows_at_hand(items, {"uniform": uniform}, short=_SHORT)
    if given is None:
        return as_default(_of_rows(items, uniform))
    with np.errstate(all="ignore"):
        values = [_share_of_pairs(row, **given.options) for row in given.rows]
    return in_jax(values, given.batch, items.scores, numerics.default_float())


@double_program("n_pairs", "implementation")
def _uniform(key: Array, n_pairs: int, implementation: str | None) -> Array:
    key = jax.random.wrap_key_data(key, impl=implementation)
    return jax.random.uniform(key, (2, n_pairs), jnp.float64)


@double_program()
def _of_rows(items: Items, uniform: Array) -> Array:
    axes = len(batch_of(items))
    return numerics.over_rows(lambda row: _share_of_pairs(row, uniform), items, axes)


def _share_of_pairs(items: Items, uniform: Array) -> Array:
    """The share of right pairs of items `[n]`, drawn by numbers `[2, n_pairs]` from 0 to 1."""
    library, classes = numerics.namespace(items.scores, uniform), class_weights(items)
    draw = _counted if items.weights is None else _weighted
    winner, loser = (
        library.take(items.scores, draw(weights, numbers), mode="clip")
        for weights, numbers in zip(classes, uniform, strict=True)
    )
    share = library.mean((winner > loser) + (winner == loser) / 2)
    both = library.any(classes[0] > 0) & library.any(classes[1] > 0)
    return library.where(both & ~undefined(items), share, np.nan)


def _counted(counts: Array, numbers: Array) -> Array:
    """Indices of items whose count is 1, not 0."""
    library, which = numerics.namespace(counts, numbers), counts > 0
    index: Any = np.flatnonzero(which) if library is np else first_indices(which, len(which))[0]
    places = (numbers * library.sum(which)).astype(np.int64)
    return library.take(index, places, mode="clip") if len(index) else places


def _weighted(weights: Array, numbers: Array) -> Array:
    """Indices of items, in proportion to their weights."""
    below = running_sum(weights)
    return numerics.namespace(below).searchsorted(below, numbers * below[-1], side="right")
