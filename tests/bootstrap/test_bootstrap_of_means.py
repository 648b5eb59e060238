"""The bootstrap of means over queries."""

import numpy as np
import pytest
from resamples import FEW, KEY, close

import jaxmetrics as jm


def means(values, weights=None, where=None, n_resamples=FEW, **options):
    """Replicates of the means of three rows of values, and the shares that the queries have in
    them, which are the replicates of the means of indicators."""
    n = values.shape[-1]
    result = jm.bootstrap_mean(
        np.concatenate([values, np.eye(n)]),
        key=KEY,
        n_resamples=n_resamples,
        weights=np.ones(n) if weights is None else weights,
        where=np.ones(n, bool) if where is None else where,
        **options,
    )
    return result, np.asarray(result.replicates[:, :3], float), np.asarray(result.replicates[:, 3:])


def test_replay_of_means(rng):
    values = rng.random((3, 40))
    result, got, shares = means(values)
    close(shares.sum(axis=1), 1)
    np.testing.assert_allclose(40 * shares, np.round(40 * shares), atol=1e-4)
    close(got, shares @ values.T, rtol=1e-5)
    close(result.estimate[:3], values.mean(axis=1))
    alone = jm.bootstrap_mean(values, key=KEY, n_resamples=FEW)
    close(alone.replicates, got)


def test_means_have_weights_and_masks(rng):
    weights, where = rng.random(40), rng.random(40) < 0.7
    values = np.where(where, rng.random((3, 40)), np.nan)
    result, got, shares = means(values, weights, where)
    assert (shares[:, ~where] == 0).all()
    close(got, shares[:, where] @ values[:, where].T, rtol=1e-5)
    close(result.estimate[:3], np.average(values[:, where], weights=weights[where], axis=1))
    counts = shares / np.where(where, weights, 1)
    counts *= np.sum(where) / counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-3)
    values[1, np.flatnonzero(where)[3]] = np.nan  # which spoils its row alone
    result, again, _ = means(values, weights, where)
    np.testing.assert_array_equal(np.isnan(result.estimate[:3]), [False, True, False])
    np.testing.assert_array_equal(again[:, [0, 2]], got[:, [0, 2]])


@pytest.mark.parametrize("resampling", ["multinomial", "bayesian"])
def test_spread_of_a_mean(resampling, rng):
    values = rng.gamma(1, size=(3, 40))
    result, got, _ = means(values, n_resamples=20_000, resampling=resampling, batch=128)
    expected = values.std(axis=1) / np.sqrt(40 if resampling == "multinomial" else 41)
    np.testing.assert_allclose(result.standard_error[:3], expected, rtol=4 / 200)
    np.testing.assert_allclose(np.corrcoef(got.T), np.corrcoef(values), atol=0.04)


def test_mean_of_no_queries():
    for values, options in (
        (np.ones((3, 40)), {"where": np.zeros(40, bool)}),
        (np.ones((3, 40)), {"weights": np.zeros(40)}),
    ):
        assert np.isnan(means(values, **options)[0].estimate[:3]).all()
    assert np.isnan(jm.bootstrap_mean(np.zeros((2, 0)), key=KEY, n_resamples=FEW).estimate).all()
