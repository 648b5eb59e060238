"""Derivatives of comparisons in the values and in the weights."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import marked

import jaxmetrics as jm
from jaxmetrics.inference._pairs import Pairs

N = 40
RNG = np.random.default_rng(3)
VALUES, WEIGHTS = RNG.normal(size=(2, N)) + 2, RNG.random(N) + 0.5
LABELS = np.arange(N) % 3 == 0
SCORES = RNG.normal(size=(3, N)) + LABELS
COMPARED = {
    "means": (jm.compare_means, VALUES),
    "three means": (lambda v: jm.compare_means(jnp.stack([*v, v[0] ** 2])), VALUES),
    "areas": (lambda w: jm.compare(jm.roc_auc, SCORES[:2], LABELS, weights=w), WEIGHTS),
    "three areas": (lambda w: jm.compare(jm.roc_auc, SCORES, LABELS, weights=w), WEIGHTS),
}
FIELDS = ("difference", "standard_error", "low", "p_value", "simultaneous_high", "chi2")


@pytest.mark.parametrize("name", [marked(name, fast=name == "areas") for name in COMPARED])
def test_slopes_are_finite_differences(name, x64):
    """Those of a model from itself, which has no variance, are finite."""
    compared, at = COMPARED[name]

    def chosen(x):
        found = compared(x)
        return jnp.stack([jnp.ravel(getattr(found, field))[-2:][0] for field in FIELDS])

    slopes = np.asarray(jax.jit(jax.jacrev(chosen))(at)).reshape(len(FIELDS), -1)
    assert np.isfinite(slopes).all()
    forward = np.asarray(jax.jit(jax.jacfwd(chosen))(at)).reshape(len(FIELDS), -1)
    np.testing.assert_allclose(forward, slopes, rtol=1e-6, atol=1e-8)
    step = np.zeros(at.size)
    step[7] = 1e-5
    step = step.reshape(at.shape)
    expected = (chosen(at + step) - chosen(at - step)) / 2e-5
    np.testing.assert_allclose(slopes[:, 7], expected, rtol=2e-3, atol=1e-6)


@pytest.mark.parametrize("models", [[0, 0, 0], marked([0, 1, 0, 0], fast=False)])
def test_slopes_of_equal_models_are_finite(models, x64):
    """Their covariance has equal eigenvalues, whose own slopes are infinite."""

    def chosen(w):
        found = jm.compare(jm.roc_auc, SCORES[models], LABELS, weights=w)
        return [getattr(found, field) for field in FIELDS if field != "p_value"]

    backward, forward = (jax.jit(of(chosen))(WEIGHTS) for of in (jax.jacrev, jax.jacfwd))
    for x, y in zip(backward, forward, strict=True):
        assert np.isfinite(x).all()
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-8)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_equal_means_move_apart_with_the_values_of_one(x64):
    """Their difference is 0 whatever the rounding, but not its slope; the error has none."""

    def chosen(v):
        found = jm.compare_means(v, weights=WEIGHTS)
        return jnp.stack([found.difference[0, 1], found.low[0, 1], found.one_sided_high[0, 1]])

    equal = VALUES[[0, 0]]
    assert (chosen(equal) == 0).all()
    share = WEIGHTS / WEIGHTS.sum()
    for of in (jax.jacrev, jax.jacfwd):
        found = jax.jit(of(chosen))(equal)
        np.testing.assert_allclose(found, [[share, -share]] * 3, rtol=1e-12)


def test_slopes_of_non_inferiority(x64):
    """The p-value of a model against itself is 0, by a quantile that is infinite."""

    def total(w):
        found = jm.compare(jm.roc_auc, SCORES[:2], LABELS, weights=w, margin=0.05)
        return jnp.sum(found.noninferiority_p_value)

    of, along = jax.jit(jax.value_and_grad(total)), RNG.normal(size=N)
    slope = of(WEIGHTS)[1] @ along
    (above, _), (below, _) = (of(WEIGHTS + step * along) for step in (1e-5, -1e-5))
    np.testing.assert_allclose(slope, (above - below) / 2e-5, rtol=1e-5)


def test_forward_slopes_of_drawn_variances(x64):
    """Where a part has infinitely many observations, as a value to compare with has."""

    def drawn(n):
        sizes = n, n + 5, jnp.inf + 0 * n
        return Pairs(*[jnp.ones(())] * 4, sizes).drawn_parts(
            jnp.linspace(-2.0, 2.0, 9).reshape(3, 3)
        )

    found, slopes = jax.jit(lambda n: jax.jvp(drawn, (n,), (1.0,)))(20.0)
    assert (found[2] == 1).all()
    np.testing.assert_allclose(slopes, (drawn(20 + 1e-4) - drawn(20 - 1e-4)) / 2e-4, atol=1e-9)


CLUSTERS, GROUPS = np.arange(N) // 2, np.arange(N) // 20
ONE = LABELS & (np.arange(N) == 21)
LOST = np.where(np.arange(3)[:, None] == 1, np.nan, SCORES)
FIRST_LACKS = LABELS & (np.arange(N) > 20)  # the first group has no positive
PARTLY_UNKNOWN = {
    "covariance": lambda w: jm.covariance(jm.roc_auc, LOST, LABELS, weights=w),
    "one positive": lambda w: jm.compare(jm.roc_auc, SCORES[:2], ONE, weights=w, margin=0.1),
    "a lost model": lambda w: jm.compare(jm.roc_auc, LOST, LABELS, weights=w),
    "of clusters": lambda w: jm.compare(
        jm.roc_auc, LOST, LABELS, weights=w, clusters=CLUSTERS, reference=0
    ),
    "a group": lambda w: jm.compare_samples(jm.roc_auc, SCORES[0], FIRST_LACKS, GROUPS, weights=w),
    "delong": lambda w: jm.compare_samples(
        jm.roc_auc, SCORES[0], FIRST_LACKS, GROUPS, weights=w, method="delong"
    ),
    "a value": lambda w: jm.compare_to_value(jm.roc_auc, LOST, LABELS, value=0.5, weights=w),
    "one item": lambda w: jm.compare_means(SCORES, weights=w, where=ONE),
}


@pytest.mark.parametrize(
    "name", [marked(x, fast=x in ("covariance", "one positive")) for x in PARTLY_UNKNOWN]
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_slopes_beside_what_is_unknown(name, x64):
    """In reverse mode 0 times NaN, of a model without an error, would be NaN in all slopes."""

    @jax.jit
    @jax.value_and_grad
    def known(w):
        leaves = [x for x in jax.tree.leaves(PARTLY_UNKNOWN[name](w)) if x.dtype != bool]
        return sum(jnp.sum(jnp.nan_to_num(x, posinf=0)) for x in leaves)

    slope = known(WEIGHTS)[1]
    assert np.isfinite(slope).all()
    along = RNG.normal(size=N)
    above, below = (known(WEIGHTS + step * along)[0] for step in (1e-5, -1e-5))
    np.testing.assert_allclose(slope @ along, (above - below) / 2e-5, rtol=2e-3, atol=1e-6)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_lost_model_leaves_the_others_of_clusters():
    """Its draws, which are unknown, do not count."""
    found = jm.compare(jm.roc_auc, LOST, LABELS, clusters=CLUSTERS)
    expected = jm.compare(jm.roc_auc, LOST[[0, 2]], LABELS, clusters=CLUSTERS)
    for field in ("low", "high", "p_value", "df"):
        np.testing.assert_allclose(getattr(found, field)[0, 2], getattr(expected, field)[0, 1])
