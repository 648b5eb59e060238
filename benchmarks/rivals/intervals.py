"""95 % confidence intervals of the AUC of one model.

Each library has a function of scores and labels `[n]` that returns a call, and the call returns a
standard error: the half width of the interval over 1.96. The number of resamples is the library's
default.
"""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
import scipy.stats

from benchmarks.rivals.areas import Call
from benchmarks.rivals.packages import installed

Z = scipy.stats.norm.ppf(0.975)


def error_of(low: Any, high: Any) -> float:
    """The standard error that an interval implies."""
    return float(high - low) / (2 * Z)


def auc_of_samples(positives: np.ndarray, negatives: np.ndarray, axis: int = -1) -> np.ndarray:
    """AUC by Mann-Whitney, vectorised over resamples."""
    n1, n0 = positives.shape[axis], negatives.shape[axis]
    ranks = scipy.stats.rankdata(np.concatenate([positives, negatives], axis), axis=axis)
    first = np.take(ranks, np.arange(n1), axis)
    return (first.sum(axis) - n1 * (n1 + 1) / 2) / (n1 * n0)


def scipy_bootstrap(scores: np.ndarray, labels: np.ndarray) -> Call:
    """BCa, in batches; else SciPy holds all resamples at once."""
    samples = scores[labels], scores[~labels]

    def call() -> float:
        result = scipy.stats.bootstrap(samples, auc_of_samples, batch=100, vectorized=True, rng=0)
        return error_of(*result.confidence_interval)

    return call


def confidenceinterval_delong(scores: np.ndarray, labels: np.ndarray) -> Call | None:
    if not installed("confidenceinterval"):
        return None
    from confidenceinterval import roc_auc_score

    target = labels.astype(np.int64)
    return lambda: error_of(*roc_auc_score(target, scores)[1])


def mlstatkit_delong(scores: np.ndarray, labels: np.ndarray) -> Call | None:
    """The test of two models, with an interval for each; it does not take one model."""
    if not installed("MLstatkit"):
        return None
    from MLstatkit import Delong_test

    other = np.random.default_rng(2).random(len(scores))
    target = labels.astype(np.int64)
    return lambda: error_of(*Delong_test(target, scores, other)[2])


def mlstatkit_bootstrap(scores: np.ndarray, labels: np.ndarray) -> Call | None:
    if not installed("MLstatkit"):
        return None
    from MLstatkit import Bootstrapping

    target = labels.astype(np.int64)

    def call() -> float:
        with contextlib.redirect_stderr(io.StringIO()):  # it prints a progress bar
            _, low, high = Bootstrapping(target, scores, "roc_auc")
        return error_of(low, high)

    return call


RIVALS = {
    "confidenceinterval, DeLong": confidenceinterval_delong,
    "MLstatkit, DeLong (two models)": mlstatkit_delong,
    "SciPy, bootstrap (9,999, BCa)": scipy_bootstrap,
    "MLstatkit, bootstrap (1,000)": mlstatkit_bootstrap,
}
