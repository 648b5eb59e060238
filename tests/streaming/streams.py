"""What the tests of streams share."""

from functools import partial
from itertools import pairwise

import jax
import numpy as np

import jaxmetrics as jm
from jaxmetrics.streaming._bins import bin_of, parts_of

S, M = jm.streaming, jm.streaming.means
UNIFORM = S.uniform_bins(20)
FOUR = [0.1, 0.5, 0.501, 0.9]
BINS = {  # three of them are 20, which share all programs but that of an update
    "float16": S.float16_bins(),
    "uniform": UNIFORM,
    "one": S.uniform_bins(1),
    "edges": S.edges(sorted([*FOUR, *np.linspace(-1.3, 1.7, 15)])),
    "quantiles": S.quantile_bins(np.linspace(-1, 2, 200) ** 3, 20),
}
METRICS = {
    "roc_auc": jm.roc_auc,
    "partial": partial(jm.partial_auc, max_fpr=0.1),
    "range": partial(jm.partial_auc, min_fpr=0.05, max_fpr=0.4, scale="range"),
    "two-way": partial(jm.partial_auc, max_fpr=0.5, min_tpr=0.3, scale="mcclish"),
    "recall": partial(jm.recall_at_fpr, max_fpr=0.1),
    "linear": partial(jm.recall_at_fpr, max_fpr=0.1, method="linear"),
    "threshold": partial(jm.threshold_at_fpr, max_fpr=0.1),
    "average precision": jm.average_precision,
    "precision": partial(jm.precision_at_recall, min_recall=0.6),
    "recall at precision": partial(jm.recall_at_precision, min_precision=0.4),
    "sensitivity": partial(jm.sensitivity_at_specificity, min_specificity=0.8),
    "specificity": partial(jm.specificity_at_sensitivity, min_sensitivity=0.8),
}


def filled(bins, *arrays, weights=None, where=None, parts=1, batch=()):
    state = S.init(bins, batch, weighted=weights is not None)
    edges = np.linspace(0, arrays[0].shape[-1], parts + 1).astype(int)
    for start, end in pairwise(edges):
        cut = {
            name: None if x is None else x[..., start:end]
            for name, x in (("weights", weights), ("where", where))
        }
        state = S.update(state, *(x[..., start:end] for x in arrays), bins=bins, **cut)
    return state


_bin_of = jax.jit(bin_of, static_argnums=0)


def index_of(bins, scores):
    """The bins of scores, in one program, not one for each of its steps."""
    _, edges, bins = parts_of(bins)
    return np.asarray(_bin_of(bins, scores, edges))


def sample(rng, n=300, batch=()):
    labels = rng.random(n) < 0.3
    scores = rng.normal(0.4, 0.2, (*batch, n)) + 0.2 * labels
    return scores.astype(np.float32), labels


def read(scores, labels, weights=None, size=700):
    """A function that gives batches, and counts how often it was called."""

    def batches():
        batches.passes += 1
        for start in range(0, len(scores), size):
            part = slice(start, start + size)
            yield (scores[part], labels[part], *([] if weights is None else [weights[part]]))

    batches.passes = 0
    return batches
