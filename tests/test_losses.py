"""Losses against naive sums over pairs in float64, and what is claimed of them."""

from functools import cache, partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import in_turn, marked
from jax.test_util import check_grads
from numpy.testing import assert_allclose

import jaxmetrics as jm
from jaxmetrics.losses import _evaluated, _kernels, _pair_sums

CONVEX = ("hinge", "squared_hinge", "square", "logistic")
SURROGATES = (*CONVEX, "sigmoid")
EVERY_SURROGATE = pytest.mark.parametrize("surrogate", SURROGATES)
LOSSES = {
    "squared_hinge": jm.losses.pairwise_auc_loss,
    "logistic": partial(jm.losses.partial_auc_loss, max_fpr=0.3, surrogate="logistic"),
    "sigmoid": partial(jm.losses.partial_auc_loss, max_fpr=0.3),
    "two-way": partial(jm.losses.partial_auc_loss, max_fpr=0.4, min_tpr=0.3, band=0.0),
    "recall": partial(jm.losses.recall_at_fpr_loss, max_fpr=0.2),
    "average precision": jm.losses.average_precision_loss,
}
# The logistic one is a window of unbounded pairs, of which the others have each. The two-way one
# has a second set by the code of the first, and is also compared with naive sums.
SET_TWICE = marked("two-way", fast=False)
EVERY_LOSS = pytest.mark.parametrize(
    "name", [marked(x, fast=x not in ("logistic", "two-way")) for x in LOSSES]
)
# What takes long is tested of the default alone, and of the rest with -m slow.
DEFAULT_LOSS = pytest.mark.parametrize(
    "name", [marked(name, fast=name == "sigmoid") for name in LOSSES]
)


@cache
def compiled(name):
    """(scores, labels, weights, where) -> value and gradient, one program for all tests."""
    if name == "two-way":  # that of the tests of options
        options = {"max_fpr": 0.4, "min_tpr": 0.3, "band": 0.0, "temperature": 0.2}
        return lambda *items: compiled_area("sigmoid")(*items, options)

    def loss(scores, labels, weights, where):
        return LOSSES[name](scores, labels, weights=weights, where=where)

    return jax.jit(jax.value_and_grad(loss))


@cache
def compiled_area(surrogate):
    """The same of a two-way loss, with its numbers as further arguments."""

    def loss(scores, labels, weights, where, options):
        named = {"surrogate": surrogate, "weights": weights, "where": where}
        return jm.losses.partial_auc_loss(scores, labels, **named, **options)

    return jax.jit(jax.value_and_grad(loss))


def sample(rng, n=40, *, ties=False, weighted=True, batch=()):
    labels = rng.random((*batch, n)) < 0.4
    labels[..., 0], labels[..., 1] = True, False
    scores = rng.normal(size=(*batch, n)) + labels
    weights = rng.random((*batch, n)) + 0.1 if weighted else np.ones((*batch, n))
    return scores.round(0) / 2 if ties else scores, labels, weights


def _parts(scores, weights, share, band):
    """The weights of the highest share, by sums over all items."""
    total = weights.sum()
    above = np.array([weights[scores > s].sum() for s in scores]) / total
    upto = np.array([weights[scores >= s].sum() for s in scores]) / total
    width = band * share * (1 - share)
    if width:
        running = [-width * np.logaddexp(0, (share - u) / width) for u in (above, upto)]
    else:
        running = [np.minimum(u, share) for u in (above, upto)]
    return (running[1] - running[0]) * weights / (upto - above)


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
    negative[~labels] = _parts(scores[~labels], weights[~labels], max_fpr, band)
    positive[labels] = _parts(-scores[labels], weights[labels], 1 - min_tpr, band)
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


def test_hinges_of_separated_classes_are_0(rng):
    scores, labels, weights = sample(rng)
    for apart in (20, 1e30):
        given = np.where(labels, scores + apart, scores - apart), labels, weights
        value, gradient = compiled("squared_hinge")(*given, np.ones(len(labels), bool))
        assert value == 0
        assert not np.asarray(gradient).any()


@pytest.mark.slow
def test_bounded_loss_tends_to_the_partial_area(rng, x64):
    """With an error of the second order in the temperature."""
    labels = np.arange(20_000) < 4_000
    scores = rng.normal(size=len(labels)) + labels
    exact = 1 - jm.partial_auc(scores, labels, max_fpr=0.2, scale="range")
    loss = partial(jm.losses.partial_auc_loss, scores, labels, max_fpr=0.2, band=0.0)
    errors = [float(loss(temperature=t) - exact) for t in (0.2, 0.1, 0.05)]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.15)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.15)
    assert_allclose(loss(temperature=1e-10), exact, rtol=1e-9)


