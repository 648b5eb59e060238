"""Ways to the AUC and the recall of items that devices hold in parts: time, and bytes that travel.

    python -m benchmarks.meshes [N]
    python -m benchmarks.meshes --plan N

Devices are those of JAX, or eight of the host if XLA_FLAGS are not set. Each way is a program of
`shard_map`. Bytes are for each item of a device's part: those that the collectives of the compiled
program bring to the device, and those of its temporary arrays; operations are those that XLA counts
in the program. A plan is of a program that is compiled and not run. The text that is printed is
the tables of `meshes.md`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import jaxmetrics as jm
from benchmarks.timing import milliseconds, time_in_turn
from jaxmetrics._base.key_ranges import most_rounds
from jaxmetrics._base.rarer_class import room_for

AXIS, ITEMS = "items", PartitionSpec("items")
SIZES = {"pred": 1, "s8": 1, "u8": 1, "s32": 4, "u32": 4, "f32": 4, "s64": 8, "u64": 8, "f64": 8}
_MOST_BY_RING = 2_000_000  # which takes minutes for more
_MOST_GATHERED = 20_000_000  # which every device sorts, in 300 bytes each
_COLLECTIVE = (
    r"= (.*?) (all-gather|all-to-all|all-reduce|reduce-scatter|collective-permute)(?:-start)?\("
)
_BRANCHES = {True: "cond/branch_0_fun", False: "cond/branch_1_fun"}  # the one that is not taken


def gathered(metric: Callable[..., Any]) -> Callable[..., Any]:
    """Every device gathers and sorts all items."""

    def of_part(scores: Any, labels: Any) -> Any:
        return metric(*(lax.all_gather(x, AXIS, tiled=True) for x in (scores, labels)))

    return of_part


def by_ring(scores: Any, labels: Any) -> Any:
    """Sorted negatives travel; each device counts those below its own positives. No ties."""
    last = jnp.finfo(scores.dtype).max
    negatives = jnp.sort(jnp.where(labels, last, scores))
    positives = jnp.where(labels, scores, -last)
    size = lax.axis_size(AXIS)
    below = jnp.zeros(scores.shape, jnp.int32)
    for _ in range(size):
        below += jnp.searchsorted(negatives, positives, method="sort").astype(jnp.int32)
        negatives = lax.ppermute(negatives, AXIS, [(i, (i + 1) % size) for i in range(size)])
    return _auc(jnp.sum(jnp.where(labels, below, 0).astype(jnp.float32)), labels)


def _auc(pairs: Any, labels: Any) -> Any:
    positives = lax.psum(jnp.sum(labels), AXIS).astype(jnp.float32)
    negatives = lax.psum(jnp.sum(~labels), AXIS).astype(jnp.float32)
    return lax.psum(pairs, AXIS) / positives / negatives


def program_of(way: Callable[..., Any], scores: Any, labels: Any) -> Any:
    """The compiled program of each device's part."""
    mesh = scores.sharding.mesh
    mapped = jax.shard_map(
        way, mesh=mesh, in_specs=ITEMS, out_specs=PartitionSpec(), check_vma=False
    )
    return jax.jit(mapped).lower(scores, labels).compile()


def counts_of(program: Any, n: int, *, few: bool) -> tuple[int, int, float]:
    """Bytes that a device receives, bytes of its temporary arrays, and its operations.

    Bytes are those of the way that is gone if there are few positives, or if there are not.
    """
    memory = program.memory_analysis().temp_size_in_bytes
    moved = bytes_moved(program.as_text(), n, few=few)
    return moved, memory, program.cost_analysis()["flops"]


