"""Cases of tests in the fast run; the others are marked slow."""

from itertools import product

import pytest


def marked(*values, fast):
    return pytest.param(*values, marks=() if fast else pytest.mark.slow)


def half(*axes):
    """The cases of a product, of which every second along each axis is fast."""
    for indexed in product(*map(enumerate, axes)):
        numbers, values = zip(*indexed, strict=True)
        yield marked(*values, fast=sum(numbers) % 2 == 0)