# The values of the others are compared with naive sums.
@pytest.mark.parametrize(
    "surrogate", [marked(x, fast=x in ("squared_hinge", "logistic")) for x in CONVEX]
)
def test_upper_bounds(surrogate, rng, x64):
    scores, labels, _ = sample(rng)
    for max_fpr in (0.013, 0.25, 1.0):
        missed = 1 - jm.partial_auc(scores, labels, max_fpr=max_fpr, scale="range")
        for scale in (0.01, 1.0, 30.0):
            loss = jm.losses.partial_auc_loss(
                scale * scores, labels, max_fpr=max_fpr, surrogate=surrogate, band=0.0
            )
            assert loss / (np.log(2) if surrogate == "logistic" else 1) >= missed - 1e-12


@pytest.mark.parametrize("surrogate", [marked(x, fast=x == "hinge") for x in CONVEX])
def test_convex_in_the_scores(surrogate, rng, x64):
    _, labels, weights = sample(rng)
    loss = partial(jm.losses.partial_auc_loss, surrogate=surrogate, max_fpr=0.3, min_tpr=0.2)
    ends = rng.normal(size=(2, 50, len(labels)))
    shares = rng.random((50, 1))
    middle = shares * ends[0] + (1 - shares) * ends[1]
    for band in (0.0, 0.5):
        values = loss(np.stack([*ends, middle]), labels, weights=weights, band=band)
        chord = shares[:, 0] * values[0] + (1 - shares[:, 0]) * values[1]
        assert (values[2] <= chord + 1e-12).all()
        assert (values[2] < chord - 1e-6).any()


@EVERY_LOSS
def test_without_pairs_it_is_zero(name, rng):
    scores, labels, _ = map(jnp.asarray, sample(rng))
    ones, all_of = jnp.ones(len(labels)), jnp.ones(len(labels), bool)
    for case in (
        (jnp.zeros_like(labels), ones, all_of),
        (jnp.ones_like(labels), ones, all_of),
        (labels, ones, ~all_of),
        (labels, 0 * ones, all_of),
    ):
        value, gradient = compiled(name)(scores, *case)
        assert value.dtype == gradient.dtype == np.float32
        assert value == 0
        assert not gradient.any()


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        *in_turn(("squared_hinge", "approx_ndcg"), ((0,), (2, 0))),
        *(marked("average precision", x, fast=False) for x in ((0,), (2, 0))),
    ],
)
def test_no_items(name, shape):
    loss = LOSSES.get(name, jm.losses.approx_ndcg_loss)
    assert not loss(jnp.zeros(shape), jnp.zeros(0, int)).any()


@pytest.mark.parametrize("name", ["squared_hinge", marked("sigmoid", fast=False), "approx_ndcg"])
def test_no_rows(name):
    loss = LOSSES.get(name, jm.losses.approx_ndcg_loss)
    empty, labels = jnp.zeros((2, 0, 4)), jnp.zeros((2, 0, 4), int)
    value, pull_back = jax.vjp(partial(loss, labels=labels), empty)
    assert value.shape == (2, 0)
    assert pull_back(value)[0].shape == empty.shape
    assert jax.vmap(loss)(empty[0], labels[0]).shape == (0,)


def test_what_is_refused_is_nan_if_traced(rng):
    scores, labels, weights = sample(rng, batch=(4,))
    everything = np.ones(len(labels[0]), bool)
    expected = compiled("squared_hinge")(scores[0], labels[0], weights[0], everything)
    labels = labels.astype(int)
    labels[1, 3], weights[2, 4], scores[3, 5], labels[3] = -1, -0.5, np.nan, 0

    def of(scores, labels, weights):
        values = jm.losses.pairwise_auc_loss(scores, labels, weights=weights)
        return jnp.nansum(values), values

    slopes_of = jax.jit(jax.value_and_grad(of, has_aux=True))
    (_, values), gradient = slopes_of(scores, labels, weights)
    assert_allclose(values[0], expected[0], rtol=1e-6)
    assert_allclose(gradient[0], expected[1], atol=1e-6)
    assert np.isnan(values[1:]).all()
    assert not gradient[1:].any()


@EVERY_LOSS
def test_masked_items_do_not_leak(name, rng):
    scores, labels, weights = sample(rng)
    where = rng.random(len(labels)) < 0.7
    where[:2] = True
    bad = np.where(where, scores, rng.choice([np.nan, np.inf, -np.inf, 1e30], len(labels)))
    expected = compiled(name)(scores, labels, weights, where)
    with_bad = compiled(name)(bad, labels, weights, where)
    assert_allclose(with_bad[0], expected[0], rtol=1e-6)
    assert_allclose(with_bad[1], expected[1], rtol=1e-5, atol=1e-7)
    assert not np.asarray(with_bad[1])[~where].any()
    assert np.isnan(compiled(name)(np.where(where, np.nan, scores), labels, weights, where)[0])


@EVERY_LOSS
def test_an_infinite_score_makes_loss_and_gradient_nan(name, rng):
    """Also with weight 0, and without a class, where the loss would be 0."""
    scores, labels, weights = sample(rng)
    where = np.arange(len(labels)) > 2
    infinite = np.where(np.arange(len(labels)) == 5, np.inf, scores)
    for given in (
        (infinite, labels, weights),
        (infinite, labels, np.where(infinite == np.inf, 0, weights)),
        (-infinite, labels & False, weights),
    ):
        value, gradient = compiled(name)(*given, where)
        assert np.isnan(value)
        np.testing.assert_array_equal(np.isnan(gradient), where)
        assert not np.asarray(gradient)[~where].any()


