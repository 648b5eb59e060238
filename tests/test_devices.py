"""States of streams on eight devices: of one process, and of two that are joined."""

import numpy as np
import pytest
from processes import printed

import jaxmetrics as jm


@pytest.mark.slow  # `test_sharded_items` has two processes, and `test_meshes` states of devices
@pytest.mark.parametrize("processes", [1, 2])
def test_states_of_devices_add_up_to_that_of_all_items(processes):
    """To the last count, by one collective for each state, the same in every process."""
    results = printed("stream_worker.py", processes)
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
    assert found["auc_of_all"] == found["exact"] == jm.roc_auc(scores, labels)
    assert found["mean"] == pytest.approx(rng.random(8000).astype(np.float32).mean(), rel=1e-6)
