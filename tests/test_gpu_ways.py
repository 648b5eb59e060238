"""The ways of a GPU, taken on the CPU: they give what those of the CPU give."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmetrics as jm
from jaxmetrics._base import host, numerics, sorting, varying
from jaxmetrics._roc import in_order, selection
from jaxmetrics.inference._bootstrap import draws, finish, scans

KEY = jax.random.key(3)
N = 450


def both_ways(monkeypatch, function):
    """The results of `function`, compiled anew, as on a CPU and as on a GPU."""
    jax.clear_caches()
    with jax.enable_x64(True):
        first = jax.tree.map(np.asarray, function())
        jax.clear_caches()
        for module in (draws, finish, scans, in_order, varying):
            monkeypatch.setattr(module, "on_gpu", lambda: True)
        monkeypatch.setattr(selection, "on_cpu", lambda: False)
        monkeypatch.setattr(draws, "_DRAWN_AT_ONCE", (1 << 15, 1 << 15))  # several steps
        second = jax.tree.map(np.asarray, function())
    jax.clear_caches()
    return first, second


def data(decimals, n=N):
    """Scores of two models, with ties unless there are many decimals, labels and weights."""
    rng = np.random.default_rng(7)
    labels = rng.random(n) < 0.3
    scores = (rng.normal(size=(2, n)) + labels).round(decimals).astype("float32")
    scores[:, np.flatnonzero(labels)[0]] = -9  # the last row has a positive
    return scores, labels, rng.random(n) + 0.1


@pytest.mark.parametrize("decimals", [1, 8])
@pytest.mark.parametrize(
    "metric",
    [
        jm.roc_auc,
        partial(jm.partial_auc, max_fpr=0.5, min_fpr=0.1, min_tpr=0.3),
        partial(jm.partial_auc, max_fpr=np.array([0.05, 0.4])),
        jm.average_precision,
        partial(jm.recall_at_fpr, max_fpr=0.05),
        partial(jm.threshold_at_fpr, max_fpr=0.05),
    ],
    ids=["auc", "two-way", "areas", "precision", "recall", "threshold"],
)
def test_metrics(metric, decimals, monkeypatch):
    scores, labels, weights = data(decimals)

    def values():
        compiled = jax.jit(metric)
        found = [compiled(scores, labels), compiled(scores[0], labels, where=weights < 0.8)]
        # Of one word of 32 items, of a part of it, and of no item.
        return [*found, *(compiled(scores[0, :n], labels[:n]) for n in (32, 7, 0))]

    first, second = both_ways(monkeypatch, values)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_allclose(a, b, rtol=0 if metric is jm.roc_auc else 1e-14)


def test_derivative_in_a_limit(monkeypatch):
    scores, labels, _ = data(1)

    def slope():
        return jax.jit(jax.grad(lambda x: jm.partial_auc(scores[0], labels, max_fpr=x)))(0.3)

    first, second = both_ways(monkeypatch, slope)
    assert first == pytest.approx(second, rel=1e-12)


@pytest.mark.parametrize(
    ("metric", "options"),
    [
        (jm.roc_auc, {}),
        (jm.roc_auc, {"resampling": "bayesian"}),
        (partial(jm.partial_auc, max_fpr=np.array([0.1, 0.3])), {"clusters": np.arange(N) // 3}),
        (partial(jm.recall_at_fpr, max_fpr=0.1), {"amounts": np.arange(N) % 5 + 1.0}),
        (partial(jm.partial_auc, max_fpr=0.2), {"weights": data(1)[2], "resampling": "poisson"}),
        (jm.average_precision, {}),
        (partial(jm.min_cost_threshold, fp_cost=1.0, fn_cost=3.0), {}),
        (lambda table: jnp.sum(table.positives * jnp.arange(len(table.positives))), {}),
    ],
    ids=["auc", "bayesian", "clusters", "amounts", "weights", "precision", "cost", "table"],
)
@pytest.mark.parametrize("decimals", [1, 8])
def test_resamples(metric, options, decimals, monkeypatch):
    scores, labels, _ = data(decimals)

    def replicates():
        given = {"key": KEY, "n_resamples": 70, **options}
        return jax.tree.leaves(jm.bootstrap(metric, scores[0], labels, **given).replicates)

    first, second = both_ways(monkeypatch, replicates)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("decimals", [1, 8])
def test_the_best_point_of_weights(decimals, monkeypatch):
    """It is a point of an item that was drawn, and a rate of all is 1."""
    scores, labels, weights = data(decimals)
    labels = labels | (scores[0] < np.sort(scores[0])[20])  # so that the best flags all negatives

    def limits():
        given = {"weights": weights, "key": KEY, "n_resamples": 200}
        return jm.operating_point(scores[0], labels, fp_cost=1.0, fn_cost=1e3, **given)

    first, second = both_ways(monkeypatch, limits)
    assert first.fpr.high == 1
    for a, b in zip(*map(jax.tree.leaves, (first, second)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


@pytest.mark.parametrize("decimals", [1, 8])
def test_resamples_of_models(decimals, monkeypatch):
    scores, labels, _ = data(decimals)

    def found():
        given = {"key": KEY, "n_resamples": 70}
        swaps = jm.permutation_test(jm.roc_auc, *(scores, labels), **given)
        means = jm.bootstrap_mean(scores, **given)
        return swaps.p_value, means.replicates, jm.bootstrap(jm.roc_auc, scores, labels, **given)

    first, second = both_ways(monkeypatch, found)
    for a, b in zip(*map(jax.tree.leaves, (first, second)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize(("rows", "most"), [(4, 2), (2, 1 << 20), (3, (1 << 32) - 1)])
def test_several_long_rows_are_sorted_as_each(rows, most, monkeypatch, x64, rng):
    monkeypatch.setattr(sorting, "_LONG_ROW", 1)
    keys = jnp.asarray(rng.integers(0, 1 << 32, (rows, 1, 900), dtype=np.uint32))
    payload = jnp.asarray(rng.integers(0, most, keys.shape, dtype=np.uint32, endpoint=True))
    keys = keys.at[..., :300].set(7)
    for otherwise in (sorting._sort_by_both, sorting._sort_packed):
        found = sorting._of_any_batch(otherwise, most)(keys, payload)
        for a, b in zip(found, sorting._sort_by_both(keys, payload), strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_batch_of_vmap_is_sorted_as_one(monkeypatch, x64, rng):
    monkeypatch.setattr(sorting, "_LONG_ROW", 1)
    keys = jnp.asarray(rng.integers(0, 99, (3, 2, 70), dtype=np.uint32))
    payload = jnp.asarray(rng.integers(0, 3, (3, 1, 70), dtype=np.uint32))

    of_row = sorting._of_any_batch(sorting._sort_pairs, 2)
    both = jax.vmap(jax.vmap(of_row, (0, None)), (0, 0))
    expected = sorting._sort_by_both(*jnp.broadcast_arrays(keys, payload))
    for a, b in zip(both(keys, payload[:, 0]), expected, strict=True):
        np.testing.assert_array_equal(a, b)
    assert "sort[dimension=0" in str(jax.make_jaxpr(both)(keys, payload[:, 0]))


def test_derivatives_pass_the_sort_of_a_batch(monkeypatch):
    """That of `vmap` has no rule for them: the derivative in the scores is 0."""

    def default(*arrays, default, **others):
        return default(*arrays)

    jax.clear_caches()
    monkeypatch.setattr(sorting.lax, "platform_dependent", default)
    scores, labels, _ = data(1)
    found = jax.vmap(jax.grad(lambda x: jm.partial_auc(x, labels, max_fpr=0.3)))(scores)
    np.testing.assert_array_equal(found, 0)
    rates = jnp.array([0.1, 0.3])
    slope = jax.vmap(jax.grad(lambda x: jm.partial_auc(scores[0], labels, max_fpr=x)))(rates)
    assert np.all(np.asarray(slope) > 0)
    jax.clear_caches()


def test_the_transpose_of_a_running_sum_is_one(monkeypatch, x64):
    """XLA for GPUs takes that of the last entry alone for a window of all items at each."""
    monkeypatch.setattr(numerics, "on_cpu", lambda: False)
    weights = jnp.arange(5.0)
    slope = str(jax.make_jaxpr(jax.grad(lambda x: numerics.cumulated(x)[-1]))(weights))
    assert slope.index("= pad") < slope.rindex("= optimization_barrier") < slope.rindex("reverse=T")


@pytest.mark.parametrize("n", [3, 8, 19])
def test_steps_of_a_few_numbers(n, monkeypatch, x64):
    monkeypatch.setattr(varying, "on_gpu", lambda: True)
    found = varying.repeated(n, lambda x: x * 1.5 + 1, jnp.float64(1))
    assert found == 3 * 1.5**n - 2


def test_limits(monkeypatch):
    scores, labels, _ = data(1)

    def interval():
        return jax.tree.leaves(jax.jit(partial(jm.confidence_interval, jm.roc_auc))(scores, labels))

    first, second = both_ways(monkeypatch, interval)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_a_few_numbers_come_from_any_device(monkeypatch):
    monkeypatch.setattr(host, "on_cpu", lambda: False)
    tree = {"a": jax.device_put(np.float32(2), jax.devices()[1]), "b": np.arange(2), "c": 1}
    found = host.near_tree(tree)
    assert isinstance(found["a"], np.ndarray)
    assert found["b"].dtype == np.float64
    with pytest.raises(jax.errors.TracerArrayConversionError):
        jax.jit(lambda x: np.asarray(host.near_tree(x)))(1.0)
