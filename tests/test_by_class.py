"""Sums over items of two classes by blocks, of which programs for CPUs take some at a time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmetrics._base import by_class
from jaxmetrics._base.by_class import CLASSES, ByClass


@pytest.mark.parametrize("n", [1, 32 * 13 + 5, pytest.param(32 * 12, marks=pytest.mark.slow)])
def test_sums_are_those_of_the_items(rng, monkeypatch, x64, n):
    monkeypatch.setattr(by_class, "_AT_ONCE", 4)
    monkeypatch.setattr(by_class, "_CHUNKS", 3)
    weights, ends = rng.integers(0, 4, n).astype(np.float32), np.array([n // 3, n - n // 5])
    spans = [slice(0, ends[0]), slice(ends[0], ends[1])]
    places = [np.arange(x.start, x.stop + 1) for x in spans]
    terms = jnp.ones_like, lambda weights: weights**2 + 1

    @jax.jit
    def found(keys, ends, weights):
        part = ByClass.of(keys, ends, weights)
        upto = [
            [part.sums_to(at, x), part.numbers_to(at, x), *part.sums_of(terms, at, x)]
            for x, at in zip(CLASSES, places, strict=True)
        ]
        return part.highest(), part.lowest(), part.totals_of(terms[1]), upto

    highest, lowest, totals, upto = found(jnp.arange(n, dtype=jnp.uint32), ends, weights)
    items = [weights[x] for x in spans]
    assert np.array_equal(highest, [max(x, default=0) for x in items])
    assert np.array_equal(lowest, [min(x[x > 0], default=np.inf) for x in items])
    assert np.array_equal(totals, [np.sum(x[x > 0] ** 2 + 1) for x in items])
    for values, x in zip(upto, items, strict=True):
        some = x > 0
        for sums, of_each in zip(values, [x, some, some, some * (x**2 + 1)], strict=True):
            assert np.array_equal(sums, np.append(0, np.cumsum(of_each)))


def test_items_without_weights_count_as_1():
    part = ByClass.of(jnp.asarray([10, 20, 20, 40, 50, 60], jnp.uint32), np.array([2, 5]), None)
    assert part.lowest().tolist() == [1, 1]
    places = np.array([2, 3, 5])
    (sums,) = part.sums_of([lambda weights: 3 * weights], places, 1)
    assert sums.tolist() == [0, 3, 9]
    first = part.first_that_is_not(lambda keys: keys < np.array([40, 41, 99]), (3,), 1)
    assert first.tolist() == [3, 4, 5]
