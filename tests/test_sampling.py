"""How often each item is in a resample, against theory."""

from functools import partial

import jax
import numpy as np
import pytest
from random_words import KEY, N_RESAMPLES, N, counts, doubled, frequencies_fit
from scipy import stats

import jaxmetrics as jm
from jaxmetrics.inference._bootstrap import draws as _draws
from jaxmetrics.inference._bootstrap import run as _run


def of_items(labels, where=None, **options):
    """Counts `[n_resamples, n]` of items, of which several models are given, so that each item
    is drawn by itself. The lowest score is the first item's."""
    scores = np.broadcast_to(np.arange(N), (2, N))
    where = np.ones(N, bool) if where is None else where
    found = counts(scores, labels, where=where, **options)
    np.testing.assert_array_equal(found[:, 0], found[:, 1])
    n = where.sum()
    assert (found[:, 0, n:] == 0).all()
    result = np.zeros((len(found) - 1, N))
    result[:, where] = found[1:, 0, :n][:, ::-1]
    return result


class Tied:
    """Classes of 100 and 200 items whose runs are of all lengths, some beyond MAX_SIZE."""

    sizes = np.array([1, 1, 2, 5, 63, 28, 64, 1, 65, 70])
    positive = np.array([1, 1, 1, 1, 1, 1, 0, 0, 0, 0], bool)
    labels = np.repeat(positive, sizes)
    scores = np.repeat(-np.arange(10), sizes)
    rows = sizes, np.where(positive, 100, 200)


def sampler_of_head(labels, amounts=None):
    """What draws the resamples of a recall at 2 % FPR, where scores rise from item to item."""
    prepared = []

    def stop(found, *_):
        prepared.append(found)
        raise StopIteration

    recall = partial(jm.recall_at_fpr, max_fpr=0.02)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_run, "_collect", stop)
        with pytest.raises(StopIteration):
            jm.bootstrap(recall, np.arange(len(labels)), labels, key=KEY, amounts=amounts)
    return prepared[0].sampler


