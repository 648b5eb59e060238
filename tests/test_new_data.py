"""New data of the same shapes compile nothing, as a program for each would stay in memory."""

from functools import partial

import jax
import numpy as np
import pytest
from jax import monitoring
from mesh_cases import ARRAYS, CASES, PARTIAL, Case, N
from mesh_cases import case as case_of

import jaxmetrics as jm

_FLOATS = ("scores", "row", "columns", "weights")
_BESIDE = {
    "compare-weights": case_of(
        partial(jm.compare, jm.average_precision), "scores", "labels", weights="weights"
    ),
    "slices": case_of(
        partial(jm.slices, jm.average_precision), "scores", "labels", "classes", weights="weights"
    ),
    "slices-clusters": case_of(
        partial(jm.slices, PARTIAL), "scores", "labels", "classes", clusters="segments"
    ),
}
_compiled: list[str] = []


def _note(event: str, duration: float, **about: object) -> None:
    if event.endswith("backend_compile_duration"):
        _compiled.append(event)


monitoring.register_event_duration_secs_listener(_note)


def _new_data(case: Case, seed: int) -> list[np.ndarray]:
    """The arrays of a case with other numbers, and with their items in another order."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(N)
    found = []
    for name in case.names:
        array, axes = ARRAYS[name]
        if name in _FLOATS:
            array = array * rng.lognormal(size=array.shape).astype(array.dtype)
        if "n" in axes and name != "segments":
            array = np.take(array, order, axis=axes.index("n"))
        found.append(array)
    return found


@pytest.mark.parametrize("case", (CASES | _BESIDE).values(), ids=CASES | _BESIDE)
def test_new_data_compile_nothing(case: Case) -> None:
    for seed in range(3):
        jax.block_until_ready(case.function(*_new_data(case, seed)))
    _compiled.clear()
    for seed in range(3, 9):
        jax.block_until_ready(case.function(*_new_data(case, seed)))
    assert not _compiled
