"""Losses of ranked lists."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.double import double_program, ordinary_promotion
from jaxmetrics._base.items import at_least_one, one_id_at_least
from jaxmetrics._base.sorting import descending_keys
from jaxmetrics._base.types import Array, ArrayLike, Items
from jaxmetrics._ranking.gain import GAINS, dcg
from jaxmetrics._ranking.lists import in_a_segment
from jaxmetrics._ranking.lists import order as order_of_lists
from jaxmetrics.losses._pair_sums import pair_sums, sigmoid
from jaxmetrics.losses._rows import permuted


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

    0, with a gradient of 0, for a list without relevant documents. NaN where a valid score or label
    is, or, traced, a label is negative; traced, items of a segment that does not exist are left
    out. Differentiable to any order, in both modes. Time O(n log n), memory O(n): no matrix of
    pairs is made.

    Example:
      >>> import jaxmetrics as jm
      >>> print(f"{jm.losses.approx_ndcg_loss([.9, .8, .3], [1, 0, 2]):.4f}")
      0.2981

    Reference: T. Qin, T.-Y. Liu and H. Li, "A general approximation framework for direct
    optimization of information retrieval measures", Information Retrieval 13, 2010.
    """
    checks.check_choice("gain", gain, ("linear", "exponential"))
    checked = checks.check_loss_options({"temperature": temperature})
    items, segment, count = checks.check_lists(scores, labels, segments, num_segments, where)
    checks.check_grades(items.labels, items.where, None)
    with ordinary_promotion():
        value: Array = _of_rows(
            gain, count, at_least_one(items), one_id_at_least(segment), checked["temperature"]
        )
    return value


class _Documents(NamedTuple):
    """One row of documents, `[n]` each; what does not count is in the list after the last one."""

    scores: Array
    gains: Array
    segment: Array


@functools.partial(jax.jit, static_argnums=(0, 1))
def _of_rows(
    gain: str, num_segments: int | None, items: Items, segments: Any, temperature: Array
) -> Array:
    scores, labels, where = items.scores, items.labels, items.where
    dtype = jnp.promote_types(scores.dtype, jnp.float32)
    ideal = dcg(
        labels, labels, where=where, segments=segments, num_segments=num_segments, gain=gain
    ).astype(dtype)
    gains = GAINS[gain](jnp.asarray(labels, dtype))
    n_lists = num_segments or 1
    lists = in_a_segment(jnp.zeros(1, int) if segments is None else segments, where, n_lists)
    shape = jnp.broadcast_shapes(scores.shape, gains.shape, lists.shape)
    documents = _Documents(
        *(jnp.broadcast_to(x, shape) for x in (scores.astype(dtype), gains, lists))
    )

    def of_one(documents: _Documents) -> tuple[Array, Array]:
        return _dcg(documents, n_lists, temperature.astype(dtype))

    found, undefined = numerics.over_batch(of_one, len(shape) - 1)(documents)
    if segments is None:
        found, undefined = found[..., 0], undefined[..., 0]
    value = 1 - numerics.divide(found, ideal, 1.0)
    return jnp.where(undefined | jnp.isnan(temperature), jnp.nan, value)


def _dcg(documents: _Documents, n_lists: int, temperature: Array) -> tuple[Array, Array]:
    """`[n_lists]`, the smooth DCG of each list and whether it is undefined."""

    def of_lists(values: Array, segment: Array) -> Array:
        return jax.ops.segment_sum(values, segment, n_lists + 1)

    scores, gains, segment = documents
    refused = numerics.is_nan(scores) | ~(gains >= 0)
    undefined = of_lists(refused.astype(jnp.int32), segment) > 0
    counts = ~undefined[segment] & (segment < n_lists)
    scores, gains = jnp.where(counts, scores, 0), jnp.where(counts, gains, 0)
    # Differences do not depend on where 0 is, so nor does the gradient. A sum of quotients, as the
    # quotient of a sum might be rounded otherwise by another program that uses it.
    size = of_lists(jnp.ones_like(scores), segment)
    middle = lax.stop_gradient(of_lists(scores / size[segment], segment))
    places = (scores - middle[segment]) / temperature

    order = _order(lax.stop_gradient(places), segment)
    places, gains, segment = (permuted(x, order) for x in (places, gains, segment))
    opens = jnp.append(True, segment[1:] != segment[:-1])
    weights = permuted(counts, order).astype(places.dtype)
    above = pair_sums(sigmoid(places.dtype), places, weights, opens)
    # By the sigmoid a document is half above itself.
    found = of_lists(gains / jnp.log2(1.5 + above), segment)
    return found[:n_lists], undefined[:n_lists]


@double_program()
def _order(places: Array, segment: Array) -> Array:
    order: Array = order_of_lists(~descending_keys(places), None, segment)
    return order.astype(jnp.int32)