def of_head(labels, amounts=None):
    """Where only the items of the highest scores are drawn one by one, and others only counted,
    which is a last column for each class. Of positives with amounts all are drawn."""
    source = sampler_of_head(labels, amounts)
    chunk = partial(_draws.draw, n=N_RESAMPLES * 6 // 5, resampling="multinomial")
    draws = doubled(chunk, source, np.uint32(0))
    counts, accepted = (np.asarray(_draws.in_turn(x)) for x in (draws.counts.T, draws.accepted))
    sizes_of_units, strata = np.asarray(source.units.size), np.asarray(source.units.stratum)
    np.testing.assert_array_equal(counts[0], sizes_of_units)
    counts = counts[1:][accepted[1:]][:N_RESAMPLES].astype(float)

    columns, sizes, groups = [], [], []
    for kind, total in enumerate(np.bincount(labels)):
        members = (strata == kind) & (sizes_of_units > 0)
        known, size = counts[:, members], sizes_of_units[members]
        assert size.sum() == total if kind and amounts is not None else size.sum() < total / 2
        rest = total - known.sum(axis=1, keepdims=True)
        assert (rest >= 0).all()
        beyond = int(size.sum() < total)
        columns += [known, rest[:, :beyond]]
        sizes += [*size, *[total - size.sum()] * beyond]
        groups += [kind == 1] * (len(size) + beyond)
    return np.concatenate(columns, axis=1), np.array(sizes, float), np.array(groups)


def drawn(kind):
    """Counts, how many items each column has, and the group of it whose total is fixed, if any."""
    everything = np.ones(N)
    labels = np.arange(N) % 3 == 0
    if kind == "items":
        return of_items(labels), everything, labels
    if kind == "bayesian":
        return of_items(labels, resampling="bayesian"), everything, None
    if kind == "clusters":
        ids = np.arange(N) // 3
        found = of_items(labels, clusters=ids)
        np.testing.assert_array_equal(found[:, ids == 7], found[:, ids == 7][:, :1] * np.ones(3))
        return found[:, ::3], everything[::3], np.zeros(100, bool)
    if kind == "head":
        return of_head(labels)
    if kind == "head with amounts":
        return of_head(labels, 1 + np.arange(N) % 7.0)
    options = {
        "runs": {},
        "plain": {"stratify": False},
        "poisson": {"resampling": "poisson"},
        "bayesian runs": {"resampling": "bayesian"},
    }[kind]
    found = counts(Tied.scores, Tied.labels, **options)
    np.testing.assert_array_equal(found[0, :10], Tied.sizes)
    assert (found[:, 10:] == 0).all()
    groups = {"runs": Tied.positive, "plain": np.zeros(10, bool)}.get(kind)
    return found[1:, :10], Tied.sizes.astype(float), groups


@pytest.fixture(
    scope="module",
    params=[
        "items",
        "runs",
        "plain",
        pytest.param("head", marks=pytest.mark.slow),
        "head with amounts",
        "poisson",
        "clusters",
        "bayesian",
        "bayesian runs",
    ],
)
def sampled(request):
    return request.param, *drawn(request.param)


def test_totals_are_exact(sampled):
    kind, found, sizes, groups = sampled
    assert len(found) == N_RESAMPLES
    if groups is None:
        total = found.sum(axis=1)
        np.testing.assert_allclose(total.mean(), N, atol=4.5 * np.sqrt(N / N_RESAMPLES))
        np.testing.assert_allclose(total.var(), N, rtol=0.1)
        return
    assert kind in ("items", "runs", "plain", "head", "head with amounts", "clusters")
    for group in (False, True):
        total = found[:, groups == group].sum(axis=1)
        assert (total == sizes[groups == group].sum()).all()


def test_means(sampled):
    _, found, sizes, groups = sampled
    z = (found.mean(axis=0) - sizes) / np.sqrt(covariance(sizes, groups).diagonal() / N_RESAMPLES)
    assert np.abs(z).max() < 4.5
    # As many are far from 0 as should be, and not fewer.
    assert 0.15 < np.mean(z**2) < 2.6


def covariance(sizes, groups):
    """Of multinomial counts within each group; of independent ones, of variance 1 an item."""
    if groups is None:
        return np.diag(sizes)
    same = groups[:, None] == groups
    totals = np.where(groups, sizes[groups].sum(), sizes[~groups].sum())
    return np.diag(sizes) - same * np.outer(sizes, sizes) / totals


def test_variances_and_covariances(sampled, rng):
    """Of sums of counts with random signs: their variance has all covariances in it."""
    _, found, sizes, groups = sampled
    signs = rng.choice([-1.0, 0.0, 1.0], (len(sizes), 60))
    expected = np.sum(signs * (covariance(sizes, groups) @ signs), axis=0)
    signs, expected = signs[:, expected > 0.5], expected[expected > 0.5]
    ratio = (found @ signs).var(axis=0, ddof=1) / expected
    # The sums of few counts are not normal, so their variance varies more.
    assert np.abs(ratio - 1).max() < 5 * np.sqrt(3 / N_RESAMPLES)
    assert abs(ratio.mean() - 1) < 0.02


def test_resamples_are_independent(sampled):
    """Of neighbouring numbers, which come from one block of random words, and of far ones."""
    _, found, sizes, groups = sampled
    z = (found - sizes) / np.sqrt(covariance(sizes, groups).diagonal())
    for lag in (1, 2, 64, 128):
        products = np.mean(z[:-lag] * z[lag:], axis=0)
        assert np.abs(products).max() < 5 / np.sqrt(N_RESAMPLES)


def test_classes_are_independent(sampled):
    """Of the first half of one class and that of the other, which have the same random words if
    the classes are not told apart."""
    _, found, sizes, groups = sampled
    if groups is None or not groups.any():
        return
    halves = []
    for members in (groups, ~groups):
        first = np.cumsum(sizes[members]) <= sizes[members].sum() / 2
        halves.append(found[:, members][:, first].sum(axis=1))
    assert abs(np.corrcoef(halves)[0, 1]) < 5 / np.sqrt(N_RESAMPLES)


def test_distribution_of_a_count(sampled):
    """Every count of a multinomial is binomial, however long its run is."""
    kind, found, sizes, groups = sampled
    if kind.startswith("bayesian"):
        for size, column in zip(sizes, found.T, strict=True):
            assert stats.kstest(column, stats.gamma(size).cdf).pvalue > 1e-5
        return
    for column in (0, 1, 4, 7, 9):
        size = sizes[column]
        law = stats.poisson(size)
        if groups is not None:
            total = sizes[groups == groups[column]].sum()
            law = stats.binom(total, size / total)
        frequencies_fit(found[:, column], law)


@pytest.mark.parametrize(
    ("size", "stratum"), [(1, False), (1, True), (2, False), (4, True), (5, False)]
)
def test_tiny_classes(size, stratum):
    """Each way in which so few items can be drawn, in proportion to its chance."""
    labels = (np.arange(N) < 150) == stratum
    where = (labels != stratum) | (np.cumsum(labels == stratum) <= size)
    tiny = of_items(labels, where)[:, where & (labels == stratum)]
    assert tiny.shape == (N_RESAMPLES, size)
    assert (tiny.sum(axis=1) == size).all()
    if size == 1:
        return
    ways, observed = np.unique(tiny, axis=0, return_counts=True)
    expected = stats.multinomial(size, np.full(size, 1 / size)).pmf(ways) * N_RESAMPLES
    common = expected > 5
    observed = np.append(observed[common], observed[~common].sum())
    expected = np.append(expected[common], N_RESAMPLES - expected[common].sum())
    if expected[-1] < 1e-6:  # no way is rare
        observed, expected = observed[:-1], expected[:-1]
    assert stats.chisquare(observed, expected).pvalue > 1e-4


@pytest.mark.parametrize("by_amount", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_draws_beyond_a_head_have_all_their_variance(by_amount):
    """Of many items, of which the head is a small part."""
    labels = np.arange(200_000) % 100 == 0
    source = sampler_of_head(labels, np.ones(len(labels)) if by_amount else None)
    found = doubled(_draws._rest, source, np.arange(1, 20_001, dtype=np.uint32))[0]
    rate = doubled(_draws.rates_of, source.units.total, True)[0]
    mean = float(rate) * int(source.units.total[0] - source.units.drawn[0])
    assert mean > 190_000
    np.testing.assert_allclose(found.mean(), mean, atol=4.5 * np.sqrt(mean / len(found)))
    np.testing.assert_allclose(found.var(), mean, rtol=4.5 * np.sqrt(2 / len(found)))


def test_masked_items_are_never_drawn(rng):
    labels, where = rng.random(N) < 0.3, rng.random(N) < 0.7
    found = of_items(labels, where)
    assert (found[:, ~where] == 0).all()
    assert (found[:, where & labels].sum(axis=1) == (where & labels).sum()).all()
    assert (found[:, where].mean(axis=0) > 0.9).all()


def test_keys():
    """Raw keys and others; every key has resamples of its own."""
    labels = np.arange(N) % 3 == 0
    first = of_items(labels, n_resamples=200)
    raw = of_items(labels, n_resamples=200, key=jax.random.key_data(KEY))
    np.testing.assert_array_equal(first, raw)
    other = of_items(labels, n_resamples=200, key=jax.random.key(12))
    assert (first != other).any(axis=1).all()
    assert abs(np.corrcoef(first.ravel(), other.ravel())[0, 1]) < 0.02
    # What is drawn does not depend on how many are drawn, nor on the chunk.
    np.testing.assert_array_equal(of_items(labels)[:200], first)
