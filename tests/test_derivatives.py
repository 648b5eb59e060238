"""Forward mode agrees with reverse mode, and with finite differences, of metrics and losses."""

import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import in_turn, marked
from numpy.testing import assert_allclose
from registry import METRICS

import jaxmetrics as jm
from jaxmetrics._base.double import in_double
from jaxmetrics._roc.record import record_of

N = 20  # items; more than one block of the sums over pairs
RNG = np.random.default_rng(7)
LABELS = np.arange(N) % 3 == 0
SCORES, WEIGHTS = RNG.normal(size=N) + LABELS, RNG.random(N) + 0.2
# Programs are large, and run once.
compiled = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
TIED = SCORES.round(1).astype(np.float32)
SURROGATES = ("hinge", "squared_hinge", "square", "logistic", "sigmoid")


def of_batch(module, **options):
    """A mini-batch loss whose slots were all visited before."""
    state, index = module.State(np.full(N, 0.3, np.float32)), np.arange(N)
    return lambda *items, **more: module.apply(state, *items, index, **options, **more)[0]


def approx_ndcg(scores, labels, weights):
    """Of two lists, whose grades are the weights."""
    del labels
    segments = {"segments": np.arange(N) // 10, "num_segments": 2}
    return jnp.sum(jm.losses.approx_ndcg_loss(scores, jax.lax.stop_gradient(weights), **segments))


LOSSES = {
    "recall": partial(jm.losses.recall_at_fpr_loss, max_fpr=0.3),
    "average precision": jm.losses.average_precision_loss,
    "approx ndcg": approx_ndcg,
}
for name in SURROGATES:
    options = {"surrogate": name}
    LOSSES |= {
        f"pairwise {name}": partial(jm.losses.pairwise_auc_loss, **options),
        f"partial {name}": partial(jm.losses.partial_auc_loss, max_fpr=0.4, min_tpr=0.2, **options),
        f"kl {name}": of_batch(jm.losses.kl_partial_auc, **options),
        f"cvar {name}": of_batch(jm.losses.cvar_partial_auc, max_fpr=0.4, **options),
    }
SMOOTH = {entry.name: entry.metric for entry in METRICS if record_of(entry.metric).smooth}
# One of each kind: a rate, a table, mini-batches. The others with -m slow.
FAST = ("recall", "average_precision", "kl squared_hinge")
REST = [name for name in (*SMOOTH, *LOSSES) if name not in FAST]


def case(name):
    """A function of one vector, of weights or of scores and weights, and where to look at it."""
    if name in SMOOTH:

        def metric(weights):
            return jnp.sum(jnp.cos(SMOOTH[name](TIED, LABELS, weights=weights)))

        return metric, WEIGHTS

    def loss(both):
        return LOSSES[name](both[:N], LABELS, weights=both[N:])

    return loss, np.concatenate([SCORES, WEIGHTS])


def first_derivatives(function, at, along):
    """By name, what is to be equal, the reverse mode's first."""
    slope = jax.grad(function)(at)
    return {
        "gradient": (slope, jax.jacfwd(function)(at)),
        "along": (slope @ along, jax.linearize(function, at)[1](along)),
    }


def second_derivatives(function, at, along):
    def slope_along(x):
        return jax.jvp(function, (x,), (along,))[1]

    curvature = jax.hessian(function)(at)
    return {
        "hessian": (curvature,),
        "hessian along": (
            curvature @ along,
            jax.grad(slope_along)(at),
            jax.grad(lambda x: jax.grad(function)(x) @ along)(at),
        ),
    }


@pytest.mark.parametrize(
    ("name", "order"),
    [*in_turn(FAST, (1, 2)), *(marked(name, k, fast=False) for name in REST for k in (1, 2))],
)
def test_forward_mode_is_reverse_mode(name, order, x64):
    """And both are those of differences: of values, or of gradients."""
    function, at = case(name)
    along = np.random.default_rng(1).normal(size=len(at))
    derivatives = {1: first_derivatives, 2: second_derivatives}[order]
    found = compiled(partial(derivatives, function))(at, along)
    for expected, *others in found.values():
        for other in others:
            assert other.dtype == np.float64
            assert_allclose(other, expected, rtol=1e-9, atol=1e-11)
    slopes = found["gradient" if order == 1 else "hessian"][0]
    assert np.isfinite(slopes).all()
    if order == 1:
        assert abs(slopes @ along) > 1e-3
    if name.startswith(("kl", "cvar")):
        return  # their gradients are not those of their values
    if name in LOSSES:
        along[N:] = 0  # which items are at the top is held fixed in a derivative
    near = at + np.array([[1e-6], [-1e-6]]) * along
    above, below = compiled(jax.vmap(function if order == 1 else jax.grad(function)))(near)
    close = {"rtol": 1e-5, "atol": 1e-8} if order == 1 else {"rtol": 1e-4, "atol": 1e-7}
    assert_allclose((above - below) / 2e-6, slopes @ along, **close)


@pytest.mark.parametrize(
    "name",
    [
        "pairwise squared_hinge",
        *(marked(x, fast=False) for x in ("roc_auc", "recall", "partial sigmoid")),
    ],
)
def test_without_x64_under_vmap_and_scan(name):
    """In float32, of a batch, in a loop, of what is checkpointed."""
    function, at = case(name)
    rng = np.random.default_rng(2)
    at = (at + 0.1 * rng.random((3, len(at)))).astype(np.float32)
    along = rng.normal(size=at.shape).astype(np.float32)

    def step(total, row):
        derivative = jax.jvp(jax.checkpoint(function), *((x,) for x in row))[1]
        return total + derivative, derivative

    def product(at, along):
        return jax.jvp(jax.grad(function), (at,), (along,))[1]

    @compiled
    def of(at, along):
        def looped(at):
            return jax.lax.scan(step, jnp.float32(0), (at, along))

        slopes, products = jax.vmap(jax.grad(function))(at), jax.vmap(product)(at, along)
        return slopes, products, looped(at), jax.grad(lambda x: looped(x)[0])(at)

    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        slopes, products, (total, each), of_loop = of(at, along)
    assert {x.dtype for x in (total, each, products, of_loop)} == {np.dtype(np.float32)}
    assert_allclose(each, np.sum(slopes * along, 1), rtol=1e-4)
    assert_allclose(total, np.sum(each), rtol=1e-5)
    assert_allclose(of_loop, products, rtol=1e-3, atol=1e-4)


def operations(transform, function):
    """How many sorts and loops there are in the compiled program of a derivative, of 60 items."""
    at = jnp.asarray(np.arange(60) % 7, jnp.float32)
    program = jax.jit(transform(function)).lower(at).compile().as_text()
    # Named, as XLA makes a loop of a scatter too, where it optimises nothing.
    return program.count(" sort("), len(re.findall(r' while\(.*/while"', program))


def forward(function):
    return lambda x: jax.jvp(function, (x,), (x * x,))[1]


@pytest.mark.parametrize("transform", [jax.grad, forward])
def test_cost_of_a_derivative(transform):
    """One sort, and one sum over pairs: no more than of the value alone.

    The sum has two loops, for both directions: along lanes of items, and from lane to lane.
    """
    labels = np.arange(60) % 3 == 0
    scores = jnp.cos(jnp.arange(60.0))
    of_weights = partial(jm.average_precision, scores, labels)
    assert operations(transform, lambda w: of_weights(weights=w))[0] == 1
    loss = partial(jm.losses.pairwise_auc_loss, labels=labels, surrogate="sigmoid")
    assert operations(transform, loss) == operations(lambda f: f, loss) == (1, 2)


def test_results_without_a_derivative():
    """Those that are not floating, or of no use, beside one of 64 bits that has one."""

    @in_double
    def counted(weights, index):
        square = jnp.sum(weights.astype(np.float64) ** 2)
        return {"next": index + 1, "square": square, "cube": square * weights}

    def of(weights):
        return counted(weights, jnp.arange(3))

    weights = jnp.asarray(WEIGHTS, np.float32)
    value, slope = jax.jvp(of, (weights,), (weights,))
    assert value["next"].tolist() == [1, 2, 3]
    assert slope["next"].dtype == jax.dtypes.float0
    assert slope["square"].dtype == np.float64
    assert_allclose(slope["square"], 2 * weights @ weights, rtol=1e-6)
    gradient = jax.grad(lambda x: of(x)["square"].astype(np.float32))(weights)
    assert_allclose(gradient, 2 * weights, rtol=1e-6)


def test_a_derivative_is_linear_in_its_direction():
    at, first, second = map(jnp.float32, (WEIGHTS, SCORES, WEIGHTS**2))

    def along(direction):
        return jax.jvp(lambda x: jm.roc_auc(SCORES, LABELS, weights=x), (at,), (direction,))[1]

    assert_allclose(jax.jvp(along, (first,), (second,))[1], along(second), rtol=1e-6)
