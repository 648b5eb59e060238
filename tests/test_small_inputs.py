"""The metrics against scikit-learn on a few hundred random inputs of 0 to 6 items.

`python -m benchmarks.small_inputs 10000` runs 10,000 of each metric.
"""

import pytest

from benchmarks.small_inputs import COMPARISONS, compare


@pytest.mark.parametrize("name", COMPARISONS)
def test_small_inputs(name):
    assert compare(name, 40, seed=1, n_types=1) == []
