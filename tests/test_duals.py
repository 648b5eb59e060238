"""Dual numbers have the slopes that JAX gives, at kinks too."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmetrics._base.duals import Dual, value_and_slopes
from jaxmetrics._base.numerics import as_constant, divide, namespace, within

FUNCTIONS = {
    "sums and products": lambda x, y, a, b: (x + a) * (b - y) - -x * y + 2 * a,
    "quotients": lambda x, y, a, b: divide(x, y, 0.5) + divide(a, x + b, np.nan) / a,
    "powers": lambda x, y, a, b: (x - a) ** 2 + y**3,
    "extrema": lambda x, y, a, b: _of(x).maximum(x, y) * b + _of(x).minimum(x, a),
    "clipped": lambda x, y, a, b: _of(x).clip(x, 0, a) * y + abs(x - y),
    "selected": lambda x, y, a, b: _of(x).where(y > 0, divide(a, y, 0.5), a * x),
    "constants": lambda x, y, a, b: as_constant(x) * y + within(x * a, 0, 2.5) * x,
    "limits": lambda x, y, a, b: _of(x).maximum(a[..., None] - x, 0.0) * b.astype(np.float64),
}


def _of(x):
    return namespace(x)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_slopes_are_those_of_jax(name):
    rng = np.random.default_rng(3)
    arrays = rng.integers(0, 4, (2, 50)).astype(float)  # with equal entries, and entries of 0
    arrays[1, ::2] += 0.25
    numbers = np.array([2.0, 3.0])

    def total(arrays, numbers):
        terms = FUNCTIONS[name](*arrays, *numbers)
        return _of(terms).sum(terms, axis=-1) * numbers[0] / 2

    with jax.enable_x64(True), np.errstate(all="ignore"):
        value, by_entry, by_number = value_and_slopes(total, arrays, numbers)
        given = jnp.asarray(arrays), jnp.asarray(numbers)
        expected, (of_arrays, of_numbers) = jax.value_and_grad(total, (0, 1))(*given)
    assert np.any(by_entry)
    assert np.any(by_number)
    np.testing.assert_allclose(value, expected, rtol=1e-14)
    np.testing.assert_allclose(by_entry, of_arrays, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(by_number, of_numbers, rtol=1e-13, atol=1e-13)


def test_a_subnormal_denominator_has_no_slope():
    """A program takes it for 0. The quotient may be infinite."""
    with np.errstate(all="ignore"):
        _, by_entry, _ = value_and_slopes(
            lambda arrays, _: divide(*arrays, 0.5),
            np.array([[1e-310, 2.0, 6.0], [1e-310, 1e-309, 2.0]]),
            np.zeros(0),
        )
    np.testing.assert_array_equal(by_entry, [[0, 0, 0.5], [0, 0, -1.5]])


def test_comparisons_are_plain_and_unknown_functions_are_refused():
    x = Dual(np.array([1.0, 2.0]), {0: 1.0}, {})
    assert type(x > 1) is np.ndarray
    assert x.shape == (2,)
    with pytest.raises(KeyError):
        np.exp(x)
    with pytest.raises(TypeError):
        np.add.reduce(x)
