"""The bins of a stream: which scores are counted together, and the unit of the weights."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, field, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._base import checks
from jaxmetrics._base.checks.values import number
from jaxmetrics._base.host import is_concrete
from jaxmetrics._base.types import Array, ArrayLike, HostArray

_MOST = 1 << 24  # bins
_LEAST_SCALE, _LARGEST_SCALE = 2.0**-64, 2.0**64
_end = number(-math.inf, math.inf, open_low=True, open_high=True, several=False)


@dataclass(frozen=True, eq=False)
class Bins:
    """Ascending bins of scores; hashable, and equal if kind, lower and weight_scale are equal.

    Attributes:
      lower: `[n]` float32, the lowest score of each bin; -inf for the first.
      kind: the rule that finds the bin of a score: "float16", "uniform" or "edges".
      fingerprint: a hash of the other attributes; states carry it.
      weight_scale: a power of two. Weights are counted in units of weight_scale 2^-32.
    """

    lower: HostArray = field(repr=False)
    kind: str
    fingerprint: int
    weight_scale: float = 1.0

    @property
    def n(self) -> int:
        """Number of bins."""
        return len(self.lower)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bins) and (
            self is other
            or (
                (self.fingerprint, self.weight_scale) == (other.fingerprint, other.weight_scale)
                and np.array_equal(self.lower, other.lower)
            )
        )

    def __hash__(self) -> int:
        return hash((self.kind, self.fingerprint))


def float16_bins(*, weight_scale: float = 1.0) -> Bins:
    """One bin for each float16 number: for probabilities, logits, and scores of similar size.

    bin of s = the float16 nearest to s, ties to even. The width of its bin is 2^-11 to 2^-10 of s:
    for probabilities at most 2^-11, and 2^-24 near 0. All scores from 65,520 up share one bin, and
    so do all from -65,520 down. Scores that are close together but far from 0 may also share one:
    use `uniform_bins` or `quantile_bins` for them.

    Args:
      weight_scale: a power of two near the largest weights, for states with weights. They count
        weights in units of weight_scale 2^-32, and their sums stay below weight_scale 2^47.

    Returns:
      65,536 Bins. 2,047 of them stay empty: those of float16's NaN and of -0, which counts as 0.

    Raises:
      TypeError, ValueError: weight_scale is not a power of two from 2^-64 to 2^64.

    A state of these bins takes 1 MB, or 2 MB with weights. Nothing is NaN.

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.streaming.float16_bins().n)
      65536

    Reference: IEEE 754-2008, binary16.
    """
    return _scaled(_FLOAT16, weight_scale)


def uniform_bins(n: int, low: float = 0.0, high: float = 1.0, *, weight_scale: float = 1.0) -> Bins:
    """Bins of equal width from low to high.

    bin of s = floor(n (s - low) / (high - low)). The first bin also holds the scores below low,
    and the last one those above high.

    Args:
      n: number of bins.
      low: lower end of the first bin.
      high: upper end of the last bin.
      weight_scale: as in `float16_bins`.

    Returns:
      n Bins.

    Raises:
      TypeError: n is not an int, or low or high is no number that is known.
      ValueError: n is below 1 or above 2^24, low is not below high, float32 has too few numbers
        between them for n bins, or weight_scale is not a power of two.

    Time and memory O(n). Nothing is NaN.

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.streaming.uniform_bins(4).lower)
      [-inf 0.25 0.5  0.75]

    Reference: Y. Ben-Haim and E. Tom-Tov, "A streaming parallel decision tree algorithm", JMLR 11,
    2010, for histograms of streams.
    """
    checks.check_count("n", n)
    _check_number(n)
    first, last = (
        _known(name, _end(name, end), np.float64) for name, end in (("low", low), ("high", high))
    )
    if not first < last:
        raise ValueError(f"low must be below high, got {low} and {high}")
    ends = first + (last - first) * np.arange(1, n) / n
    refusal = f"float32 has too few numbers from {low} to {high} for {n} bins: write a smaller n"
    return _scaled(_bins(ends, "uniform", refusal), weight_scale)


def edges(array: ArrayLike, *, weight_scale: float = 1.0) -> Bins:
    """Bins that begin at the given scores.

    bin of s = number of edges <= s. The first bin holds the scores below the first edge.

    Args:
      array: `[m]`, finite and ascending. `jaxmetrics.streaming.quantile_bins` finds edges that
        suit a first batch.
      weight_scale: as in `float16_bins`.

    Returns:
      m + 1 Bins.

    Raises:
      TypeError: array is traced, or does not hold real numbers.
      ValueError: array is not `[m]`, is not finite, or does not ascend in float32, or weight_scale
        is not a power of two.

    Time and memory O(m). Nothing is NaN. Make them once: functions of a state are compiled for its
    bins, and other edges are other programs.

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.streaming.edges([0.5, 0.9, 0.99]).lower)
      [-inf 0.5  0.9  0.99]

    Reference: that of `jaxmetrics.streaming.uniform_bins`.
    """
    host = _known("edges", array, np.float64)
    if host.ndim != 1 or not host.size:
        raise ValueError(f"edges must be [m] with m of at least 1, got {list(host.shape)}")
    if not (np.abs(host) <= np.finfo(np.float32).max).all():
        raise ValueError("edges must be finite in float32: the first and the last bin have no end")
    refusal = "edges must ascend in float32: write np.unique(np.float32(array))"
    return _scaled(_bins(host, "edges", refusal), weight_scale)


def quantile_bins(scores: ArrayLike, n: int, *, weight_scale: float = 1.0) -> Bins:
    """Bins that each hold about the same number of the given scores, such as of a first batch.

    edges = the quantiles of scores at 1 / n, 2 / n, ..., (n - 1) / n, without repetition.

    Args:
      scores: of any shape; NaN and infinite scores are left out.
      n: largest number of bins.
      weight_scale: as in `float16_bins`.

    Returns:
      Bins; fewer than n where scores tie.

    Raises:
      TypeError: scores are traced, or n is not an int.
      ValueError: n is below 2 or does not fit into memory, no score is finite, or weight_scale is
        not a power of two.

    Time O(m log m) for m scores. Nothing is NaN. Make them once, as those of
    `jaxmetrics.streaming.edges`.

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.streaming.quantile_bins([0.1, 0.2, 0.3, 0.4, 0.8], 5).lower)
      [-inf  0.2  0.3  0.4  0.8]

    Reference: that of `jaxmetrics.streaming.uniform_bins`.
    """
    checks.check_count("n", n)
    checks.check_fits("n", n, 4 * n, "write a smaller n")  # shares and quantiles, sorted
    host = _known("scores", scores, np.float32)
    host = host[np.isfinite(host)]
    if n < 2 or not host.size:
        raise ValueError(
            f"n must be at least 2 and scores not empty, got n={n}, {host.size} finite scores"
        )
    found = np.unique(np.quantile(host, np.arange(1, n) / n, method="higher"))
    return _scaled(_bins(found, "edges", ""), weight_scale)


def _known(name: str, value: ArrayLike, dtype: Any) -> HostArray:
    array = checks.as_array(name, value)
    if not is_concrete(array):
        raise TypeError(
            f"{name} must not be traced: make the bins outside of jit, from known numbers"
        )
    with np.errstate(over="ignore"):
        return np.asarray(array, dtype)


def _bins(ends: HostArray, kind: str, refusal: str) -> Bins:
    """Bins that begin at -inf and at each of `ends`, which must ascend in float32."""
    lower = np.append(-np.inf, ends).astype(np.float32)
    _check_number(len(lower))
    if not np.all(np.diff(lower[1:]) > 0):
        raise ValueError(refusal)
    return _of_lower(lower, kind)


def _check_number(n: int) -> None:
    if n > _MOST:
        raise ValueError(f"there must be at most {_MOST:,} bins, got {n:,}")


def _of_lower(lower: HostArray, kind: str) -> Bins:
    lower.flags.writeable = False
    return Bins(lower, kind, _hash(lower.tobytes() + kind.encode()))


def _scaled(bins: Bins, weight_scale: float) -> Bins:
    """The bins with another unit of weights."""
    if weight_scale == 1.0:
        return bins
    scale = checks.check_nonnegative("weight_scale", weight_scale)
    if not (_LEAST_SCALE <= scale <= _LARGEST_SCALE and math.frexp(scale)[0] == 0.5):
        near = min(max(round(math.log2(scale or 1.0)), -64), 64)
        raise ValueError(
            f"weight_scale must be a power of two from 2^-64 to 2^64, got {weight_scale:g}: write "
            f"weight_scale=2.0**{near}"
        )
    parts = f"{bins.fingerprint} {scale.hex()}"
    return replace(bins, fingerprint=_hash(parts.encode()), weight_scale=scale)


def _hash(content: bytes) -> int:
    return zlib.crc32(content) & 0x7FFFFFFF


def parts_of(bins: Bins) -> tuple[np.int32, HostArray | None, Bins]:
    """The fingerprint, the lower ends if a program takes any, and what it is compiled for."""
    fingerprint = np.int32(bins.fingerprint)
    if bins.kind != "edges":
        return fingerprint, None, bins
    alike = replace(bins, lower=np.zeros(bins.n, np.float32), fingerprint=0)
    return fingerprint, bins.lower, alike


def bin_of(bins: Bins, scores: Array, edges: HostArray | None) -> Array:
    """`[...]` int32, the bin of each float32 score; meaningless for NaN.

    `bins` and `edges` are two of `parts_of`.
    """
    if bins.kind == "float16":
        return _float16_key(scores)
    if edges is not None:
        ends = jnp.asarray(edges)[1:]
        found: Array = jnp.searchsorted(ends, scores, side="right", method="scan_unrolled")
        return found.astype(jnp.int32)
    lower = jnp.asarray(bins.lower)
    if bins.n == 1:
        return jnp.zeros(scores.shape, jnp.int32)
    # Rounding may put the guess off by one bin, or by two if there are very many: each step below
    # corrects one.
    first, last = float(bins.lower[1]), float(bins.lower[-1])
    width = (last - first) / max(bins.n - 2, 1)
    wide = last - first > float(np.finfo(np.float32).max) / 2
    half = 0.5 if wide else 1.0  # scores - first would overflow float32
    guess = jnp.floor((half * scores - half * first) / (half * width))
    index = jnp.clip(jnp.nan_to_num(guess), -1, bins.n - 2).astype(jnp.int32) + 1
    for _ in range(1 if bins.n <= _MANY else 2):
        above = jnp.append(lower, jnp.nan)[index + 1]  # no score is >= NaN: the last bin has no end
        index = index + (scores >= above) - (scores < lower[index])
    return index


_MANY = 1 << 20  # bins; with more, the guess may be off by two


def _float16_key(scores: Array) -> Array:
    bits = lax.bitcast_convert_type(scores.astype(jnp.float16), jnp.uint16).astype(jnp.int32)
    bits = jnp.where(bits == _SIGN, 0, bits)  # -0.0
    return jnp.where(bits >= _SIGN, 2 * _SIGN - 1 - bits, bits + _SIGN)


_SIGN = 1 << 15


def _float16_lower() -> HostArray:
    """The lowest float32 that rounds to each float16; an empty bin repeats the next bin's."""
    key = np.arange(2 * _SIGN)
    bits = np.where(key >= _SIGN, key - _SIGN, 2 * _SIGN - 1 - key).astype(np.uint16)
    value = bits.view(np.float16).astype(np.float64)
    value[np.isinf(value)] = np.copysign(2.0**16, value[np.isinf(value)])
    here = ~np.isnan(value)
    here[_SIGN - 1] = False  # -0.0
    values, even = value[here], bits[here] % 2 == 0
    middle = ((values[1:] + values[:-1]) / 2).astype(np.float32)
    middle = np.where(even[1:], middle, np.nextafter(middle, np.float32(np.inf)))
    lower = np.full(2 * _SIGN, np.inf, np.float32)
    lower[np.flatnonzero(here)] = np.append(np.float32(-np.inf), middle)
    return np.minimum.accumulate(lower[::-1])[::-1]


_FLOAT16 = _of_lower(_float16_lower(), "float16")
