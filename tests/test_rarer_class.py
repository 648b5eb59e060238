"""Items on a mesh of which few are positive: only these travel."""

import pytest
from processes import printed


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
