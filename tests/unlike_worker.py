"""One of two processes that share a mesh, each with items, parameters or a checkpoint of its own.

    python tests/unlike_worker.py PROCESS PROCESSES PORT

Prints as JSON what each call said, or found.
"""

import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import jaxmetrics as jm

process, processes, port = map(int, sys.argv[1:])
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(f"127.0.0.1:{port}", processes, process)

N = 160
mesh = jax.make_mesh((8,), ("items",), axis_types=(AxisType.Auto,))
rng = np.random.default_rng(0)
labels = rng.random(N) < 0.4
scores = (rng.normal(size=N) + labels).astype(np.float32)
features = np.stack([scores, rng.normal(size=N).astype(np.float32)], axis=1)
own = np.arange(N) // (N // 2) == process
given = {"key": jax.random.key(0), "n_resamples": 24, "mesh": mesh}


def placed(array):
    sharding = NamedSharding(mesh, PartitionSpec("items"))
    return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])


def fitted(params, validation):
    train = placed(features), placed(labels)
    found = jm.training.fit(
        lambda w, x: x @ w, params, optax.sgd(0.5), train, validation, metric=jm.roc_auc, steps=10
    )
    return np.asarray(found.values).tolist()


def stopped():
    """A state that was written to a file, and goes on with scores on the mesh."""
    start = jm.training.early_stopping(None, jm.roc_auc, scores, labels)
    saved = jm.training.Stopping(*(np.asarray(x) for x in start))
    return jm.training.early_stopping(saved, jm.roc_auc, placed(scores + labels), placed(labels))


CALLS = {
    "all items": lambda: jm.bootstrap(jm.roc_auc, scores, labels, **given).replicates.tolist(),
    "own items": lambda: jm.bootstrap(jm.roc_auc, scores[own], labels[own], **given),
    "own values": lambda: jm.bootstrap_mean(scores[own], **given),
    "own key": lambda: jm.bootstrap(
        jm.roc_auc, scores, labels, **(given | {"key": jax.random.key(process)})
    ),
    "one start": lambda: fitted(jnp.zeros(2), (features, labels)),
    "own start": lambda: fitted(jnp.full(2, 0.1 * process), (features, labels)),
    "own validation": lambda: fitted(jnp.zeros(2), (features[own], labels[own])),
    "stopping": lambda: int(stopped().last),
}
found = {}
for name, call in CALLS.items():
    try:
        found[name] = call()
    except ValueError as error:
        found[name] = str(error)
print(json.dumps(found))