@pytest.mark.parametrize("name", [marked(x, fast=x != "logistic") for x in LOSSES])
def test_invariances(name, rng, x64):
    scores, labels, _ = sample(rng)
    everything = np.ones(len(labels), bool)
    counts = rng.permutation(np.repeat([0.0, 1.0, 2.0, 3.0], [16, 12, 6, 4]))
    counts = np.append([2.0, 2.0], counts)  # of as many copies as there are items, in one program
    of = compiled(name)
    value, gradient = of(scores, labels, counts, everything)
    assert value.dtype == gradient.dtype == np.float64
    order = rng.permutation(len(labels))
    shuffled = of(scores[order], labels[order], counts[order], everything)
    assert_allclose(shuffled[0], value, rtol=1e-12)
    assert_allclose(shuffled[1], gradient[order], atol=1e-12)
    assert_allclose(of(scores + 100, labels, counts, everything)[0], value, rtol=1e-9)
    assert_allclose(of(scores, labels, 7 * counts, everything)[0], value, rtol=1e-12)
    if name != "average precision":  # of which copies are above each other by half
        which = np.repeat(np.arange(len(labels)), counts.astype(int))
        copies = of(scores[which], labels[which], np.ones(len(which)), everything)
        assert_allclose(copies[0], value, rtol=1e-9)
        sums = np.zeros(len(labels))
        np.add.at(sums, which, copies[1])
        assert_allclose(sums, gradient, rtol=1e-8, atol=1e-12)
    if name not in ("squared_hinge", "logistic"):  # bounded ones have no scale
        for scale in (1e-3, 1e5):
            assert_allclose(of(scale * scores, labels, counts, everything)[0], value, rtol=1e-9)


@EVERY_LOSS
def test_tied_negatives_have_no_deviation(name, rng):
    """Wherever they are: the mean of tied scores may be rounded, and is no scale."""
    labels, weights, where = np.arange(40) % 7 == 0, 0.1 + rng.random(40), np.ones(40, bool)
    for apart in (0, 0.125):  # the positives above
        value, slopes = compiled(name)(np.float32(apart) * labels, labels, weights, where)
        assert np.abs(slopes).max() > 0
        for constant in (0.3, -2.7, 1234.567):
            scores = np.where(labels, np.float32(constant) + apart, np.float32(constant))
            found, moved = compiled(name)(scores, labels, weights, where)
            assert_allclose(found, value, rtol=1e-3 if apart else 1e-6)
            assert_allclose(moved, slopes, rtol=2e-3, atol=1e-6)


@pytest.mark.parametrize("name", ["sigmoid", SET_TWICE, "recall", "average precision"])
def test_bounded_losses_have_no_scale_in_float32(name, rng):
    """Also where squares of the scores are no numbers."""
    labels = np.arange(40) % 7 == 0
    scores, rest = rng.normal(size=40) + labels, (np.ones(40), np.ones(40, bool))
    value, slopes = compiled(name)(scores.astype(np.float32), labels, *rest)
    for power in (-110, -60, 60, 90):
        scale = np.ldexp(np.float32(1), power)
        found, moved = compiled(name)(scale * scores.astype(np.float32), labels, *rest)
        assert_allclose(found, value, rtol=1e-5)
        assert_allclose(moved * scale, slopes, rtol=1e-3, atol=1e-4 * np.abs(slopes).max())


@pytest.mark.parametrize("name", ["sigmoid", "recall", "average precision"])
def test_positives_far_beyond_the_negatives(name):
    """In the unit of these they are no numbers."""
    labels = np.arange(40) % 4 == 0
    scores = np.where(labels, 1e20 * (1 - 2 * (np.arange(40) % 8 > 0)), 1e-20 * np.arange(40))
    value, slopes = compiled(name)(
        scores.astype(np.float32), labels, np.ones(40), np.ones(40, bool)
    )
    assert 0.3 < value < 0.6
    assert np.isfinite(slopes).all()


