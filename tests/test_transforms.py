"""jit, vmap, grad, x64 on and off: the same values, and one compilation a shape."""

import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import in_turn, marked
from registry import BY_NAME, CURVES, EVERY_METRIC, FIRST, sample

import jaxmetrics as jm
from jaxmetrics._base.host import LONG
from jaxmetrics._roc.table_values import _evaluate


def close(a, b, rtol=1e-6):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=rtol, atol=1e-7)


WAYS = {
    "jit": jax.jit,
    "jit of vmap": lambda metric: jax.jit(jax.vmap(metric)),
    "vmap of jit": lambda metric: jax.vmap(jax.jit(metric)),
    "scan": lambda metric: lambda *rows: jax.lax.scan(lambda c, x: (c, metric(*x)), 0, rows)[1],
}


@pytest.mark.parametrize(
    ("name", "way"),
    [
        *in_turn(FIRST, WAYS),
        *(marked(name, way, fast=False) for name in BY_NAME if name not in FIRST for way in WAYS),
    ],
)
def test_jit_and_vmap(name, way, rng):
    """As NumPy computes it, of arrays that are not JAX's."""
    given = sample(rng, batch=(3,))

    def metric(scores, labels, weights):
        return BY_NAME[name].metric(scores, labels, weights=weights)

    expected = metric(*given)
    assert expected.dtype == jnp.float32
    close(WAYS[way](metric)(*map(jnp.asarray, given)), expected)


@EVERY_METRIC
def test_x64_mode(entry, rng):
    scores, labels, weights = sample(rng)
    single = entry.metric(scores, labels, weights=weights)
    with jax.enable_x64(True):
        double = entry.metric(scores, labels, weights=weights)
    assert (single.dtype, double.dtype) == (jnp.float32, jnp.float64)
    close(single, double)


@EVERY_METRIC
def test_strict_promotion_of_the_callers(entry, rng):
    scores, labels, weights = sample(rng, batch=(2,))
    expected = entry.metric(scores, labels[0], weights=weights[0])
    scores, labels, weights = map(jnp.asarray, (scores, labels, weights))
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        close(entry.metric(scores, labels[0], weights=weights[0]), expected)


@pytest.mark.parametrize("name", ["roc_auc", pytest.param("partial_auc", marks=pytest.mark.slow)])
def test_gradients_under_transforms(name, rng):
    metric = BY_NAME[name].metric
    scores, labels, weights = map(jnp.asarray, sample(rng, batch=(3,)))

    def value(weights, scores, labels):
        return jnp.sum(metric(scores, labels, weights=weights))

    gradient = jax.jit(jax.grad(value))
    expected = jnp.stack([gradient(*row) for row in zip(weights, scores, labels, strict=True)])
    close(jax.grad(value)(weights, scores, labels), expected)
    close(jax.vmap(gradient)(weights, scores, labels), expected)
    close(jax.jit(jax.grad(jax.checkpoint(value)))(weights, scores, labels), expected)
    with jax.enable_x64(True):
        close(gradient(weights[0], scores[0], labels[0]), expected[0], rtol=1e-5)


def test_gradient_with_respect_to_a_table(rng):
    scores, labels, weights = sample(rng)
    table = jm.score_table(scores, labels, weights=weights)
    gradient = jax.grad(lambda p: jm.roc_auc(table._replace(positives=p)))(table.positives)
    assert np.isfinite(gradient).all()
    np.testing.assert_allclose(gradient @ table.positives, 0, atol=1e-5)


def test_gradient_with_respect_to_scores_is_zero(rng):
    scores, labels, _ = map(jnp.asarray, sample(rng))
    assert not np.any(jax.grad(lambda s: jm.roc_auc(s, labels))(scores))


@pytest.mark.parametrize("name", ["roc_curve", "cost_curve"])
def test_curves_under_transforms(name, rng):
    scores, labels, _ = map(jnp.asarray, sample(rng, batch=(3,)))
    expected = CURVES[name](scores, labels)
    close(jax.jit(jax.vmap(CURVES[name]))(scores, labels), expected)
    rows = [CURVES[name](s, y) for s, y in zip(scores, labels, strict=True)]
    close(jax.tree.map(lambda *x: jnp.stack(x), *rows), expected)


