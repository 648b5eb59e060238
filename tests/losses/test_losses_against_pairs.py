"""Losses against naive sums over pairs in float64, near and far from zero."""

from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from every_loss import (
    CONVEX,
    DEFAULT_LOSS,
    EVERY_LOSS,
    LOSSES,
    compiled,
    compiled_area,
    parts_of,
    sample,
)
from fast import in_turn, marked
from numpy.testing import assert_allclose

import jaxmetrics as jm
from jaxmetrics.losses import _kernels, _pair_sums
from jaxmetrics.losses._sum_of_pairs import sum_of_pairs

SURROGATES = (*CONVEX, "sigmoid")


@partial(jax.jit, static_argnames="surrogate")
def _all_pairs(scores, positive, negative, shares, number, surrogate):
    """The mean over pairs of all items, whose weights are 0 in other sets than theirs."""
    spread = jnp.sqrt(shares @ (scores - shares @ scores) ** 2)
    d = scores[:, None] - scores
    each = {
        "hinge": lambda: jnp.maximum(number - d, 0),
        "squared_hinge": lambda: jnp.maximum(number - d, 0) ** 2,
        "square": lambda: (number - d) ** 2,
        "logistic": lambda: jnp.logaddexp(0, -d / number),
        "sigmoid": lambda: jax.nn.sigmoid(-d / (number * spread)),
    }[surrogate]()
    return positive @ each @ negative / (positive.sum() * negative.sum())


_pairs_and_slopes = jax.jit(jax.value_and_grad(_all_pairs), static_argnames="surrogate")


def _naive(scores, labels, weights, surrogate, max_fpr=1.0, min_tpr=0.0, band=0.0, number=None):
    """The value and the gradient, with the sets of these scores held fixed."""
    positive, negative, shares = np.zeros((3, len(scores)))
    negative[~labels] = parts_of(scores[~labels], weights[~labels], max_fpr, band)
    positive[labels] = parts_of(-scores[labels], weights[labels], 1 - min_tpr, band)
    shares[~labels] = weights[~labels] / weights[~labels].sum()
    number = number or {"sigmoid": 0.2}.get(surrogate, 1.0)
    return _pairs_and_slopes(scores, positive, negative, shares, number, surrogate=surrogate)


@pytest.mark.parametrize(
    "surrogate",
    [marked(x, fast=x in ("square", "sigmoid")) for x in SURROGATES],
)
def test_value_and_gradient_against_naive_pairs(surrogate, rng, x64):
    """With ties, weights, masks, the fractional edge of an exact set, and soft ones."""
    name = "temperature" if surrogate in ("logistic", "sigmoid") else "margin"
    for ties in (False, True):
        scores, labels, weights = sample(rng, ties=ties)
        where = np.ones(len(labels), bool)
        where[rng.permutation(np.arange(2, len(labels)))[:8]] = False
        kept = [x[where] for x in (scores, labels, weights)]
        given = (np.where(where, scores, np.nan), labels, weights, where)
        for numbers in ((0.3, 0.0, 0.0), (0.3, 0.4, 0.0), (0.1, 0.2, 0.5), (1.0, 0.0, 0.5)):
            options = dict(zip(("max_fpr", "min_tpr", "band"), numbers, strict=True))
            expected = _naive(*kept, surrogate, **options, number=0.7)
            found = compiled_area(surrogate)(*given, {name: 0.7, **options})
            assert_allclose(found[0], expected[0], rtol=1e-12)
            if surrogate != "hinge" or not ties:  # at a kink any slope between is one
                assert_allclose(found[1][where], expected[1], rtol=1e-9, atol=1e-12)
            assert not np.asarray(found[1])[~where].any()


