"""Resamples that are drawn in runs of negatives, replayed item by item."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import marked
from resamples import FEW, KEY, N, close, problem, repeated, replicates
from scipy import stats

import jaxmetrics as jm
from jaxmetrics.inference._bootstrap import random as _random
from jaxmetrics.inference._bootstrap import run as _run
from jaxmetrics.inference._bootstrap.finish import finish_of


def whole_table(table):
    return table


def test_replay_of_runs(data, rng):
    """One model: within a run, any items of its class may take its count."""
    scores, labels = data.scores[0], data.labels

    @partial(jm.table_metric, of_roc_curve=True)
    def by_class(table):
        return jnp.stack([table.negatives, table.positives], axis=-1).ravel()

    result = jm.bootstrap(by_class, scores, labels, key=KEY, n_resamples=FEW)
    sizes, drawn = np.asarray(result.estimate, int), np.asarray(result.replicates, int)
    order = np.lexsort((labels, -scores))  # in a tie, negatives first
    runs = np.repeat(np.arange(len(sizes)), sizes)
    assert (labels[order] == runs % 2).all()
    assert sizes.max() > np.unique(scores, return_counts=True)[1].max()  # of several scores
    counts = np.zeros((FEW, N))
    for run in np.unique(runs):
        for resample in range(FEW):
            np.add.at(counts[resample], rng.choice(order[runs == run], drawn[resample, run]), 1)
    (again, kinds), where = repeated(counts, scores, labels)
    assert where.all()
    linear = partial(jm.recall_at_fpr, max_fpr=[0.03, 0.1], method="linear")
    for metric in (jm.roc_auc, linear):
        close(replicates(metric, scores, labels), metric(again, kinds))


@pytest.mark.slow
def test_replay_of_bayesian_runs(data):
    """The weight of a run is that of its items together."""
    scores, labels = data.scores[0], data.labels

    @partial(jm.table_metric, of_roc_curve=True)
    def by_class(table):
        return jnp.stack([table.negatives, table.positives], axis=-1).ravel()

    result = jm.bootstrap(by_class, scores, labels, key=KEY, n_resamples=FEW, resampling="bayesian")
    sizes, weights = np.asarray(result.estimate), np.asarray(result.replicates)
    assert (sizes > 0).sum() < len(np.unique(scores)) * 2
    row, kind = np.divmod(np.arange(len(sizes)), 2)
    for metric in (jm.roc_auc, partial(jm.partial_auc, max_fpr=[0.02, 0.3])):
        got = replicates(metric, scores, labels, resampling="bayesian")
        close(got, metric(np.broadcast_to(-row, weights.shape), kind, weights=weights), rtol=1e-5)
    one_by_one = replicates(jm.roc_auc, data.scores[[0, 0]], labels, resampling="bayesian")[:, 0]
    got = replicates(jm.roc_auc, scores, labels, resampling="bayesian", n_resamples=20_000)
    assert stats.ks_2samp(got, one_by_one).pvalue > 1e-3


OF_POSITIVES = {
    "average precision": jm.average_precision,
    "min_recall": partial(jm.precision_at_recall, min_recall=0.4),
    "min_precision": partial(jm.recall_at_precision, min_precision=0.6),
    "min_sensitivity": partial(jm.specificity_at_sensitivity, min_sensitivity=0.8),
    "max_fpr": partial(jm.threshold_at_fpr, max_fpr=0.1),
    "costs": partial(jm.min_cost_threshold, fp_cost=1.0, fn_cost=2.0),
}


@pytest.mark.parametrize(
    ("name", "width"),
    [
        # One of each way to find the point: a least recall, another rule, and costs.
        *(marked(x, 0, fast=x in ("min_recall", "min_precision", "costs")) for x in OF_POSITIVES),
        *(marked(x, 6, fast=False) for x in [*OF_POSITIVES][::2]),
    ],
)
def test_replay_of_runs_of_negatives(name, width, data, monkeypatch):
    """What positives alone decide: negatives between rows with positives are drawn as one.

    Rounded to multiples of 6, more positives tie than a unit can hold.
    """
    labels, scores = data.labels, problem(ties=False).scores[0]
    if width:
        scores = np.round(scores / width) * width
    metric = OF_POSITIVES[name]
    got = replicates(metric, scores, labels)
    rows_of_positives, largest = np.unique(scores[labels], return_counts=True)
    assert (largest.max() > _random.MAX_SIZE) == (width > 0)

    def of_tables(metric):
        how, arrays = finish_of(metric)
        return how._replace(merges=(True, False)), arrays

    monkeypatch.setattr(_run, "finish_of", of_tables)
    result = jm.bootstrap(whole_table, scores, labels, key=KEY, n_resamples=FEW)
    used = np.asarray(result.estimate.positives + result.estimate.negatives) > 0
    if not width:
        assert used.sum() < 2 * len(rows_of_positives) + 1 < N
    both = result.replicates
    rows = np.stack([both.negatives, both.positives], axis=-1).reshape(FEW, -1)
    values = np.repeat(np.asarray(both.thresholds[0]), 2)
    (again, kinds), where = repeated(rows, values, np.arange(len(values)) % 2)
    assert where.all()
    close(got, metric(again, kinds))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("metric", "name"),
    [
        (jm.precision_at_recall, "min_recall"),
        (jm.threshold_at_fpr, "max_fpr"),
    ],
)
def test_a_traced_limit_that_is_no_rate_gives_nan(metric, name, data):
    @jax.jit
    def drawn(limit):
        given = data.scores[0], data.labels
        limited = partial(metric, **{name: limit})
        return jm.bootstrap(limited, *given, where=data.where, key=KEY, n_resamples=8)

    for found in (drawn(np.nan), drawn(5.0)):
        assert np.isnan(found.estimate)
        assert np.isnan(found.replicates).all()
