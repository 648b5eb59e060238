"""Training for a metric: checkpoints, the gate, weights and models of Flax."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from trained import ADAM, HELD, KEY, LOSS, METRIC, START, TRAIN, finetune, fit, linear

import jaxmetrics as jm


def worse(scores, labels):
    return -LOSS(scores, labels)


def by_loop(steps):
    """Parameters after each step, in a plain loop."""
    params, state = START, ADAM.init(START)
    gradient = jax.jit(jax.grad(lambda p: LOSS(linear(p, TRAIN[0]), TRAIN[1])))
    yield params
    for _ in range(steps):
        updates, state = ADAM.update(gradient(params), state, params)
        params = optax.apply_updates(params, updates)
        yield params


def test_fit_keeps_the_best_of_the_checkpoints_of_a_plain_loop():
    seen = []
    fitted = fit(progress=lambda *pair: seen.append(pair))
    every = list(by_loop(20))[::5]
    values = [float(METRIC(linear(p, HELD[0]), HELD[1])) for p in every]
    assert_allclose(fitted.values, values, atol=1e-5)
    assert fitted.step == 5 * np.argmax(values) > 0
    assert_allclose(fitted.params, every[np.argmax(values)], rtol=1e-4)
    assert_array_equal(fitted.steps, [0, 5, 10, 15, 20])
    assert seen == list(zip(fitted.steps, fitted.values, strict=True))
    assert fitted.losses.shape == (4,)


def test_the_start_is_a_checkpoint():
    """A loss that makes the model worse changes nothing."""
    fitted = fit(loss=worse)
    assert fitted.step == 0
    assert_array_equal(fitted.params, START)


@pytest.mark.parametrize(("loss", "taken"), [(LOSS, "loss"), (worse, "cross_entropy")])
def test_the_gate(loss, taken):
    """It follows the comparison of both runs, each of which is that of `fit`."""
    seen = []
    found = finetune(loss=loss, progress=lambda *pair: seen.append(pair))
    assert found.taken == taken
    values = found.loss.values, found.cross_entropy.values
    assert seen == [pair for x in values for pair in zip((0, 5, 10, 15, 20), x, strict=True)]
    assert_array_equal(found.params, getattr(found, taken).params)
    assert_array_equal(found.cross_entropy.values, fit(loss=jm.training.cross_entropy).values)
    scores = [linear(run.params, HELD[0]) for run in (found.loss, found.cross_entropy)]
    again = jm.compare(METRIC, jnp.stack(scores), HELD[1])
    assert_allclose(found.comparison.difference, again.difference)
    gain = again.difference[0, 1] > again.standard_error[0, 1]
    assert bool(gain) == (taken == "loss")


def test_the_gate_knows_which_items_depend_on_each_other():
    """And says what was taken in a few lines, without the parameters."""
    clusters = np.arange(len(HELD[1])) // 5
    found = finetune(loss=LOSS, clusters=clusters)
    scores = [linear(run.params, HELD[0]) for run in (found.loss, found.cross_entropy)]
    again = jm.compare(METRIC, jnp.stack(scores), HELD[1], clusters=clusters)
    assert_allclose(found.comparison.standard_error, again.standard_error)
    told = str(found)
    assert told.startswith(f"Taken: {found.taken}\n")
    assert "cross_entropy" in told
    assert len(told) < 600
    with pytest.raises(ValueError, match="clusters"):
        finetune(loss=LOSS, clusters=clusters[1:])


def test_equal_models_do_not_pass_the_gate():
    found = finetune(loss=jm.training.cross_entropy)
    assert found.comparison.difference[0, 1] == 0
    assert found.taken == "cross_entropy"


def test_a_small_gain_does_not_pass_the_gate():
    """One that is above 0, and below its standard error."""

    def mixed(scores, labels):
        return 0.9 * jm.training.cross_entropy(scores, labels) + 0.1 * LOSS(scores, labels)

    found = finetune(loss=mixed, steps=4, checkpoints=1)
    gain, error = found.comparison.difference[0, 1], found.comparison.standard_error[0, 1]
    assert 0 < gain <= error
    assert found.taken == "cross_entropy"


def test_weights_and_masks_count_in_the_loss_and_the_metric():
    """Items that are left out, or of weight 0, may be anything."""
    x, y = (np.concatenate([a, a[:10]]) for a in TRAIN)
    x[-10:] = 100
    keep = np.arange(len(y)) < len(y) - 10
    held = (np.concatenate([HELD[0], x[-10:]]), np.concatenate([HELD[1], y[-10:]]))
    options = {"metric": METRIC, "steps": 20, "checkpoints": 4}
    hidden = {"where": np.arange(len(held[1])) < len(HELD[1])}
    for loss, extra in (
        (LOSS, {"where": keep}),
        (jm.training.cross_entropy, {"weights": keep.astype(np.float32)}),
    ):
        plain = fit(loss=loss)
        fitted = jm.training.fit(
            linear, START, ADAM, (x, y, extra), (*held, hidden), loss=loss, **options
        )
        assert_allclose(fitted.params, plain.params, rtol=1e-3)
        assert_allclose(fitted.values, plain.values, atol=1e-5)


def test_whole_weights_of_64_bits_are_not_cut():
    """In 32 bits those of the items would be 0 and 1, and none would be refused."""
    weights = 2**32 * (1 + np.arange(len(HELD[1])) % 3) + TRAIN[1]
    runs = [
        fit(train=(*TRAIN, {"weights": x}), validation=(*HELD, {"weights": x}))
        for x in (weights, np.float32(weights))
    ]
    assert_array_equal(runs[0].losses, runs[1].losses)
    assert_allclose(runs[0].values, runs[1].values, rtol=1e-6)


def test_models_of_flax():
    linen, nnx = (pytest.importorskip(f"flax.{name}") for name in ("linen", "nnx"))
    model = linen.Dense(1)
    module = nnx.Linear(2, 1, rngs=nnx.Rngs(0))
    graph, state = nnx.split(module)
    cases = [
        (lambda p, x: model.apply(p, x)[:, 0], model.init(KEY, TRAIN[0][:1])),
        (lambda p, x: nnx.merge(graph, p)(x)[:, 0], state),
    ]
    for apply, params in cases:
        fitted = jm.training.fit(
            apply, params, ADAM, TRAIN, HELD, metric=METRIC, steps=20, checkpoints=4
        )
        assert jax.tree.structure(fitted.params) == jax.tree.structure(params)
        value = METRIC(apply(fitted.params, HELD[0]), HELD[1])
        assert_allclose(value, fitted.values.max(), atol=1e-5)
