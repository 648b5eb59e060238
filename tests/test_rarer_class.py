"""Items on a mesh of which few are positive: only these travel."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P
from processes import printed

from jaxmetrics._base.types import Items
from jaxmetrics._roc.rare_positives import rare_positives


@pytest.fixture(scope="module")
def found():
    return printed("rare_worker.py", 1)[0]


@pytest.mark.parametrize(("how_many", "gathered"), [("few", [True]), ("more", [False])])
def test_all_rows_go_one_way(found, how_many, gathered):
    """One positive too many, on one device, in one row, and all go the other."""
    assert found[f"gathers, {how_many}"] == gathered


@pytest.mark.parametrize("how_many", ["few", "more"])
def test_values_and_slopes_are_those_of_one_device(found, how_many):
    assert found[f"counts, {how_many}"] == 0
    assert found[f"values, {how_many}"] <= 1e-12
    assert found[f"slopes, {how_many}"] <= 1e-12


@pytest.mark.slow
def test_every_metric_and_error_is_that_of_one_device():
    everything = printed("rare_worker.py", 1, "all")[0]
    for kind in ("values, few", "values, more", "slopes, few", "slopes, more", "errors"):
        assert everything[kind] <= 1e-12


def test_whole_numbers_and_the_lowest_of_them(found):
    assert found["whole numbers"] == 0


def test_a_fifth_of_the_part_travels(found):
    """Which is 5 bytes an item; twice the part otherwise. Of the AUC and average precision."""
    for received in found["bytes"]:
        assert 0.7 < received["few"] <= 0.2 * 5
        assert 5 < received["more"] <= 2 * 5


def test_positives_of_all_devices_above_each_and_not_below(x64):
    """Of two devices, which have one positive and two; the last place of the first one is empty."""
    scores = np.array([3, 1, 1, 2, 1, 3], np.float32)
    labels = np.array([0, 1, 0, 1, 1, 0], bool)

    def of_part(scores, labels):
        placed = rare_positives(Items(scores, labels), None, "d", room=2)
        around = placed.positives_above, placed.positives_not_below
        return jnp.stack([*around, placed.above, placed.not_below])

    mesh = jax.make_mesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    program = jax.shard_map(of_part, mesh=mesh, in_specs=P("d"), out_specs=P(None, "d"))
    found = jax.jit(program)(scores, labels)[:, np.array([0, 2, 3])]
    np.testing.assert_array_equal(found, [[1, 0, 1], [3, 1, 3], [2, 2, 2], [3, 2, 3]])
