"""The positions of the relevant labels of an instance in its list of predictions.

All metrics are functions of `Matches`, which has a few numbers for each relevant label; finding
them is nearly all of the work. On the CPU a block of instances has the instances as its last axis,
and a loop walks along all its lists at once. A step compares one prediction of each instance with
all relevant labels of the instance; vector instructions do so for 16 or 32 instances at a time. On
an accelerator all comparisons are one fused reduction.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base import numerics, varying
from jaxmetrics._base.double import double_program
from jaxmetrics._base.host import at_hand, in_threads
from jaxmetrics._base.sorting import entries_at
from jaxmetrics._base.types import Array
from jaxmetrics.extreme._inputs import NO_LABEL_16, LabelSets

R = TypeVar("R")

NOWHERE = np.iinfo(np.int32).max  # the position of a label that is not predicted
ENDED = -2  # the group of the places behind the end of a list
# 16-bit ids for a place behind a list's end, a relevant label without a group, an id out of range.
_END, _ABSENT, _OUT = range(NO_LABEL_16, NO_LABEL_16 - 3, -1)
_CHUNK = 1 << 21  # predictions that a thread takes at a time
_BLOCK = 1 << 14  # (relevant labels + groups) x rows of a block: its state stays in the cache


class Matches(NamedTuple):
    """All that the metrics need; the instances of all batches are one axis of rows.

    Attributes:
      positions: `[L, rows]`, the number of predictions of its group before a relevant label;
        NOWHERE if the label is not predicted.
      groups: `[L, rows]`, the group of a relevant label; -1 for padding and labels out of range.
      listed: `[num_groups, rows]`, the number of predictions of each group.
    """

    positions: Any
    groups: Any
    listed: Any


def match(
    sets: LabelSets, first: int | None = None, then: Callable[[Matches], Any] = lambda x: x
) -> Any:
    """The matches of label sets, in the whole lists or in their `first` places.

    `then` is applied to the matches of each chunk of rows, in its thread; its results are
    `[..., rows]`.
    """
    predicted, relevant = (rows_of(x, sets.shape) for x in (sets.predicted, sets.relevant))
    if first is not None:
        predicted = predicted[:, :first]
    static = (sets.num_groups, sets.n_labels, sets.checked)

    def work(*arrays: Any) -> Any:
        return then(_match(*arrays, sets.groups, *static))

    return in_chunks(work, predicted, relevant)


def in_chunks(work: Callable[[Any, Any], R], predicted: Any, relevant: Any) -> R:
    """`work(predicted, relevant)` of `[rows, K]` and `[rows, L]`, whose results have rows last.

    If the ids are in the CPU's memory, each processor works on one chunk at a time, which bounds
    memory. Otherwise the work is one program.
    """
    predicted, relevant = at_hand(predicted, relevant)
    rows = len(predicted)
    chunk = max(_CHUNK // predicted.shape[1], 256)
    if rows <= chunk or not all(isinstance(x, np.ndarray) for x in (predicted, relevant)):
        return work(predicted, relevant)

    def part(start: int) -> R:
        ids = (x[start : start + chunk] for x in (predicted, relevant))
        found = work(*(_filled(x, chunk) for x in ids))
        return jax.tree.map(lambda x: np.asarray(x)[..., : rows - start], found)

    parts = in_threads(part, range(0, rows, chunk))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=-1), *parts)


def rows_of(ids: Any, shape: tuple[int, ...]) -> Any:
    """The ids as `[rows, columns]`, broadcast to the batch, with at least one column."""
    library = numerics.namespace(ids)
    if not ids.shape[-1]:
        ids = library.full((*ids.shape[:-1], 1), -1, ids.dtype)
    return library.broadcast_to(ids, (*shape, ids.shape[-1])).reshape(-1, ids.shape[-1])


def _filled(ids: Any, rows: int) -> Any:
    """The last chunk, padded to the shape of the others: another shape would compile again."""
    return np.pad(ids, ((0, rows - len(ids)), (0, 0)), constant_values=-1)


@double_program("num_groups", "n_labels", "checked")
def _match(
    predicted: Array,
    relevant: Array,
    groups: Array | None,
    num_groups: int,
    n_labels: int | None,
    checked: bool,
) -> Matches:
    table = None if groups is None else group_table(groups, num_groups)
    prepared = partial(_narrow_ids, table=table, n_labels=n_labels, checked=checked)

    def walked(*ids: Array) -> Matches:
        def block(*ids: Array) -> Array:
            return jnp.concatenate(_walk(prepared(*ids), num_groups, checked))

        # One array: XLA would drop from the loop of a metric what that metric does not use. The
        # loops of several metrics would then differ, and XLA would not merge them into one.
        labels = relevant.shape[1]
        whole = in_blocks(block, ids, labels + num_groups)
        return Matches(*jnp.split(whole, [labels, 2 * labels]))

    def at_once(*ids: Array) -> Matches:
        return _at_once(prepared(*ids), num_groups)

    return lax.platform_dependent(predicted, relevant, cpu=walked, default=at_once)


def in_blocks(work: Callable[..., R], ids: tuple[Array, ...], state: int) -> R:
    """`work` of arrays `[rows, ...]`, a block of rows at a time; its results have rows last.

    `state` is how many numbers the loop keeps for each row; a block is so small that those of all
    its rows fit the cache.
    """
    rows = len(ids[0])
    size = min(rows, min(max(_BLOCK // state, 128), 2048))

    def part(start: Any) -> R:
        return work(*(lax.dynamic_slice_in_dim(x, start, size) for x in ids))

    if size == rows:
        return work(*ids)

    def fill(i: Array, results: R) -> R:
        # The last block overlaps the one before it: padding would copy all arrays.
        start = jnp.minimum(i * size, rows - size)
        place = partial(lax.dynamic_update_slice_in_dim, start_index=start, axis=-1)
        return jax.tree.map(place, results, part(start))

    shapes = jax.eval_shape(part, jax.ShapeDtypeStruct((), jnp.int32))
    empty = jax.tree.map(lambda x: jnp.zeros((*x.shape[:-1], rows), x.dtype), shapes)
    return varying.fori_loop(0, -(-rows // size), fill, empty)


class _NarrowIds(NamedTuple):
    """The ids in the narrowest type, with the instances last, and their groups."""

    predicted: Array  # [K, rows]
    predicted_groups: Array  # [K, rows]; -1 for ids out of range, ENDED for negative ids
    relevant: Array  # [L, rows]; where there is no group, an id that no prediction has
    relevant_groups: Array  # [L, rows]


def _narrow_ids(
    predicted: Array, relevant: Array, table: Array | None, n_labels: int | None, checked: bool
) -> _NarrowIds:
    limit = n_labels if table is None else len(table)
    relevant_groups = groups_of(relevant.T, table, n_labels)
    if limit is not None and limit < _OUT:
        predicted, predicted_groups = _in_16_bits(predicted, table, limit)
        relevant = relevant.astype(jnp.uint16)
    else:
        predicted, predicted_groups = predicted.T, walked_groups(predicted, table)
    relevant = relevant.T
    absent = relevant_groups < 0
    if not checked:
        ids = jnp.where(absent, _no_label(relevant), relevant)
        repeated = over_columns(
            lambda one, every: (one[0] == every[0]) & (one[1] < every[1]),
            (ids, jnp.arange(len(ids), dtype=jnp.int32)[:, None]),
        )
        absent |= repeated > 0
    return _NarrowIds(
        predicted,
        predicted_groups,
        jnp.where(absent, _no_label(relevant), relevant),
        jnp.where(absent, -1, relevant_groups),
    )


def _in_16_bits(predicted: Array, table: Array | None, limit: int) -> tuple[Array, Array]:
    """The ids `[rows, K]` and their groups, both `[K, rows]`.

    The ids are narrowed first. Each is then an index within the table of groups, and the gather
    needs no bounds check.
    """

    def narrow(predicted: Array) -> Array:
        ids = jnp.where(predicted < limit, predicted, _OUT)
        return jnp.where(predicted >= 0, ids, _END).astype(jnp.uint16).T

    if table is None:  # also an id out of range takes a place in the one group
        groups = jnp.zeros(_END + 1, jnp.int16)
    else:
        groups = jnp.pad(table, (0, _END + 1 - limit), constant_values=-1)
    groups = groups.at[_END].set(ENDED)
    ids = varying.apart(narrow, predicted)
    return ids, entries_at(groups, ids)


def _no_label(ids: Array) -> Any:
    """An id that no prediction of a list has before its end."""
    return ids.dtype.type(_ABSENT if ids.dtype == jnp.uint16 else -2)


def group_table(groups: Array, num_groups: int) -> Array:
    """The group of each label, -1 if out of range, in few bytes, to stay in the cache."""
    allowed = (groups >= 0) & (groups < num_groups)
    return jnp.where(allowed, groups, -1).astype(narrowest(num_groups))


def narrowest(n: int) -> Any:
    """The dtype of whole numbers up to n."""
    return jnp.int16 if n < 2**15 else jnp.int32


def groups_of(ids: Array, groups: Array | None, n_labels: int | None = None) -> Array:
    """The group of each id, 0 without groups; -1 for ids out of range."""
    limit = n_labels if groups is None else len(groups)
    valid = ids >= 0
    if limit is not None:
        valid &= ids < limit
    if groups is None:
        return jnp.where(valid, jnp.int16(0), jnp.int16(-1))
    found = entries_at(groups, jnp.where(valid, ids, 0))
    return jnp.where(valid, found, -1)


def walked_groups(predicted: Array, table: Array | None) -> Array:
    """`[K, rows]`, the group of each prediction `[rows, K]`; ENDED where the id is negative."""
    groups = groups_of(predicted, table)
    return jnp.where(predicted >= 0, groups, ENDED).astype(groups.dtype).T


def _walk(ids: _NarrowIds, num_groups: int, checked: bool) -> Matches:
    places, rows = ids.predicted.shape
    counting = narrowest(places + 1)
    nowhere = np.iinfo(counting).max
    every = jnp.arange(num_groups, dtype=ids.predicted_groups.dtype)[:, None]

    def step(state: Any, prediction: Any) -> Any:
        (going, listed, positions), (label, group) = state, prediction
        if not checked:
            going &= group != ENDED
            label = jnp.where(going, label, _no_label(label) + 1)
            group = jnp.where(going, group, ENDED)
        mine = group == every
        before = jnp.sum(jnp.where(mine, listed, 0), axis=0, dtype=counting)
        hit = label == ids.relevant
        if not checked:  # a label that is predicted twice keeps its first place
            hit &= positions == nowhere
        return (going, listed + mine, jnp.where(hit, before, positions)), None

    start = (
        jnp.ones(rows, bool),
        jnp.zeros((num_groups, rows), counting),
        jnp.full(ids.relevant.shape, nowhere, counting),
    )
    state, _ = varying.scan(step, start, (ids.predicted, ids.predicted_groups))
    _, listed, positions = state
    found = jnp.where(positions == nowhere, NOWHERE, positions.astype(jnp.int32))
    return Matches(found, ids.relevant_groups.astype(jnp.int32), listed.astype(jnp.int32))


def _at_once(ids: _NarrowIds, num_groups: int) -> Matches:
    going = jnp.cumsum(ids.predicted_groups == ENDED, axis=0, dtype=jnp.int32) == 0
    labels, groups = ids.predicted.T, jnp.where(going, ids.predicted_groups, -1).T
    place = jnp.arange(labels.shape[1], dtype=jnp.int32)
    hit = (labels == ids.relevant[..., None]) & going.T
    first = jnp.min(jnp.where(hit, place, NOWHERE), axis=-1)
    alike = (groups == ids.relevant_groups[..., None]) & (place < first[..., None])
    before = jnp.sum(alike, axis=-1, dtype=jnp.int32)
    every = jnp.arange(num_groups, dtype=groups.dtype)[:, None, None]
    return Matches(
        jnp.where(first == NOWHERE, NOWHERE, before),
        ids.relevant_groups.astype(jnp.int32),
        jnp.sum(groups == every, axis=-1, dtype=jnp.int32),
    )


def over_columns(condition: Callable[[Any, Any], Array], columns: tuple[Array, ...]) -> Array:
    """`[L, rows]`, the number of columns m for which `condition(columns[m], columns)` holds."""

    def step(total: Array, one: tuple[Array, ...]) -> tuple[Array, None]:
        return total + condition(one, columns).astype(total.dtype), None

    shape = np.broadcast_shapes(*(x.shape for x in columns))
    total, _ = varying.scan(step, jnp.zeros(shape, narrowest(shape[0])), columns)
    return total


def by_group(values: Array, groups: Array, num_groups: int, *, least: bool = False) -> Array:
    """The sum of values `[L, rows]` over the labels of each group, `[num_groups, rows]`.

    With `least`, it is their least value instead, or NOWHERE without labels.
    """
    every = jnp.arange(num_groups, dtype=groups.dtype)[:, None]
    combine, none = (jnp.minimum, NOWHERE) if least else (jnp.add, 0)

    def step(found: Array, column: tuple[Array, Array]) -> tuple[Array, None]:
        value, group = column
        return combine(found, jnp.where(group == every, value, none)), None

    start = jnp.full((num_groups, values.shape[1]), none, values.dtype)
    found, _ = varying.scan(step, start, (values, groups))
    return found


def shaped(values: Any, sets: LabelSets, *, one: bool) -> Any:
    """Values `[several, num_groups, ...]` in the shape of results, `[..., num_groups, several]`.

    Without groups their axis is dropped; so is the axis of `several` if there is only `one` limit.
    """

    def place(x: Array) -> Array:
        x = jnp.moveaxis(x, (1, 0), (-2, -1))
        x = x[..., 0] if one else x
        return jnp.take(x, 0, axis=-1 if one else -2) if sets.groups is None else x

    return jax.tree.map(place, values)
