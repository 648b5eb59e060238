"""Metrics, errors and losses of whole arrays whose items lie on eight devices: no axis is named.

    python tests/sharded_worker.py PROCESS PROCESSES PORT [all]

Prints as JSON the largest distance of each result from that of one device.
"""

import functools
import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
from devices import ITEMS, ROWS, WHOLE, N, distance, placed, sizes_of_collectives, skewed
from jax.sharding import AxisType, PartitionSpec

import jaxmetrics as jm

process, processes, port = map(int, sys.argv[1:4])
everything = "all" in sys.argv[4:]
if processes > 1:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", processes, process)
jax.config.update("jax_enable_x64", True)

MESH = jax.make_mesh((8,), ("items",), axis_types=(AxisType.Auto,))
EXPLICIT = jax.make_mesh((8,), ("items",), axis_types=(AxisType.Explicit,))
rng = np.random.default_rng(3)
found = {}
scores, labels, where = skewed(rng)
weights = rng.choice([0.0, 0.5, 1.0, 3.0], N) * rng.random(N)
models = scores[0] + np.round(rng.normal(size=(2, N)), 1)


def counted(scores, labels, where):
    return (
        jm.roc_auc(scores, labels, where=where),
        jm.recall_at_fpr(scores, labels, max_fpr=[0.02, 0.1, 0.5], where=where),
    )


def by_itself(name, function, specs, *arrays, mesh=EXPLICIT, how="jit"):
    """Of whole arrays that are sharded: no name of an axis is given."""
    sharded = [placed(x, spec, mesh) for x, spec in zip(arrays, specs, strict=True)]
    if how == "context":
        with jax.set_mesh(mesh):
            got = function(*sharded)
    else:
        got = (jax.jit(function) if how == "jit" else function)(*sharded)
    got = jax.tree.map(lambda x: x.addressable_data(0) if x.is_fully_replicated else x, got)
    away = distance(*(jax.tree.map(np.asarray, x) for x in (got, function(*arrays))))
    found[name] = max(found.get(name, 0.0), away)
    return got


# Arrays of several processes are of parts when they are passed eagerly, too.
for kind in (MESH, EXPLICIT) if processes == 1 else (EXPLICIT,):
    how = "eager" if processes > 1 else "context"
    by_itself("by itself", counted, (ROWS,) * 3, scores, labels, where, mesh=kind, how=how)


def covariances(models, labels, weights):
    return jm.covariance(jm.average_precision, models, labels, weights=weights)


def other_errors(models, labels, weights):
    interval = jm.confidence_interval(jm.roc_auc, models, labels, weights=weights)
    recall = functools.partial(jm.recall_at_fpr, max_fpr=jnp.asarray(0.1))
    return (interval.estimate, interval.low, interval.high), jm.standard_error(
        recall, models, labels
    )


for function in [covariances] if processes > 1 else [other_errors] if everything else []:
    specs, of_models = (ROWS, ITEMS, ITEMS), (models, labels[0].astype(int), weights)
    by_itself("errors by themselves", function, specs, *of_models, how=how)


def check_grid():
    """Models and items divided over two axes; a mask of all devices, weights of the host."""
    grid = jax.make_mesh((2, 4), ("a", "b"), axis_types=(AxisType.Explicit,) * 2)
    both, one = PartitionSpec("a", "b"), PartitionSpec("b")
    given = models, labels[0], where[0]

    def of_all(models, labels, where):
        kept = {"weights": weights, "where": where}
        areas = jm.partial_auc(models, labels, max_fpr=[0.1, 0.4], min_fpr=0.05, **kept)
        mapped = jax.vmap(jm.average_precision, (0, None))(models, labels)
        if not everything:
            return areas, mapped
        return (
            areas,
            mapped,
            jm.standard_error(jm.roc_auc, models, labels, **kept),
            jax.grad(lambda x: jm.roc_auc(models, labels, weights=x).sum())(weights),
        )

    # The mask has an axis of models, too, which is not divided as it is of size 1.
    masked = *given[:2], where[:1]
    got = by_itself("divided models", of_all, (both, one, WHOLE), *masked, mesh=grid)
    assert got[0].sharding.spec == PartitionSpec("a", None)
    if everything:
        assert got[2].sharding.spec == PartitionSpec("a")

    def trains(models, labels, where):
        def summed(models):
            return jm.losses.recall_at_fpr_loss(models, labels, max_fpr=0.4, where=where).sum()

        return jax.value_and_grad(summed)(models)

    infinite = np.where(np.arange(N) == np.argmax(where[0]), [[np.inf], [0]], 0) + models
    specs = both, one, one
    _, slopes = by_itself("divided losses", trains, specs, infinite, *given[1:], mesh=grid)
    assert slopes.sharding.spec == both
    # What needs whole items has them.
    clusters = np.arange(N) // 2

    def whole(models, labels, where):
        return (
            jm.standard_error(jm.roc_auc, models, labels, clusters=clusters),
            jm.covariance(jm.roc_auc, models, labels),
            jm.roc_auc(jm.score_table(models, labels)),
            jm.roc_auc(models[:, :0], labels[:0]),
        )

    by_itself("whole items", whole, (both, one, one), *given, mesh=grid)


def check_collectives():
    ordered = np.arange(8 * 512, dtype=np.float32), rng.random(8 * 512) < 0.3

    def trains(scores, labels):
        return jax.value_and_grad(jm.losses.partial_auc_loss)(scores, labels, max_fpr=0.3)

    functions = {
        "roc_auc": jm.roc_auc,
        "recall": functools.partial(jm.recall_at_fpr, max_fpr=0.1),
    }
    if everything:
        error = functools.partial(jm.standard_error, jm.roc_auc)
        functions |= {"standard_error": error, "loss": trains}
    for name, function in functions.items():
        arrays = [placed(x, ITEMS, EXPLICIT) for x in ordered]
        program = jax.jit(function).lower(*arrays).compile()
        found[f"collectives of {name}"] = sizes_of_collectives(program)


def check_kinds():
    """Whole numbers in 64 bits, and weights of the host with a mask of all processes."""

    def of_whole(scores, labels, counts, where):
        return (
            jm.losses.pairwise_auc_loss(scores, labels, weights=counts),
            jm.mean_interval(scores, weights=weights, where=where).low,
        )

    given = (models * 10).astype(int), labels[0].astype(int), np.arange(N) % 3, where[0]
    by_itself("whole numbers", of_whole, (ROWS, ITEMS, ITEMS, ITEMS), *given, how="eager")


def check_errors():
    gaps, labelled = (placed(x, ITEMS, MESH) for x in (np.where(where[0], 0.5, np.nan), labels[0]))
    slots = jm.losses.kl_partial_auc
    for name, call in {
        "gap": lambda: jm.compare_means(jnp.stack([gaps, gaps])),
        "slot": lambda: slots.apply(slots.init(5), gaps, labelled, labelled * N),
    }.items():
        try:
            call()
        except ValueError as error:
            found[name] = str(error)


if processes == 1:
    check_grid()
    check_collectives()
else:
    check_kinds()
    check_errors()
print(json.dumps(found))
if processes > 1:
    jax.distributed.shutdown()