@pytest.mark.parametrize("name", ["sigmoid", SET_TWICE, "recall"])
def test_how_far_a_positive_is_makes_no_difference(name, rng):
    """Its square may be infinite, and has no part in the deviation of the negatives."""
    scores, labels, weights = sample(rng)
    for far in (1.0, -1.0):
        found = [
            compiled(name)(np.append(far * x, scores[1:]), labels, weights, np.ones(40, bool))
            for x in (1e9, 1e18, 1e20, 3e38)
        ]
        for value, slopes in found[1:]:
            assert_allclose(value, found[0][0], rtol=1e-6)
            assert_allclose(slopes, found[0][1], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", [marked("logistic", fast=False), "sigmoid", SET_TWICE])
def test_gradient_does_not_depend_on_the_order_of_ties(name):
    """At the start of training all scores may be equal."""
    labels = np.arange(40) < 10
    _, gradient = compiled(name)(np.zeros(40), labels, np.ones(40), np.ones(40, bool))
    assert_allclose(gradient[:10], gradient[0], rtol=1e-5)
    assert_allclose(gradient[10:], gradient[10], rtol=1e-5)
    assert gradient[0] < 0 < gradient[10]


# All pairs, and a set: the default is both, and takes as long again.
@pytest.mark.parametrize(
    "name", [marked(name, fast=name in ("squared_hinge", "recall")) for name in LOSSES]
)
def test_transforms(name, rng):
    scores, labels, weights = map(jnp.asarray, sample(rng, batch=(2, 3)))
    scores, weights = scores.astype(np.float32), weights.astype(np.float32)
    where = jnp.ones_like(labels)

    def of(*arrays):
        return LOSSES[name](*arrays[:2], weights=arrays[2], where=arrays[3])

    rows = [x.reshape(6, -1) for x in (scores, labels, weights, where)]
    expected = [compiled(name)(*(x[i] for x in rows)) for i in range(6)]
    values, slopes = (np.stack(x) for x in zip(*expected, strict=True))
    values, slopes = values.reshape(2, 3), slopes.reshape(scores.shape)
    close = partial(assert_allclose, rtol=2e-5, atol=1e-6)
    arrays = (scores, labels, weights, where)
    close(jax.jit(jax.vmap(of))(*arrays), values)
    close(jax.vmap(jax.vmap(compiled(name)))(*arrays)[1], slopes)
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):

        def total(*arrays):
            values = of(*arrays)
            return values.sum(), values

        found, of_batch = jax.jit(jax.grad(total, has_aux=True))(*arrays)
    close(of_batch, values)
    close(found, slopes)
    broadcast = of(scores, labels[0, 0], weights[0, 0], where[0, 0])
    close(broadcast[1, 2], compiled(name)(scores[1, 2], *(x[0, 0] for x in arrays[1:]))[0])


@pytest.mark.slow
@DEFAULT_LOSS
def test_second_derivatives(name, rng, x64):
    scores, labels, weights = sample(rng, 20)
    loss = partial(LOSSES[name], labels=labels, weights=weights)
    check_grads(loss, (jnp.asarray(scores),), 2, modes=["rev"])


@DEFAULT_LOSS
def test_second_derivatives_are_finite_at_ties(name, rng):
    scores, labels, _ = sample(rng, ties=True)
    scores = jnp.asarray(scores, jnp.float32)
    direction = jnp.asarray(rng.normal(size=len(labels)), jnp.float32)
    slope = jax.grad(LOSSES[name])
    curvature = jax.jit(jax.grad(lambda s: slope(s, labels) @ direction))
    assert np.isfinite(curvature(scores)).all()
    assert np.isfinite(curvature(jnp.zeros_like(scores))).all()


def test_one_compilation_a_shape(rng):
    start = _evaluated._loss_of_rows._cache_size()
    for limit, margin in ((0.1, 0.2), (0.2, 0.3), (0.05, 1.0)):
        scores, labels, _ = sample(rng, 43)
        options = {"max_fpr": limit, "surrogate": "squared_hinge", "margin": margin}
        jm.losses.partial_auc_loss(scores, labels, **options)
    assert _evaluated._loss_of_rows._cache_size() == start + 1


def test_options_may_be_traced(rng, x64):
    scores, labels, weights = sample(rng)
    everything = np.ones(len(labels), bool)

    def of(**options):
        return compiled_area("sigmoid")(scores, labels, weights, everything, options)[0]

    good = {"max_fpr": 0.3, "min_tpr": 0.1, "band": 0.5, "temperature": 0.5}
    expected = jm.losses.partial_auc_loss(scores, labels, weights=weights, **good)
    assert_allclose(of(**good), expected, rtol=1e-12)
    for bad in ({"max_fpr": 0.0}, {"temperature": -1.0}, {"min_tpr": 1.0}, {"band": -0.1}):
        assert np.isnan(of(**{**good, **bad}))


