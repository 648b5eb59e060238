"""Early stopping by the metric, of clusters too."""

from functools import partial

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose
from trained import HELD, X, Y

import jaxmetrics as jm


def test_early_stopping():
    """The best moves by more than the error of the difference alone, and then patience counts."""
    y = HELD[1]
    noise = np.random.default_rng(2).normal(size=(6, len(y)))
    strength = [0, 1, 1.03, 1, 0.5, 4]
    epochs = noise[0] + np.outer(strength, y) + 0.3 * noise
    state, seen = None, []
    for scores in epochs:
        state = jm.training.early_stopping(state, jm.roc_auc, scores, y, patience=2)
        seen.append((state.best, state.last, state.stop))
    assert seen[:5] == [(0, 0, False), (1, 1, False), (1, 2, False), (1, 3, True), (1, 4, True)]
    assert seen[5] == (5, 5, False)
    found = jm.compare(jm.roc_auc, epochs[[2, 1]], y)
    assert found.difference[0, 1] <= found.standard_error[0, 1]
    assert_allclose(state.scores, epochs[5], rtol=1e-6)


def test_early_stopping_of_clusters():
    """The error is that of clusters; a decision cannot be traced."""
    y = np.repeat(HELD[1], 8)
    ids = np.repeat(np.arange(len(HELD[1])), 8)
    noise = np.random.default_rng(2).normal(size=(2, len(HELD[1])))
    first, second = np.repeat(noise[0] + np.outer([0, 0.02], HELD[1]) + 0.3 * noise, 8, axis=1)
    states = []
    for clusters in (None, ids):
        state = jm.training.early_stopping(None, jm.roc_auc, first, y, clusters=clusters)
        states.append(
            jm.training.early_stopping(state, jm.roc_auc, second, y, clusters=clusters).best
        )
    difference = jm.compare(jm.roc_auc, np.stack([second, first]), y)
    of_clusters = jm.compare(jm.roc_auc, np.stack([second, first]), y, clusters=ids)
    gain = float(difference.difference[0, 1])
    expected = [gain > float(x.standard_error[0, 1]) for x in (difference, of_clusters)]
    assert states == expected == [1, 0]
    for before in (None, state):
        decide = partial(jm.training.early_stopping, before, jm.roc_auc, labels=y)
        with pytest.raises(TypeError, match="call it outside jit"):
            jax.jit(lambda s, decide=decide: decide(scores=s).best)(second)


def test_early_stopping_has_the_key_of_metrics_that_resample():
    with pytest.raises(TypeError, match="key must be one JAX random key"):
        jm.training.early_stopping(None, lambda table: table.positives[0], X[:, 0], Y, key="a")


def order_in_single(scores):
    return 1 - 1e-10 * (10 - scores)


def whole_numbers(scores):
    return (scores * 2**36).astype(np.int64)


@pytest.mark.parametrize("rewritten", [order_in_single, whole_numbers])
def test_scores_in_64_bits_are_kept(rewritten):
    """As the metric takes them, also where the caller writes the next ones over them."""
    y = HELD[1]
    buffer = rewritten(np.random.default_rng(0).normal(size=len(y)))
    better = rewritten(2.0 * y)
    state = jm.training.early_stopping(None, jm.roc_auc, buffer, y)
    buffer[:] = better
    assert jm.training.early_stopping(state, jm.roc_auc, buffer, y).best == 1
    back = jm.training.early_stopping(None, jm.roc_auc, better, y)
    assert jm.training.early_stopping(back, jm.roc_auc, np.asarray(state.scores), y).best == 0


def test_early_stopping_of_nan():
    x, y = HELD
    state = jm.training.early_stopping(None, jm.roc_auc, np.full(len(y), np.nan), y)
    with pytest.warns(UserWarning, match="undefined"):
        state = jm.training.early_stopping(state, jm.roc_auc, x[:, 0], y)
    assert state.best == 1
    with pytest.warns(UserWarning, match="undefined"):
        state = jm.training.early_stopping(state, jm.roc_auc, np.full(len(y), np.nan), y)
    assert (state.best, state.last) == (1, 2)


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"patience": 0}, ValueError, "patience"),
        ({"state": (1, 2)}, TypeError, "state must be None or a Stopping, .* previous call"),
        ({"state": {"best": 0}}, TypeError, r"write jm.training.Stopping\(\*\*restored\)"),
        ({"scores": X[:, :1]}, ValueError, r"scores must be \[n\]"),
        ({"labels": Y[:3]}, ValueError, "labels"),
        ({"metric": None}, TypeError, "metric must be a function"),
        ({"metric": partial(jm.partial_auc, max_fpr=5)}, ValueError, "max_fpr must be in"),
        ({"metric": partial(jm.recall_at_fpr, max_fpr=[0.1, 0.2])}, ValueError, "one value"),
        ({"metric": jm.table_metric(lambda x: x.thresholds[..., 0])}, TypeError, "key"),
    ],
)
def test_early_stopping_refuses(change, error, match):
    given = {"state": None, "metric": jm.roc_auc, "scores": X[:, 0], "labels": Y}
    with pytest.raises(error, match=match):
        jm.training.early_stopping(**given | change)
