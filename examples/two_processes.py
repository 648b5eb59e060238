"""One evaluation by two processes, as by two hosts: each counts its own data, one sum merges them.

Started without arguments it starts both on this machine; on hosts of your own, give each its
number, how many there are, and the address of the first.

    python examples/two_processes.py [PROCESS PROCESSES ADDRESS:PORT]
"""

import socket
import subprocess
import sys

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import jaxmetrics as jm


def start():
    """Two processes of this script; what the first prints."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    commands = [[sys.executable, __file__, str(i), "2", address] for i in range(2)]
    workers = [subprocess.Popen(x, stdout=subprocess.PIPE, text=True) for x in commands]
    printed = [worker.communicate()[0] for worker in workers]
    print(printed[0], end="")
    if any(worker.returncode for worker in workers):
        raise SystemExit("a process failed")


def evaluate(process, processes, address):
    jax.config.update("jax_cpu_collectives_implementation", "gloo")  # of no effect on GPUs
    jax.distributed.initialize(address, processes, process)
    bins = jm.streaming.float16_bins()

    rng = np.random.default_rng(process)  # as if each read files of its own
    state = jm.streaming.init(bins)
    for _ in range(5):
        labels = rng.random(100_000) < 0.05
        scores = (rng.normal(size=len(labels)) + 1.5 * labels).astype(np.float32)
        state = jm.streaming.update(state, scores, labels, bins=bins)
    print(f"process {process}: {jm.streaming.n_items(state):,} items")

    mesh = jax.make_mesh((jax.device_count(),), ("all",), axis_types=(AxisType.Auto,))
    split = NamedSharding(mesh, PartitionSpec("all"))
    first, *others = jax.local_devices()
    parts = [jax.device_put(state, first)]
    parts += [jax.device_put(jm.streaming.init(bins), device) for device in others]

    def of_all(*digits):  # one leaf, in which each device holds a state
        shape = (jax.device_count(), *digits[0].shape)
        return jax.make_array_from_single_device_arrays(shape, split, [x[None] for x in digits])

    merge = jax.jit(
        lambda state: jax.tree.map(lambda x: x.sum(0), state),
        out_shardings=NamedSharding(mesh, PartitionSpec()),
    )
    whole = merge(jax.tree.map(of_all, *parts))
    whole = jax.tree.map(lambda x: x.addressable_data(0), whole)
    interval = jm.streaming.interval(jm.roc_auc, whole, bins=bins)
    print(f"all: {jm.streaming.n_items(whole):,} items", end=", ")
    print(f"AUC {interval.estimate:.4f}, 95 % {interval.low:.4f} to {interval.high:.4f}")
    jax.distributed.shutdown()


if __name__ == "__main__":
    if len(sys.argv) == 4:
        evaluate(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
    else:
        start()
