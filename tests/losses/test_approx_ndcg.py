"""The loss of nDCG against all pairs, and far from zero."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from numpy.testing import assert_allclose

import jaxmetrics as jm
from jaxmetrics.losses import _ranking


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


def test_numbers_of_lists_up_to_a_power_of_two_share_a_program(rng):
    scores, grades = np.float32(rng.normal(size=36)), rng.integers(0, 3, 36)
    programs = set()
    for n in (8, 6, 5):
        loss = partial(jm.losses.approx_ndcg_loss, labels=grades, segments=np.arange(36) % n)
        found = loss(scores)
        programs.add(_ranking._approx_ndcg_loss._cache_size())
        assert_allclose(found, loss(scores, num_segments=8)[:n], rtol=1e-6)
    slopes = [jax.grad(lambda x, k=k: loss(x, num_segments=k).sum())(scores) for k in (None, 8)]
    assert_allclose(*slopes, atol=1e-6)
    assert len(programs) == 1
    one = jm.losses.approx_ndcg_loss(scores, grades, segments=np.zeros(36, int))
    assert one.shape == (1,)


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


def test_slopes_of_low_temperatures_are_not_rounding(rng):
    """An item's own slopes cancel; what rounding left of them was divided by the temperature."""
    scores, grades = rng.normal(size=50).astype(np.float32), rng.integers(0, 4, 50)

    @jax.jit
    def slopes(scores, temperature):
        return jax.grad(partial(jm.losses.approx_ndcg_loss, labels=grades))(
            scores, temperature=temperature
        )

    with jax.enable_x64(True):
        exact = slopes(np.float64(scores), 1e-3)
    assert_allclose(slopes(scores, 1e-3), exact, atol=1e-4 * np.abs(exact).max())
    for temperature in (1e-6, 1e-30):
        assert not np.asarray(slopes(scores, temperature)).any()


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
