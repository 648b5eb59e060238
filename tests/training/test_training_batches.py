"""Batches of items, states of losses, optimisers and meshes."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from fast import in_turn, marked
from jax.sharding import NamedSharding, PartitionSpec
from numpy.testing import assert_allclose, assert_array_equal
from trained import ADAM, HELD, KEY, LOSS, METRIC, SGD, START, TRAIN, finetune, fit, linear

import jaxmetrics as jm

LOSSES = (
    jm.losses.kl_partial_auc.apply,
    partial(jm.losses.cvar_partial_auc.apply, max_fpr=0.2),
    LOSS,
)


@pytest.mark.parametrize(("loss", "batch"), in_turn(LOSSES, (32, (8, 24))))
def test_batches(loss, batch):
    first, again = (fit(loss=loss, batch=batch, key=KEY) for _ in range(2))
    assert_array_equal(first.values, again.values)
    assert first.values[first.step // 5] > first.values[0]
    other = fit(loss=loss, batch=batch, key=jax.random.key(1))
    assert (first.losses != other.losses).any()


def test_the_state_of_a_loss_is_kept_from_batch_to_batch():
    """With all items in each step the state of a positive is a mean over steps."""
    kl = jm.losses.kl_partial_auc
    params, state, values = START, kl.init(len(TRAIN[1])), []
    step = jax.jit(
        jax.value_and_grad(
            lambda p, s: kl.apply(s, linear(p, TRAIN[0]), TRAIN[1], np.arange(200)), has_aux=True
        )
    )
    for _ in range(4):
        (value, state), gradient = step(params, state)
        params = params - 0.1 * gradient
        values.append(value)
    fitted = jm.training.fit(
        linear, START, SGD, TRAIN, HELD, loss=kl.apply, metric=METRIC, steps=4, checkpoints=2
    )
    assert_allclose(fitted.losses, np.reshape(values, (2, 2)).mean(1), rtol=1e-5)


@pytest.mark.parametrize(
    "optimizer",
    [
        optax.lbfgs(),
        optax.chain(SGD, optax.contrib.reduce_on_plateau()),
        optax.GradientTransformation(SGD.init, lambda g, state, params: SGD.update(g, state)),
    ],
    ids=["line search", "value", "gradient alone"],
)
def test_optimisers_have_what_they_take(optimizer):
    """Each finds the least squares, by line search, by the value or by the gradient alone."""
    x, y = TRAIN
    fitted = jm.training.fit(
        linear,
        START,
        optimizer,
        TRAIN,
        HELD,
        loss=lambda scores, labels: jnp.sum((scores - labels) ** 2) / len(y),
        metric=METRIC,
        steps=100,
        checkpoints=2,
    )
    least = np.linalg.lstsq(x, y.astype(float))[1] / len(y)
    assert_allclose(fitted.losses[-1], least, rtol=1e-5)


def test_both_runs_have_batches_of_as_many_items():
    """Also where fewer positives are left than a batch may have."""
    where = np.arange(200) % 2 == 0
    positives = int((TRAIN[1] & where).sum())
    given = linear, START, SGD, (*TRAIN, {"where": where}), HELD
    options = {"metric": METRIC, "steps": 4, "checkpoints": 4, "key": KEY}
    plain = {"loss": lambda scores, labels, where: scores.mean(), "batch": (100, 7)}
    found = jm.training.finetune(*given, **plain, **options)
    alone = jm.training.fit(*given, batch=positives + 7, **options)
    assert_array_equal(found.cross_entropy.losses, alone.losses)


def test_batches_of_both_classes():
    """Their numbers, and no item that is left out."""
    seen = []
    train = (*TRAIN, {"where": np.arange(200) < 100})

    def loss(scores, labels, where):
        jax.debug.callback(lambda *x: seen.append(tuple(map(int, x))), labels.sum(), where.sum())
        return scores.sum()

    options = {"metric": METRIC, "steps": 2, "checkpoints": 1, "batch": (4, 7), "key": KEY}
    jm.training.fit(linear, START, SGD, train, HELD, loss=loss, **options)
    jax.effects_barrier()
    assert seen == [(4, 11), (4, 11)]


def test_batches_hold_no_items_of_weight_0():
    """A batch of such items alone has no loss, and the mean loss would be NaN."""
    weights = np.where(np.arange(200) % 20 == 0, 1.0, 0.0)
    options = {"metric": METRIC, "steps": 20, "checkpoints": 2, "batch": 2, "key": KEY}
    found, expected = (
        jm.training.fit(linear, START, SGD, (*TRAIN, given), HELD, **options)
        for given in ({"weights": weights}, {"weights": weights, "where": weights > 0})
    )
    assert np.isfinite(found.losses).all()
    assert_array_equal(found.losses, expected.losses)


def test_sharded_arrays():
    mesh = jax.make_mesh((2,), ("items",), axis_types=(jax.sharding.AxisType.Auto,))
    placed = NamedSharding(mesh, PartitionSpec("items"))
    train, held = (tuple(jax.device_put(a, placed) for a in pair) for pair in (TRAIN, HELD))
    options = {"loss": LOSS, "metric": METRIC, "steps": 20, "checkpoints": 4}
    found = jm.training.finetune(linear, START, ADAM, train, held, **options)
    plain = finetune()
    assert found.taken == plain.taken
    assert_allclose(found.loss.values, plain.loss.values, atol=1e-5)
    assert_allclose(found.params, plain.params, rtol=1e-3)


@pytest.mark.parametrize("batch", [None, marked(16, fast=False), (4, 12)])
def test_explicit_axes(batch):
    """With parameters that are on no mesh, and a loss that has a state."""
    mesh = jax.make_mesh((2,), ("items",), axis_types=(jax.sharding.AxisType.Explicit,))
    placed = NamedSharding(mesh, PartitionSpec("items"))
    train = tuple(jax.device_put(a, placed) for a in TRAIN)
    loss = partial(jm.losses.kl_partial_auc.apply, kl_weight=0.5)
    options = {"loss": loss, "metric": METRIC, "steps": 4, "checkpoints": 1}
    found, plain = (
        jm.training.fit(linear, START, SGD, data, HELD, batch=batch, key=KEY, **options)
        for data in (train, TRAIN)
    )
    assert_allclose(found.losses, plain.losses, rtol=1e-4)
    assert_allclose(found.values, plain.values, atol=1e-5)
    assert_allclose(found.params, plain.params, rtol=1e-3)
