"""Metrics of pairs within a list: how often the better document has the higher score."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base import varying
from jaxmetrics._base.cumulative import runs
from jaxmetrics._base.numerics import divide, namespace
from jaxmetrics._base.sorting import descending_keys, largest_key, take
from jaxmetrics._base.types import Array
from jaxmetrics._ranking.host_lists import HostLists
from jaxmetrics._ranking.lists import Lists, order_of_items, places
from jaxmetrics._ranking.metric import list_metric

_SHORT = 256  # documents of a list up to which comparing all pairs is faster than sorting


@list_metric(few_grades=True)
def ordered_pair_accuracy(lists: Lists | HostLists) -> tuple[Array, bool]:
    """The share of pairs of documents of different grade that the scores put in the right order.

    OPA = sum_ij [y_i > y_j] ([s_i > s_j] + [s_i = s_j] / 2) / sum_ij [y_i > y_j], over the
    documents of a list. For labels of 0 and 1 it is the ROC AUC of the list.

    Args:
      scores: `[..., n_docs]`, each row a list, higher is better; or `[..., n]` with `segments`.
      labels: of a shape that broadcasts with the scores; any numbers, higher is better.
      where: bool, of a shape that broadcasts; False leaves a document out.
      segments: `[n]` or `[..., n]`, the id of each item's list, from 0, in any order.
      num_segments: the number of lists; required where `segments` are traced. Without it, and with
        an id of n or more, lists are numbered: list i has the id `np.unique(segments)[i]`.

    Returns:
      `[...]`, or `[..., num_segments]` with `segments`; from 0 to 1; 0.5 is chance.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; a label is NaN or infinite, or a
        segment is not in 0 to num_segments - 1.

    NaN where all labels of a list are equal, or where a valid score or traced label is NaN. Time
    O(n log n), or O(n n_docs) for rows of up to 256 documents; memory O(n), as no matrix of pairs
    is formed.

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.ordered_pair_accuracy([.9, .8, .7, .7], [2, 0, 1, 0]))
      0.7

    Reference: W. R. Knight, "A computer method for calculating Kendall's tau with ungrouped data",
    Journal of the American Statistical Association 61, 1966.
    """
    if isinstance(lists, HostLists):
        ordered, pairs = _by_numpy(lists)
    elif lists.segment is None and len(lists.keys) <= _SHORT:
        ordered, pairs = _of_each_pair(lists)
    else:
        ordered, pairs = _by_sorting(lists)
    return divide(ordered, pairs, jnp.nan), False


def _of_each_pair(lists: Lists) -> tuple[Array, Array]:
    """The number of pairs in the right order, a tie counted as half a pair, and of all pairs.

    Each step compares one item with all others, many at a time by vector instructions.
    """
    # With these keys a masked item is neither the better nor the worse one of any pair.
    labels = descending_keys(lists.labels)
    better = jnp.where(lists.valid, labels, largest_key(labels))
    worse = jnp.where(lists.valid, labels, 0)

    def count(scores: Array, better: Array, worse: Array) -> tuple[Array, Array]:
        def compare(state: tuple[Array, Array], item: tuple[Array, Array]) -> Any:
            (doubled, pairs), (score, label) = state, item
            pair = label > better
            right = (score > scores).astype(jnp.int32) + (score >= scores)
            return (doubled + jnp.where(pair, right, 0), pairs + pair), None

        none = jnp.zeros(len(scores), jnp.int32)
        totals, _ = varying.scan(compare, (none, none), (scores, worse), unroll=8)
        doubled, pairs = (jnp.sum(x).astype(jnp.float64) for x in totals)
        return doubled / 2, pairs

    # A CPU takes list after list, so that each stays in the cache; an accelerator all at once.
    by_list = jax.custom_batching.sequential_vmap(count)
    return lax.platform_dependent(lists.keys, better, worse, cpu=by_list, default=count)


def _by_sorting(lists: Lists) -> tuple[Array, Array]:
    """The same numbers as `_of_each_pair`, in time O(n log n)."""
    # The worst label comes first among tied scores: _ordered_pairs then counts none of their pairs.
    worst_first = order_of_items(~descending_keys(lists.labels), lists.valid, lists.segment)
    by_label = lists._replace(keys=descending_keys(lists.labels), by_score=worst_first).ranking()
    by_item = (lists.keys, lists.valid, lists.segment)
    again = order_of_items(*(x if x is None else take(x, worst_first) for x in by_item))
    by_score = lists._replace(by_score=take(worst_first, again)).ranking()

    counted = jnp.cumsum(~by_label.tied, dtype=jnp.int32)
    grade = counted - take(counted, runs(by_label.rank == 0)[0])
    grade = take(jnp.where(by_label.valid, grade, 0), again)
    first, after = runs(by_score.rank == 0)
    last = jnp.sum(lists.valid) - 1 if lists.segment is None else after - 1
    # A masked item is a list of its own, which has no pairs.
    first, last = (jnp.where(by_score.valid, x, places(again)) for x in (first, last))
    n_ordered, n_pairs = _ordered_pairs(grade, first, last.astype(jnp.int32))
    new_tie = ~by_score.tied
    n_tied = runs(new_tie | (grade != jnp.roll(grade, 1)))[0] - runs(new_tie)[0]
    ordered = lists.total_at(by_score, n_ordered + n_tied.astype(jnp.float64) / 2)
    return ordered, lists.total_at(by_score, n_pairs.astype(jnp.float64))


def _by_numpy(lists: HostLists) -> tuple[Any, Any]:
    """The same numbers as `_of_each_pair`, for the lists of a part."""
    item, tied = lists.order
    grade = lists.labels.astype(np.intp).take(item)
    n_tied = np.zeros(len(item), int)
    if tied.any():  # the worst label comes first among tied scores, as in _by_sorting
        begin_of_tie, _ = runs(~tied)
        grade = grade[np.lexsort((grade, begin_of_tie))]
        new = ~tied
        new[1:] |= grade[1:] != grade[:-1]
        n_tied = runs(new)[0] - begin_of_tie
    first, last = (x.repeat(lists.sizes) for x in (lists.begins[:-1], lists.begins[1:] - 1))
    n_ordered, n_pairs = _ordered_pairs(grade, first, last)
    return lists.total(n_ordered + n_tied / 2), lists.total(n_pairs)


def _ordered_pairs(values: Any, first: Any, last: Any) -> tuple[Any, Any]:
    """Counts `[places]` whose sums over a list, from place `first` to `last`, are numbers of pairs.

    The first counts the pairs of a value and a lower value behind it, the second all pairs that
    differ. This is a radix sort from the highest bit. Each step splits the values that agree in all
    higher bits, stably, into those with a 0 and those with a 1. Before it, each 0 counts the 1s in
    front of it: these pairs agree in all higher bits, so no other step counts them.
    """
    library = namespace(values)
    place = library.arange(len(values), dtype=first.dtype)

    def part(state: Any) -> Any:
        bit, values, first, last, ordered, pairs = state
        one = (values >> bit) & 1
        ones = library.cumsum(one, dtype=first.dtype)
        before_list = take(ones - one, first)
        before, n_ones = ones - one - before_list, take(ones, last) - before_list
        middle = last + 1 - n_ones  # the first place of those with a 1
        values = _moved(values, library.where(one == 1, middle + before, place - before))
        ordered = ordered + library.where(one == 0, before, 0)
        pairs = pairs + library.where(one == 0, n_ones, 0)
        high = place >= middle
        return (
            *(bit - 1, values, library.where(high, middle, first)),
            *(library.where(high, last, middle - 1), ordered, pairs),
        )

    none = library.zeros(len(values), np.int64)
    if library is np:
        state: Any = None, values, first, last, none, none
        for bit in reversed(range(int(values.max(initial=0)).bit_length())):
            state = part((bit, *state[1:]))
    else:
        highest = 31 - lax.clz(jnp.max(values))
        state = (highest, values, first, last, none, none)
        state = varying.while_loop(lambda state: state[0] >= 0, part, state)
    *_, ordered, pairs = state
    return ordered, pairs


def _moved(values: Any, target: Any) -> Any:
    """The values at their target places."""
    if isinstance(values, np.ndarray):
        moved = np.empty_like(values)
        moved[target] = values
        return moved
    empty = jnp.zeros_like(values).at[target]
    return empty.set(values, unique_indices=True, mode="promise_in_bounds")
