"""Arrays whose items lie on several devices take the way of `axis_name` by themselves."""

from functools import partial

import pytest
from processes import printed

found = partial(printed, "sharded_worker.py")


@pytest.fixture(scope="module")
def alone():
    return found(1)[0]


def test_counts_are_those_of_one_device_to_the_last_bit(alone):
    """However the items are spread, with axes of both types."""
    assert alone["by itself"] == 0


@pytest.mark.parametrize(
    "name", ["errors by themselves", "divided models", "divided losses", "whole items"]
)
def test_other_values_are_those_of_one_device(alone, name):
    """Models may be divided as well; what needs whole items has them."""
    assert alone[name] <= 1e-12


@pytest.mark.parametrize("name", ["roc_auc", "standard_error", "loss"])
def test_no_device_receives_all_items(alone, name):
    """Of 4,096 in parts of 512."""
    sizes = alone[f"collectives of {name}"]
    assert sizes["all-gather"] <= 8 * 64
    assert sizes["all-to-all"] <= 2.5 * 512
    # Three sums at each end of 8 ranges, of both classes.
    assert sizes.get("all-reduce", 0) <= 8 + 6 * 9


def test_one_threshold_needs_counts_alone(alone):
    assert set(alone["collectives of recall"]) == {"all-reduce"}


def test_two_processes_agree_with_one_device():
    """Eagerly, as no process has all items."""
    for one in found(2):
        assert one["by itself"] == 0
        assert one["errors by themselves"] <= 1e-12
