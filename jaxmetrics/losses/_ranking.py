"""Losses for metrics of ranked lists."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.double import double_program
from jaxmetrics._base.host import to_program
from jaxmetrics._base.items import at_least_one, one_id_at_least
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.sorting import descending_keys
from jaxmetrics._base.types import Array, ArrayLike, Items
from jaxmetrics._ranking.gain import GAINS, dcg
from jaxmetrics._ranking.lists import in_a_segment, order_of_items
from jaxmetrics.losses._kernels import sigmoid
from jaxmetrics.losses._pair_sums import pair_sums
from jaxmetrics.losses._rows import permuted


@on_any_mesh
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
    """1 - nDCG of each list, with a sigmoid in place of each comparison of two scores.

    loss = 1 - sum_i gain(y_i) / log2(1 + rank_i) / ideal DCG, with
    rank_i = 1 + sum_j sigmoid((s_j - s_i) / temperature) over the other documents j of the list.

    Args:
      scores: `[..., n_docs]`, each row a list, higher is better; or `[..., n]` with `segments`.
      labels: grades of relevance, not negative, of the same shape or one that broadcasts.
      where: `[..., n]` bool, False for documents to leave out.
      segments: `[n]` or `[..., n]`, the number of each document's list, from 0, in any order.
      num_segments: the number of lists; needed if `segments` is traced. Without it each power of
        two that the number of lists reaches compiles a program (2 s), and ids of n or more are
        renumbered: list i has the id `np.unique(segments)[i]`.
      gain: "linear" for the label, "exponential" for 2^label - 1.
      temperature: above 0, the width of the sigmoid, in units of the scores.

    Returns:
      `[...]`, or `[..., num_segments]`. It tends to 1 - `jaxmetrics.ndcg` as temperature goes to 0,
      if no scores of a list tie.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; a label is negative, NaN,
        infinite, or above 1,023 under exponential gain, a segment is not in 0 to
        num_segments - 1, or scores are several lists of one document, which is nothing to rank.

    The loss and its gradient are 0 for a list without relevant documents. The loss is NaN, and its
    gradient 0, where a valid score is NaN, or a traced label or temperature is invalid. If a
    traced id of a valid document is out of range, this holds for all lists of the row. The loss can
    be differentiated in forward and reverse mode, any number of times. Time O(n log n), memory
    O(n): it builds no matrix of pairs.

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
    if segment is None:
        checks.check_axis("scores", items.scores, items.labels, graded=True)
    checks.check_grades(items.labels, items.where, {"gain": gain}, numerics.default_float())
    scores, labels = (checks.unwrapped(x) for x in (items.scores, items.labels))
    items = items._replace(scores=scores, labels=labels)
    # Data with about as many lists share a compiled program.
    of_data = count is not None and num_segments is None
    n_lists = numerics.next_power_of_two(count) if of_data else count
    given = to_program((at_least_one(items), one_id_at_least(segment)))
    value: Array = _approx_ndcg_loss(gain, n_lists, *given, checked["temperature"])
    return value[..., :count] if of_data else value


class _Documents(NamedTuple):
    """One row of documents, `[n]` each. Those that do not count are in an extra last segment."""

    scores: Array
    gains: Array
    segment: Array


@functools.partial(jax.jit, static_argnames=("gain", "num_segments"))
def _approx_ndcg_loss(
    gain: str, num_segments: int | None, items: Items, segments: Any, temperature: Array
) -> Array:
    scores, labels, where = items.scores, items.labels, items.where
    dtype = jnp.promote_types(scores.dtype, jnp.float32)
    n_lists = num_segments or 1
    lists = in_a_segment(jnp.zeros(1, int) if segments is None else segments, where, n_lists)
    astray = jnp.zeros(1, bool)  # an eager call refuses ids out of range; traced, they give NaN
    if segments is not None:
        inside = lists < n_lists
        astray = ~inside if where is None else ~inside & where
        where = inside
    gains = _gains_near_one(labels, lists, gain, n_lists, dtype)
    ideal = dcg(gains, gains, where=where, segments=segments, num_segments=num_segments)
    ideal = ideal.astype(dtype)
    shape = jnp.broadcast_shapes(scores.shape, gains.shape, lists.shape)
    documents = _Documents(
        *(jnp.broadcast_to(x, shape) for x in (scores.astype(dtype), gains, lists))
    )

    def of_one(documents: _Documents) -> tuple[Array, Array]:
        return _smooth_dcg(documents, n_lists, temperature.astype(dtype))

    found, undefined = numerics.over_batch(of_one, len(shape) - 1)(documents)
    if segments is None:
        found, undefined = found[..., 0], undefined[..., 0]
    else:
        undefined |= jnp.any(astray, axis=-1, keepdims=True)
    value = 1 - numerics.divide(found, ideal, 1.0)
    value = jnp.where(jnp.isnan(found), found, value)  # an infinite score, also without gains
    return jnp.where(undefined | jnp.isnan(temperature), jnp.nan, value)