def bytes_moved(compiled: str, n: int, *, few: bool) -> int:
    """What the collectives of a program for n items bring to one device, in bytes.

    Those within a loop are of ranges that it receives in turn.
    """
    total, rounds = 0, most_rounds(n // jax.device_count(), jax.device_count())
    for line in compiled.splitlines():
        made = re.search(_COLLECTIVE, line)
        if made is None or _BRANCHES[few] in line:
            continue
        parts = jax.device_count() if made[2] == "reduce-scatter" else 1
        for kind, shape in re.findall(r"(\w+)\[([\d,]*)\]", made[1]):
            times = parts * (rounds if "/while/body/" in line else 1)
            total += times * SIZES[kind] * prod(int(x) for x in shape.split(",") if x)
    return total


def rows(n: int, share: float, runs: int) -> None:
    """The rows of the table of one data set, printed."""
    n_devices = jax.device_count()
    sharding = on_all_devices()
    rng = np.random.default_rng(0)
    labels = rng.random(n) < share
    scores = (rng.normal(size=n) + labels).astype(np.float32)
    parts = [jax.device_put(x, sharding) for x in (scores, labels)]
    most = max(x.sum() for x in np.split(labels, n_devices))
    few = bool(most <= room_for(n // n_devices, n_devices))
    way = "the positives are gathered" if few else "each device receives a range"
    recall = partial(jm.recall_at_fpr, max_fpr=0.01)
    ways = {
        "AUC": {
            **({"all items are gathered": gathered(jm.roc_auc)} if n <= _MOST_GATHERED else {}),
            f"`axis_name`: {way}": partial(jm.roc_auc, axis_name=AXIS),
            **({"the negatives travel in a ring": by_ring} if n <= _MOST_BY_RING else {}),
        },
        "recall at an FPR": {
            **({"all items are gathered": gathered(recall)} if n <= _MOST_GATHERED else {}),
            "`axis_name`: counts are added up": partial(recall, axis_name=AXIS),
        },
    }
    for metric, of_metric in ways.items():
        calls, counts, values = {}, {}, {}
        for name, way in of_metric.items():
            program = program_of(way, *parts)
            calls[name] = partial(program, *parts)
            counts[name] = [x / (n // n_devices) for x in counts_of(program, n, few=few)]
            values[name] = float(np.asarray(calls[name]()))
        times = time_in_turn(calls, runs)
        for name in calls:
            moved, memory, operations = counts[name]
            print(
                f"| {metric} | {share:.0%} | {name} | {milliseconds(times[name])} | "
                f"{moved:.1f} | {memory:.0f} | {operations:.0f} | {values[name]:.6f} |",
                flush=True,
            )


def on_all_devices() -> NamedSharding:
    """The sharding of arrays whose items all devices have in parts."""
    return NamedSharding(
        jax.make_mesh((jax.device_count(),), (AXIS,), axis_types=(AxisType.Auto,)), ITEMS
    )


def plan(n: int) -> None:
    """What a device needs for its part of n items, printed; nothing is run."""
    sharding = on_all_devices()
    parts = [jax.ShapeDtypeStruct((n,), x, sharding=sharding) for x in (jnp.float32, jnp.bool_)]
    ways = {
        "AUC": jm.roc_auc,
        "average precision": jm.average_precision,
        "partial AUC": partial(jm.partial_auc, max_fpr=0.01),
        "recall at an FPR": partial(jm.recall_at_fpr, max_fpr=0.01),
        "standard error of the AUC": partial(jm.standard_error, jm.roc_auc),
    }
    head = ("metric", "GB of input", "GB received", "if positives are few", "GB of temporaries")
    print(f"| {' | '.join((*head, '10^9 operations'))} |")
    print(f"|{' --- |' * (len(head) + 1)}")
    for name, way in ways.items():
        program = program_of(partial(way, axis_name=AXIS), *parts)
        given = program.memory_analysis().argument_size_in_bytes
        moved, *others = counts_of(program, n, few=False)
        of_few = bytes_moved(program.as_text(), n, few=True)
        numbers = " | ".join(f"{x / 1e9:.2f}" for x in (given, moved, of_few, *others))
        print(f"| {name} | {numbers} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--plan"]:
        plan(int(sys.argv[2]))
        sys.exit()
    n_items = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    head = ("metric", "positives", "way", "ms", "bytes received", "bytes of temporaries")
    print(f"| {' | '.join((*head, 'operations', 'value'))} |")
    print(f"|{' --- |' * (len(head) + 2)}")
    for share_of_positives in (0.01, 0.5):
        rows(n_items, share_of_positives, 3)
