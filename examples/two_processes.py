"""One evaluation by two processes, as on two hosts: each counts its own data, and states merge.

The merged state has the AUC of all data. The mean of the processes' AUCs differs from it if their
data differ: here the second process has fewer positives and higher scores. Without a process number
the script starts both on this machine. On your own hosts, give each its number, the number of
processes, and the address of the first.

    python examples/two_processes.py [figure.png [PROCESS PROCESSES ADDRESS:PORT]]
"""

import socket
import subprocess
import sys
from functools import reduce
from operator import itemgetter
from pathlib import Path

import jax
import numpy as np
from jax.experimental.multihost_utils import process_allgather
from matplotlib.figure import Figure

import jaxmetrics as jm

bins = jm.streaming.float16_bins()


def start(path):
    """Start two processes of this script, and print the output of the first."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    commands = [[sys.executable, __file__, path, str(i), "2", address] for i in range(2)]
    workers = [subprocess.Popen(x, stdout=subprocess.PIPE, text=True) for x in commands]
    printed = [worker.communicate()[0] for worker in workers]
    print(printed[0], end="")
    if any(worker.returncode for worker in workers):
        raise SystemExit("a process failed")


def evaluate(path, process, processes, address):
    jax.config.update("jax_cpu_collectives_implementation", "gloo")  # no effect on GPUs
    jax.distributed.initialize(address, processes, process)
    rng = np.random.default_rng(process)  # each process has its own data
    state = jm.streaming.init(bins)
    for _ in range(5):
        labels = rng.random(40_000) < 0.05 / (1 + 4 * process)
        scores = (rng.normal(size=len(labels)) + 1.5 * labels + process).astype(np.float32)
        state = jm.streaming.update(state, scores, labels, bins=bins)
    stacked = process_allgather(state)
    if process == 0:
        report(path, [jax.tree.map(itemgetter(i), stacked) for i in range(processes)])
    jax.distributed.shutdown()


def report(path, states):
    ax = Figure(figsize=(6.4, 2.2), layout="constrained").subplots()
    found = {f"process {i}": state for i, state in enumerate(states)}
    found["all"] = reduce(jm.streaming.merge, states)
    for row, (name, state) in enumerate(found.items()):
        area = jm.streaming.interval(jm.roc_auc, state, bins=bins)
        low, high = jm.streaming.bounds(jm.roc_auc, state, bins=bins)
        print(f"{name}: {jm.streaming.n_items(state):,} items, AUC {area.estimate:.4f}", end=", ")
        print(f"bounds {low:.5f} to {high:.5f}, 95 % {area.low:.4f} to {area.high:.4f}")
        ax.plot([area.low, area.high], [row, row], color="#56B4E9", linewidth=3)
        ax.plot([low, high], [row, row], color="#0072B2", linewidth=14, solid_capstyle="butt")
    mean = np.mean([jm.roc_auc(jm.streaming.table(state, bins=bins)) for state in states])
    print(f"mean of the processes {mean:.4f}, which is not the AUC of all")
    ax.plot(mean, len(states), "D", color="#D55E00", markerfacecolor="white")
    ax.set(yticks=range(len(found)), yticklabels=found, ylim=(len(states) + 0.5, -0.5))
    ax.set(xlabel="AUC", title="Bounds and 95 % interval; diamond: mean of the processes")
    ax.spines[["top", "right"]].set_visible(False)
    ax.figure.savefig(path, dpi=120)
    print(f"drew {Path(path).name}")


if __name__ == "__main__":
    path, *worker = sys.argv[1:] or [str(Path(__file__).with_suffix(".png"))]
    evaluate(path, *map(int, worker[:2]), worker[2]) if worker else start(path)
