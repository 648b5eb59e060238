"""Training for a metric: checkpoints, the gate, batches, meshes, models of flax, and stopping."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from fast import in_turn, marked
from jax.sharding import NamedSharding, PartitionSpec
from numpy.testing import assert_allclose, assert_array_equal

import jaxmetrics as jm

METRIC = partial(jm.partial_auc, max_fpr=0.2, scale="range")
LOSS = partial(jm.losses.partial_auc_loss, max_fpr=0.2)
KEY = jax.random.key(0)
ADAM, SGD = optax.adam(0.05), optax.sgd(0.1)
START = jnp.array([1.0, -1.0])


def linear(params, x):
    return x @ params


def sample(seed, n=200):
    """Positives of two kinds: a line that finds one kind at a low FPR cannot fit the other."""
    rng = np.random.default_rng(seed)
    labels = rng.random(n) < 0.3
    easy = labels & (rng.random(n) < 0.5)
    x = rng.normal(size=(n, 2)) * [1, 2]
    x[easy, 0] += 3
    x[labels & ~easy, 1] -= 2
    return x.astype(np.float32), labels


TRAIN, HELD = sample(0), sample(1)


def test_cross_entropy_by_hand_and_without_what_is_masked(x64):
    scores, labels = jnp.array([0.5, 0.2, jnp.nan]), jnp.array([1, 0, 1])
    where = jnp.array([True, True, False])
    cross_entropy = partial(jm.training.cross_entropy, labels=labels, where=where)
    value, gradient = jax.value_and_grad(cross_entropy)(scores)
    assert_allclose(value, (np.log1p(np.exp(-0.5)) + np.log1p(np.exp(0.2))) / 2, rtol=1e-14)
    share = 1 / (1 + np.exp([-0.5, -0.2]))
    assert_allclose(gradient, [*((share - [1, 0]) / 2), 0], rtol=1e-14)
    assert np.isfinite(jax.grad(lambda shift: cross_entropy(scores + shift))(0.0))
    assert_allclose(
        cross_entropy(scores.astype(jnp.float32), weights=np.full(3, 1e60)), value, 1e-6
    )
    of_limits = jax.value_and_grad(jm.training.cross_entropy)
    value, gradient = of_limits(jnp.array([np.inf, -np.inf, 0.0]), labels)
    assert_allclose(value, np.log(2) / 3, rtol=1e-14)
    assert_allclose(gradient, [0, 0, -1 / 6], rtol=1e-14)
    weighted = cross_entropy(scores, weights=jnp.array([3.0, 1.0, 1e300]))
    assert_allclose(weighted, (3 * np.log1p(np.exp(-0.5)) + np.log1p(np.exp(0.2))) / 4, rtol=1e-14)
    assert np.isnan(cross_entropy(scores, weights=jnp.array([0.0, 0.0, 1.0])))
    of_weights = jax.grad(lambda weights: cross_entropy(scores, weights=weights))
    near, exact = (of_weights(jnp.array([1.0, x, 1.0])) for x in (1e-12, 0.0))
    assert_allclose(exact, near, atol=1e-11)
    assert np.isfinite(cross_entropy(scores.at[1].set(np.inf), weights=jnp.array([1.0, 0, 1])))


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_cross_entropy_of_narrow_scores_is_that_of_the_same_in_float32(dtype, rng):
    scores, labels = jnp.asarray(rng.normal(size=100_000), dtype), rng.random(100_000) < 0.1
    expected = jm.training.cross_entropy(scores.astype(jnp.float32), labels)
    assert expected.dtype == jnp.float32
    for weights in (None, np.full(100_000, 3.0), np.full(100_000, 1e28)):
        found = jm.training.cross_entropy(scores, labels, weights=weights)
        assert_allclose(found, expected, rtol=1e-5)


def test_cross_entropy_refuses_what_losses_refuse():
    with pytest.raises(ValueError, match="must agree"):
        jm.training.cross_entropy(np.ones((4, 1)), [1, 0, 1, 0])
    with pytest.raises(ValueError, match="labels must be bool or 0 and 1"):
        jm.training.cross_entropy(np.ones(2), [1, -1])
    assert jm.training.cross_entropy([1, 2], [1, 0]) > 0  # whole numbers are scores


def fit(**options):
    given = {"loss": LOSS, "metric": METRIC, "steps": 20, "checkpoints": 4, **options}
    return jm.training.fit(linear, START, ADAM, TRAIN, HELD, **given)


def finetune(**options):
    given = {"loss": LOSS, "metric": METRIC, "steps": 20, "checkpoints": 4, **options}
    return jm.training.finetune(linear, START, ADAM, TRAIN, HELD, **given)


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
    found = finetune(loss=loss)
    assert found.taken == taken
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


X, Y = TRAIN
REFUSED = [
    ({"steps": 21}, ValueError, "write steps=24"),
    ({"steps": 0}, ValueError, "steps must be at least 1"),
    ({"batch": 8}, TypeError, "key is missing"),
    ({"batch": (8, 0), "key": KEY}, ValueError, "batch must be at least 1"),
    ({"batch": 2.5, "key": KEY}, TypeError, "batch must be an int"),
    ({"batch": [8, 8], "key": KEY}, TypeError, r"a tuple of two, as \(64, 64\)"),
    ({"train": X}, TypeError, "train must be .features, labels."),
    ({"train": (X, Y, {"weight": Y})}, TypeError, "keys among weights, where"),
    ({"train": (X, Y[:-1])}, ValueError, r"scores \(200,\) and labels \(199,\)"),
    ({"train": (X, 2 * Y)}, ValueError, "labels"),
    ({"train": (X, Y * 0), "batch": (1, 1), "key": KEY}, ValueError, "only one"),
    (
        {"train": (X, Y, {"where": Y * 0 == 1}), "batch": 8, "key": KEY},
        ValueError,
        "where= leaves out all",
    ),
    ({"apply": lambda p, x: x}, ValueError, "must be scores .n."),
    ({"params": np.array([1, 2])}, TypeError, "split the model"),
    ({"validation": (X, Y * 0)}, ValueError, "the metric of the start is NaN"),
]


@pytest.mark.parametrize(("change", "error", "match"), REFUSED)
def test_bad_input_is_refused_before_the_first_step(change, error, match):
    def loss(*args, **options):
        raise AssertionError("a step was taken")

    given = {"apply": linear, "params": START, "optimizer": SGD, "train": TRAIN}
    given |= {"validation": HELD, "loss": loss, "metric": METRIC, "steps": 4, "checkpoints": 4}
    with pytest.raises(error, match=match):
        jm.training.fit(**given | change)


def test_a_metric_that_is_resampled_needs_a_key_before_the_first_step():
    def loss(*args, **options):
        raise AssertionError("a step was taken")

    with pytest.raises(TypeError, match="key"):
        finetune(loss=loss, metric=jm.table_metric(lambda table: table.thresholds[..., 0]))


def test_early_stopping():
    """The best moves by more than the error of the difference alone, and then patience counts."""
    y = HELD[1]
    noise = np.random.default_rng(2).normal(size=(6, len(y)))
    strength = [0, 1, 1.03, 1, 0.5, 4]
    epochs = noise[0] + np.outer(strength, y) + 0.3 * noise
    state, seen = None, []
    for scores in epochs:
        state = jm.training.early_stopping(state, jm.roc_auc, scores, y, patience=2)
        seen.append((state.best, state.last, state.stop))
    assert seen[:5] == [(0, 0, False), (1, 1, False), (1, 2, False), (1, 3, True), (1, 4, True)]
    assert seen[5] == (5, 5, False)
    found = jm.compare(jm.roc_auc, epochs[[2, 1]], y)
    assert found.difference[0, 1] <= found.standard_error[0, 1]
    assert_allclose(state.scores, epochs[5], rtol=1e-6)


def test_early_stopping_of_clusters():
    """The error is that of clusters; a decision cannot be traced."""
    y = np.repeat(HELD[1], 8)
    ids = np.repeat(np.arange(len(HELD[1])), 8)
    noise = np.random.default_rng(2).normal(size=(2, len(HELD[1])))
    first, second = np.repeat(noise[0] + np.outer([0, 0.02], HELD[1]) + 0.3 * noise, 8, axis=1)
    states = []
    for clusters in (None, ids):
        state = jm.training.early_stopping(None, jm.roc_auc, first, y, clusters=clusters)
        states.append(
            jm.training.early_stopping(state, jm.roc_auc, second, y, clusters=clusters).best
        )
    difference = jm.compare(jm.roc_auc, np.stack([second, first]), y)
    of_clusters = jm.compare(jm.roc_auc, np.stack([second, first]), y, clusters=ids)
    gain = float(difference.difference[0, 1])
    expected = [gain > float(x.standard_error[0, 1]) for x in (difference, of_clusters)]
    assert states == expected == [1, 0]
    for before in (None, state):
        decide = partial(jm.training.early_stopping, before, jm.roc_auc, labels=y)
        with pytest.raises(TypeError, match="call it outside jit"):
            jax.jit(lambda s, decide=decide: decide(scores=s).best)(second)


def test_early_stopping_of_nan():
    x, y = HELD
    state = jm.training.early_stopping(None, jm.roc_auc, np.full(len(y), np.nan), y)
    with pytest.warns(UserWarning, match="undefined"):
        state = jm.training.early_stopping(state, jm.roc_auc, x[:, 0], y)
    assert state.best == 1
    with pytest.warns(UserWarning, match="undefined"):
        state = jm.training.early_stopping(state, jm.roc_auc, np.full(len(y), np.nan), y)
    assert (state.best, state.last) == (1, 2)


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"patience": 0}, ValueError, "patience"),
        ({"state": (1, 2)}, TypeError, "state must be None or a Stopping"),
        ({"scores": X[:, :1]}, ValueError, r"scores must be \[n\]"),
        ({"labels": Y[:3]}, ValueError, "labels"),
    ],
)
def test_early_stopping_refuses(change, error, match):
    given = {"state": None, "metric": jm.roc_auc, "scores": X[:, 0], "labels": Y}
    with pytest.raises(error, match=match):
        jm.training.early_stopping(**given | change)


def test_a_loss_whose_state_is_not_seen_says_what_to_pass():
    apply = jm.losses.kl_partial_auc.apply
    for loss in (jax.jit(apply), lambda *given: apply(*given)):
        with pytest.raises(TypeError, match=r"fit calls loss\(scores, labels\).*_auc.apply itself"):
            fit(loss=loss)
    with pytest.raises(TypeError, match=r"'weights': fit calls loss\(scores, labels, weights=\)"):
        jm.training.fit(
            linear,
            START,
            SGD,
            (X, Y, {"weights": np.ones(len(Y))}),
            HELD,
            loss=lambda scores, labels: scores.mean(),
            metric=METRIC,
            steps=20,
        )


def test_features_that_are_nan_are_named():
    given = {"params": START, "validation": HELD, "loss": LOSS, "metric": METRIC}
    given |= {"steps": 20, "checkpoints": 4}
    broken = np.array(X)
    broken[3, 0] = np.nan
    with pytest.raises(ValueError, match="scores of train are NaN at the start"):
        jm.training.fit(linear, train=(broken, Y), optimizer=ADAM, **given)
    with pytest.raises(TypeError, match=r"optimizer must be one of optax, got .*write optax"):
        jm.training.fit(linear, train=TRAIN, optimizer=optax.adam, **given)


def test_fit_refuses_a_loss_of_each_item_and_to_be_traced():
    with pytest.raises(
        ValueError, match=r"loss must return one number, got \[200\]: write its mean"
    ):
        fit(loss=lambda scores, labels: (scores - labels) ** 2)
    for other in (lambda scores, labels: (LOSS(scores, labels), 1), lambda scores, labels: None):
        with pytest.raises(ValueError, match=r"return one number, got (tuple|NoneType)"):
            fit(loss=other)
    with pytest.raises(TypeError, match=r"fit .* cannot be traced: call it outside of jit"):
        jax.jit(lambda x: fit().params + x)(1.0)
