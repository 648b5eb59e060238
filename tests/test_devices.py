"""States of streams on eight devices: of one process, and of two that are joined."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import jaxmetrics as jm

WORKER = Path(__file__).with_name("stream_worker.py")
QUICKLY = "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1"


def counted(processes):
    """What each process printed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    devices = f"--xla_force_host_platform_device_count={8 // processes} {QUICKLY}"
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": devices}
    workers = [
        subprocess.Popen(
            [sys.executable, WORKER, str(i), str(processes), str(port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for i in range(processes)
    ]
    results = []
    for worker in workers:
        output, errors = worker.communicate(timeout=300)
        assert worker.returncode == 0, errors
        results.append(json.loads(output.splitlines()[-1]))
    return results


@pytest.mark.parametrize("processes", [1, 2])
def test_states_of_devices_add_up_to_that_of_all_items(processes):
    """To the last count, by one collective for each state, the same in every process."""
    results = counted(processes)
    assert all(result == results[0] for result in results)
    found = results[0]
    assert found["devices"] == 8
    assert found["local_devices"] == 8 // processes
    assert found["equal"]
    assert found["n"] == 8000
    assert 1 <= found["all_reduces"] <= 2  # one for the scores' state, one for the means'
    rng = np.random.default_rng(7)
    labels = rng.random(8000) < 0.2
    scores = (rng.normal(size=8000) + labels).astype(np.float32)
    low, high = found["bounds"]
    assert low < jm.roc_auc(scores, labels) < high
    assert found["auc_of_all"] == jm.roc_auc(scores, labels)
    assert found["mean"] == pytest.approx(rng.random(8000).astype(np.float32).mean(), rel=1e-6)