@pytest.mark.slow
@EVERY_LOSS
def test_sharded_over_a_mesh_it_is_the_same(name, rng):
    devices = jax.local_device_count()
    assert devices > 1
    mesh = jax.make_mesh((devices,), ("items",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec("items")
    scores, labels, weights = map(jnp.asarray, sample(rng))
    arrays = (scores, labels, weights, jnp.ones_like(labels))
    expected = compiled(name)(*arrays)
    placed = jax.device_put(arrays, jax.sharding.NamedSharding(mesh, spec))
    close = partial(assert_allclose, rtol=2e-5, atol=1e-7)
    found = compiled(name)(*placed)
    close(found[0], expected[0])
    close(found[1], expected[1])

    def on_each(scores, *others):
        """The loss of all items on each device; gradients of a sum over devices add up."""

        def whole(scores):
            gathered = [jax.lax.all_gather(x, "items", tiled=True) for x in (scores, *others)]
            return compiled(name)(*gathered)[0] / devices

        value, slope = jax.value_and_grad(whole)(scores)
        return jax.lax.psum(value, "items"), slope

    replicated = jax.sharding.PartitionSpec()
    split = jax.shard_map(
        on_each, mesh=mesh, in_specs=spec, out_specs=(replicated, spec), check_vma=False
    )
    found = jax.jit(split)(*placed)
    close(found[0], expected[0])
    close(found[1], expected[1])


# Rates and ranked lists.


def _spread(scores, labels, weights):
    mean = np.average(scores[~labels], weights=weights[~labels])
    return np.sqrt(np.average((scores[~labels] - mean) ** 2, weights=weights[~labels]))


def test_average_precision_against_all_pairs(rng, x64):
    scores, labels, weights = sample(rng)
    above = (scores - scores[:, None]) / (0.3 * _spread(scores, labels, weights))
    above = 1 / (1 + np.exp(-above))
    np.fill_diagonal(above, 1)
    precision = (above @ (weights * labels)) / (above @ weights)
    expected = 1 - np.average(precision[labels], weights=weights[labels])
    found = jm.losses.average_precision_loss(scores, labels, weights=weights, temperature=0.3)
    assert_allclose(found, expected, rtol=1e-12)


def test_all_positives_are_found_where_every_negative_may_pass():
    def loss(scores):
        return jm.losses.recall_at_fpr_loss(
            scores, [1, 0, 1, 0], max_fpr=1.0, temperature=0.001, band=0
        )

    value, gradient = jax.value_and_grad(loss)(jnp.array([0.9, 0.8, 0.3, 0.1]))
    assert value == 0
    np.testing.assert_array_equal(gradient, 0)
    value, gradient = jax.value_and_grad(loss)(jnp.array([0.9, 0.8, jnp.inf, 0.1]))
    assert np.isnan(value)
    assert np.isnan(gradient).all()
    cvar = jm.losses.cvar_partial_auc
    # The first threshold of a positive is its loss with the lowest negative, of all that count.
    scores, labels, where = [-5.0, 0.9, 0.4, 0.3, -9.0], [1, 1, 0, 0, 0], [True] * 4 + [False]
    _, state = cvar.apply(
        cvar.init(5), scores, labels, range(5), max_fpr=1.0, step_size=1e-9, where=where
    )
    np.testing.assert_allclose(state.thresholds[:2], [(1 + 5.3) ** 2, (1 - 0.6) ** 2], rtol=1e-5)


def test_recall_against_a_sum_over_ranks(rng, x64):
    scores, labels, weights = sample(rng)
    negatives, shares = scores[~labels], weights[~labels] / weights[~labels].sum()
    order = np.argsort(-negatives)
    width = 0.5 * 0.2 * 0.8
    upto = np.cumsum(shares[order])
    density = 1 / (1 + np.exp(-(0.2 - np.append(0, upto)) / width))
    parts = density[:-1] - density[1:]
    threshold = parts @ negatives[order] / parts.sum()
    missed = (threshold - scores[labels]) / (0.4 * _spread(scores, labels, weights))
    expected = np.average(1 / (1 + np.exp(-missed)), weights=weights[labels])
    found = jm.losses.recall_at_fpr_loss(
        scores, labels, weights=weights, max_fpr=0.2, temperature=0.4
    )
    assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("max_fpr", [0.04, 0.25])
def test_rates_tend_to_the_metrics(max_fpr, rng, x64):
    scores, labels, weights = sample(rng)
    for w in (np.ones(len(labels)), weights):
        cold = {"weights": w, "temperature": 1e-9}
        found = jm.losses.recall_at_fpr_loss(scores, labels, max_fpr=max_fpr, band=0.0, **cold)
        recall = jm.recall_at_fpr(scores, labels, weights=w, max_fpr=max_fpr)
        assert_allclose(found, 1 - recall, atol=1e-12)
        found = jm.losses.average_precision_loss(scores, labels, **cold)
        assert_allclose(found, 1 - jm.average_precision(scores, labels, weights=w), atol=1e-9)


def test_a_limit_that_weights_reach_is_reached(rng):
    """Though their sums round: the threshold is the metric's, at each step of the FPR."""
    scores, labels = rng.permutation(80).astype(np.float32), np.arange(80) % 2 == 0
    given = {"weights": np.full(80, 0.7, np.float32), "max_fpr": np.arange(1, 40) / 40}
    of_limits = jax.vmap(
        lambda x: jm.losses.recall_at_fpr_loss(
            scores, labels, weights=given["weights"], max_fpr=x, band=0.0, temperature=1e-6
        )
    )
    recall = jm.recall_at_fpr(scores, labels, **given)
    assert_allclose(of_limits(given["max_fpr"]), 1 - recall, atol=1e-6)


def _approx_ndcg_loss(scores, grades, temperature):
    above = 1 / (1 + np.exp(-(scores - scores[:, None]) / temperature))
    ranks = 0.5 + above.sum(1)
    ideal = np.sort(grades)[::-1] / np.log2(np.arange(len(grades)) + 2)
    return 1 - (grades / np.log2(1 + ranks)).sum() / ideal.sum() if grades.any() else 0.0


@jax.jit
@partial(jax.grad, has_aux=True)
def _slopes_of_segments(scores, grades, where, segments, shares):
    """The gradient of a sum of the losses of 5 lists, with these shares in it, and the losses."""
    options = {"segments": segments, "num_segments": 5, "temperature": 0.3}
    values = jm.losses.approx_ndcg_loss(scores, grades, where=where, **options)
    return values @ shares, values


def test_approx_ndcg_against_all_pairs(rng, x64):
    scores = rng.normal(size=(4, 30))
    grades, where = rng.integers(0, 4, (4, 30)), rng.random((4, 30)) < 0.8
    grades[2] = 0
    loss = partial(jm.losses.approx_ndcg_loss, temperature=0.3)

    @jax.jit
    @partial(jax.grad, has_aux=True)
    def slopes_of_rows(scores):
        values = loss(scores, grades, where=where)
        return values.sum(), values

    expected = [
        _approx_ndcg_loss(s[w], y[w], 0.3) for s, y, w in zip(scores, grades, where, strict=True)
    ]
    slopes, values = slopes_of_rows(np.where(where, scores, np.nan))
    assert_allclose(values, expected, rtol=1e-11)
    order = rng.permutation(scores.size)
    flat = [x.reshape(-1)[order] for x in (scores, grades, where)]
    ids = np.repeat(np.arange(4), 30)[order]
    given = {"where": flat[2], "segments": ids, "shares": np.ones(5)}
    flat_slopes, values = _slopes_of_segments(*flat[:2], **given)
    assert_allclose(values, [*expected, 0], rtol=1e-11)
    assert_allclose(flat_slopes, slopes.reshape(-1)[order], atol=1e-12)
    assert not np.asarray(slopes)[2].any()


def test_approx_ndcg_leaves_out_and_refuses_if_traced(rng, x64):
    """Masked items, and lists with NaN or a negative grade, leave the others as they are."""
    scores, grades = rng.normal(size=120), rng.integers(0, 4, 120)
    ids = rng.permutation(np.arange(120) % 4) - 1  # -1 is padding
    expected = _approx_ndcg_loss(scores[ids == 0], grades[ids == 0], 0.3)
    scores[np.flatnonzero(ids == 1)[0]] = np.nan
    grades[np.flatnonzero(ids == 2)[0]] = -1
    of_first = partial(_slopes_of_segments, where=ids >= 0, segments=ids, shares=np.eye(5)[0])
    gradient, values = of_first(scores, grades)
    assert_allclose(values, [expected, np.nan, np.nan, 0, 0], rtol=1e-11)
    assert np.isfinite(gradient).all()
    assert gradient[ids == 0].any()
    assert not gradient[ids != 0].any()
    scores[np.flatnonzero(ids == 0)[0]], grades[ids == 0] = np.inf, 0
    gradient, values = of_first(scores, grades)
    assert np.isnan(values[0])  # and not 0, as that of other lists without gain
    np.testing.assert_array_equal(np.isnan(gradient), ids == 0)


@pytest.mark.slow
def test_slopes_of_approx_ndcg_add_up_to_nothing(rng):
    """Optimisers that scale slopes, as Adam does, would follow what rounding leaves of them."""
    scores = rng.normal(size=120)
    scores[80:84] = np.finfo(np.float32).min  # finite, so that the others' slopes are, too
    scores = jnp.asarray(scores, jnp.float32)
    segments = np.concatenate([np.arange(20), np.repeat([20, 21], 50)])
    grades, where = rng.integers(1, 4, 120), np.arange(120) != 75
    grades[80:84] = 1

    def mean(scores):
        losses = jm.losses.approx_ndcg_loss(
            scores, grades, where=where, segments=segments, num_segments=22
        )
        return losses.mean()

    of = jax.value_and_grad(mean)
    value, slopes = map(np.asarray, of(scores))
    near = of(scores.at[80:84].set(-9.0))
    assert_allclose(value, near[0], rtol=1e-6)
    assert_allclose(slopes, near[1], atol=1e-7)
    assert not slopes[:20].any()  # lists of one document
    for k in (20, 21):
        of_list = slopes[segments == k]
        assert abs(of_list.sum()) <= 1e-7 * abs(of_list).sum()
    for k in (0, 19):  # lists of one document
        value, slopes = of(scores.at[k].set(np.inf))
        assert np.isnan(value)
        np.testing.assert_array_equal(np.isnan(slopes), np.arange(120) == k)
    one = jax.grad(lambda x: jm.losses.approx_ndcg_loss(x, [1, 2], where=[True, False]))
    assert not one(jnp.array([0.5, 0.3])).any()


def test_a_forbidden_document_leaves_the_others_their_digits(rng):
    scores, grades = rng.normal(size=100).astype(np.float32), rng.integers(0, 4, 100)
    forbidden = np.arange(100) % 4 == 0
    grades[forbidden] = 0
    lowest = np.array([-1e5, -1e9, -1e20, -1e30])[:, None]  # a batch of the next test's shape
    found = jm.losses.approx_ndcg_loss(
        np.where(forbidden, lowest, scores).astype(np.float32), grades
    )
    below_all = np.where(forbidden, -9.0, scores.astype(np.float64))
    assert_allclose(found, _approx_ndcg_loss(below_all, grades, 0.1), rtol=2e-6)


def test_documents_whose_places_overflow_keep_their_ranks():
    scores, grades = np.float32([-3e38, -1e38, 1, 2, 3e38]), [1, 2, 0, 3, 1]
    for temperature in (0.01, 1e-6, 1e-30):
        found = jm.losses.approx_ndcg_loss(scores, grades, temperature=temperature)
        assert_allclose(found, 1 - jm.ndcg(scores, grades), rtol=1e-6)


def test_approx_ndcg_far_from_zero(rng):
    grades, offset = rng.integers(0, 4, 100), 2.0 ** np.arange(4, 14, 3)[:, None]
    scores = np.round(rng.normal(size=100), 1) / 8 + offset
    scores = scores.astype(np.float32)
    exact = [_approx_ndcg_loss(s, grades, 0.1) for s in scores.astype(np.float64)]
    assert_allclose(jm.losses.approx_ndcg_loss(scores, grades), exact, rtol=2e-6)


@pytest.mark.slow
def test_second_derivatives_of_approx_ndcg(rng, x64):
    scores, grades = rng.normal(size=10), rng.integers(0, 4, 10)
    loss = partial(jm.losses.approx_ndcg_loss, labels=grades)
    check_grads(loss, (jnp.asarray(scores),), 2, modes=["rev"])


@pytest.mark.slow
def test_approx_ndcg_tends_to_ndcg(rng, x64):
    scores, grades = rng.normal(size=(4, 30)), rng.integers(0, 4, (4, 30))
    for gain in ("linear", "exponential"):
        loss = jm.losses.approx_ndcg_loss(scores, grades, gain=gain, temperature=1e-9)
        assert_allclose(loss, 1 - jm.ndcg(scores, grades, gain=gain), atol=1e-9)


# Bad input.


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_fpr": 0.0}, "max_fpr must be in"),
        ({"max_fpr": 5}, "write fractions"),
        ({"max_fpr": 0.1, "min_tpr": 1.0}, "min_tpr must be in"),
        ({"max_fpr": 0.1, "temperature": 0.0}, "temperature must be in"),
        ({"max_fpr": 0.1, "surrogate": "hinge", "margin": -1.0}, "margin must be in"),
        ({"max_fpr": 0.1, "surrogate": "hinge", "temperature": 1.0}, "write margin="),
        ({"max_fpr": 0.1, "margin": 1.0}, "write temperature="),
        ({"max_fpr": 0.1, "surrogate": "huber"}, "must be one of 'hinge'"),
        ({"max_fpr": 0.1, "band": -0.5}, "band must be in"),
        ({"max_fpr": [0.1, 0.2]}, "max_fpr must be a number"),
    ],
)
def test_bad_options(options, words):
    with pytest.raises((TypeError, ValueError), match=words):
        jm.losses.partial_auc_loss([0.1, 0.2], [0, 1], **options)


