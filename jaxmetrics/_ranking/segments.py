"""ROC metrics of each segment: AUC and partial AUC per query or per user."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.cumulative import runs
from jaxmetrics._base.double import double_program
from jaxmetrics._base.host import in_threads, on_host, to_jax
from jaxmetrics._base.items import (
    at_least_one,
    batch_of,
    class_weights,
    not_allowed,
    one_id_at_least,
    rows_of,
)
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.numerics import divide
from jaxmetrics._base.sorting import descending_keys, take
from jaxmetrics._base.types import Array, ArrayLike, HostArray, Items
from jaxmetrics._ranking.lists import Lists, in_a_segment, order_of_items, places, running
from jaxmetrics._roc.areas import in_counts, partial_auc, scaled
from jaxmetrics._roc.sliced import EachGroup, RunOfSlices, Sliced, columns_of, groups_of


@on_any_mesh
def segment_roc_auc(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    segments: ArrayLike,
    num_segments: int | None = None,
) -> Array:
    """The area under the ROC curve of each segment, such as the impressions of a user.

    AUC = P(s+ > s-) + P(s+ = s-) / 2 over the positives and negatives of one segment: the value of
    `jaxmetrics.roc_auc` for its items alone. The mean over segments, weighted by their numbers of
    items, is known as GAUC.

    Args:
      scores: `[..., n]`, higher is more positive.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative; an item of weight k counts as k items.
      where: `[..., n]` bool; False leaves an item out.
      segments: `[n]` or `[..., n]`, the id of each item's segment, from 0, in any order.
      num_segments: the number of segments; required where `segments` are traced. Without it, and
        with an id of n or more, they are numbered: segment i has the id `np.unique(segments)[i]`.

    Returns:
      `[..., num_segments]`, from 0 to 1.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; a label is not 0 or 1, or a
        segment is not in 0 to num_segments - 1.

    NaN where a segment lacks a class or a valid score of it is NaN. The same for all segments
    of a row if a traced id of a valid item is out of range, or a traced weight is invalid. Time
    O(n log n), memory O(n + num_segments).

    Example:
      >>> import jaxmetrics as jm
      >>> scores, labels = [.1, .4, .35, .8, .3], [0, 0, 1, 1, 1]
      >>> print(jm.segment_roc_auc(scores, labels, segments=[0, 1, 0, 0, 1]))
      [1. 0.]

    Reference: H. Zhu et al., "Optimized cost per click in Taobao display advertising", KDD 2017.
    """
    return segment_partial_auc(
        scores,
        labels,
        weights=weights,
        where=where,
        segments=segments,
        num_segments=num_segments,
        scale="range",
    )


@on_any_mesh
def segment_partial_auc(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    segments: ArrayLike,
    num_segments: int | None = None,
    max_fpr: ArrayLike = 1.0,
    min_fpr: ArrayLike = 0.0,
    min_tpr: ArrayLike = 0.0,
    scale: str = "raw",
) -> Array:
    """The partial area under the ROC curve of each segment, such as the impressions of a user.

    raw = integral from `min_fpr` to `max_fpr` of max(ROC(u) - min_tpr, 0) du, as
    `jaxmetrics.partial_auc` of the items of each segment alone.

    Args:
      scores: `[..., n]`, higher is more positive.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative; an item of weight k counts as k items.
      where: `[..., n]` bool; False leaves an item out.
      segments: `[n]` or `[..., n]`, the id of each item's segment, from 0, in any order.
      num_segments: the number of segments; required where `segments` are traced. Without it, and
        with an id of n or more, they are numbered: segment i has the id `np.unique(segments)[i]`.
      max_fpr: where the area ends, in (0, 1]: one, or several, which add a last axis.
      min_fpr: where the area begins, in [0, max_fpr).
      min_tpr: the true positive rate above which the area counts, in [0, 1).
      scale: "raw", "range" or "mcclish", as for `jaxmetrics.partial_auc`.

    Returns:
      `[..., num_segments]`, or `[..., num_segments, k]` for k limits; an area, or as `scale` says.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; min_fpr is not below max_fpr, or
        a segment is not in 0 to num_segments - 1.

    NaN where a segment lacks a class or a valid score of it is NaN. The same for all segments
    of a row if a traced id of a valid item is out of range, or a traced weight is invalid. Time
    O(n log n), memory O(n + num_segments).

    Example:
      >>> import jaxmetrics as jm
      >>> scores, labels = [.9, .4, .35, .8, .3], [0, 0, 1, 1, 1]
      >>> print(jm.segment_partial_auc(scores, labels, segments=[0, 0, 0, 0, 0], max_fpr=0.75))
      [0.08333334]

    Reference: D. K. McClish, "Analyzing a portion of the ROC curve", Medical Decision Making 9,
    1989.
    """
    options = {"max_fpr": max_fpr, "min_fpr": min_fpr, "min_tpr": min_tpr, "scale": scale}
    limits = checks.check_options(options)
    scale = limits.pop("scale")
    items = checks.check_items(scores, labels, weights, where, along={"segments": segments})
    segment, count = checks.check_segments(segments, num_segments, items)
    items, segment = at_least_one(items), one_id_at_least(segment)
    dtype = np.dtype(numerics.default_float())
    numbers = (np.asarray(x) if isinstance(x, int | float) else x for x in limits.values())
    given = on_host(*items, segment, *numbers)
    if given is None:
        return _areas_of_batch(items, segment, limits, count, scale, dtype)
    scores, labels, weights, where, _, segment, *bounds = given
    row = _Row(scores, labels, weights, where, segment)
    found = _areas_on_host(row, dict(zip(limits, bounds, strict=True)), count, scale)
    return to_jax(np.asarray(found, dtype), items.scores)


class _Row(NamedTuple):
    """Items, each with the index of its segment."""

    scores: Any
    labels: Any
    weights: Any
    where: Any
    segment: Any


def _areas_on_host(rows: _Row, limits: dict[str, Any], count: int, scale: str) -> HostArray:
    """`[..., count, *limits]` by NumPy, which compiles nothing."""
    each, of_limits = _each(limits)

    def of_row(row: _Row) -> HostArray:
        ids = row.segment.astype(np.int64)
        sliced = Sliced.of(row.labels == 1, ids, count, row.where, row.weights, one_unit=False)
        scores = row.scores.take(sliced.item)

        def of_part(part: RunOfSlices) -> HostArray:
            own, here = part.sliced, scores[part.span]
            order = own.order(here)
            groups = groups_of(own, order)
            totals = own.totals.take(groups.slice, axis=0).T
            placed: Any = EachGroup(columns_of(own, order, groups), totals)
            with np.errstate(all="ignore"):
                parts = (area(placed, **x, scale="raw") for x in each)
                raw: list[Any] = [np.bincount(groups.slice, x, len(own.counts)) for x in parts]
                found = [scaled(x, **y, scale=scale) for x, y in zip(raw, each, strict=True)]
            undefined = own.sums((here != here).astype(float)).sum(axis=1) > 0
            return np.where(undefined[:, None], np.nan, np.stack(found, axis=-1))

        return np.concatenate(in_threads(of_part, sliced.parts()))

    area: Any = partial_auc.record.of_placements
    batch = batch_of(rows)
    shape = (*batch, count, *of_limits)
    found = [of_row(x) for x in rows_of(rows, batch, len(batch) + 1)]
    return np.stack(found).reshape(shape) if found else np.zeros(shape)


@double_program("count", "scale", "dtype")
def _areas_of_batch(
    items: Items, segment: Any, limits: dict[str, Array], count: int, scale: str, dtype: Any
) -> Any:
    items, segment = jax.tree.map(jnp.asarray, (items, segment))
    keys = descending_keys(items.scores)
    positives, negatives = class_weights(items)
    weighty = positives + negatives > 0
    segment = in_a_segment(segment, weighty, count)
    valid = segment < count
    astray = weighty & ~valid  # an eager call refuses ids out of range; traced, they give NaN
    by_score = order_of_items(keys, valid, segment)
    refused = jnp.expand_dims(not_allowed(items), -1)
    nan = valid & (refused | numerics.is_nan(items.scores))

    def of_row(lists: Lists, negatives: Array, nan: Array, astray: Array) -> Array:
        lists = lists._replace(num_segments=count)
        areas = _areas_of_row(lists, negatives, limits, scale)
        undefined = (lists.total(nan.astype(jnp.int32)) > 0) | jnp.any(astray)
        return jnp.where(undefined.reshape(-1, *(1,) * (areas.ndim - 1)), jnp.nan, areas)

    row = (Lists(keys, positives, valid, segment, by_score, None), negatives, nan, astray)
    shape = np.broadcast_shapes(*(x.shape for x in jax.tree.leaves(row)))
    row = jax.tree.map(lambda x: jnp.broadcast_to(x, shape), row)
    return numerics.over_batch(of_row, len(shape) - 1)(*row).astype(dtype)


def _areas_of_row(lists: Lists, negatives: Array, limits: dict[str, Array], scale: str) -> Array:
    """`[num_segments, *limits]`; `lists.labels` are the weights of the positives."""
    positives, negatives = lists.near_one(lists.labels, negatives)
    lists, ranking = lists._replace(labels=positives), lists.ranking()
    first, after = runs(~ranking.tied)
    last = after - 1

    def ends(weights: Array) -> tuple[Array, Array]:
        own = jnp.where(ranking.valid, take(weights, ranking.item), 0)
        opens = ranking.rank == 0
        # A scan adds in the order of a tree, and its rounding may make a running sum fall.
        so_far = running(running(own, opens), opens, jnp.maximum)
        start = take(jnp.where(opens, 0, jnp.roll(so_far, 1)), first)
        end = take(so_far, last)
        return start.astype(jnp.float64), end.astype(jnp.float64)

    # The step of the list's ROC curve at the tie of each place: from `left` to `right` false
    # positives, and from `low` to `high` true positives.
    (left, right), (low, high) = ends(negatives), ends(lists.labels)
    width, rise = right - left, high - low
    closes = last == places(last)  # at its last place each tie counts once
    totals = lists.total(negatives), lists.total(lists.labels)
    n_negative, n_positive = (total.astype(jnp.float64) for total in totals)

    def area(max_fpr: Array, min_fpr: Array, min_tpr: Array) -> Array:
        bounds = in_counts(min_fpr, n_negative), in_counts(max_fpr, n_negative)
        first_fp, last_fp, floor = (
            jnp.append(x, 0)[ranking.segment] for x in (*bounds, in_counts(min_tpr, n_positive))
        )
        # A step counts from where it rises above the floor.
        below = divide(jnp.clip(floor - low, 0, rise), rise, floor > low)
        begin = jnp.maximum(first_fp, left + below * width)
        end = jnp.maximum(jnp.minimum(last_fp, right), begin)
        share = divide((begin + end) / 2 - left, width, 0.0)
        parts = (end - begin) * (low + share * rise - floor)
        counts = lists.total_at(ranking, jnp.where(closes, parts, 0))
        raw = divide(counts, n_negative * n_positive, jnp.nan)
        return scaled(raw, max_fpr, min_fpr, min_tpr, scale)

    each, of_limits = _each(limits)
    areas = [area(**x) for x in each]
    return jnp.stack(areas, axis=-1).reshape(-1, *of_limits)


def _each(limits: dict[str, Any]) -> tuple[list[dict[str, Any]], tuple[int, ...]]:
    """The limits of each area, one after the other, and the shape that they broadcast to."""
    arrays = numerics.namespace(*limits.values()).broadcast_arrays(*limits.values())
    each = zip(*(x.ravel() for x in arrays), strict=True)
    return [dict(zip(limits, x, strict=True)) for x in each], arrays[0].shape
