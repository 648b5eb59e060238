"""Bands of the ROC curve by the bootstrap, and work and memory of bands."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from of_bands import FROM_0, GRID, KEY, LIMITS, PROGRAM, N, same
from scipy import stats

import jaxmetrics as jm
from jaxmetrics._roc.host_placements import OneClass, placements_of
from jaxmetrics._roc.limits import limit_of_fpr


@pytest.mark.filterwarnings("ignore:.*divide")  # where the curve has reached 1
def test_limits_of_the_bootstrap(data, resampled):
    """Wilson's, of which the simultaneous ones hold all of a share of the resampled curves."""
    metric = partial(jm.recall_at_fpr, max_fpr=GRID, method="linear")
    values = np.asarray(jm.bootstrap(metric, data[0][1], data[1], key=KEY).replicates, float)
    p, error = np.asarray(resampled.tpr, float), values.std(axis=0, ddof=1)
    varied = error > 0
    furthest = np.max(np.abs(values - p)[:, varied] / error[varied], axis=1)
    critical = np.quantile(furthest, 0.95)
    assert 2 < critical < 5
    n = np.minimum(p * (1 - p) / error**2, data[1].sum())
    for z, low in (
        (stats.norm.ppf(0.975), resampled.low),
        (critical, resampled.simultaneous_low),
    ):
        middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
        margin = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
        expected = np.maximum.accumulate(middle - margin)
        np.testing.assert_allclose(low[:10], expected[:10], rtol=1e-3)


@pytest.mark.filterwarnings("ignore:a band by the bootstrap rests on 24 clusters")
def test_weights_and_clusters_of_the_bootstrap(data, resampled):
    """Weights of 1 change nothing, and clusters of copies widen the band."""
    scores, labels = data[0][1], data[1]
    done, given = [], {"fpr": GRID, "key": KEY, "method": "bootstrap"}
    weighted = jm.roc_band(scores, labels, weights=np.ones(N), progress=done.append, **given)
    assert done[-1] == 2000
    same(weighted, resampled, rtol=0.1, names=("tpr", "low", "simultaneous_low"))
    copies = np.tile(scores[::3], 3), np.tile(labels[::3], 3)  # of as many items
    how = {"fpr": GRID, "key": KEY, "method": "bootstrap"}
    found = jm.roc_band(*copies, clusters=np.tile(np.arange(N // 3), 3), **how)
    three = jm.roc_band(*copies, **how)
    assert np.mean(found.high - found.low) > 1.2 * np.mean(three.high - three.low)
    np.testing.assert_allclose(found.tpr, three.tpr, rtol=1e-5)


def test_a_class_is_absent_from_the_bootstrap(data):
    with pytest.warns(UserWarning, match="undefined"):
        found = jm.roc_band(data[0][1], jnp.zeros(N, bool), fpr=GRID, key=KEY, method="bootstrap")
    for name in ("tpr", *LIMITS):
        assert np.isnan(getattr(found, name)).all()


@pytest.mark.slow
def test_points_take_no_memory_in_programs():
    """Of 400 points no array has as many entries for each item."""
    n, fpr = 20_000, np.linspace(0.0025, 1, 400)
    scores, labels = jnp.arange(n) * 7 % n / n, jnp.arange(n) % 2
    recall = partial(jm.recall_at_fpr, max_fpr=fpr, method="linear")
    area = partial(jm.partial_auc, max_fpr=fpr, min_tpr=0.1)
    for metric in (recall, area, partial(jm.roc_band, fpr=fpr)):
        used = jax.jit(metric).lower(scores, labels).compile().memory_analysis()
        assert used.temp_size_in_bytes < 400 * n


def test_what_is_sorted_stays_in_order():
    """Questions one after another, of negatives that tie, have the answers that each has alone."""
    rng = np.random.default_rng(1)
    scores, labels = rng.integers(0, 6, 300).astype("float32"), rng.random(300) < 0.1

    def placed():
        return placements_of(OneClass(scores[labels]), OneClass(scores[~labels]))

    one = placed()
    for fpr in [np.array([155, 110]) / 266, *rng.random((30, 2))]:
        limit = limit_of_fpr(fpr)
        np.testing.assert_array_equal(one.corners(limit), placed().corners(limit))
    scores, labels = scores[:N].astype(float), labels[:N]
    expected = PROGRAM(np.stack([scores, -scores]), labels, np.ones(N, bool))
    same(FROM_0(scores, labels), jax.tree.map(lambda x: x[0] if x.ndim == 2 else x, expected))


@pytest.mark.parametrize("turn", range(3))
def test_many_limits_are_those_one_by_one(turn, x64):
    """On steps and within them, where scores tie, without weights and with some."""
    rng = np.random.default_rng(turn)
    for _ in range(10):
        n = int(rng.integers(4, 60))
        scores = rng.integers(0, rng.integers(2, 40), n).astype(float)
        labels = np.append([True, False], rng.random(n - 2) < 0.4)
        weights = [None, 3 * rng.random(n) + 0.1, rng.integers(0, 3, n) + 0.0][turn]
        steps = np.arange(1, 5) / (~labels).sum()
        limits = np.sort(np.concatenate([rng.random(8), [0.01, 1.0], steps])).clip(0.01, 1)
        for metric in (jm.partial_auc, partial(jm.recall_at_fpr, method="linear")):
            found = metric(scores, labels, weights=weights, max_fpr=limits)
            each = [metric(scores, labels, weights=weights, max_fpr=x) for x in limits.tolist()]
            np.testing.assert_allclose(found, each, rtol=1e-12, atol=1e-12)


def test_few_negatives_of_a_bootstrap_are_warned_of(rng, recwarn):
    labels = np.arange(N) >= 30
    scores = (rng.normal(size=N) + labels).round()
    jm.roc_band(scores, labels)
    assert not recwarn.list
    with pytest.warns(UserWarning, match="a band by the bootstrap rests on 30 negatives"):
        jm.roc_band(scores, labels, fpr=GRID, weights=np.ones(N), method="bootstrap", key=KEY)
