"""Derivatives of losses, under transformations too."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from every_loss import (
    CONVEX,
    DEFAULT_LOSS,
    EVERY_LOSS,
    LOSSES,
    SET_TWICE,
    compiled,
    compiled_area,
    parts_of,
    sample,
)
from fast import marked
from jax.test_util import check_grads
from numpy.testing import assert_allclose

import jaxmetrics as jm
from jaxmetrics.losses import _evaluated


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
    negative[~labels] = parts_of(scores[~labels], weights[~labels], 0.3, 0.5)
    positive[labels] = parts_of(-scores[labels], weights[labels], 0.8, 0.5)
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


def test_the_slope_of_a_hinge_at_its_kink_is_0():
    """A pair that is apart by just the margin: the slope is that on the side without cost."""
    loss = partial(jm.losses.pairwise_auc_loss, labels=np.array([1, 0]), surrogate="hinge")
    slope = jax.jit(jax.grad(loss))
    assert_allclose(slope(jnp.array([2.0, 1.0])), 0)
    assert_allclose(slope(jnp.array([1.9, 1.0])), [-1, 1], rtol=1e-6)
