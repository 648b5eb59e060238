"""The metric of every resample: prepared once, drawn and finished in chunks of bounded memory."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base import numerics
from jaxmetrics._base.double import double_precision, double_program
from jaxmetrics._base.host import at_hand, is_compiling, is_concrete, on_cpu, threads
from jaxmetrics._base.items import at_least_one
from jaxmetrics._base.types import Array, Items
from jaxmetrics._roc.order import (
    LEFT_OUT,
    NEGATIVE,
    POSITIVE,
    Ordered,
    in_order,
    undefined,
)
from jaxmetrics.inference._bootstrap.draws import Draws, Sampler, draw, in_turn, rates_of
from jaxmetrics.inference._bootstrap.finish import Finish, Finished, finish, finish_of
from jaxmetrics.inference._bootstrap.random import (
    MAX_SIZE,
    Distribution,
    poisson_distribution,
    poisson_tables,
    words_of,
)
from jaxmetrics.inference._bootstrap.units import (
    TILE,
    Cells,
    Runs,
    Units,
    cells_of_items,
    head_of,
    padded,
    padded_units,
    runs_of,
    units_of_items,
    units_of_runs,
)
from jaxmetrics.inference._influence.gradient import order_now
from jaxmetrics.inference._influence.influence import Clusters


class Plan(NamedTuple):
    """How to resample, as compile-time constants.

    Attributes:
      resampling: "multinomial", "poisson" or "bayesian".
      stratified: whether each class is drawn by itself.
      by_class: whether draws add up to the items of each class, so that their totals are known.
      max_size: the most items that are drawn as one.
      finish: how the metric is computed; None for a mean.
    """

    resampling: str
    stratified: bool
    by_class: bool
    max_size: int
    finish: Finish | None


class Prepared(NamedTuple):
    """What all chunks share.

    Attributes:
      sampler: of the units.
      cells: without runs, with an axis of models; for a mean, values and weights `[models, n]`.
      arrays: the options of the metric that are arrays.
      undefined: `[models]` or `[]`, whether the metric is NaN throughout.
    """

    sampler: Sampler
    cells: Any
    arrays: dict[str, Any]
    undefined: Array


class Replicates(NamedTuple):
    """The metric of resamples `[resamples, models, ...]`, of which the first is the data.

    `defined` `[resamples, models]` says in which both classes were drawn.
    """

    values: Any
    defined: Any


class Settings(NamedTuple):
    """How many resamples, of what kind, and what they may take; as for `bootstrap`."""

    key: Any
    n_resamples: int
    stratify: bool
    clusters: Clusters | None
    resampling: str
    batch: int | None
    memory_budget: int
    progress: Callable[[int], None] | None


def replicates(metric: Callable[..., Any], items: Items, settings: Settings) -> Replicates:
    """Resamples items of which scores are `[models, n]`, labels and where `[n]`."""
    how, arrays = finish_of(metric)
    items = at_least_one(items)
    resampling, clusters = settings.resampling, settings.clusters
    counted = clusters is None and items.weights is None and items.amounts is None
    runs = counted and len(items.scores) == 1 and resampling != "bayesian"
    stratified = settings.stratify and clusters is None
    by_class = counted and stratified and resampling != "bayesian"
    plan = Plan(resampling, stratified, by_class, MAX_SIZE if runs else 1, how)
    prepare = functools.partial(_prepare_runs, merges=how.merges) if runs else _prepare_items
    words = words_of(settings.key)
    traced = _is_traced(items, words, arrays)
    has_head = by_class and bool(how.limits) and not traced
    deepest = max(float(np.max(arrays[name])) for name in how.limits) if has_head else 1.0
    for limit in (deepest, 1.0) if deepest < 1 else (1.0,):
        units, cells, bad = prepare(items, plan, limit, clusters)
        source = _sampler(units, words, plan, limit < 1 and runs)
        prepared = Prepared(source, cells, arrays, bad)
        found, sufficient = _collect(prepared, plan, settings, traced)
        if sufficient:
            break
    return found


def swap_replicates(metric: Callable[..., Any], items: Items, settings: Settings) -> Replicates:
    """The metric of two models whose scores are swapped at random, `[2, n]`, by fair coins.

    The first resample is that in which nothing is swapped.
    """
    how, arrays = finish_of(metric)
    words = words_of(settings.key)
    plan = Plan("swap", False, False, 1, how)
    units, twice = _pairs(items)
    _, cells, bad = _prepare_items(twice, plan, 1.0, None)
    prepared = Prepared(_sampler(units, words, plan, False), cells, arrays, bad)
    return _collect(prepared, plan, settings, _is_traced(items, words, arrays))[0]


@double_program()
def _pairs(items: Items) -> tuple[Units, Items]:
    """Pairs of units, and items that each model has twice: its own, and in the other's place."""
    n = items.scores.shape[-1]
    own = jnp.pad(jnp.repeat(jnp.array([1, 0], jnp.int32), n), (0, -2 * n % TILE))
    pair, none = jnp.tile(jnp.arange(n, dtype=jnp.int32), 2), jnp.zeros(2, jnp.int32)
    units = Units(own, 1 - own, jnp.int32(2 * n), pair, none, none)
    twice = Items(
        scores=jnp.stack([items.scores, items.scores[::-1]], axis=1).reshape(2, 2 * n),
        labels=jnp.tile(items.labels, 2),
        where=None if items.where is None else jnp.tile(items.where, 2),
    )
    return units, twice