@pytest.mark.parametrize(
    "surrogate", [marked(x, fast=x in ("squared_hinge", "sigmoid")) for x in SURROGATES]
)
def test_defaults(surrogate, rng, x64):
    scores, labels, weights = sample(rng)
    found = jm.losses.pairwise_auc_loss(scores, labels, surrogate=surrogate, weights=weights)
    assert_allclose(found, _naive(scores, labels, weights, surrogate)[0], rtol=1e-12)
    found = jm.losses.partial_auc_loss(scores, labels, max_fpr=0.2, surrogate=surrogate)
    naive = _naive(scores, labels, np.ones(len(labels)), surrogate, max_fpr=0.2, band=0.5)
    assert_allclose(found, naive[0], rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "n"),
    [("sigmoid", 40), *(marked(x, 100_000, fast=False) for x in ("squared_hinge", "sigmoid"))],
)
def test_float32_far_from_zero(name, n, rng):
    """Of scores offset by 1,000, against float64 of the same scores."""
    labels = rng.random(n) < 0.1
    scores = (rng.normal(size=n) + labels + 1000).astype(np.float32)
    given = labels, np.ones(n), np.ones(n, bool)
    _, gradient = compiled(name)(scores, *given)
    with jax.enable_x64(True):
        _, exact = compiled(name)(scores.astype(np.float64), *given)
    assert exact.dtype == np.float64
    exact = np.asarray(exact)
    error = np.linalg.norm(np.asarray(gradient) - exact) / np.linalg.norm(exact)
    assert error < 1e-4


@DEFAULT_LOSS
def test_a_forbidden_negative_leaves_the_others_their_digits(name, rng):
    """The mean of all scores is far from the others, whose differences a shift by it would round;
    the square of the distance is infinite."""
    scores, labels, weights = sample(rng)
    forbidden = ~labels & (np.arange(len(labels)) % 3 == 0)
    for lowest in (-1e9, -1e30, -3e38):
        far = np.where(forbidden, lowest, scores).astype(np.float32)
        given = labels, weights, np.ones(len(labels), bool)
        value, gradient = compiled(name)(far, *given)
        with jax.enable_x64(True):
            exact, slopes = map(np.asarray, compiled(name)(far.astype(np.float64), *given))
        assert_allclose(value, exact, rtol=2e-6)
        rounding = max(2e-6 * abs(slopes).max(), np.finfo(np.float32).tiny)
        assert_allclose(gradient, slopes, rtol=1e-4, atol=rounding)


@pytest.mark.parametrize("name", ["squared_hinge", marked("logistic", fast=False), "recall"])
def test_items_without_weight_take_no_digits(name, rng):
    """As a batch is padded with scores of 0, where the others are far from it."""
    scores, labels, weights = sample(rng)
    padding = np.arange(len(labels)) > 34
    scores, weights = np.where(padding, 0, scores + 1e4), np.where(padding, 0, weights)
    given = scores.astype(np.float32), labels, weights
    found, expected = (compiled(name)(*given, x)[0] for x in (padding | True, ~padding))
    assert_allclose(found, expected, rtol=1e-6)


@EVERY_LOSS
def test_items_without_weight_change_nothing_however_far_they_are(name, rng):
    """Though no square of their distance is finite."""
    scores, labels, weights = sample(rng)
    outside = np.arange(len(labels)) > 34
    far = np.where(labels, -3.3e38, 3.3e38)  # where a pair costs most
    given = np.where(outside, far, scores).astype(np.float32), labels
    found = compiled(name)(*given, np.where(outside, 0, weights), outside | True)
    expected = compiled(name)(*given, weights, ~outside)
    for x, y in zip(found, expected, strict=True):
        assert_allclose(x, y, rtol=1e-5, atol=1e-7)


def test_items_without_weight_among_scores_whose_squares_are_infinite(rng):
    labels = sample(rng)[1]
    outside = np.arange(len(labels)) > 34
    scores = np.where(labels ^ outside, 1e29, -2e29) * rng.uniform(0.5, 1, len(labels))
    weights = np.where(outside, 0, 1).astype(np.float32)
    found = compiled("squared_hinge")(scores.astype(np.float32), labels, weights, outside | True)
    assert found[0] == 0
    assert not found[1].any()


@pytest.mark.parametrize("loss", [LOSSES["sigmoid"], LOSSES["average precision"]])
def test_positives_far_above_tied_negatives_cost_nothing(loss):
    for distance in (1e13, 1e15, 1e30, 3e38):
        scores = np.array([-distance / 2, -distance, 0, -distance], np.float32)
        value, slopes = jax.value_and_grad(loss)(scores, np.array([1, 0, 1, 0]))
        assert value == 0
        assert not slopes.any()


