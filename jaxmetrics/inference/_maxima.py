"""The largest of several correlated t statistics: its tail and its quantiles.

Written over the array library: NumPy's, or JAX's inside `double_precision()`.

A normal vector of d dimensions is its length R times its direction. The largest |T| is R times a
number l that depends on the direction and the drawn variances alone. R has the chi distribution
with d degrees of freedom. So P(max |T| > t) = E[Q(d / 2, t^2 / (2 l^2))], with Q the upper
incomplete gamma function. As the length is integrated out, little variance is left: the mean over a
sequence of points of low discrepancy, the same each time, has an error of about 0.002, and of 0.007
for dozens of models.

References: A. Genz and F. Bretz, "Computation of Multivariate Normal and t Probabilities", 2009,
chapter 4; H. Niederreiter, "Random Number Generation and Quasi-Monte Carlo Methods", 1992.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jax import lax

from jaxmetrics._base import numerics, varying
from jaxmetrics._base.double import in_native_floats
from jaxmetrics._base.host import in_threads
from jaxmetrics._base.sorting import sort
from jaxmetrics._base.types import Array, HostArray
from jaxmetrics.inference._intervals.distributions import gamma_survival
from jaxmetrics.inference._pairs import Pairs

# Points of the sequence. The sorted lengths l are averaged in groups of neighbours: numbers of
# groups, and of lengths in each. The longest remain single: with few observations they are far
# apart, and decide the tail.
N_POINTS = 1 << 12
_GROUPS = ((96, 40), (32, 6), (64, 1))
SHARES = np.concatenate([np.full(n, size / N_POINTS) for n, size in _GROUPS])

# Of the sum of the entries' sizes cubed, and of the largest entry; see `_signs`.
_LOPSIDED = 1e-3
_NOT_SMALL = 0.37

_STEPS = 16  # of Newton's method; NumPy stops where a step is below 1e-9
_LONGEST_STEP = 2.0  # of the logarithm of t

_AT_ONCE = 1 << 16  # statistics, whose arrays stay in the cache

_FURTHEST = 1e4  # t^2 / (2 l^2) at which Q is 0


class Maximum(NamedTuple):
    """The distribution of the largest statistic.

    Attributes:
      lengths: `[..., groups]`, l in ascending order: the largest statistic that a vector of length
        1 has in each direction, averaged over groups of directions.
      dimensions: d, of the vector.
      shares: `[groups]`, the share of the directions that are in each group.
    """

    lengths: Array
    dimensions: int
    shares: HostArray = SHARES

    def survival(self, t: Array) -> Array:
        """P(max > t) `[...]`, for t `[...]` of 0 or more; lengths `[groups]` or `[..., groups]`."""
        if numerics.namespace(t, self.lengths) is not np or self.lengths.ndim > 1:
            return self._native(Maximum._survival, t)
        distinct, index = np.unique(t, return_inverse=True)  # a pair of models is there twice
        parts = np.array_split(distinct, -(-distinct.size * self.lengths.size // _AT_ONCE) or 1)
        found: Any = np.concatenate(in_threads(self._survival, parts))
        return found[index].reshape(t.shape)

    def quantile(self, level: Any) -> Array:
        """The t with P(max > t) = 1 - level; 0 if P(max > 0) is smaller than that.

        By Newton's method, for the logarithm of the probability as a function of log t. This
        function is not concave where few observations make some lengths far larger than the others.
        So the length of a step is limited, and a step that would leave the bracket of the root goes
        to the middle of the bracket.
        """
        return self._native(Maximum._quantile, 1 - level)

    def _native(self, method: Callable[[Maximum, Array], Array], x: Array) -> Array:
        def of_arrays(lengths: Array, x: Array) -> Array:
            return method(self._replace(lengths=lengths), x)

        return in_native_floats(of_arrays, self.lengths, x)

    def _survival(self, t: Array) -> Array:
        return self._mean(gamma_survival(self._half_square(t), self.dimensions))

    def _quantile(self, chance: Array) -> Array:
        library = numerics.namespace(self.lengths, chance)
        middle, largest = self.lengths[..., len(self.shares) // 2], self.lengths[..., -1]
        largest = library.where(largest > 0, largest, 1.0)
        start = library.where(middle > 0, middle, largest) * math.sqrt(self.dimensions)
        end = library.log(largest * (math.sqrt(self.dimensions) + 6))
        half, least = self.dimensions / 2, np.finfo(self.lengths.dtype).tiny

        def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            log_t, low, high = state
            t = library.exp(log_t)
            outside = library.maximum(self._survival(t), least)
            x = self._half_square(t)
            powers = half * library.log(x) - x - math.lgamma(half)
            density = 2 * self._mean(library.exp(powers))
            lead = library.log(outside) - library.log(chance)
            low, high = library.where(lead > 0, log_t, low), library.where(lead > 0, high, log_t)
            moved = log_t + numerics.divide(lead * outside, density, np.inf)
            moved = library.where((low <= moved) & (moved <= high), moved, (low + high) / 2)
            near = library.clip(moved, log_t - _LONGEST_STEP, log_t + _LONGEST_STEP)
            return near, low, high

        some = self._mean(self.lengths > 0) > chance
        start = library.log(start)
        found, *_ = _repeated(library, step, (start, library.full_like(start, -40.0), end))
        return library.where(some, library.exp(found), 0.0)

    def _half_square(self, t: Array) -> Array:
        """t^2 / (2 l^2), the argument of Q, at most _FURTHEST."""
        library = numerics.namespace(t, self.lengths)
        x = numerics.divide(t[..., None], self.lengths, np.inf)
        # Not the minimum of a square, whose slope at infinity is NaN.
        return library.minimum(x, math.sqrt(2 * _FURTHEST)) ** 2 / 2

    def _mean(self, x: Array) -> Array:
        return numerics.namespace(x).sum(x * self.shares.astype(self.lengths.dtype), axis=-1)


def _repeated(library: Any, step: Callable[[Any], Any], start: tuple[Array, ...]) -> Any:
    if library is not np:
        return varying.repeated(_STEPS, step, start)
    for _ in range(_STEPS):
        last, start = start, step(start)
        if np.all(abs(start[0] - last[0]) < 1e-9):
            break
    return start


def maxima(covariance: Array, pairs: Pairs, reference: int | None) -> Maximum:
    """The Maximum of |T| over all comparisons, and for each model that of the lead over it.

    Its lengths are `[1 + models, groups]`. `covariance` is that of the models, `[models, models]`,
    with zeros for those to leave out.
    """
    library = numerics.namespace(covariance)
    n_models = len(covariance)
    dimensions = n_models - 1
    centred = covariance - library.mean(covariance, axis=0)
    centred = centred - library.mean(centred, axis=1, keepdims=True)
    values, vectors = numerics.eigh((centred + centred.T) / 2)
    vectors = vectors[:, 1:]
    factor = vectors * (_signs(vectors) * numerics.root(values[1:]))
    normal = library.asarray(_points(dimensions + len(pairs.sizes)))
    directions = normal[:dimensions] / library.sqrt(library.sum(normal[:dimensions] ** 2, axis=0))
    places = factor @ directions
    drawn = pairs.drawn_parts(normal[dimensions:])

    def of_model(i: Any, places: Array, drawn: Array) -> tuple[Array, Array]:
        """The largest |T| of one model against the others, and the largest lead over it."""
        error = pairs.standard_error[i]
        compared = (error > 0)[:, None]
        variance = library.where(compared, pairs.shares[:, i].T @ drawn, 1.0)
        known = library.where(compared, error[:, None], 1.0)  # infinity would have a NaN slope
        t = library.where(compared, (places - places[i]) / (known * library.sqrt(variance)), 0.0)
        lead = library.maximum(library.max(t, axis=0), 0.0)
        return library.maximum(lead, -library.min(t, axis=0)), lead

    def of_part(begin: int) -> HostArray:
        part = np.s_[:, begin : begin + width]
        of_models = [of_model(i, places[part], drawn[part]) for i in range(n_models)]
        return np.stack(of_models, axis=1)

    if library is np:
        width = max(_AT_ONCE // n_models, 1)
        both, lead = np.concatenate(in_threads(of_part, range(0, N_POINTS, width)), axis=-1)
    else:
        both, lead = lax.map(lambda i: of_model(i, places, drawn), library.arange(n_models))
    compared = library.max(both, axis=0) if reference is None else both[reference]
    return Maximum(_grouped(library.concatenate([compared[None], lead])), dimensions)


def _signs(vectors: Array) -> Array:
    """The signs to give to eigenvectors, in columns, whose own depend on the machine.

    They make the sum of cubes positive, whatever the order of the models. If that sum is about 0,
    they make the first entry positive that is not small. Entries as large as half of the largest
    one, or as large as that, are common, and so would be the rounding that decides between them.
    """
    library = numerics.namespace(vectors)
    size = library.abs(vectors)
    first = library.argmax(size > _NOT_SMALL * library.max(size, axis=0), axis=0)
    found = library.take_along_axis(vectors, first[None], axis=0)[0]
    cubes = library.sum(vectors**3, axis=0)
    lopsided = library.abs(cubes) > _LOPSIDED * library.sum(size**3, axis=0)
    return library.where(library.where(lopsided, cubes, found) < 0, -1.0, 1.0)


def _grouped(lengths: Array) -> Array:
    """The lengths in groups; sorted as float32, as TPUs take long to compile a sort of float64."""
    library = numerics.namespace(lengths)
    order = np.sort if library is np else _ascending
    ascending = order(lengths.astype(np.float32)).astype(np.float64)
    groups, begin = [], 0
    for n, size in _GROUPS:
        part = ascending[..., begin : begin + n * size]
        groups.append(library.mean(part.reshape(*lengths.shape[:-1], n, size), axis=-1))
        begin += n * size
    return library.concatenate(groups, axis=-1)


@jax.custom_jvp
def _ascending(lengths: Array) -> Array:
    """Floats of 0 or more in order, as integers, whose sort a TPU compiles faster by seconds."""
    return sort(lengths.view(np.int32)).view(np.float32)


@_ascending.defjvp
def _(given: tuple[Array], slopes: tuple[Array]) -> tuple[Array, Array]:
    (lengths,), (slope,) = given, slopes
    return _ascending(lengths), jnp.take_along_axis(slope, jnp.argsort(lengths), axis=-1)


@functools.lru_cache(maxsize=32)
def _points(dimensions: int) -> HostArray:
    """Normal vectors `[dimensions, N_POINTS]`, from multiples of irrational numbers modulo 1.

    The numbers are powers of 1 / x, with x the root of x^(dimensions + 1) = x + 1. For one
    dimension x is the golden ratio.
    """
    root = 2.0
    for _ in range(60):
        root = (1 + root) ** (1 / (dimensions + 1))
    steps = root ** -np.arange(1.0, dimensions + 1)
    uniform = (0.5 + steps[:, None] * np.arange(1.0, N_POINTS + 1)) % 1
    return scipy.special.ndtri(np.clip(uniform, 1e-12, 1 - 1e-12))