def mean_replicates(items: Items, settings: Settings) -> Replicates:
    """The mean of `items.scores` `[..., n]`, of which every item is drawn by itself."""
    items, words = at_least_one(items), words_of(settings.key)
    traced = _is_traced(items, words)
    plan = Plan(settings.resampling, False, False, 1, None)
    units, values, weights = _units_of_values(items)
    source = _sampler(units, words, plan, False)
    prepared = Prepared(source, (values, weights), {}, jnp.zeros(1, bool))
    found, _ = _collect(prepared, plan, settings, traced)
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in items if x is not None))
    return Replicates(*(x.reshape(len(x), *batch) for x in found))


def _is_traced(*trees: Any) -> bool:
    return is_compiling() or not all(map(is_concrete, jax.tree.leaves(trees)))


def _lanes(prepared: Prepared, plan: Plan, settings: Settings) -> int:
    """How many resamples at once; an even number."""
    # Counts, words, and of what a metric makes of its tables those of one resample at a time.
    bytes_each = 4 * len(prepared.sampler.units.size) + 16 * TILE
    if plan.finish is None:
        bytes_each += 8 * len(prepared.sampler.units.size)
    elif plan.finish.of_curves is None and not on_cpu():
        bytes_each += 80 * prepared.cells.joined.shape[-1]
    most = 4096
    if on_cpu():  # whose cache holds the counts of few units
        most = 64 if len(prepared.sampler.units.size) > 1 << 14 else 128
    few = 1 << (settings.n_resamples - 1).bit_length()  # enough for all, in few sizes
    lanes = settings.batch or min(settings.memory_budget // bytes_each, most, few)
    return max(lanes + lanes % 2, 2)


# Preparing: units and cells from items. What differs between metrics is traced, not static, so that
# they share these programs.


def _prepare_runs(
    items: Items, plan: Plan, limit: float, _: Any, *, merges: bool
) -> tuple[Units, Cells, Any]:
    """One model, whose items are drawn in runs."""
    items = items._replace(scores=items.scores[0])
    order, bad = _in_order(items)
    total = _by_kind(order)
    traced = _is_traced(order)
    if not traced:
        with double_precision():
            order = _padded(order, int(head_of(order, limit)))
    runs = _runs(order, merges)
    n = len(order.keys)
    # As many places as there are runs, in few sizes; or, unknown yet, as there are items.
    capacity = n if traced else min(_places(int(runs.used)), n)
    like = np.zeros(0, items.scores.dtype)
    return *_units_of_runs(order, runs, total, like, plan.stratified, capacity), bad


def _in_order(items: Items) -> tuple[Ordered, Any]:
    """One problem in order, and whether it is undefined; NumPy's arrays, if NumPy may sort them."""
    order = order_now(items)
    if order is not None:
        return order, undefined(Items(*at_hand(*items)))
    return _in_order_on_device(items)


@double_program()
def _in_order_on_device(items: Items) -> tuple[Ordered, Array]:
    items = jax.tree.map(jnp.asarray, items)
    return in_order(items), undefined(items)


def _by_kind(order: Ordered) -> Any:
    """All negatives and positives, `[2]`."""
    library = numerics.namespace(order.kinds)
    counts = [library.sum(order.kinds == kind) for kind in (NEGATIVE, POSITIVE)]
    return library.stack(counts).astype(np.int32)


def _places(n: int) -> int:
    """At least n, and one of few numbers, so that data of like size share a program."""
    return max(1 << (n - 1).bit_length(), TILE) if n else TILE


def _padded(order: Ordered, n: int) -> Ordered:
    """The first n items, and items that are left out for the remaining places."""
    library = numerics.namespace(order.keys)
    widths = (0, _places(n) - n)
    last = ~order.keys.dtype.type(0)
    return Ordered(
        library.pad(order.keys[:n], widths, constant_values=last),
        library.pad(order.kinds[:n], widths, constant_values=LEFT_OUT),
        library.pad(order.item[:n], widths),
    )


@double_program()
def _runs(order: Ordered, merges: Array) -> Runs:
    return runs_of(jax.tree.map(jnp.asarray, order), merges)


@double_program("capacity")
def _units_of_runs(
    order: Ordered, runs: Runs, total: Array, like: Array, stratified: Array, capacity: int
) -> tuple[Units, Cells]:
    order = jax.tree.map(jnp.asarray, order)
    found = units_of_runs(order, runs, total, like, capacity, stratified)
    return padded(*found)


def _prepare_items(
    items: Items, plan: Plan, limit: Any, clusters: Clusters | None
) -> tuple[Units, Cells, Any]:
    """Several models, weights, or clusters: each item or cluster is drawn by itself."""
    ids, n_clusters = (None, 0) if clusters is None else clusters
    return _units_of_items(items, order_now(items), ids, plan.stratified, limit, n_clusters)


@double_program("n_clusters")
def _units_of_items(
    items: Items,
    order: Ordered | None,
    ids: Array | None,
    stratified: Array,
    limit: Array,
    n_clusters: int,
) -> tuple[Units, Cells, Array]:
    items = jax.tree.map(jnp.asarray, items)
    order = in_order(items) if order is None else jax.tree.map(jnp.asarray, order)
    valid = jnp.ones(items.labels.shape, bool) if items.where is None else items.where
    if items.weights is not None and items.weights.ndim == 1:
        valid = valid & (items.weights > 0)
    strata = jnp.where(valid, (items.labels == 1) & stratified, LEFT_OUT)
    if ids is not None:
        used = jnp.zeros(n_clusters, bool).at[ids].max(valid)
        strata = jnp.where(used, 0, LEFT_OUT)

    def of_model(scores: Any, order: Ordered, weights: Any, amounts: Any) -> Cells:
        one = items._replace(scores=scores, weights=weights, amounts=amounts)
        return cells_of_items(one, order, ids, limit)

    per_item = (items.weights, items.amounts)
    axes = [0 if x is not None and x.ndim == 2 else None for x in per_item]
    cells = jax.vmap(of_model, in_axes=(0, 0, *axes))(items.scores, order, *per_item)
    units, cells = padded(units_of_items(strata), cells)
    return units, cells, jnp.broadcast_to(undefined(items), items.scores.shape[:1])


@double_program()
def _units_of_values(items: Items) -> tuple[Units, Array, Array]:
    """Units, and values and weights `[rows, n]` of which the products with counts are sums."""
    items = jax.tree.map(jnp.asarray, items)
    n = items.scores.shape[-1]
    valid = jnp.ones(n, bool) if items.where is None else items.where
    weights = jnp.where(valid, 1.0 if items.weights is None else items.weights, 0.0)
    shape = jnp.broadcast_shapes(items.scores.shape, weights.shape)
    weights = jnp.broadcast_to(weights, shape).reshape(-1, n).astype(jnp.float64)
    values = jnp.broadcast_to(items.scores, shape).reshape(-1, n)
    values = jnp.where(weights > 0, values * weights, 0.0)
    strata = jnp.where(jnp.any(weights > 0, axis=0), 0, LEFT_OUT)
    return padded_units(units_of_items(strata)), values, weights


@double_program("max_size")
def _tables(total: Array, fill: Array, max_size: int) -> tuple[Array, Array]:
    tables, starts = poisson_tables(rates_of(total, fill), max_size)
    return tables.ravel(), starts.ravel()


@double_program("most")
def _rest(total: Array, drawn: Array, fill: Array, most: int) -> tuple[Distribution, Distribution]:
    means = rates_of(total, fill) * (total - drawn)
    return poisson_distribution(means[0], most), poisson_distribution(means[1], most)


def _sampler(units: Units, words: Array, plan: Plan, head: bool) -> Sampler:
    fill = plan.resampling == "multinomial"
    tables, starts = _tables(units.total, fill, plan.max_size)
    most = 1 << len(units.owner).bit_length()
    rest = _rest(units.total, units.drawn, fill, most) if head else None
    return Sampler(units, words, tables, starts, rest)


# Chunks.


def _chunk(prepared: Prepared, first: Array, plan: Plan, lanes: int) -> dict[str, Any]:
    """Of the resamples `first` to `first + lanes - 1`, in turn."""
    draws = draw(prepared.sampler, first, lanes, plan.resampling)
    found = _finished(prepared, draws, plan)
    bad = prepared.undefined.reshape(-1, 1)

    def turned(values: Array) -> Array:
        values = jnp.where(bad.reshape(-1, *(1,) * (values.ndim - 1)), jnp.nan, values)
        return in_turn(jnp.swapaxes(values, 0, 1))

    return {
        "values": jax.tree.map(turned, found.values),
        "defined": in_turn((found.defined & ~bad).T),
        "accepted": in_turn(draws.accepted),
        "sufficient": jnp.all(found.sufficient | ~draws.accepted | bad),
    }


def _finished(prepared: Prepared, draws: Draws, plan: Plan) -> Finished:
    """The metric `[models, resamples]` of each resample."""
    if plan.finish is None:
        values, weights = prepared.cells
        counts = draws.counts[: values.shape[-1]].astype(jnp.float64)
        sums, totals = values @ counts, weights @ counts
        return Finished(numerics.divide(sums, totals, jnp.nan), totals > 0, totals >= 0)
    how, totals = plan.finish, draws.totals if plan.by_class else None

    def of_model(cells: Cells) -> Finished:
        return finish(how, draws.counts, cells, totals, prepared.arrays)

    found: Finished
    if prepared.cells.unit is None:
        found = jax.tree.map(lambda x: x[None], of_model(prepared.cells))
    else:
        found = lax.map(of_model, prepared.cells)
    return found


_compiled_chunk = double_program("plan", "lanes")(_chunk)


def _collect(
    prepared: Prepared, plan: Plan, settings: Settings, traced: bool
) -> tuple[Replicates, bool]:
    """The first resamples that are accepted, and whether the cells sufficed for them."""
    lanes = _lanes(prepared, plan, settings)
    if traced:
        wanted = settings.n_resamples + 1
        return _in_program(prepared, plan, wanted, lanes), True
    return _in_threads(prepared, plan, settings, lanes)


def _in_threads(
    prepared: Prepared, plan: Plan, settings: Settings, lanes: int
) -> tuple[Replicates, bool]:
    """Chunk after chunk, as many at a time as there are processors, until enough are accepted."""
    progress, wanted = settings.progress, settings.n_resamples + 1

    def run(number: int) -> dict[str, Any]:
        found = _compiled_chunk(prepared, np.uint32(number * lanes), plan, lanes)
        result: dict[str, Any] = jax.tree.map(np.asarray, found)
        return result

    chunks = [run(0)]  # alone, as it compiles
    with threads() as workers:
        while True:
            accepted = sum(int(chunk["accepted"].sum()) for chunk in chunks)
            sufficient = all(chunk["sufficient"] for chunk in chunks)
            if progress is not None:
                progress(max(min(accepted, wanted) - 1, 0))
            if accepted >= wanted or not sufficient:
                break
            more = -(-(wanted - accepted) * len(chunks) // max(accepted, 1))
            # In rounds, so that progress is seen.
            more = min(more, 4 * len(chunks)) if progress is not None else more
            chunks.extend(workers.map(run, range(len(chunks), len(chunks) + more)))
    keep = np.flatnonzero(np.concatenate([chunk["accepted"] for chunk in chunks]))[:wanted]

    def joined(name: str) -> Any:
        parts = [chunk[name] for chunk in chunks]
        return jax.tree.map(lambda *parts: np.concatenate(parts)[keep], *parts)

    return Replicates(joined("values"), joined("defined")), sufficient


@double_program("plan", "wanted", "lanes")
def _in_program(prepared: Prepared, plan: Plan, wanted: int, lanes: int) -> Replicates:
    """A loop over chunks within a program that is being traced."""
    n = wanted
    if plan.resampling == "multinomial":
        # Nine of ten are accepted or more; that this is not enough has a chance below 1e-12.
        n = int(wanted / 0.9 + 8 * np.sqrt(wanted) + 16)
    starts = jnp.arange(0, n, lanes, dtype=jnp.uint32)
    found = lax.map(lambda first: _chunk(prepared, first, plan, lanes), starts)
    accepted = found["accepted"].ravel()
    keep = jnp.nonzero(accepted, size=wanted, fill_value=len(accepted))[0]

    def kept(x: Array, fill: float) -> Array:
        flat = x.reshape(-1, *x.shape[2:])
        return flat.at[keep].get(mode="fill", fill_value=fill)

    values = jax.tree.map(lambda x: kept(x, jnp.nan), found["values"])
    return Replicates(values, kept(found["defined"], False))
