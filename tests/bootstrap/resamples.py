"""What the tests of the bootstrap share."""

from types import SimpleNamespace

import jax
import numpy as np

import jaxmetrics as jm

# Most tests share shapes and programs; a worker of its own compiles each once.

KEY = jax.random.key(5)
N = 300
# 128 resamples or more are worked on 128 at a time, by one program.
FEW = 200


def problem(seed=0, ties=True):
    """Scores of two models, labels, weights, and a mask, of which the masked scores are NaN."""
    rng = np.random.default_rng(seed)
    labels = rng.random(N) < 0.3
    scores = rng.normal(size=N) + rng.normal(size=(2, N)) / 2 + 1.5 * labels
    # Few enough distinct scores that the runs fit into one tile.
    scores = (np.round(3 * scores) / 3 if ties else scores).astype("float32")
    weights = rng.random(N).astype("float32") + 0.1
    weights[rng.random(N) < 0.1] = 0
    where = rng.random(N) < 0.8
    return SimpleNamespace(scores=scores, labels=labels, weights=weights, where=where)


def close(a, b, rtol=2e-6):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=1e-7)


def replicates(metric, scores, labels, n_resamples=FEW, key=KEY, **options):
    result = jm.bootstrap(metric, scores, labels, key=key, n_resamples=n_resamples, **options)
    return np.asarray(result.replicates)


def repeated(counts, *arrays):
    """Each array `[n]` with item i physically repeated counts_i times, `[resamples, n]`; and a
    mask, as the resamples may differ in size."""
    counts = counts.astype(int)
    size = counts.sum(axis=1).max()
    index = np.zeros((len(counts), size), int)
    where = np.zeros(index.shape, bool)
    for row, valid, count in zip(index, where, counts, strict=True):
        items = np.repeat(np.arange(len(count)), count)
        row[: len(items)], valid[: len(items)] = items, True
    return [array[..., index] for array in arrays], where
