"""Metrics of items that eight devices hold in parts, of which few are positive.

    python tests/rare_worker.py PROCESS PROCESSES PORT [all]

Prints as JSON the largest distance of each result from that of one device, which way was gone, and
what travelled.
"""

import functools
import json
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
from devices import ITEMS, ROWS, WHOLE, distance, mapped, on_devices, placed
from jax.sharding import AxisType, PartitionSpec

import jaxmetrics as jm
from jaxmetrics._base.types import Items
from jaxmetrics._roc.mesh_ways import by_rarer_class
from jaxmetrics._roc.rare_positives import RarePositives

everything = "all" in sys.argv[4:]
jax.config.update("jax_enable_x64", True)

MESH = jax.make_mesh((8,), ("items",), axis_types=(AxisType.Auto,))
GRID = jax.make_mesh((2, 4), ("a", "b"), axis_types=(AxisType.Auto,) * 2)
PLACES = 64  # for the positives of a device
PART = (PLACES + 1) * 13 * 7 - 1  # items, the most for which there are so many places
N = 8 * PART
rng = np.random.default_rng(5)
found = {}
PARTIAL = functools.partial(jm.partial_auc, max_fpr=0.3)
TWO_WAY = {"max_fpr": 0.6, "min_fpr": 0.1, "min_tpr": 0.3}


def problems():
    """Scores, labels and a mask of one problem in each row, with few positives on each device."""
    labels = rng.random(N) < 0.005
    scores = np.round(rng.normal(size=N) + labels, 1).astype(np.float32)
    every, device = np.ones(N, bool), np.arange(N) // PART
    one_device = (device == 5) & (np.arange(N) % PART < PLACES)
    rows = {
        "all positives on one device, which has no place left": (scores, one_device, every),
        "its negatives elsewhere": (scores, one_device, one_device | (device != 5)),
        "mixed": (scores, labels, rng.random(N) < 0.8),
        "ascending": (np.sort(scores), labels, every),
        "all tied": (np.zeros_like(scores), labels, every),
        "no ties": (rng.permutation(N).astype(np.float32), labels, every),
        "devices without items": (scores, labels, device < 2),
        "infinite": (np.where(scores < 0, -np.inf, scores), labels, every),
        "one class": (scores, np.zeros(N, bool), every),
        "none": (scores, labels, ~every),
        "NaN": (np.where(scores > 1, np.nan, scores), labels, every),
        "masked NaN": (np.where(scores > 1, np.nan, scores), labels, scores <= 1),
    }
    return [np.stack(x) for x in zip(*rows.values(), strict=True)]


def with_slopes(scores, labels, where, weights, **axis):
    """Values, and slopes in the weights of each row, also in those that are 0."""
    given = {"where": where, **axis}

    def summed(weights):
        of_weights = {"weights": weights, **given}
        values = [jm.average_precision(scores.astype(np.float64), labels, **of_weights)]
        if everything:
            values.append(jm.partial_auc(scores, labels, **TWO_WAY, **of_weights))
        return jnp.nansum(jnp.stack(values) * jnp.arange(1, 1 + len(scores))), values

    slopes, values = jax.grad(summed, has_aux=True)(weights)
    unweighted = []
    if everything:
        unweighted = [
            jm.recall_at_fpr(scores, labels, max_fpr=0.1, method="linear", **given),
            jm.partial_auc(scores, labels, max_fpr=[0.1, 0.4], min_tpr=0.2, **given),
            jm.average_precision(scores.astype(np.float64), labels, **given),
        ]
    counts = jm.roc_auc(scores, labels, **given)
    return {"counts": counts, "values": [*unweighted, *values], "slopes": slopes}


def errors(scores, labels, weights, **axis):
    given = {"weights": weights, **axis}
    interval = jm.confidence_interval(jm.average_precision, scores, labels, **given)
    return [
        (interval.estimate, interval.low, interval.high),
        jm.standard_error(PARTIAL, scores, labels, **axis),
        jm.standard_error(jm.average_precision, scores, labels, **axis),
        jm.covariance(PARTIAL, scores, labels, **axis),
    ]


