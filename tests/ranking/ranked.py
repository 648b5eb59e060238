"""The metrics of ranked lists and the lists that their tests share."""

import numpy as np


def sample(rng, shape=(12, 9), *, grades=5):
    """Lists with ties, masked documents, one without relevant documents, one without any."""
    scores = rng.normal(size=shape).round(1)
    labels = rng.integers(0, grades, shape)
    where = rng.random(shape) < 0.8
    labels[0], where[1] = 0, False
    return scores, labels, where


def flattened(rng, *arrays):
    """Lists as flat items in any order that keeps the items of a list in theirs, and segments."""
    lists, n = arrays[0].shape
    segments = rng.permutation(np.repeat(np.arange(lists), n))
    flat = [np.empty(lists * n, x.dtype) for x in arrays]
    for x, y in zip(arrays, flat, strict=True):
        for i in range(lists):
            y[segments == i] = x[i]
    return *flat, segments
