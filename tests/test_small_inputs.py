"""The metrics against scikit-learn on a few hundred random inputs of 0 to 6 items.

`python -m benchmarks.small_inputs 10000` runs 10,000 of each metric.
"""

import pytest
from fast import marked

from benchmarks.small_inputs import COMPARISONS, compare

# Of the two averages of a metric, one is fast, in turn.
LIKE_OTHERS = ("recall weighted", "precision macro", "f_beta weighted")


@pytest.mark.parametrize("name", [marked(x, fast=x not in LIKE_OTHERS) for x in COMPARISONS])
def test_small_inputs(name):
    assert compare(name, 40, seed=1, n_types=1) == []