def check_errors(scores, labels, weights):
    """Of models."""
    arrays = np.stack([scores, np.roll(scores, 1), np.sort(scores)]), labels, weights
    of_parts = functools.partial(errors, axis_name="items")
    got = on_devices(of_parts, (ROWS, ITEMS, ITEMS), *arrays, mesh=MESH)
    found["errors"] = distance(*(jax.tree.map(np.asarray, x) for x in (got, errors(*arrays))))


def gathers(scores, labels, where):
    """`[rows]`: whether all devices receive the positives."""

    def of_one(scores, labels, where):
        items = Items(scores, labels, where=where)

        def of_way(place):
            placed = place(items, None, "items")
            return jnp.asarray(isinstance(placed, RarePositives))

        return by_rarer_class(of_way, items, "items")

    return jax.vmap(of_one)(scores, labels, where)


OF_PARTS = mapped(
    functools.partial(with_slopes, axis_name="items"),
    (ROWS,) * 4,
    mesh=MESH,
    out_specs={"counts": WHOLE, "values": WHOLE, "slopes": ROWS},
)
WAYS = mapped(gathers, (ROWS,) * 3, mesh=MESH)


def check(name, *arrays):
    got, want = OF_PARTS(*arrays), with_slopes(*map(jnp.asarray, arrays))
    for kind, values in want.items():
        found[f"{kind}, {name}"] = distance(
            *(jax.tree.map(np.asarray, x) for x in (got[kind], values))
        )
    found[f"gathers, {name}"] = np.unique(WAYS(*arrays[:3])).tolist()


def check_whole_numbers():
    """Of which 0 has the largest key, over two axes."""
    scores = rng.integers(0, 4, N).astype(np.uint8)
    labels, both = rng.random(N) < 0.005, (PartitionSpec(("a", "b")),) * 2
    of_parts = functools.partial(jm.roc_auc, axis_name=("a", "b"))
    got = on_devices(of_parts, both, scores, labels, mesh=GRID)
    found["whole numbers"] = distance(np.asarray(got), np.asarray(jm.roc_auc(scores, labels)))


def bytes_received(program, way):
    """What collectives bring to a device from the others, in one way through a program."""
    total = 0
    for line in program.as_text().splitlines():
        made = re.search(r"= (.*?) (all-gather|all-to-all|all-reduce|reduce-scatter)\(", line)
        if made and f"cond/{way}" in line:
            shapes = re.findall(r"(?:pred|[a-z](\d+))\[([\d,]*)\]", made[1])
            size = sum(
                int(bits or 8) // 8 * int(np.prod([int(x) for x in shape.split(",") if x]))
                for bits, shape in shapes
            )
            total += size * (7 if made[2] == "reduce-scatter" else 7 / 8)
    return total


def check_bytes(metric, scores, labels):
    of_parts = functools.partial(metric, axis_name="items")
    mapped = jax.shard_map(of_parts, mesh=MESH, in_specs=ITEMS, out_specs=WHOLE, check_vma=False)
    program = jax.jit(mapped).lower(*(placed(x, ITEMS, MESH) for x in (scores, labels))).compile()
    ways = {"few": "branch_1_fun", "more": "branch_0_fun"}
    return {name: bytes_received(program, way) / PART for name, way in ways.items()}


few = problems()
# Up to 0.75, so that the unit of the weights is not 1.
weights = np.tile(rng.choice([0.0, 0.125, 0.25, 0.75], N) * rng.random(N), (len(few[0]), 1))
check("few", *few, weights)
more = few[1].copy()
more[0, 5 * PART + PLACES] = True
check("more", few[0], more, few[2], weights)
if everything:
    check_errors(few[0][2], few[1][2], weights[2])
check_whole_numbers()
metrics = (jm.roc_auc, jm.average_precision) if everything else (jm.roc_auc,)
found["bytes"] = [check_bytes(x, few[0][2], few[1][2]) for x in metrics]
print(json.dumps(found))
