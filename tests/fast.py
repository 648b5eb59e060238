"""Cases of tests in the fast run; the others are marked slow."""

from itertools import product

import pytest


def marked(*values, fast):
    return pytest.param(*values, marks=() if fast else pytest.mark.slow)


def in_turn(first, *others):
    """The cases of a product, of which one is fast for each value of the first axis, with the
    values of the others in turn."""
    rest = list(product(*others))
    return [
        marked(value, *values, fast=j == i % len(rest))
        for i, value in enumerate(first)
        for j, values in enumerate(rest)
    ]
