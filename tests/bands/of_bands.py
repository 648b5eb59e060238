"""What the tests of bands share."""

from functools import partial

import jax
import numpy as np
from scipy import stats

import jaxmetrics as jm

KEY = jax.random.key(31)
N = 120
GRID = np.arange(1, 21) / 20
LIMITS = ("low", "high", "simultaneous_low", "simultaneous_high")


def same(a, b, rtol=1e-5, *, names=("tpr", *LIMITS)):
    for name in names:
        found, expected = (np.asarray(getattr(x, name)) for x in (a, b))
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-6, err_msg=name)


def share_limits(count, n, level):
    """Those of Clopper and Pearson."""
    low = stats.beta.ppf(level / 2, count, n - count + 1) if count >= 0.5 else 0.0
    return low, stats.beta.ppf(1 - level / 2, count + 1, n - count) if n - count >= 0.5 else 1.0


def kish(weights):
    return np.float64(weights.sum() ** 2 / (weights**2).sum())


def draws_of(weights, flagged, units, level=0.95):
    """The share that is flagged at each threshold `[rows, n]`, and the draws that it varies as.

    Units are clusters of one weight each, or the items themselves.
    """
    whole = np.bincount(units, weights)
    n, k = kish(weights), np.count_nonzero(whole)
    shares, draws = (flagged * weights).sum(axis=1) / weights.sum(), []
    for row, share in zip(flagged, shares, strict=True):
        sums = np.bincount(units, weights * (row - share))
        variance = (sums**2).sum() / weights.sum() ** 2
        if k < len(units):
            variance /= (1 - 1 / k) / (1 - 1 / n)
        draws.append(min(share * (1 - share) / variance, n) if variance > 1e-15 else n)
    draws = np.array(draws)
    if k < len(units):
        assert np.ptp(whole[whole > 0]) == np.ptp(weights) == 0
        fewer = np.minimum(shares, 1 - shares) * draws
        most = max((fewer * n / draws + 3) / (fewer + 3))
        times = (fewer * n / draws + 3 * np.sqrt(most * n / k)) / (fewer + 3)
        items, clusters = stats.t.ppf((1 + level) / 2, (n - 1, k - 1))
        draws = np.minimum(n / times, draws) * (items / clusters) ** 2
    return shares, draws


def by_corners(scores, labels, fpr, levels, weights=None, units=None):
    """The lines through the corners of the box of each threshold, one by one."""
    weights = np.ones(len(scores)) if weights is None else weights
    units = np.arange(len(scores)) if units is None else units
    thresholds = np.append(np.inf, np.unique(scores)[::-1])
    sides = []
    for mask, level in zip((~labels, labels), levels, strict=True):
        shares, draws = draws_of(weights[mask], scores[mask] >= thresholds[:, None], units[mask])
        limits = [share_limits(p * n, n, level) for p, n in zip(shares, draws, strict=True)]
        sides.append(np.transpose(limits))
    (fpr_low, fpr_high), (tpr_low, tpr_high) = sides
    upper, lower = ([*zip(*x, strict=True)] for x in ((fpr_low, tpr_high), (fpr_high, tpr_low)))

    def height(points, at):
        """The highest point of the line at an FPR; 0 before its start."""
        found = 0.0
        for (x0, y0), (x1, y1) in zip(points, [*points[1:], (2.0, points[-1][1])], strict=True):
            if x0 <= at < x1:
                found = y0 + (y1 - y0) * (at - x0) / (x1 - x0)
        return found

    return [[height(points, at) if at < 1 else 1.0 for at in fpr] for points in (lower, upper)]


FROM_0 = partial(jm.roc_band, fpr=[0, *GRID])
PROGRAM = jax.jit(lambda *x: FROM_0(*x[:2], where=x[2]))  # of all the tests that need one