@EVERY_LOSS
def test_bad_labels(name):
    loss = LOSSES[name]
    with pytest.raises(ValueError, match="labels must be bool or 0 and 1, got -1"):
        loss([0.1, 0.2], [-1, 1])
    with pytest.raises(ValueError, match="last axis is the items and must agree"):
        loss([0.1, 0.2], [0, 1, 1])


@pytest.mark.parametrize(
    ("name", "dtype", "wide"),
    [
        *(
            marked(name, "bfloat16", False, fast=name == "recall")
            for name in (*LOSSES, "approx_ndcg")
        ),
        marked("sigmoid", "float16", False, fast=False),
        ("recall", "float32", True),
        marked("sigmoid", "float32", True, fast=False),
        marked("sigmoid", "float16", True, fast=False),
        ("approx_ndcg", "float16", True),
        marked("approx_ndcg", "float64", True, fast=False),
    ],
)
def test_gradients_have_the_dtype_of_the_scores(name, dtype, wide, rng):
    """And `test_invariances` has float64 of all losses, `test_without_pairs_it_is_zero` float32."""
    loss = (LOSSES | {"approx_ndcg": jm.losses.approx_ndcg_loss})[name]
    scores, labels, _ = sample(rng)
    with jax.enable_x64(wide):
        of = jax.jit(jax.value_and_grad(loss))
        value, gradient = of(jnp.asarray(scores, dtype), labels)
    assert value.dtype == (dtype if dtype == "float64" else "float32")
    assert gradient.dtype == dtype
    assert np.isfinite(np.asarray(gradient, np.float64)).all()
    assert np.any(np.asarray(gradient) != 0)


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
    together = number[:, None] == number
    away = places[:, :, None] - places[:, None]
    expected = weights @ np.where(together, plain(away), 0)

    @jax.jit
    def both(places, weights):
        return sums(places[0], weights[0, 0]), jax.vmap(jax.vmap(sums), (None, 0))(places, weights)

    alone, found = both(places, weights)
    np.testing.assert_allclose(alone, expected[0, 0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


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


AT_NO_WEIGHT = {
    **{x: partial(jm.losses.pairwise_auc_loss, surrogate=x) for x in (*CONVEX, "sigmoid")},
    "average precision": jm.losses.average_precision_loss,
    "partial": partial(jm.losses.partial_auc_loss, max_fpr=0.3),
    "two-way": partial(jm.losses.partial_auc_loss, max_fpr=0.3, min_tpr=0.2, surrogate="hinge"),
    "exact": partial(jm.losses.partial_auc_loss, max_fpr=0.3, min_tpr=0.2, band=0),
    "whole": partial(jm.losses.partial_auc_loss, max_fpr=1.0, surrogate="hinge"),
    "recall": partial(jm.losses.recall_at_fpr_loss, max_fpr=0.3),
}


@pytest.mark.parametrize(
    "name",
    [marked(x, fast=x in ("hinge", "average precision")) for x in AT_NO_WEIGHT],
)
def test_the_slope_in_a_weight_of_0_is_that_in_a_small_one(name, rng, x64):
    """Of items of both classes; those of the first ones are also compared with differences."""
    loss, n = AT_NO_WEIGHT[name], 40
    labels = np.arange(n) % 3 == 0
    scores, weights = rng.normal(size=n) + labels, rng.random(n) * (np.arange(n) % 4 > 0)
    if name == "whole":
        scores[4] = scores.min() - 1  # a negative without weight is the lowest
    if name == "partial":
        scores[0] = 1e200  # a positive, whose square is infinite

    of_weights = jax.jit(jax.value_and_grad(lambda w: loss(scores, labels, weights=w)))
    small = np.where(weights > 0, weights, 1e-9)
    (value, slopes), (_, near) = map(of_weights, (weights, small))
    assert name == "exact" or np.abs(slopes).min() > 0
    assert_allclose(slopes, near, rtol=1e-5, atol=1e-8)
    if name in (*CONVEX, "sigmoid", "average precision"):  # which no top set moves
        step = 1e-7 * np.eye(n)[:5]
        differences = [(of_weights(weights + x)[0] - value) / 1e-7 for x in step]
        assert_allclose(slopes[:5], differences, atol=1e-5)


def test_items_that_cost_nothing_keep_their_ranks(rng, x64):
    """Though they need not be where they are, the slopes in weights are those of their parts."""
    loss, labels, weights = AT_NO_WEIGHT["two-way"], np.arange(40) % 3 == 0, 0.1 + rng.random(40)
    scores = rng.normal(size=40) + 3 * labels
    slopes = jax.jit(jax.grad(lambda w: loss(scores, labels, weights=w)))(weights)
    positive, negative = np.zeros((2, 40))
    negative[~labels] = _parts(scores[~labels], weights[~labels], 0.3, 0.5)
    positive[labels] = _parts(-scores[labels], weights[labels], 0.8, 0.5)
    each = np.maximum(1 - (scores[:, None] - scores), 0)
    totals = positive.sum(), negative.sum()
    mean = positive @ each @ negative / np.prod(totals)
    expected = positive * (each @ negative / np.prod(totals) - mean / totals[0])
    expected += negative * (positive @ each / np.prod(totals) - mean / totals[1])
    assert_allclose(slopes, expected / weights, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("partial", "max_fpr"),
        ("recall", "band"),
        *(marked("partial", x, fast=False) for x in ("min_tpr", "band")),
        marked("recall", "max_fpr", fast=False),
    ],
)
def test_slopes_in_options_are_those_of_the_loss(name, option, rng, x64):
    labels = np.arange(40) < 10
    scores = rng.normal(size=40) + labels
    window = partial(jm.losses.partial_auc_loss, surrogate="squared_hinge")
    loss = {"partial": window, "recall": jm.losses.recall_at_fpr_loss}[name]

    @jax.jit
    @jax.value_and_grad
    def of_option(x):
        return loss(scores, labels, **({"max_fpr": 0.4} | {option: x}))

    (above, _), (below, _) = of_option(0.3137 + 1e-6), of_option(0.3137 - 1e-6)
    assert_allclose(of_option(0.3137)[1], (above - below) / 2e-6, rtol=1e-6)


def test_slopes_in_options_of_a_band_that_is_none_are_those_of_exact_sets(rng):
    scores, labels = rng.integers(0, 5, 60).astype(np.float32), np.arange(60) % 3 == 0
    surrogate = {"surrogate": "squared_hinge"}  # the sets are those of all surrogates
    for loss in (partial(jm.losses.partial_auc_loss, **surrogate), jm.losses.recall_at_fpr_loss):
        slope = jax.jit(jax.grad(lambda x, b, loss=loss: loss(scores, labels, max_fpr=x, band=b)))
        for band in (1e-20, 1e-10):
            assert slope(0.3, band) == slope(0.3, 0.0)
