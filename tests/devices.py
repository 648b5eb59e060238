"""What the processes share that compare items on eight devices with those on one."""

import gc
import re

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

gc.disable()  # of processes that end soon; a tenth of their time

N = 8 * 40
WHOLE, ITEMS, ROWS = PartitionSpec(), PartitionSpec("items"), PartitionSpec(None, "items")


def placed(array, spec, mesh):
    """Of which each process gives the part that its devices hold."""
    array = np.asarray(array)
    sharding = NamedSharding(mesh, spec)
    return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])


def mapped(function, specs, *, mesh, out_specs=WHOLE, **options):
    """`function` within `shard_map`, of arrays that are placed so on the mesh; one program."""
    program = jax.jit(
        jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=out_specs, **options)
    )
    return lambda *arrays: program(
        *(placed(x, spec, mesh) for x, spec in zip(arrays, specs, strict=True))
    )


def on_devices(function, specs, *arrays, **options):
    return mapped(function, specs, **options)(*arrays)


def distance(got, want):
    """The largest of a pytree of arrays; NaN and infinities must be the same."""
    pairs = zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True)
    distances = []
    for a, b in pairs:
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        with np.errstate(invalid="ignore"):
            away = np.abs(np.asarray(a) - np.asarray(b))
        away = np.where(np.isnan(a) & np.isnan(b), 0, away)
        distances.append(float(np.max(away)) if not np.isnan(away).any() else float("inf"))
    return max(distances)


def skewed(rng):
    """Scores, labels and a mask of one problem in each row."""
    labels = rng.random(N) < 0.3
    scores = np.round(rng.normal(size=N) + labels, 1).astype(np.float32)
    every, order = np.ones(N, bool), np.argsort(scores, kind="stable")
    by_class = np.argsort(labels, kind="stable")
    first, one_part = np.arange(N) < 5, np.arange(N) // 40 == 2
    huge = np.where(labels, np.inf, -np.inf).astype(np.float32)
    rows = {
        "mixed": (scores, labels, rng.random(N) < 0.8),
        "ascending": (scores[order], labels[order], every),
        "descending": (scores[order[::-1]], labels[order[::-1]], every),
        "all tied": (np.zeros_like(scores), labels, every),
        "no ties": (rng.permutation(N).astype(np.float32), labels, every),
        "classes apart": (scores[by_class], labels[by_class], every),
        "devices without items": (scores, labels, one_part | first),
        "infinite": (huge, labels, every),
        "one class": (scores, np.zeros(N, bool), every),
        "none": (scores, labels, ~every),
        "NaN": (np.where(first, np.nan, scores).astype(np.float32), labels, every),
        "masked NaN": (np.where(first, np.nan, scores).astype(np.float32), labels, ~first),
    }
    return [np.stack(x) for x in zip(*rows.values(), strict=True)]


def sizes_of_collectives(program):
    """The number of entries that each kind of collective returns at most."""
    sizes = {}
    for line in program.as_text().splitlines():
        made = re.search(r"= (.*?) (all-gather|all-to-all|all-reduce|collective-permute)", line)
        if made:
            shapes = re.findall(r"\[([\d,]*)\]", made[1])
            size = sum(int(np.prod([int(x) for x in s.split(",") if x])) for s in shapes)
            sizes[made[2]] = max(sizes.get(made[2], 0), size)
    return sizes
