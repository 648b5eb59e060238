"""Dual numbers: NumPy's arrays with their slopes, in forward mode.

JAX must compile what it differentiates, anew for each size. NumPy need not, and a sum over groups
has few variables for each of them. Slopes at kinks are those that JAX gives.

Reference: A. Griewank and A. Walther, "Evaluating derivatives", SIAM 2008, chapter 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from jaxmetrics._base.types import HostArray

Slopes: TypeAlias = dict[int, Any]  # by the place of a variable
Move: TypeAlias = Callable[[Any], Any]  # from the slope of an argument to that of a value
_ONE = 1.0


class Dual(NDArrayOperatorsMixin):
    """An array, and its slopes in variables that are arrays and in others that are numbers.

    Attributes:
      value: the array `[..., n]`, or its sum along the last axis.
      by_entry: the slope of each entry in the same entry of each variable `[n]`; also that of the
        sum, of which an entry of a variable moves one term.
      by_number: the slope of the value in each number.
    """

    def __init__(self, value: Any, by_entry: Slopes, by_number: Slopes) -> None:
        self.value, self.by_entry, self.by_number = value, by_entry, by_number

    shape = property(lambda self: self.value.shape)
    ndim = property(lambda self: self.value.ndim)
    size = property(lambda self: self.value.size)
    dtype = property(lambda self: self.value.dtype)

    def __getitem__(self, at: Any) -> Dual:
        return self._with(self.value[at], lambda x: np.broadcast_to(x, self.shape)[at])

    def astype(self, dtype: Any) -> Dual:
        return self._with(self.value.astype(dtype), lambda x: x)

    def _with(self, value: Any, slope: Move) -> Dual:
        return Dual(value, *({k: slope(x) for k, x in of.items()} for of in _slopes(self)))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__":
            return NotImplemented
        values = [constant(x) for x in inputs]
        found = ufunc(*values, **options)
        if found.dtype == bool:
            return found
        return _moved(found, inputs, _MOVES[ufunc](*values))

    def __array_function__(self, function: Any, _: Any, given: Any, options: Any) -> Any:
        return _FUNCTIONS[function](*given, **options)


def value_and_slopes(
    function: Callable[[list[Dual], list[Dual]], Any], arrays: HostArray, numbers: HostArray
) -> tuple[Any, HostArray, HostArray]:
    """A sum over n terms, or the n terms, and its slopes in arrays `[arrays, n]` and in numbers.

    Each term depends on its own entry of the arrays, and on the numbers.
    """
    found = function(
        [Dual(x, {i: _ONE}, {}) for i, x in enumerate(arrays)],
        [Dual(x, {}, {i: _ONE}) for i, x in enumerate(numbers)],
    )
    by_entry, by_number = np.zeros_like(arrays), np.zeros_like(numbers)
    for of, slopes in zip(_slopes(found), (by_entry, by_number), strict=True):
        for i, slope in of.items():
            slopes[i] = slope
    return constant(found), by_entry, by_number


def constant(x: Any) -> Any:
    """The value alone."""
    return x.value if isinstance(x, Dual) else x


def _slopes(x: Any) -> tuple[Slopes, Slopes]:
    return (x.by_entry, x.by_number) if isinstance(x, Dual) else ({}, {})


def _moved(value: Any, inputs: Sequence[Any], moves: Sequence[Move]) -> Dual:
    """A value that moves as each of the inputs does, by a linear function of its slopes."""
    sums: tuple[Slopes, Slopes] = {}, {}
    for x, move in zip(inputs, moves, strict=True):
        for of, total in zip(_slopes(x), sums, strict=True):
            for name, slope in of.items():
                total[name] = total[name] + move(slope) if name in total else move(slope)
    return Dual(value, *sums)


def _times(factor: Any) -> Move:
    return lambda slope: factor if slope is _ONE else factor * slope


def _as_is(slope: Any) -> Any:
    return slope


def _of_extremum(larger: Any, smaller: Any) -> tuple[Move, Move]:
    """The larger moves it, or one half of each where both are equal."""
    share = (larger > smaller) + 0.5 * (larger == smaller)
    return _times(share), _times(1 - share)


def _of_ratio(x: Any, y: Any) -> tuple[Move, Move]:
    """XLA takes a subnormal y for 0, where a quotient has no slope. 1 / y may be infinite."""
    inverse = np.where(np.abs(y) < np.finfo(np.float64).tiny, 0.0, 1 / y)
    return _times(inverse), lambda slope: -x * inverse * inverse * slope  # if y is no constant


# For each function of NumPy's, how its value moves with its arguments.
_MOVES: dict[Any, Callable[..., tuple[Move, ...]]] = {
    np.add: lambda x, y: (_as_is, _as_is),
    np.subtract: lambda x, y: (_as_is, np.negative),
    np.multiply: lambda x, y: (_times(y), _times(x)),
    np.divide: _of_ratio,
    np.power: lambda x, y: (_times(y * x ** (y - 1)), _as_is),  # exponents are numbers
    np.negative: lambda x: (np.negative,),
    np.absolute: lambda x: (_times(np.where(x >= 0, 1.0, -1.0)),),
    np.maximum: _of_extremum,
    np.minimum: lambda x, y: _of_extremum(y, x),
}


def _where(chosen: Any, x: Any, y: Any) -> Any:
    value = np.where(chosen, constant(x), constant(y))
    # Selected, not multiplied by 0: a quotient that is not chosen may have NaN slopes.
    moves = (lambda slope: np.where(chosen, slope, 0.0), lambda slope: np.where(chosen, 0.0, slope))
    return _moved(value, (x, y), moves)


def _sum(x: Dual, axis: int) -> Dual:
    by_number = {k: np.broadcast_to(s, x.shape).sum(axis) for k, s in x.by_number.items()}
    return Dual(x.value.sum(axis), x.by_entry, by_number)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.where: _where,
    np.sum: _sum,
    np.clip: lambda x, low, high: np.minimum(np.maximum(x, low), high),
    np.round: lambda x: np.round(x.value),
}