def test_one_compilation_a_shape(rng):
    """Values of options, fresh partials and fresh data do not compile anew; shapes do."""
    jax.clear_caches()
    scores, labels, _ = sample(rng)
    metric = jm.table_metric(jm.precision_at_recall.record.function)
    start = _evaluate._cache_size()
    for limit in (0.1, 0.2, 0.3):
        metric(scores, labels, min_recall=np.array(limit))
        partial(metric, min_recall=np.array(limit))(rng.permutation(scores), labels)
    assert _evaluate._cache_size() == start + 1
    metric(scores[:50], labels[:50], min_recall=np.array(0.1))
    assert _evaluate._cache_size() == start + 2
    for limits in ([0.1, 0.2], [0.3, 0.4]):
        metric(scores, labels, min_recall=np.array(limits))
    assert _evaluate._cache_size() == start + 3
    for _ in range(3):
        jm.one_vs_rest(partial(metric, min_recall=np.array(0.1)))(
            np.eye(3)[[0, 1, 2, 2]], [0, 1, 2, 1]
        )
    assert _evaluate._cache_size() == start + 4
    jm.precision_at_recall(scores, labels, min_recall=0.3)  # by NumPy
    jm.roc_curve(scores, labels)
    assert _evaluate._cache_size() == start + 4


def test_traces_of_a_users_metric(rng):
    traces = []

    @jm.table_metric
    def count(table):
        traces.append(1)
        return jnp.sum(table.positives)

    scores, labels, _ = sample(rng)
    for _ in range(4):
        count(rng.permutation(scores), labels)
    assert len(traces) == 1


def test_operations_that_jax_expands_when_it_lowers(rng):
    """A user's metric may use any, argmax and betainc among them, under any transformation."""

    @jm.table_metric
    def metric(table):
        tps = jnp.cumsum(table.positives)
        best = table.thresholds[jnp.argmax(tps - jnp.cumsum(table.negatives))]
        return best + jax.scipy.special.betainc(1.0, 2.0, tps[0] / tps[-1])

    scores, labels, _ = map(jnp.asarray, sample(rng, batch=(3,)))
    expected = metric(scores, labels)
    close(jax.jit(metric)(scores, labels), expected)
    close(jax.vmap(jax.jit(metric))(scores, labels), expected)


def test_undefined_is_nan_under_jit():
    scores = jnp.array([[0.1, 0.2, jnp.nan], [0.1, 0.2, 0.3]])
    metric = jax.jit(lambda labels: jm.roc_auc(scores, labels))
    assert np.isnan(metric(jnp.array([0, 1, 1]))).tolist() == [True, False]
    assert np.isnan(metric(jnp.array([1, 1, 1]))).all()


def test_sharded_inputs_give_the_same(rng):
    devices = jax.local_device_count()
    mesh = jax.make_mesh((devices,), ("models",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec("models")
    scores, labels, _ = sample(rng, batch=(2 * devices,))
    expected = jm.roc_auc(scores, labels)
    scores, labels = map(jnp.asarray, (scores, labels))
    placed = jax.device_put((scores, labels), jax.sharding.NamedSharding(mesh, spec))
    close(jax.jit(jm.roc_auc)(*placed), expected)
    split = jax.shard_map(jm.roc_auc, mesh=mesh, in_specs=(spec, spec), out_specs=spec)
    close(split(scores, labels), expected)
    close(jax.jit(split)(*placed), expected)


@pytest.mark.parametrize(
    "metric",
    [
        jm.average_precision,
        partial(jm.recall_at_fpr, max_fpr=0.1),
        partial(jm.standard_error, jm.roc_auc),
        jm.score_table,
        jm.losses.pairwise_auc_loss,
    ],
    ids=["value", "selection", "error", "table", "loss"],
)
def test_labels_of_a_closure_are_not_known_to_the_compiler(metric, rng):
    """XLA would count a million of them for seconds, as it compiles."""
    labels = rng.random(LONG) < 0.3
    scores = rng.normal(size=LONG).astype(np.float32)
    lowered = jax.jit(lambda x: metric(x, labels)).lower(scores)
    assert re.search(r"optimization_barrier .*tensor<8192xi1>", lowered.as_text())
    close(lowered.compile()(scores), metric(scores, labels), rtol=1e-5)


def test_a_program_for_several_platforms_in_x64_mode(x64, rng):
    scores, labels, _ = map(jnp.asarray, sample(rng))
    exported = jax.export.export(jax.jit(jm.roc_auc), platforms=["cpu", "cuda"])(scores, labels)
    close(exported.call(scores, labels), jm.roc_auc(scores, labels), rtol=1e-15)