@double_program("gain", "n_lists", "dtype")
def _gains_near_one(labels: Array, lists: Array, gain: str, n_lists: int, dtype: Any) -> Array:
    """`[..., n]`, gains divided by the power of two near the highest gain of their list.

    Gains of 2^128 and more are beyond single precision. The loss is a quotient of gains: division
    by a power of two does not change a digit of it.
    """
    gains = GAINS[gain](jnp.asarray(labels, jnp.float64))

    def of_row(gains: Array, lists: Array) -> Array:
        highest = jax.ops.segment_max(gains, lists, n_lists + 1)
        return gains / numerics.power_near(highest)[lists]

    near_one: Array = jnp.vectorize(of_row, signature="(n),(n)->(n)")(
        *jnp.broadcast_arrays(gains, lists)
    )
    return near_one.astype(dtype)


def _smooth_dcg(documents: _Documents, n_lists: int, temperature: Array) -> tuple[Array, Array]:
    """`[n_lists]`, the smooth DCG of each list and whether it is undefined."""

    def of_lists(values: Array, segment: Array) -> Array:
        return jax.ops.segment_sum(values, segment, n_lists + 1)

    scores, gains, segment = documents
    refused = numerics.is_nan(scores) | ~(gains >= 0)
    undefined = of_lists(refused.astype(jnp.int32), segment) > 0
    counts = ~undefined[segment] & (segment < n_lists)
    scores, gains = jnp.where(counts, scores, 0), jnp.where(counts, gains, 0)
    fixed = lax.stop_gradient(scores)
    order = _order_of_documents(fixed, segment)
    scores, fixed, gains, segment = (permuted(x, order) for x in (scores, fixed, gains, segment))
    opens = jnp.append(True, segment[1:] != segment[:-1])
    # Scores are shifted as in `rows_of_items`, to keep their digits: differences stay the same. The
    # shift has the gradient of the mean score, so that the gradient of the loss adds up to 0 in
    # each list, and is 0 in a list of one document.
    size = of_lists(jnp.ones_like(segment), segment)
    after = jnp.cumsum(size)
    lowest, highest = (fixed.at[x].get(mode="clip") for x in (after - size, after - 1))
    mean = of_lists(scores / size[segment], segment)
    shift = jnp.clip(0, lowest, highest) + (mean - lax.stop_gradient(mean))
    away = scores - shift[segment]
    # A quotient that would overflow is `most` times 1 to 2, by its logarithm: if it were cut off,
    # unequal finite scores would tie.
    most = float(jnp.finfo(away.dtype).max) / 2
    beyond = jnp.clip(jnp.abs(lax.stop_gradient(away)) / (most * temperature), 1, most)
    grown = 1 + jnp.log(beyond) / math.log(most)
    places = jnp.clip(away / temperature, -most, most) * grown
    weights = permuted(counts, order).astype(places.dtype)
    above = pair_sums(sigmoid(places.dtype), places, weights, opens)
    found = of_lists(gains / jnp.log2(2 + above), segment)
    infinite = of_lists((~jnp.isfinite(scores)).astype(jnp.int32), segment) > 0
    found *= jnp.where(infinite, jnp.nan, 1)  # also for one document without pairs
    return found[:n_lists], undefined[:n_lists]


@double_program()
def _order_of_documents(places: Array, segment: Array) -> Array:
    order: Array = order_of_items(~descending_keys(places), None, segment)
    return order.astype(jnp.int32)
