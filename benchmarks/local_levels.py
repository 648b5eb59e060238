"""`python -m benchmarks.local_levels`: the table of `local_level.py` in `inference/_intervals`.

Limits of all n order statistics of uniform draws, each of the local level l, hold at once with a
chance that is computed, not simulated: the number of draws up to a time is a Poisson process that
is conditioned on n, and its distribution is carried from limit to limit. For a fixed l, the
logarithm of the chance becomes linear in log n, which gives n from 1e5 to 1e7.

References: A. Moscovich and B. Nadler, "Fast calculation of boundary crossing probabilities for
Poisson processes", Statistics and Probability Letters 123, 2017; S. Aldor-Noiman, L. D. Brown,
A. Buja, W. Rolke and R. A. Stine, "The power to see", The American Statistician 67, 2013.
"""

from __future__ import annotations

import numpy as np
from scipy import interpolate, special

SIZES = 2 ** np.arange(16)
LARGE = 2 ** np.arange(16, 25)
CHANCES = (0.2, 0.5, 0.7, 0.8, 0.9, 0.95, 0.975, 0.99, 0.999)
_QUANTILES = np.linspace(0.25, 6.0, 24)  # normal, of the local levels
_TERMS = 60


def chance(n: int, level: float) -> float:
    """The chance that limits of local level `level` hold for all n order statistics."""
    i = np.arange(1, n + 1)
    low = special.betaincinv(i, n - i + 1, level / 2)
    high = 1 - low[::-1]
    times = np.concatenate([low, high])
    order = np.argsort(times, kind="stable")
    times, is_low = times[order], order < n
    steps = n * np.diff(times, prepend=0.0)
    ahead = np.cumsum(is_low)  # the draws are at most as many as the low limits before, less 1
    behind = np.cumsum(~is_low)  # and at least as many as the high limits so far
    terms = np.arange(_TERMS)
    logs = special.gammaln(terms + 1)
    masses, first, scale = np.ones(1), 0, 0.0
    for step, most, least in zip(steps, ahead - 1 + ~is_low, behind, strict=True):
        if step > 0:
            n_terms = min(int(step + 9 * step**0.5 + 12), _TERMS)
            kernel = np.exp(terms[:n_terms] * np.log(step) - step - logs[:n_terms])
            masses = np.convolve(masses, kernel)
        masses = masses[max(least - first, 0) : most - first + 1]
        first = max(first, least)
        total = masses.sum()
        if total <= 0:
            return 0.0
        if total < 1e-100:
            masses, scale = masses / total, scale + np.log(total)
    at_end = masses[n - first] if n - first < len(masses) else 0.0
    step = n * (1 - times[-1])
    # All n draws are before the last high limit, and none is after it.
    log = np.log(at_end) + scale - step
    return float(np.exp(log - (n * np.log(n) - n - special.gammaln(n + 1))))


def tests() -> np.ndarray:
    """`[sizes, chances]`: of how many independent tests of level l the chance is (1 - l)^tests."""
    levels = 2 * special.ndtr(-_QUANTILES)
    exact = [[-np.log(chance(int(n), level)) for level in levels] for n in SIZES]
    rise = np.subtract(exact[-1], exact[-2])
    large = [exact[-1] + rise * np.log2(n / SIZES[-1]) for n in LARGE]
    found = [np.ones(len(CHANCES))]  # of one draw
    for logs in (*exact[1:], *large):
        falling = interpolate.PchipInterpolator(-np.log(logs), _QUANTILES)
        level = 2 * special.ndtr(-falling(-np.log(-np.log(CHANCES))))
        found.append(np.log(CHANCES) / np.log1p(-level))
    return np.array(found)


if __name__ == "__main__":
    print("chances", CHANCES)
    for n, row in zip((*SIZES, *LARGE), tests(), strict=True):
        print(f"    ({', '.join(f'{x:.4g}' for x in row)}),  # {n}")
