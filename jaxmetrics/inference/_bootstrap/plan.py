"""What all chunks of a bootstrap share: the units to draw and the cells that they fill."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import repeat
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import numerics, sorting
from jaxmetrics._base.double import double_precision, double_program, library_program
from jaxmetrics._base.host import at_hand, is_compiling, is_concrete
from jaxmetrics._base.items import items_at_hand, rows_of
from jaxmetrics._base.types import Array, Items
from jaxmetrics._roc.order import (
    LEFT_OUT,
    NEGATIVE,
    POSITIVE,
    Ordered,
    in_order,
    undefined,
)
from jaxmetrics._roc.record import Options
from jaxmetrics.inference._bootstrap.by_weight import by_weight, without_weights
from jaxmetrics.inference._bootstrap.draws import Sampler, rates_of
from jaxmetrics.inference._bootstrap.random import (
    Distribution,
    Words,
    gamma_tables,
    pair_tables,
    poisson_distribution,
    poisson_tables,
)
from jaxmetrics.inference._bootstrap.units import (
    ALL,
    Cells,
    Runs,
    Units,
    cells_of_items,
    few_lengths,
    head_of,
    items_of_head,
    numbers_of_classes,
    padded,
    padded_to,
    padded_units,
    places,
    runs_of,
    units_of_all,
    units_of_items,
    units_of_runs,
    whole_tiles,
)
from jaxmetrics.inference._influence.clusters import Clusters
from jaxmetrics.inference._influence.gradient import order_now
from jaxmetrics.inference._intervals.metrics import Finish


class Plan(NamedTuple):
    """How to resample, as compile-time constants.

    Attributes:
      resampling: "multinomial", "poisson", "bayesian", or "swap" for permutations.
      stratified: whether each class is drawn separately.
      by_class: whether the totals of the draws are the numbers of negatives and positives.
      amounts: whether positives count by amounts.
      max_size: the largest number of items in a unit.
      finish: how the metric is computed; None for a mean.
      tied: whether any row of a score table has several cells.
    """

    resampling: str
    stratified: bool = False
    by_class: bool = False
    amounts: bool = False
    max_size: int = 1
    finish: Finish | None = None
    tied: bool = True


class Prepared(NamedTuple):
    """The arrays that all chunks share.

    Attributes:
      sampler: draws the units.
      cells: Cells, with a leading axis of models unless cell i is filled by unit i; for a mean,
        weighted values `[models, units]`, and weights `[models, units]` or `[1, units]`.
      arrays: the options of the metric that are arrays.
      undefined: `[models]` or `[]`, whether the metric is NaN for every resample.
    """

    sampler: Sampler
    cells: Any
    arrays: Options
    undefined: Array


def is_traced(*trees: Any) -> bool:
    """Whether a program is being traced."""
    return is_compiling() or not all(map(is_concrete, jax.tree.leaves(trees)))


# Units and cells from items. All that differs between metrics is a traced argument here, so that
# metrics share the compiled programs.


def prepare_runs(items: Items, plan: Plan, weight: Any, _: Any) -> tuple[Units, Cells, Any]:
    """Units and cells of one model whose items are drawn in runs, with few weights or none.

    Without weights only the runs of the head are drawn. With weights all runs are drawn, and only
    those of the head are scanned.
    """
    assert plan.finish is not None
    depth, weights = np.max(weight), None
    head: Any = None
    if items.weights is not None:
        items, weights = without_weights(items)
    items = items._replace(scores=items.scores[0])
    order, bad = _in_order(items)
    total = _by_kind(order)
    traced = is_traced(order)
    if not traced:
        with double_precision():
            if weights is None:
                order = _padded(order, int(head_of(order, order.kinds == NEGATIVE, depth)))
            else:
                order = Ordered(*map(np.asarray, order))
                of_negatives = weights.take(order.item) * (order.kinds == NEGATIVE)
                head, depth = int(head_of(order, of_negatives, depth)), ALL
                order = _padded(order, int(np.sum(order.kinds != LEFT_OUT)))
    n = len(order.keys)
    runs = _runs(order, tuple(map(np.bool_, plan.finish.merges)))
    if weights is not None:
        begins = np.append(np.flatnonzero(runs.begins), n)
        # Raised to the end of a run, as `by_weight` reorders the items of each run.
        head = begins[begins.searchsorted(head)]
        order, runs, weights = by_weight(order, runs, weights)
    # Under a trace the number of runs is unknown, but at most that of items.
    capacity = n if traced else _capacity(runs, total, n, depth)
    like, stratified = np.zeros(0, items.scores.dtype), np.bool_(plan.stratified)
    units, cells = _units_of_runs(order, runs, weights, total, like, stratified, capacity)
    if head is not None:
        reached: Any = np.cumsum(np.asarray(units.size)).searchsorted(head) + 1
        cells = cells._replace(head=np.minimum(reached, cells.used).astype(np.int32))
    return units, cells, bad


def _capacity(runs: Runs, total: Any, n: int, depth: float) -> int:
    """The number of places for runs; as a rule equal for all data with the same class sizes."""
    usual = 2 * int(min(total)) + 1 if depth == ALL else 0
    return min(places(max(int(runs.used), usual)), n)


def _in_order(items: Items) -> tuple[Ordered, Any]:
    """The items in order, and whether the metric is undefined; NumPy arrays if NumPy sorts them."""
    order = order_now(items)
    if order is not None:
        return order, undefined(items_at_hand(items))
    return _in_order_on_device(items)


@double_program()
def _in_order_on_device(items: Items) -> tuple[Ordered, Array]:
    items = jax.tree.map(jnp.asarray, items)
    return in_order(items), undefined(items)


def _by_kind(order: Ordered) -> Any:
    """The number of negatives and positives, `[2]`."""
    library = numerics.namespace(order.kinds)
    counts = [library.sum(order.kinds == kind) for kind in (NEGATIVE, POSITIVE)]
    return library.stack(counts).astype(np.int32)


def _padded(order: Ordered, n: int) -> Ordered:
    """The first n items, padded with items that are left out."""
    library = numerics.namespace(order.keys)
    widths = (0, places(n) - n)
    last = sorting.largest_key(order.keys)
    return Ordered(
        library.pad(order.keys[:n], widths, constant_values=last),
        library.pad(order.kinds[:n], widths, constant_values=LEFT_OUT),
        library.pad(order.item[:n], widths),
    )


_runs = library_program()(runs_of)


@library_program("capacity")
def _units_of_runs(
    order: Ordered,
    runs: Runs,
    weights: Array | None,
    total: Array,
    like: Array,
    stratified: Array,
    capacity: int,
) -> tuple[Units, Cells]:
    found = units_of_runs(order, runs, weights, total, like, capacity, stratified)
    return padded(*found, whole_tiles)


def prepare_items(
    items: Items, plan: Plan, weight: Any, clusters: Clusters | None
) -> tuple[Units, Cells, Any]:
    """Units and cells of any models, weights and clusters: each item or cluster is a unit."""
    ids, n_clusters = (None, 0) if clusters is None else clusters
    assert plan.finish is not None
    capacity = places(n_clusters)  # data with about as many clusters share a compiled program
    order = order_now(items)
    # Scans end at the cells in use, but a score table has a row for each place. Where NumPy cannot
    # sort, other programs of this one number of items are compiled in any case.
    length = whole_tiles if plan.finish.of_tables or order is None else few_lengths
    given: Any = items_at_hand(items), order, *at_hand(ids)
    if weight is not ALL:
        weight = np.broadcast_to(weight, items.scores.shape[:1])
    counted = plan.by_class and not plan.amounts
    given = *given, np.bool_(plan.stratified), None if weight is ALL else weight
    units, cells, bad = _units_of_items(*given, capacity, plan.finish.apart, counted, length)
    used = units.used if ids is None else numerics.namespace(units.used).int32(n_clusters)
    return units._replace(used=used), cells, bad


def prepare_head(items: Items, plan: Plan, weight: Any, _: Any) -> tuple[Units, Cells, Any]:
    """Units and cells of any models, where each item that can change the metric is a unit."""
    bad = np.broadcast_to(undefined(items_at_hand(items)), items.scores.shape[:1])
    of_head = items_of_head(items, math.ceil(np.max(weight)))
    units, cells, _ = prepare_items(of_head, plan, weight, None)
    # The items of the head come before its padding, which needs no draws.
    used = units.drawn[0] + units.drawn[1]
    return units._replace(total=numbers_of_classes(items), used=used), cells, bad


@library_program("n_clusters", "apart", "counted", "length")
def _units_of_items(
    items: Items,
    order: Ordered | None,
    ids: Array | None,
    stratified: Array,
    weight: Array | None,
    n_clusters: int,
    apart: bool,
    counted: bool,
    length: Callable[[int], int],
) -> tuple[Units, Cells, Array]:
    order = in_order(items) if order is None else order
    library = numerics.namespace(*order)
    valid = library.ones(items.labels.shape, bool) if items.where is None else items.where
    if items.weights is not None and items.weights.ndim == 1:
        valid = valid & (items.weights > 0)
    strata = library.where(valid, (items.labels == 1) & stratified, LEFT_OUT)
    if ids is not None:
        strata = library.where(_occurs(ids, valid, n_clusters), 0, LEFT_OUT)

    def of_model(one: Items, order: Ordered, weight: Array | None) -> Cells:
        return cells_of_items(one, order, ids, weight, apart, counted)

    if library is np:
        of_models = rows_of(items, items.scores.shape[:1], 2)
        orders = map(Ordered, *order)
        weights = repeat(None) if weight is None else weight
        cells = jax.tree.map(lambda *x: np.stack(x), *map(of_model, of_models, orders, weights))
    else:
        axes: Any = [None if x is None or x.ndim == 1 else 0 for x in items]
        cells = jax.vmap(of_model, in_axes=(Items(*axes), 0, 0))(items, order, weight)
    if len(cells.positives) == 1 and ids is None:
        # The units are in the order of the only model, so that nothing is gathered.
        cells = jax.tree.map(lambda x: x[0], cells._replace(unit=None))
        strata = sorting.take(strata, order.item[0])
    units, cells = padded(units_of_items(strata), cells, length)
    return units, cells, library.broadcast_to(undefined(items), items.scores.shape[:1])


def _occurs(ids: Any, valid: Any, n_clusters: int) -> Any:
    """`[clusters]`, whether the cluster has a valid item."""
    if numerics.namespace(ids, valid) is jnp:
        return jnp.zeros(n_clusters, bool).at[ids].max(valid)
    return np.bincount(ids[valid], minlength=n_clusters) > 0


@library_program()
def units_of_values(items: Items) -> tuple[Units, Array, Array]:
    """Units, and weighted values `[rows, units]` and weights, whose products with counts are sums.

    The weights are `[1, units]` if all rows have the same.
    """
    n, library = items.scores.shape[-1], numerics.namespace(items.scores)
    ones, everywhere = library.ones(n), library.ones(n, bool)
    valid = everywhere if items.where is None else items.where
    weights = library.where(valid, ones if items.weights is None else items.weights, 0.0)
    shape = np.broadcast_shapes(items.scores.shape, weights.shape)
    if weights.ndim > 1:
        weights = library.broadcast_to(weights, shape)
    weights = weights.reshape(-1, n).astype(np.float64)
    values = library.broadcast_to(items.scores, shape).reshape(-1, n)
    values = library.where(weights > 0, values * weights, 0.0)
    if items.weights is None and items.where is None:
        units = units_of_all(n, library)
    else:
        strata = library.where(library.any(weights > 0, axis=0), 0, LEFT_OUT)
        units = units_of_items(strata)
    length = few_lengths(n)
    values, weights = padded_to(length, values), padded_to(length, weights)
    return padded_units(units, few_lengths), values, weights


@library_program("max_size")
def _tables(total: Array, fill: Array, max_size: int) -> tuple[Array, Array]:
    rates = rates_of(total, fill)
    if max_size == 1:
        return pair_tables(rates).ravel(), numerics.namespace(rates).zeros(0, np.uint32)
    tables, starts = poisson_tables(rates, max_size)
    return tables.ravel(), starts.ravel()


@double_program("most")
def _distributions_of_rest(
    total: Array, drawn: Array, fill: Array, most: int
) -> tuple[Distribution, Distribution]:
    means = rates_of(total, fill) * (total - drawn)
    return poisson_distribution(means[0], most), poisson_distribution(means[1], most)


def sampler_of(units: Units, keys: tuple[Words, ...], plan: Plan, head: bool) -> Sampler:
    """The Sampler of the units; with `head`, its `rest` draws the items that are in no unit."""
    fill = plan.resampling == "multinomial"
    bayesian = plan.resampling == "bayesian"
    tables: Any
    starts: Any
    if bayesian:
        tables, starts = gamma_tables(plan.max_size), np.zeros(0, np.uint32)
    else:
        tables, starts = _tables(*at_hand(units.total), np.bool_(fill), plan.max_size)
    rest = None
    if head:
        # A power of two, so that data of similar size share a compiled program.
        most = numerics.next_power_of_two(np.max(units.total) + 1)
        rest = _distributions_of_rest(units.total, units.drawn, fill, most)
    return Sampler(units, keys, tables, starts, rest)


@library_program()
def pairs_of(items: Items, clusters: Array | None) -> tuple[Units, Items]:
    """Two units for each item, exactly one of which is drawn, and the items of both models twice.

    A model's first copy of an item has its own score, and its second copy has the other model's.
    The items of a cluster, of `clusters` `[n]` from 0, share a coin.
    """
    n, library = items.scores.shape[-1], numerics.namespace(items.scores)
    own = library.repeat(np.array([1, 0], np.int32), n)
    # Where there are no items, a masked one stands for them, which is in no cluster.
    coin = library.arange(n) if clusters is None else library.resize(clusters, (n,))
    both, none = library.tile(coin.astype(np.int32), 2), library.zeros(2, np.int32)
    units = padded_units(Units(own, 1 - own, library.int32(2 * n), both, none, none), few_lengths)
    twice = Items(
        scores=library.stack([items.scores, items.scores[::-1]], axis=1).reshape(2, 2 * n),
        labels=library.tile(items.labels, 2),
        where=None if items.where is None else library.tile(items.where, 2),
    )
    return units, twice
