"""The metric of every resample, in chunks of bounded memory."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base import numerics, varying
from jaxmetrics._base.compaction import first_indices
from jaxmetrics._base.double import double_precision, double_program
from jaxmetrics._base.host import at_hand, of_all_processes, on_cpu, on_gpu, processors, threads
from jaxmetrics._base.items import at_least_one, batch_of, items_at_hand
from jaxmetrics._base.meshes import in_shares, on_all
from jaxmetrics._base.processes import refuse_different
from jaxmetrics._base.types import Array, Items, Mesh
from jaxmetrics._base.undifferentiable import undifferentiable
from jaxmetrics._roc.record import MetricLike
from jaxmetrics.inference._bootstrap.by_weight import few_weights
from jaxmetrics.inference._bootstrap.draws import SHARE_ACCEPTED, Draws, draw, in_turn
from jaxmetrics.inference._bootstrap.finish import Finished, finish, finish_of
from jaxmetrics.inference._bootstrap.mixed_rows import with_mixed
from jaxmetrics.inference._bootstrap.plan import (
    Plan,
    Prepared,
    is_traced,
    pairs_of,
    prepare_head,
    prepare_items,
    prepare_runs,
    sampler_of,
    units_of_values,
)
from jaxmetrics.inference._bootstrap.random import MAX_SIZE, keys_of
from jaxmetrics.inference._bootstrap.request import Request
from jaxmetrics.inference._bootstrap.scans import GROUP
from jaxmetrics.inference._bootstrap.units import (
    ALL,
    TILE,
    Cells,
    has_ties,
    numbers_of_classes,
    weight_of_head,
)

# Of several models with up to this many negatives, all are drawn: the replicates of a model then do
# not depend on the models beside it.
FEW_NEGATIVES = 1 << 17
# The resamples of a chunk are a multiple of this: whole vectors of each of the two words of a
# Threefry block.
VECTORS = 16
# Units whose counts are in float64 at a time, for a mean on a CPU.
_TILE_OF_SUMS = 1 << 10

_NO_DERIVATIVE = (
    "resamples have no derivative: write jax.lax.stop_gradient(weights), or, for a metric that is "
    "smooth in the weights, a method without resamples, such as method='wald'"
)


class Replicates(NamedTuple):
    """The metric of resamples `[resamples, models, ...]`; the first is that of the data.

    `defined` `[resamples, models]` says whether the resample has items of both classes.
    """

    values: Any
    defined: Any


def resample_items(metric: MetricLike, items: Items, request: Request) -> Replicates:
    """The metric of resamples of items with scores `[models, n]`, labels and where `[n]`."""
    how, arrays = finish_of(metric)
    items, arrays = undifferentiable((at_least_one(items), arrays), _NO_DERIVATIVE)
    resampling, clusters = request.resampling, request.clusters
    traced = is_traced(items, arrays, request.key)
    alone = len(items.scores) == 1
    runs, weighted = alone and clusters is None and items.amounts is None, items.weights is not None
    if runs and weighted:
        runs = how.of_curves is not None and not traced and few_weights(items)
    stratified = request.stratify and clusters is None
    by_class = stratified and not weighted and resampling != "bayesian"
    by_amount = items.amounts is not None
    plan = Plan(resampling, stratified, by_class, by_amount, MAX_SIZE if runs else 1, how)
    whole = prepare_runs if runs else prepare_items
    keys = keys_of(request.key)
    # First the head alone, if one is known to suffice for nearly every resample; then all items.
    tries: list[tuple[Any, Any]] = [(whole, ALL)]
    if how.limits and not traced and clusters is None and (by_class or weighted or not runs):
        deepest = max(float(np.max(arrays[name])) for name in how.limits)
        if deepest < 1:
            weight = weight_of_head(deepest, items)
            least = np.max(weight) if alone else max(np.max(weight), FEW_NEGATIVES)
            apart = by_class and not runs and numbers_of_classes(items)[0] > least
            tries.insert(0, (prepare_head if apart else whole, weight))
    for prepare, weight in tries:
        units, cells, bad = prepare(items, plan, weight, clusters)
        beyond = weight is not ALL and prepare is not prepare_items and not weighted
        tied = traced or has_ties(cells)
        if tied and not traced and how.of_area and (found_apart := with_mixed(cells)) is not None:
            cells, tied = found_apart, False
        plan = plan._replace(tied=tied)
        prepared = Prepared(sampler_of(units, keys, plan, beyond), cells, arrays, bad)
        found, sufficient = _collect(prepared, plan, request, traced)
        if sufficient:
            break
    return found


def resample_swaps(metric: MetricLike, items: Items, request: Request) -> Replicates:
    """The metric of two models, scores `[2, n]`, that swap the scores of random items.

    A fair coin decides for each item, or each cluster. The first resample swaps nothing.
    """
    how, arrays = finish_of(metric)
    keys = keys_of(request.key)
    plan = Plan("swap", finish=how)
    coins = None if request.clusters is None else request.clusters[0]
    units, twice = pairs_of(items_at_hand(of_all_processes(items)), *at_hand(coins))
    _, cells, bad = prepare_items(twice, plan, ALL, None)
    prepared = Prepared(sampler_of(units, keys, plan, False), cells, arrays, bad)
    return _collect(prepared, plan, request, is_traced(items, keys, arrays))[0]


def resample_means(items: Items, request: Request) -> Replicates:
    """The mean of `items.scores` `[..., n]` in resamples of the items."""
    items = of_all_processes(at_least_one(items))
    items, keys = undifferentiable(items, _NO_DERIVATIVE), keys_of(request.key)
    traced = is_traced(items, keys)
    plan = Plan(request.resampling)
    units, values, weights = units_of_values(items)
    source = sampler_of(units, keys, plan, False)
    undefined: Any = np.zeros(1, bool)
    prepared = Prepared(source, (values, weights), {}, undefined)
    found, _ = _collect(prepared, plan, request, traced)
    batch = batch_of(items)
    return Replicates(*(x.reshape(len(x), *batch) for x in found))


def _lanes(prepared: Prepared, plan: Plan, request: Request, in_threads: bool) -> int:
    """The number of resamples in a chunk, which is even."""
    # The bytes of a resample: its counts, once more if they are gathered, and twice more for score
    # tables, in order and transposed; off the CPU also words. Tables themselves take memory only
    # there: the CPU makes them one at a time.
    n_units = len(prepared.sampler.units.size)
    of_tables = plan.finish is not None and plan.finish.of_tables
    again = plan.finish is not None and prepared.cells.unit is not None
    bytes_each = (1 + again + 2 * of_tables if on_cpu() else 3) * n_units + 24 * TILE
    bytes_each *= 4 if plan.resampling == "bayesian" else 1
    if plan.finish is not None and on_gpu():  # two states of each limit for each group of cells
        n_limits = sum(np.size(prepared.arrays[name]) for name in plan.finish.limits)
        bytes_each += 32 * n_limits * prepared.cells.joined.shape[-1] // GROUP
    if plan.finish is None and not on_cpu():  # counts in float64
        bytes_each += 8 * n_units
    elif of_tables and not on_cpu():
        bytes_each += 80 * prepared.cells.joined.shape[-1]
    most = 4096
    if on_cpu():  # resamples share the time of a loop's step; counts for tables stay in the cache
        most = 64 if of_tables and n_units > 1 << 14 else 128
        if plan.finish is not None and not of_tables:
            most = min(max((1 << 21) // n_units, 256), 512)
    # All resamples in one chunk, or in one for each thread, of few compiled sizes.
    workers = processors() if in_threads and on_cpu() else 1
    of_thread = math.ceil((request.n_resamples + 1) / _share_accepted(plan) / workers)
    few = numerics.next_power_of_two(of_thread)
    lanes = _rounded_down(min(request.batch or min(request.memory_budget // bytes_each, most), few))
    if request.mesh is not None:  # whole chunks for each device
        of_device = -(-_most_drawn(request.n_resamples + 1, plan) // request.mesh.size)
        lanes = _rounded_up(-(-of_device // -(-of_device // lanes)))
    return max(lanes + lanes % 2, 2)


def _rounded_down(lanes: int) -> int:
    """The multiple of VECTORS that is at most `lanes`; `lanes` itself if there is none."""
    return lanes - lanes % VECTORS if lanes > VECTORS else lanes


def _rounded_up(lanes: int) -> int:
    """The multiple of VECTORS that is at least `lanes`; `lanes` itself below the first."""
    return lanes + -lanes % VECTORS if lanes > VECTORS else lanes


# Chunks.


def _chunk(prepared: Prepared, first: Array, plan: Plan, lanes: int) -> dict[str, Any]:
    """The results of the resamples `first` to `first + lanes - 1`, in order."""
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
        both = _sums(jnp.concatenate([values, weights]), draws.counts)
        sums = both[: len(values)]
        drawn = jnp.broadcast_to(both[len(values) :], sums.shape)
        return Finished(numerics.divide(sums, drawn, jnp.nan), drawn > 0, drawn >= 0)
    how, totals = plan.finish, draws.totals if plan.by_class else None
    totals = totals[:1] if totals is not None and plan.amounts else totals

    def of_model(cells: Cells) -> Finished:
        return finish(how, draws.counts, cells, totals, prepared.arrays, plan.tied)

    found: Finished
    if prepared.cells.unit is None:
        found = jax.tree.map(lambda x: x[None], of_model(prepared.cells))
    else:
        found = lax.map(of_model, prepared.cells)
    return found


def _sums(rows: Array, counts: Array) -> Array:
    """`rows @ counts`, `[rows, resamples]`, in double precision."""
    n = len(counts)
    # XLA for CPUs takes up to 15 times as long for long rows, and copies all counts in float64.
    tile = math.gcd(n, _TILE_OF_SUMS) if on_cpu() else n

    def add(number: Array, sums: Array) -> Array:
        of_tile = lax.dynamic_slice_in_dim(rows, number * tile, tile, axis=1)
        here = lax.dynamic_slice_in_dim(counts, number * tile, tile)
        return sums + of_tile @ here.astype(jnp.float64)

    return varying.fori_loop(0, n // tile, add, jnp.zeros((len(rows), counts.shape[1])))


@functools.cache
def _wide_vectors() -> dict[str, Any] | None:
    """The option by which XLA uses vectors of 512 bits, not 256; None off the CPU or without it.

    Random words then take half the time.
    """
    options = {"xla_cpu_prefer_vector_width": 512}
    if not on_cpu():
        return None
    try:
        jax.jit(lambda: 0, compiler_options=options)()
    except jax.errors.JaxRuntimeError:  # a version without it
        return None
    return options


_compiled_chunk = double_program("plan", "lanes", options=_wide_vectors)(_chunk)


_DIFFERENT = (
    "items, or keys, differ between the processes of the mesh: give each process all items and the "
    "same key, or put the items on the mesh by jax.make_array_from_process_local_data"
)


def _collect(
    prepared: Prepared, plan: Plan, request: Request, traced: bool
) -> tuple[Replicates, bool]:
    """The first accepted resamples, and whether the cells sufficed for them."""
    wanted, mesh = request.n_resamples + 1, request.mesh
    in_threads = mesh is None and not traced
    lanes = _lanes(prepared, plan, request, in_threads)
    if in_threads:
        return _in_threads(prepared, plan, request, lanes)
    if mesh is not None:
        refuse_different(prepared, mesh, _DIFFERENT)
        with double_precision():
            prepared = on_all(prepared, mesh)
    found, sufficient = _in_program(prepared, plan, wanted, lanes, mesh)
    if traced:
        return found, True
    if request.progress is not None:
        request.progress(request.n_resamples)
    return jax.tree.map(np.asarray, found), bool(sufficient)


def _in_threads(
    prepared: Prepared, plan: Plan, request: Request, lanes: int
) -> tuple[Replicates, bool]:
    """Chunks of resamples, on all processors at once, until enough resamples are accepted."""
    progress, wanted = request.progress, request.n_resamples + 1
    _wide_vectors()  # before each thread asks for it

    def run(number: int) -> dict[str, Any]:
        found = _compiled_chunk(prepared, np.uint32(number * lanes), plan, lanes)
        return jax.tree.map(np.asarray, found)

    chunks: list[dict[str, Any]] = []
    accepted, sufficient = 0, True
    with threads() as workers:
        while accepted < wanted and sufficient:
            each = accepted / len(chunks) if accepted else lanes * _share_accepted(plan)
            more = math.ceil((wanted - accepted) / each)
            if progress is not None:  # in rounds, to report progress after each
                more = min(more, max(4 * len(chunks), 1))
            # The first thread compiles the program, and JAX makes the others wait for it.
            chunks.extend(workers.map(run, range(len(chunks), len(chunks) + more)))
            accepted = sum(int(chunk["accepted"].sum()) for chunk in chunks)
            sufficient = all(chunk["sufficient"] for chunk in chunks)
            if progress is not None:
                progress(max(min(accepted, wanted) - 1, 0))
    keep = np.flatnonzero(np.concatenate([chunk["accepted"] for chunk in chunks]))[:wanted]

    def joined(name: str) -> Any:
        parts = [chunk[name] for chunk in chunks]
        return jax.tree.map(lambda *parts: np.concatenate(parts)[keep], *parts)

    return Replicates(joined("values"), joined("defined")), sufficient


def _most_drawn(wanted: int, plan: Plan) -> int:
    """The number of resamples to draw so that `wanted` ones are accepted."""
    if plan.resampling != "multinomial":
        return wanted
    # This is too few with probability below 1e-12.
    return int(wanted / _share_accepted(plan) + np.sqrt(wanted) + 16)


def _share_accepted(plan: Plan) -> float:
    return SHARE_ACCEPTED if plan.resampling == "multinomial" else 1.0


@double_program("plan", "wanted", "lanes", "mesh")
def _in_program(
    prepared: Prepared, plan: Plan, wanted: int, lanes: int, mesh: Mesh | None
) -> tuple[Replicates, Array]:
    """The accepted resamples of a number of chunks that is fixed when the program is traced.

    The devices of a mesh share the chunks. Also returns whether the cells sufficed.
    """

    def of_chunks(prepared: Prepared, starts: Array) -> Any:
        return lax.map(lambda first: _chunk(prepared, first, plan, lanes), starts)

    starts = jnp.arange(0, _most_drawn(wanted, plan), lanes, dtype=jnp.uint32)
    if mesh is None:
        found = of_chunks(prepared, starts)
    else:
        n_chunks = len(starts) + -len(starts) % mesh.size
        starts = jnp.arange(n_chunks, dtype=jnp.uint32) * lanes
        found = in_shares(of_chunks, mesh)(prepared, starts)
    accepted = found["accepted"].ravel()
    keep, exist = first_indices(accepted, wanted)

    def kept(x: Array, fill: float) -> Array:
        flat = x.reshape(-1, *x.shape[2:])
        return flat.at[jnp.where(exist, keep, len(flat))].get(mode="fill", fill_value=fill)

    values = jax.tree.map(lambda x: kept(x, jnp.nan), found["values"])
    return Replicates(values, kept(found["defined"], False)), jnp.all(found["sufficient"])
