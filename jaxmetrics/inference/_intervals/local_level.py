"""The local level of limits that hold for all order statistics of a sample at once.

The share of a class at or above a threshold has Beta limits from the count in the sample. If each
limit misses with probability l / 2, all hold at once with a probability that depends on l and on
the size of the class alone.

Reference: S. Aldor-Noiman, L. D. Brown, A. Buja, W. Rolke and R. A. Stine, "The power to see: a new
graphical test of normality", The American Statistician 67, 2013.
"""

from __future__ import annotations

import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.types import Array

# The number m of independent tests of level l that all hold with the same probability, (1 - l)^m.
# Rows are the sizes 2^0, 2^1, ..., columns the probabilities _CHANCES. Printed by
# `python -m benchmarks.local_levels`.
_CHANCES = (0.2, 0.5, 0.7, 0.8, 0.9, 0.95, 0.975, 0.99, 0.999)
_TESTS = np.array(
    [
        [1, 1, 1, 1, 1, 1, 1, 1, 1],
        [1.931, 1.83, 1.831, 1.847, 1.879, 1.907, 1.931, 1.954, 1.985],
        [3.204, 3.111, 3.165, 3.234, 3.358, 3.472, 3.569, 3.673, 3.836],
        [4.927, 4.927, 5.118, 5.302, 5.62, 5.918, 6.184, 6.483, 7.021],
        [7.089, 7.306, 7.741, 8.121, 8.77, 9.386, 9.952, 10.62, 11.92],
        [9.659, 10.21, 11.02, 11.68, 12.81, 13.89, 14.91, 16.15, 18.71],
        [12.57, 13.61, 14.88, 15.91, 17.67, 19.37, 20.99, 22.99, 27.33],
        [15.78, 17.4, 19.24, 20.72, 23.23, 25.67, 28.02, 30.96, 37.53],
        [19.23, 21.54, 24.04, 26.02, 29.37, 32.65, 35.83, 39.85, 49.02],
        [22.88, 25.96, 29.18, 31.71, 35.99, 40.18, 44.26, 49.46, 61.51],
        [26.72, 30.62, 34.61, 37.73, 42.98, 48.14, 53.18, 59.63, 74.74],
        [30.71, 35.49, 40.29, 44.01, 50.29, 56.45, 62.48, 70.22, 88.51],
        [34.82, 40.54, 46.18, 50.53, 57.85, 65.04, 72.08, 81.15, 102.7],
        [39.05, 45.76, 52.26, 57.25, 65.64, 73.87, 81.94, 92.35, 117.2],
        [43.4, 51.11, 58.5, 64.15, 73.61, 82.9, 92.01, 103.8, 132],
        [47.87, 56.59, 64.88, 71.2, 81.76, 92.1, 102.3, 115.4, 147],
        [52.43, 62.19, 71.39, 78.39, 90.04, 101.5, 112.7, 127.2, 162.1],
        [57.09, 67.9, 78.03, 85.7, 98.46, 110.9, 123.2, 139.1, 177.4],
        [61.82, 73.72, 84.78, 93.13, 107, 120.6, 133.9, 151.1, 192.8],
        [66.63, 79.64, 91.64, 100.7, 115.7, 130.3, 144.7, 163.3, 208.3],
        [71.52, 85.66, 98.6, 108.3, 124.4, 140.1, 155.6, 175.5, 224],
        [76.49, 91.76, 105.7, 116.1, 133.3, 150.1, 166.6, 187.9, 239.7],
        [81.54, 97.95, 112.8, 123.9, 142.2, 160.1, 177.7, 200.4, 255.6],
        [86.66, 104.2, 120, 131.8, 151.3, 170.2, 188.8, 212.9, 271.5],
        [91.85, 110.6, 127.3, 139.8, 160.4, 180.5, 200.1, 225.6, 287.5],
    ]
)
_PLACES = np.log(-np.log(_CHANCES))[::-1]
_ROOTS = np.sqrt(_TESTS)[:, ::-1]


def local_level(n: Array, chance: float) -> Array:
    """The level of each of `n` order statistics at which all limits hold with probability `chance`.

    For n from 1 to 1e7. From n = 20 on, the probability that any limit misses has a relative error
    of at most 0.1 %; for smaller n it is at most 1.5 % too low.
    """
    library = numerics.namespace(n)
    # sqrt(m) is interpolated linearly in log(-log chance) and in log n, where it is nearly linear.
    place = np.interp(np.log(-np.log(chance)), _PLACES, np.arange(float(len(_PLACES))))
    column = min(int(place), len(_PLACES) - 2)
    roots = _ROOTS[:, column] + (place - column) * (_ROOTS[:, column + 1] - _ROOTS[:, column])
    tests = library.interp(library.log2(n), np.arange(float(len(roots))), roots) ** 2
    return -library.expm1(np.log(chance) / tests)