def test_hinges_of_separated_classes_are_0(rng):
    scores, labels, weights = sample(rng)
    for apart in (20, 1e30):
        given = np.where(labels, scores + apart, scores - apart), labels, weights
        value, gradient = compiled("squared_hinge")(*given, np.ones(len(labels), bool))
        assert value == 0
        assert not np.asarray(gradient).any()


@pytest.mark.parametrize(
    ("lanes", "kernel", "lists"),
    [
        *in_turn((1, 5, 2000), ("square", "sigmoid"), (False, True)),
        *(marked(*x, fast=False) for x in product((1, 2000), ("softplus", "hinge"), (False, True))),
    ],
)
def test_sums_along_lanes_are_those_of_all_pairs(kernel, lists, lanes, rng, x64, monkeypatch):
    """Ties, lists, weights of any sign in two rows; a batch of places, and a batch of weights."""
    monkeypatch.setattr(_pair_sums, "_LANES", lanes)
    n = 203
    places = np.sort(np.round(60 * rng.normal(size=(3, n))))
    opens = np.isin(np.arange(n), [0, 5, 60, 61, 150]) if lists else None
    number = np.zeros(n) if opens is None else opens.cumsum()
    weights = rng.normal(size=(2, 3, 2, n))
    kernels = {
        "sigmoid": (_kernels.sigmoid(np.float64), lambda x: 1 / (1 + np.exp(-x))),
        "softplus": (_kernels.softplus(np.float64), lambda x: np.log1p(np.exp(x))),
        "hinge": (_kernels.power(1), lambda x: np.maximum(x, 0)),
        "square": (_kernels.square(), lambda x: x**2),
    }
    ours, plain = kernels[kernel]
    sums = partial(_pair_sums.pair_sums, ours, opens=opens)
    together = (number[:, None] == number) & ~np.eye(n, dtype=bool)
    away = places[:, :, None] - places[:, None]
    expected = weights @ np.where(together, plain(away), 0)

    @jax.jit
    def both(places, weights):
        return sums(places[0], weights[0, 0]), jax.vmap(jax.vmap(sums), (None, 0))(places, weights)

    alone, found = both(places, weights)
    np.testing.assert_allclose(alone, expected[0, 0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kernel", ["sigmoid", "squared hinge"])
def test_slopes_of_sums_are_those_of_all_pairs(kernel, rng, x64):
    """In places and in the weights of both sides, forward and in reverse, and once more."""
    ours, plain = {
        "sigmoid": (_kernels.sigmoid(np.float64), jax.nn.sigmoid),
        "squared hinge": (_kernels.power(2), lambda x: jnp.maximum(x, 0) ** 2),
    }[kernel]

    def of_all_pairs(places, targets, sources):
        pairs = (1 - np.eye(len(places))) * plain(places - places[:, None])
        return targets @ pairs @ sources

    def of_sums(places, targets, sources):
        return targets @ _pair_sums.pair_sums(ours, places, sources, None)

    given = np.sort(rng.normal(size=6)), *rng.normal(size=(2, 6))

    def slopes(function):
        def every(*given):
            forward, backward = (of(function, (0, 1, 2)) for of in (jax.jacfwd, jax.jacrev))
            return forward(*given), backward(*given), jax.jacfwd(backward)(*given)

        return jax.jit(every)(*given)

    expected = slopes(of_all_pairs)
    for function in (of_sums, partial(sum_of_pairs, ours)):
        close = partial(assert_allclose, rtol=1e-9, atol=1e-12)
        jax.tree.map(close, slopes(function), expected)


def test_many_equal_steps_keep_their_digits():
    """A factor next to 1, rounded alike at each step, would lose five digits of seven."""
    n = 200_000
    places = np.linspace(-20, 20, n)
    kernel = _kernels.sigmoid(np.float32).derivative()
    sums = partial(_pair_sums.pair_sums, opens=None)
    found = jax.jit(partial(sums, kernel))(np.float32(places), np.ones(n, np.float32))
    with jax.enable_x64(True):
        wide = _kernels.sigmoid(np.float64).derivative()
        expected = jax.jit(partial(sums, wide))(np.float64(np.float32(places)), np.ones(n))
    np.testing.assert_allclose(found, expected, rtol=4e-6)
