"""The mini-batch losses: what they estimate, what they remember, and what they leave alone."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from fast import in_turn, marked
from numpy.testing import assert_allclose

import jaxmetrics as jm

KL, CVAR = jm.losses.kl_partial_auc, jm.losses.cvar_partial_auc
LOSSES = {"kl": KL.apply, "cvar": partial(CVAR.apply, max_fpr=0.3)}
INIT = {"kl": KL.init, "cvar": CVAR.init}
EVERY_LOSS = pytest.mark.parametrize("name", LOSSES)
ONE_LOSS = pytest.mark.parametrize("name", [marked(x, fast=x == "kl") for x in LOSSES])


def sample(rng, n=30):
    labels = np.arange(n) < n // 3
    return (rng.normal(size=n) + labels)[order := rng.permutation(n)], labels[order]


def pairs(scores, labels, weights=None):
    """Squared hinges `[positives, negatives]` and the shares of both."""
    weights = np.ones(len(labels)) if weights is None else weights
    d = scores[labels][:, None] - scores[~labels]
    shares = [weights[y] / weights[y].sum() for y in (labels, ~labels)]
    return jnp.maximum(1 - d, 0) ** 2, *shares


def soft_maximum(scores, labels, weights=None, kl_weight=0.5):
    losses, of_positives, of_negatives = pairs(scores, labels, weights)
    means = jnp.log(jnp.exp(losses / kl_weight) @ of_negatives)
    return kl_weight * (of_positives @ means)


def test_a_first_visit_is_the_objective(rng, x64):
    """Value and gradient, with weights and a mask, under which slots stay as they are."""
    scores, labels = sample(rng)
    weights, where = rng.random(len(labels)), rng.random(len(labels)) < 0.8
    kept = [x[where] for x in (scores, labels, weights)]
    given = jnp.where(where, scores, jnp.nan)

    def loss(scores):
        return KL.apply(
            KL.init(40),
            scores,
            labels,
            np.arange(len(labels)),
            weights=weights,
            where=where,
            kl_weight=0.5,
        )

    (value, state), gradient = jax.jit(jax.value_and_grad(loss, has_aux=True))(given)
    expected = jax.value_and_grad(lambda s: soft_maximum(s, *kept[1:]))(jnp.asarray(kept[0]))
    assert_allclose(value, expected[0], rtol=1e-12)
    assert_allclose(gradient[where], expected[1], rtol=1e-9, atol=1e-12)
    assert not np.asarray(gradient)[~where].any()
    visited = np.flatnonzero(where & labels)
    assert np.flatnonzero(state.log_means > -np.inf).tolist() == visited.tolist()
    assert_allclose(KL.objective(state, kl_weight=0.5), 0.5 * state.log_means[visited].mean())


def test_the_item_at_the_edge_is_not_beyond_it():
    """In float32, too, where a loss that is computed twice may be rounded in two ways."""
    labels, own = np.array([1, 0, 0, 1, 0, 0, 1, 0, 0]), np.arange(9)
    cvar = jm.losses.cvar_partial_auc
    options = {"max_fpr": 0.3, "step_size": 0.2, "surrogate": "square"}
    for seed in range(8):
        scores = np.random.default_rng(seed).normal(scale=1.5, size=9).astype(np.float32)
        _, state = cvar.apply(cvar.init(9), scores, labels, own, **options)
        positive, negative = (scores[labels == k].astype(float) for k in (1, 0))
        losses = (1 - (positive[:, None] - negative)) ** 2
        first = losses[:, np.argsort(-negative)[1]]  # 30 % of 6 negatives are 1.8 of them
        beyond = (losses > first[:, None]).mean(axis=1)
        found = np.asarray(state.thresholds)[labels == 1]
        np.testing.assert_allclose(found, first - 0.2 * (1 - beyond / 0.3), rtol=1e-4)


@pytest.mark.parametrize(("surrogate", "far"), in_turn(("logistic", "sigmoid"), (0.0, 1.0)))
def test_tied_pairs_have_the_slope_of_the_surrogate(surrogate, far, x64):
    """At the start of training all scores may be equal. Of a large `kl_weight` it is the mean."""
    scores, labels = -far * (jnp.arange(6) > 3), np.arange(6) < 2

    @jax.jit
    @jax.grad
    def soft(scores):
        given = {"surrogate": surrogate, "kl_weight": 1e6, "temperature": 1.0}
        return KL.apply(KL.init(6), scores, labels, np.arange(6), **given)[0]

    @jax.jit
    @jax.grad
    def mean(scores):
        return jm.losses.pairwise_auc_loss(scores, labels, surrogate=surrogate, temperature=1.0)

    assert_allclose(soft(scores), mean(scores), rtol=1e-4, atol=1e-12)


def test_a_later_visit_is_a_moving_average(rng, x64):
    scores, labels = sample(rng)
    index = np.arange(len(labels))
    _, state = KL.apply(KL.init(30), scores, labels, index)
    other = rng.normal(size=len(labels))
    _, later = KL.apply(state, other, labels, index, step_size=0.2)
    means = []
    for s in (scores, other):
        losses, _, shares = pairs(s, labels)
        means.append(np.exp(losses) @ shares)
    expected = np.log(0.8 * means[0] + 0.2 * means[1])
    assert_allclose(later.log_means[labels], expected, rtol=1e-12)
    assert (later.log_means[~labels] == -np.inf).all()
    again = KL.apply(later, other, labels, index, step_size=1.0)[1]
    assert_allclose(again.log_means[labels], np.log(means[1]), rtol=1e-12)


def test_nothing_overflows():
    """Losses of 10^8 over a kl_weight of .001, after losses near 0."""
    labels, index = np.array([1, 0, 0]), np.arange(3)
    apply = partial(KL.apply, labels=labels, index=index, kl_weight=0.001, step_size=0.1)
    _, state = apply(KL.init(3), jnp.array([5.0, 0.0, 0.0]))
    of = jax.jit(jax.value_and_grad(lambda s: apply(state, s), has_aux=True))
    (value, state), gradient = of(jnp.array([-1e4, 0.0, -3.0]))
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()
    assert np.isfinite(state.log_means[0])


def test_it_is_above_the_partial_loss(rng, x64):
    """For any max_fpr, less kl_weight log(1 / max_fpr); and tends to the highest as that falls."""
    scores, labels = sample(rng)
    for kl_weight in (0.05, 0.5, 5.0):
        state = KL.apply(KL.init(30), scores, labels, np.arange(30), kl_weight=kl_weight)[1]
        objective = KL.objective(state, kl_weight=kl_weight)
        for max_fpr in (0.05, 0.4, 1.0):
            partial_loss = jm.losses.partial_auc_loss(
                scores, labels, max_fpr=max_fpr, surrogate="squared_hinge", band=0.0
            )
            assert partial_loss <= objective + kl_weight * np.log(1 / max_fpr) + 1e-12


@pytest.mark.parametrize("max_fpr", [0.05, 0.37, 1.0])
def test_thresholds_give_the_partial_loss(max_fpr, rng, x64):
    """On a first visit of all items, and again after steps that have nothing to improve."""
    scores, labels = sample(rng)
    exact = jm.losses.partial_auc_loss(
        scores, labels, max_fpr=max_fpr, surrogate="squared_hinge", band=0.0
    )
    apply = partial(CVAR.apply, scores=scores, labels=labels, index=np.arange(30), max_fpr=max_fpr)
    loss, state = apply(CVAR.init(30))
    assert_allclose(loss, exact, rtol=1e-12)
    worse = CVAR.State(state.thresholds + 0.5)
    assert apply(worse)[0] > exact
    for _ in range(300):
        loss, worse = apply(worse, step_size=0.01)
    assert_allclose(loss, exact, rtol=0.02)


@EVERY_LOSS
def test_without_a_class_nothing_happens(name, rng):
    """The gradient in scores and weights is 0, also on a first visit."""
    scores, labels = sample(rng)
    index, weights, everything = np.arange(30), rng.random(30) + 0.1, labels | True
    fresh = INIT[name](30)

    def apply(scores, weights, state, labels, where):
        return LOSSES[name](state, scores, labels, index, weights=weights, where=where)

    of = jax.jit(jax.value_and_grad(apply, (0, 1), has_aux=True))
    (_, visited), _ = of(scores, weights, fresh, labels, everything)
    assert np.isfinite(visited[0][labels]).all()
    for state in (fresh, visited):
        for y, w, where in (
            (labels & False, weights, everything),
            (labels | True, weights, everything),
            (labels, weights, labels & False),
            (labels, weights * labels, everything),
        ):
            (value, after), gradients = of(scores, w, state, y, where)
            assert value == 0
            for gradient in gradients:
                np.testing.assert_array_equal(gradient, 0)
            assert_allclose(after[0], state[0])


@pytest.mark.parametrize("held", [-np.inf, 300.0])
def test_large_losses_leave_a_gradient_its_digits(held, rng):
    """A sum of a loss of 1e7 and the logarithm of a share would have none of the share."""
    scores, labels = sample(rng)
    scores = np.where(labels, 100 * scores - 1000, 0).astype(np.float32)
    weights = (rng.random(30) + 0.1).astype(np.float32)

    def loss(scores, weights):
        state = KL.State(jnp.full(30, held, scores.dtype))
        return KL.apply(state, scores, labels, np.arange(30), weights=weights, kl_weight=0.125)[0]

    found = jax.jit(jax.grad(loss, (0, 1)))(scores, weights)
    with jax.enable_x64(True):
        given = (scores.astype(np.float64), weights.astype(np.float64))
        expected = jax.jit(jax.grad(loss, (0, 1)))(*given)
    for x, y in zip(found, expected, strict=True):
        assert_allclose(x, y, rtol=1e-5, atol=1e-6 * np.abs(y).max())


@EVERY_LOSS
def test_what_is_refused_changes_nothing_if_traced(name, rng):
    scores, labels = sample(rng)
    _, state = LOSSES[name](INIT[name](30), scores, labels, np.arange(30))

    def apply(*given):
        return LOSSES[name](state, *given[:2], np.arange(30), step_size=given[2])

    of = jax.jit(jax.value_and_grad(apply, has_aux=True))
    odd = np.where(scores == scores.max(), -1, labels)
    missing, above, below = (
        np.where(np.arange(30) == 3, x, scores) for x in (np.nan, np.inf, -np.inf)
    )
    for bad in ((scores, odd, 0.1), (missing, labels * 1, 0.1), (scores, labels * 1, 0.0)):
        (loss, after), gradient = of(*bad)
        assert np.isnan(loss)
        assert not gradient.any()
        assert_allclose(after[0], state[0])
    for infinite in (above, below):
        (loss, after), gradient = of(infinite, labels * 1, 0.1)
        assert np.isnan(loss)
        assert np.isnan(gradient).all()
        assert_allclose(after[0], state[0])
    wrong_by_far = np.where(np.arange(30) == 3, 1e30 * (1 - 2 * labels), scores)
    (loss, after), _ = of(wrong_by_far, labels * 1, 0.1)
    assert not np.isfinite(loss)  # the square of 1e30
    assert_allclose(after[0], state[0])
    assert not np.isnan(of(scores, labels * 1, 0.1)[0][0])
    forbidden = np.where(np.arange(30) == np.argmin(labels), -1e30, scores)
    (loss, _), gradient = of(forbidden, labels * 1, 0.1)
    assert np.isfinite([loss, *gradient]).all()
    loss, after = LOSSES[name](state, [], [], np.zeros(0, int))
    assert loss == 0
    assert_allclose(after[0], state[0])


@ONE_LOSS
def test_in_a_scan_with_optax(name, rng):
    """It trains a model, its state is a pytree of arrays, and stopping and going on is the same."""
    x = rng.normal(size=(200, 5)).astype(np.float32)
    labels = x[:, 0] + rng.normal(size=200) > 1.5
    optimiser = optax.adam(0.05)

    def step(carry, rows):
        params, moments, state = carry

        def loss(params):
            return LOSSES[name](state, x[rows] @ params, jnp.asarray(labels)[rows], rows)

        (value, state), gradient = jax.value_and_grad(loss, has_aux=True)(params)
        updates, moments = optimiser.update(gradient, moments)
        return (optax.apply_updates(params, updates), moments, state), value

    x = jnp.asarray(x)
    params = jnp.zeros(5)
    start = (params, optimiser.init(params), INIT[name](200))
    batches = jnp.stack([jnp.asarray(rng.permutation(200)[:64]) for _ in range(200)])
    run = jax.jit(lambda carry, batches: jax.lax.scan(step, carry, batches))
    (params, _, state), values = run(start, batches)
    area = partial(jm.partial_auc, labels=labels, max_fpr=0.3, scale="range")
    items = np.asarray(x)
    assert area(items @ params) > area(-items[:, 1]) + 0.2
    assert area(items @ params) > 0.95 * area(items[:, 0])  # of which labels are made
    assert values[-20:].mean() < values[:20].mean()
    half, _ = run(start, batches[:100])
    restored = jax.tree.map(lambda a: jnp.asarray(np.asarray(a)), half)
    (again, _, final), _ = run(restored, batches[100:])
    assert_allclose(again, params, rtol=1e-5)
    assert_allclose(final[0], state[0], rtol=1e-5)


@EVERY_LOSS
def test_bad_input(name):
    apply, state = LOSSES[name], INIT[name](2)
    with pytest.raises(ValueError, match="index must be from 0 to n_slots - 1 = 1, got 2"):
        apply(state, [0.1, 0.2, 0.3], [0, 1, 1], [9, 0, 2])
    with pytest.raises(ValueError, match=r"index must be \[2\]"):
        apply(state, [0.1, 0.2], [0, 1], [0])
    with pytest.raises(TypeError, match="index must hold whole numbers"):
        apply(state, [0.1, 0.2], [0, 1], [0.0, 1.0])
    with pytest.raises(ValueError, match="for several models vmap the call"):
        apply(state, [[0.1, 0.2]], [0, 1], [0, 1])
    with pytest.raises(ValueError, match="step_size must be in"):
        apply(state, [0.1, 0.2], [0, 1], [0, 1], step_size=0.0)
    with pytest.raises(ValueError, match="n_slots = 100,000,000,000,000 needs 400,000 GB"):
        INIT[name](10**14)
    with pytest.raises(ValueError, match="n_slots must be at least 1"):
        INIT[name](0)
    for other in (3, (state[0],), INIT["kl" if name == "cvar" else "cvar"](2)):
        with pytest.raises(TypeError, match=rf"must be a {name}_partial_auc.State, got"):
            apply(other, [0.1, 0.2], [0, 1], [0, 1])
    for restored in (state._asdict(), tuple(state)):
        stars = r"\*\*" if isinstance(restored, dict) else r"\*"
        with pytest.raises(TypeError, match=rf"write {name}_partial_auc.State\({stars}restored\)"):
            apply(restored, [0.1, 0.2], [0, 1], [0, 1])
    for dtype in (jnp.bfloat16, np.int8):
        cast = type(state)(jnp.zeros(2, dtype))
        with pytest.raises(TypeError, match=f"must be float32, got {jnp.dtype(dtype)}: leave"):
            jax.jit(apply)(cast, [0.1, 0.2], [0, 1], [0, 1])
    with pytest.raises(ValueError, match=r"must be \[n_slots\], got \[3, 2\]: for several states"):
        apply(type(state)(jnp.zeros((3, 2))), [0.1, 0.2], [0, 1], [0, 1])
    with pytest.raises(TypeError, match=r"must be a kl_partial_auc.State, got int"):
        KL.objective(3)


@EVERY_LOSS
def test_a_traced_index_without_a_slot_is_nan(name, rng):
    """Also a negative one, which reads no other slot; that of a negative, or masked, is ignored."""
    state = LOSSES[name](INIT[name](3), [0.1, 0.5, 0.2], [1, 1, 0], [0, 2, 1])[1]
    scores, labels = np.array([0.3, 0.1, 0.2]), np.array([1, 1, 0])
    of = jax.jit(lambda *given: LOSSES[name](state, scores, labels, given[0], where=given[1]))
    where = np.array([True, False, True])
    right = of(np.array([1, 1, 1]), where)[0]
    for index in ([-1, 0, 0], [3, 0, 0], [-7, 0, 0]):
        loss, after = of(np.array(index), where)
        assert np.isnan(loss)
        assert_allclose(after[0], state[0])
    for index in ([1, -1, -1], [1, 9, 9]):
        assert_allclose(of(np.array(index), where)[0], right)


def test_with_all_negatives_the_edge_is_the_lowest_whatever_the_weights(rng):
    """Sums of weights over their total need not be 1 where they are all."""
    n = 24
    labels, scores = np.arange(n) % 3 == 0, rng.normal(size=n)
    scores[0] = -9
    lowest = np.maximum(1 - (scores[labels] - scores[~labels].min()), 0) ** 2
    for _ in range(40):
        given = {"weights": rng.exponential(size=n), "max_fpr": 1.0, "step_size": 1e-6}
        _, state = CVAR.apply(CVAR.init(n), scores, labels, np.arange(n), **given)
        assert_allclose(state.thresholds[labels], lowest, rtol=1e-3, atol=1e-3)


@ONE_LOSS
def test_slopes_in_weights_are_those_of_the_loss(name, rng, x64):
    """Of both classes, also in a weight of 0."""
    scores, labels = sample(rng)
    weights = rng.random(len(labels)) * (np.arange(len(labels)) % 5 > 0)

    @jax.jit
    @jax.value_and_grad
    def of_weights(weights):
        index = np.arange(len(labels))
        return LOSSES[name](INIT[name](len(labels)), scores, labels, index, weights=weights)[0]

    value, slopes = of_weights(weights)
    step = 1e-7 * np.eye(len(labels))
    differences = [(of_weights(weights + x)[0] - value) / 1e-7 for x in step]
    some = slice(None) if name == "kl" else labels  # whose edge moves with the negatives' weights
    assert_allclose(slopes[some], np.array(differences)[some], atol=1e-5)


def test_pairs_far_above_the_mean_leave_the_loss_finite(rng):
    """One positive that outranks another by more than single precision has exponents for."""
    labels, scores = np.arange(64) < 8, np.float32([100, 0] + [-50] * 62)
    labels[2:8] = False
    given = scores, labels, np.arange(64)
    of_weights = jax.value_and_grad(lambda w: KL.apply(KL.init(64), *given, weights=w)[0])
    value, slopes = jax.jit(of_weights)(np.ones(64, np.float32))
    assert value == 0
    assert np.isfinite(slopes).all()


def test_a_negative_of_no_weight_may_be_beyond_all_others():
    """exp(loss) of its pair is infinite. The slope in its weight is large and finite."""
    scores, labels = jnp.array([0.5, 0.2, 0.9, 1e4]), np.array([1, 0, 0, 0])

    def loss(scores, weights):
        n = len(scores)
        return KL.apply(KL.init(4), scores, labels[:n], np.arange(n), weights=weights)[0]

    def value_and_slopes(n):
        given = scores[:n], jnp.array([1.0, 1, 1, 0])[:n]
        return jax.value_and_grad(loss, (0, 1))(*given)

    value, (slopes, of_weights) = value_and_slopes(4)
    expected, (others, of_others) = value_and_slopes(3)
    assert_allclose(value, expected, rtol=1e-6)
    assert_allclose(slopes, [*others, 0], rtol=1e-6)
    assert_allclose(of_weights[:3], of_others, rtol=1e-5, atol=1e-6)
    assert 1e18 < of_weights[3] < np.inf


@pytest.mark.parametrize(("margin", "expected"), [(1.0, 0.7**2 + 1.4**2), (2.0, 1.7**2 + 2.4**2)])
def test_a_later_visit_is_over_the_threshold_that_is_held(margin, expected):
    """Of 0, which both pairs are over: their mean over max_fpr. The threshold rises by the step."""
    held = CVAR.State(jnp.zeros(3))
    options = {"max_fpr": 0.5, "step_size": 0.25, "margin": margin}
    loss, state = CVAR.apply(held, [0.5, 0.2, 0.9], [1, 0, 0], [0, 1, 2], **options)
    assert_allclose(loss, expected, rtol=1e-6)
    assert_allclose(state.thresholds, [0.25, 0, 0])
