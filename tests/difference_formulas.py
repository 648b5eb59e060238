"""The written formulas of the variance of a difference of two models, by NumPy."""

import numpy as np
from interval_formulas import power


def raised_variances(estimates, phis, labels, bounds=(0.0, 1.0), window=None):
    """V_c of the difference of two models, of negatives and of positives, from influence values.

    `window` are a limit of the FPR, and the variances of the two models if they are power laws.
    """
    width = bounds[1] - bounds[0]
    shares = (np.asarray(estimates) - bounds[0]) / width
    m = weight_of_the_unseen(shares, min(np.sum(labels == 0), np.sum(labels == 1)))
    found = []
    for kind in (False, True):
        first, second = (phi[labels == kind] / width for phi in phis)
        n, s2 = len(first), np.var(first - second, ddof=1)
        both = np.cov(first, second)
        more = m * max(largest_variance(shares, both, n) - s2, 0) / n
        if window is not None and not kind:
            inside = n * window[0]
            largest = variance_with_one_more(np.asarray(window[1]), both, inside)
            more += 2 * max(largest - s2, 0) / (inside + 2)
        found.append(width**2 * (s2 + more) / n)
    return np.array(found)


def height_variance(height, t):
    """(R h)^2 (1 - t) / t of a recall R at t."""
    h = power(height / (1 + power(height, t)), t)
    return (height * h) ** 2 * (1 - t) / t


def weight_of_the_unseen(shares, n):
    """m, from the fewest soft failures or successes of a model."""
    fewest = n * np.minimum(shares, 1 - np.asarray(shares))
    return 1 + 4 * np.clip(3 - 8 * fewest, 0, 1).max()


def largest_variance(shares, covariance, n):
    """L of two models, from the covariance of their influence values."""
    p = (n * np.asarray(shares) + 0.5) / (n + 1)
    return variance_with_one_more(p * (1 - p), covariance, n)


def variance_with_one_more(u, covariance, n):
    """The same with one more observation of these variances."""
    r = covariance[0, 1] / np.sqrt(np.prod(np.diagonal(covariance) + u / n))
    return u.sum() - 2 * np.clip(r, 0, 1) * np.sqrt(u.prod())
