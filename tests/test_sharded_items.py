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


@pytest.mark.parametrize("name", ["divided models", "divided losses", "whole items"])
def test_other_values_are_those_of_one_device(alone, name):
    """Models may be divided as well; what needs whole items has them."""
    assert alone[name] <= 1e-12


def of_parts(sizes):
    """Whether no device receives all of 4,096 items in parts of 512."""
    # Three sums at each end of 8 ranges, of both classes.
    most = {"all-gather": 8 * 64, "all-to-all": 2.5 * 512, "all-reduce": 8 + 6 * 9}
    return {"all-gather", "all-to-all"} <= sizes.keys() and all(
        sizes.get(kind, 0) <= size for kind, size in most.items()
    )


def test_no_device_receives_all_items(alone):
    assert of_parts(alone["collectives of roc_auc"])


@pytest.mark.slow  # errors and losses of named axes are fast in `test_axis_name`
def test_errors_and_slopes_of_divided_models_losses_and_errors_of_parts():
    everything = found(1, "all")[0]
    assert everything["errors by themselves"] <= 1e-12
    assert everything["divided models"] <= 1e-12
    for name in ("standard_error", "loss"):
        assert of_parts(everything[f"collectives of {name}"])


def test_one_threshold_needs_counts_alone(alone):
    assert set(alone["collectives of recall"]) == {"all-reduce"}


def test_two_processes_agree_with_one_device():
    """Eagerly, as no process has all items."""
    for one in found(2):
        assert one["by itself"] == 0
        assert one["errors by themselves"] <= 1e-12
        assert one["whole numbers"] <= 1e-12
        assert one["gap"].startswith("values must be finite, got nan for item")
        assert one["slot"].startswith("index must be from 0 to n_slots - 1 = 4, got 320")
