"""What the tests of comparisons share."""

import itertools
from functools import partial

import difference_formulas as differences
import interval_formulas as formulas
import jax
import numpy as np
from scipy import stats

import jaxmetrics as jm

KEY = jax.random.key(31)
N = 200
RECALL = partial(jm.recall_at_fpr, max_fpr=0.1)
PROGRAM = jax.jit(partial(jm.compare, jm.roc_auc, margin=0.02))  # of four models of 200 items


def close(a, b, rtol=2e-5):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=1e-6)


def delong(scores, labels):
    """The areas and their covariance."""
    positive, negative = scores[:, labels], scores[:, ~labels]
    difference = positive[:, :, None] - negative[:, None]
    wins = (difference > 0) + (difference == 0) / 2
    v10, v01 = wins.mean(axis=2), wins.mean(axis=1)
    return wins.mean(axis=(1, 2)), np.cov(v10) / v10.shape[1] + np.cov(v01) / v01.shape[1]


def errors_of_differences(covariance):
    variances = np.diag(covariance)
    return np.sqrt(np.maximum(variances[:, None] + variances - 2 * covariance, 0))


def values_of_influence(scores, labels):
    """Of the AUC, `[models, n]`: placement values less their means."""
    positive = labels[:, None] > labels
    found = []
    for row in scores:
        wins = (1 + np.sign(row[:, None] - row)) / 2
        phi = np.where(
            labels,
            np.sum(wins * positive, axis=1) / (~labels).sum(),
            np.sum(wins * positive, axis=0) / labels.sum(),
        )
        for kind in (False, True):
            phi[labels == kind] -= phi[labels == kind].mean()
        found.append(phi)
    return np.array(found)


def t_of_pairs(data, level=0.95):
    """The raised error, the degrees of freedom and the quantile of t, `[models, models]`."""
    labels = data[1]
    phi, (areas, _) = values_of_influence(*data), delong(*data)
    sizes = (~labels).sum(), labels.sum()
    error, df, share = np.zeros((3, len(areas), len(areas)))
    for i, j in itertools.product(range(len(areas)), repeat=2):
        pair = [i, j]
        if np.allclose(phi[i], phi[j]):
            continue
        parts = differences.raised_variances(areas[pair], phi[pair], labels)
        error[i, j], df[i, j] = np.sqrt(parts.sum()), formulas.welch(parts, sizes)
        share[i, j] = parts[0] / parts.sum()
    return error, df, stats.t.ppf((1 + level) / 2, np.where(df > 0, df, 1)), share
