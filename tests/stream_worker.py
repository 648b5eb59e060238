"""One of several processes that count a stream together, each on its own devices.

    python tests/stream_worker.py PROCESS PROCESSES PORT

With eight devices in all, each device counts its part of the items and one sum merges the states;
prints what all of them have found as JSON.
"""

import json
import sys

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import jaxmetrics as jm

process, processes, port = map(int, sys.argv[1:])
if processes > 1:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", processes, process)

BINS = jm.streaming.uniform_bins(50, -3.0, 3.0)
rng = np.random.default_rng(7)
labels = rng.random(8000) < 0.2
scores = (rng.normal(size=8000) + labels).astype(np.float32)
values = rng.random(8000).astype(np.float32)

mesh = jax.make_mesh((8,), ("items",), axis_types=(AxisType.Auto,))
whole, items = PartitionSpec(), PartitionSpec("items")


def placed(array, mesh=mesh):
    """Of which each process gives the part that its devices hold."""
    return jax.make_array_from_callback(
        array.shape, NamedSharding(mesh, items), lambda index: array[index]
    )


def count(scores, labels, values):
    """On each device, then added up over all."""
    states = (
        jm.streaming.update(jm.streaming.init(BINS), scores, labels, bins=BINS),
        jm.streaming.means.update(jm.streaming.means.init(), values),
    )
    return jax.lax.psum(states[0], "items"), jax.lax.psum(states[1], "items")


program = jax.jit(jax.shard_map(count, mesh=mesh, in_specs=items, out_specs=whole, check_vma=False))
arrays = [placed(x) for x in (scores, labels, values)]
compiled = program.lower(*arrays).compile().as_text()
state, mean = jax.tree.map(lambda x: np.asarray(x.addressable_data(0)), program(*arrays))
state = jm.streaming.State(jax.numpy.asarray(state.digits))
mean = jm.streaming.means.State(jax.numpy.asarray(mean.digits))
alone = jm.streaming.update(jm.streaming.init(BINS), scores, labels, bins=BINS)
merged = jm.streaming.merge(state, jm.streaming.init(BINS))
explicit = jax.make_mesh((8,), ("items",), axis_types=(AxisType.Explicit,))
auc = jm.roc_auc(placed(scores, explicit), placed(labels, explicit))
halves = [(placed(scores[i::2]), placed(labels[i::2])) for i in range(2)]
exact = jm.streaming.exact(jm.roc_auc, lambda: iter(halves))
low, high = jm.streaming.bounds(jm.roc_auc, state, bins=BINS)
print(
    json.dumps(
        {
            "devices": jax.device_count(),
            "local_devices": jax.local_device_count(),
            "equal": np.array_equal(merged.digits, alone.digits),
            "n": int(jm.streaming.n_items(state)),
            "all_reduces": compiled.count("all-reduce("),
            "auc": float(jm.roc_auc(jm.streaming.table(state, bins=BINS))),
            "auc_of_all": float(auc.addressable_data(0)),
            "exact": float(exact),
            "bounds": [float(low), float(high)],
            "mean": float(jm.streaming.means.result(mean).mean),
        }
    )
)
if processes > 1:
    jax.distributed.shutdown()
