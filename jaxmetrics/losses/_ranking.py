"""Losses of ranked lists."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxmetrics import _checks, _numerics
from jaxmetrics._gain import dcg
from jaxmetrics._lists import order as order_of_lists
from jaxmetrics._sorting import descending_keys
from jaxmetrics._types import Array, ArrayLike
from jaxmetrics.losses._pair_sums import pair_sums, sigmoid
from jaxmetrics.losses._rows import take


def approx_ndcg_loss(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    where: ArrayLike | None = None,
    segments: ArrayLike | None = None,
    num_segments: int | None = None,
    gain: str = "linear",
    temperature: float | Array = 0.1,
) -> Array:
    """One less the nDCG of each list, with a sigmoid for each comparison of two scores.

    loss = 1 - sum_i gain(y_i) / log2(1 + rank_i) / ideal DCG, with rank_i = 1 + the sum over other
    documents j of the list of sigmoid((s_j - s_i) / temperature).

    Args:
      scores: `[..., n_docs]`, a list a row, higher is better; or `[..., n]` with `segments`.
      labels: the same shape, or one that broadcasts; grades of relevance, not negative.
      where: `[..., n]` bool, False for documents to leave out.
      segments: `[n]` or `[..., n]`, the list of each item, from 0, in any order.
      num_segments: how many lists there are; needed where `segments` are traced.
      gain: "linear", the label, or "exponential", 2^label - 1.
      temperature: above 0, in units of the scores.

    Returns:
      `[...]`, or `[..., num_segments]`. It tends to 1 - `jaxmetrics.ndcg` as temperature goes to 0,
      if no scores of a list tie.

    Raises:
      TypeError, ValueError: an input is not what it should be, shapes do not fit, a segment is not
        in 0 to num_segments - 1, or a label is negative.

    0, with a gradient of 0, for a list without relevant documents; NaN where a valid score or label
    is. Differentiable in reverse, any number of times. Time O(n log n), memory O(n): no matrix of
    pairs is made.

    Example:
      >>> import jaxmetrics as jm
      >>> print(f"{jm.losses.approx_ndcg_loss([.9, .8, .3], [1, 0, 2]):.4f}")
      0.2981

    Reference: T. Qin, T.-Y. Liu and H. Li, "A general approximation framework for direct
    optimization of information retrieval measures", Information Retrieval 13, 2010.
    """
    _checks.check_choice("gain", gain, ("linear", "exponential"))
    checked = _checks.check_loss_options({"temperature": temperature})
    items, segment, count = _checks.check_lists(scores, labels, segments, num_segments, where)
    _checks.check_grades(items.labels, items.where, None)
    arrays = (items.scores, items.labels, items.where, segment)
    with _numerics.ordinary_promotion():
        value: Array = _of_rows(gain, count, arrays, checked["temperature"])
    return value


@functools.partial(jax.jit, static_argnums=(0, 1))
def _of_rows(gain: str, num_segments: int | None, arrays: Any, temperature: Array) -> Array:
    scores, labels, where, segments = jax.tree.map(jnp.asarray, arrays)
    dtype = jnp.promote_types(scores.dtype, jnp.float32)
    ideal = dcg(
        labels, labels, where=where, segments=segments, num_segments=num_segments, gain=gain
    )
    given = [x for x in (scores, labels, where, segments) if x is not None]
    shape = jnp.broadcast_shapes(*(x.shape for x in given))
    valid = jnp.ones(1, bool) if where is None else where
    gains = labels.astype(dtype) if gain == "linear" else jnp.exp2(labels.astype(dtype)) - 1
    lists = jnp.zeros(1, jnp.int32) if segments is None else segments
    parts = (
        jnp.where(valid, scores, 0).astype(dtype) / temperature.astype(dtype),
        jnp.where(valid, gains, 0),
        valid,
        lists.astype(jnp.int32),
    )
    of_one: Any = functools.partial(_dcg, num_segments=num_segments)
    for _ in shape[:-1]:
        of_one = jax.vmap(of_one)
    found = of_one(*(jnp.broadcast_to(x, shape) for x in parts))
    some = ideal > 0
    share = found / jnp.where(some, ideal, 1).astype(dtype)
    value = jnp.where(some, 1 - share, 0)
    return jnp.where(jnp.isnan(ideal), jnp.nan, value)


def _dcg(
    places: Array, gains: Array, valid: Array, segment: Array, *, num_segments: int | None
) -> Array:
    order = _order(lax.stop_gradient(places), segment)
    places, gains, valid, segment = (take(x, order) for x in (places, gains, valid, segment))
    opens = jnp.append(True, segment[1:] != segment[:-1])
    above = pair_sums(sigmoid(places.dtype), places, valid.astype(places.dtype), opens)
    # By the sigmoid a document is half above itself.
    terms = gains / jnp.log2(1.5 + above)
    if num_segments is None:
        return jnp.sum(terms)
    sums: Array = jax.ops.segment_sum(terms, segment, num_segments, indices_are_sorted=True)
    return sums


@_numerics.double_program()
def _order(places: Array, segment: Array) -> Array:
    order: Array = order_of_lists(~descending_keys(places), None, segment)
    return order.astype(jnp.int32)
