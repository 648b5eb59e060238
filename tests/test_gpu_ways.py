"""The ways of a GPU, taken on the CPU: they give what those of the CPU give."""

import inspect
import re
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import marked

import jaxmetrics as jm
from jaxmetrics._base import cumulative, host, narrow_keys, sorting, varying
from jaxmetrics._base.types import Items
from jaxmetrics._roc import in_order, reported, selection
from jaxmetrics._roc.operating import chosen_point
from jaxmetrics.inference._bootstrap import draws, finish, run, scans
from jaxmetrics.inference._bootstrap.bootstrap import replicates_of
from jaxmetrics.inference._bootstrap.request import Request
from jaxmetrics.inference._influence.sums_over_positives import sums_below

KEY = jax.random.key(3)
N = 450


def data(decimals):
    """Scores of two models, with ties unless there are many decimals, labels and weights."""
    rng = np.random.default_rng(7)
    labels = rng.random(N) < 0.3
    scores = (rng.normal(size=(2, N)) + labels).round(decimals).astype("float32")
    scores[:, np.flatnonzero(labels)[0]] = -9  # the last row has a positive
    return scores, labels, rng.random(N) + 0.1


SCORES, LABELS, WEIGHTS = data(1)
METRICS = {
    "auc": jm.roc_auc,
    "two-way": partial(jm.partial_auc, max_fpr=0.5, min_fpr=0.1, min_tpr=0.3),
    "areas": partial(jm.partial_auc, max_fpr=np.array([0.05, 0.4])),
    "precision": jm.average_precision,
    "recall": partial(jm.recall_at_fpr, max_fpr=0.05),
    "threshold": partial(jm.threshold_at_fpr, max_fpr=0.05),
}
RESAMPLES = {
    "auc": (jm.roc_auc, {}),
    "bayesian": (jm.roc_auc, {"resampling": "bayesian"}),
    "clusters": (
        partial(jm.partial_auc, max_fpr=np.array([0.1, 0.3])),
        {"clusters": np.arange(N) // 3},
    ),
    "amounts": (partial(jm.recall_at_fpr, max_fpr=0.1), {"amounts": np.arange(N) % 5 + 1.0}),
    "weights": (
        partial(jm.partial_auc, max_fpr=0.2),
        {"weights": WEIGHTS, "resampling": "poisson"},
    ),
    "precision": (jm.average_precision, {}),
    "cost": (partial(jm.min_cost_threshold, fp_cost=1.0, fn_cost=3.0), {}),
    "table": (lambda table: jnp.sum(table.positives * jnp.arange(len(table.positives))), {}),
}


def metric_values(name):
    """Of batches, with a mask, with and without ties; of one word of 32 items, and of a part."""
    compiled = jax.jit(METRICS[name])
    for scores in (SCORES, data(8)[0]):
        yield compiled(scores, LABELS)
        yield compiled(scores[0], LABELS, where=WEIGHTS < 0.8)
    # A tie at the top of more than two words.
    yield compiled(np.minimum(SCORES[0], -0.5), LABELS, where=WEIGHTS < 0.8)
    for n in {"auc": (7,), "precision": (32, 0)}.get(name, ()):
        yield compiled(SCORES[0, :n], LABELS[:n])


def derivative():
    return jax.jit(jax.grad(lambda x: jm.partial_auc(SCORES[0], LABELS, max_fpr=x)))(0.3)


def replicates(name):
    metric, options = RESAMPLES[name]
    for scores in (SCORES, data(8)[0]) if name in ("auc", "cost") else (SCORES,):
        given = {"key": KEY, "n_resamples": 70, **options}
        yield jm.bootstrap(metric, scores[0], LABELS, **given).replicates


def of_models():
    given = {"key": KEY, "n_resamples": 70}
    swaps = jm.permutation_test(jm.roc_auc, SCORES, LABELS, **given)
    means = jm.bootstrap_mean(SCORES, **given)
    return swaps.p_value, means.replicates, jm.bootstrap(jm.roc_auc, SCORES, LABELS, **given)


def best_points():
    """Of weights, where the best of many resamples flags all negatives."""
    given = {"weights": WEIGHTS, "key": KEY, "n_resamples": 200}
    for scores in (SCORES[0], data(8)[0][0]):
        labels = LABELS | (scores < np.sort(scores)[20])
        yield jm.operating_point(scores, labels, fp_cost=1.0, fn_cost=1e3, **given)


def precise_points():
    """Of weights, where all positives are above the negatives: none of these is flagged."""
    labels = np.arange(N) < N // 3
    items = Items(-np.arange(float(N))[None], labels, WEIGHTS)
    chosen = partial(chosen_point, min_precision=0.5)
    return replicates_of(chosen, items, Request(KEY, 200)).values.fp


def limits():
    return jax.jit(partial(jm.confidence_interval, jm.roc_auc))(SCORES, LABELS)


CASES = {
    **{f"values of {name}": partial(metric_values, name) for name in METRICS},
    **{f"replicates of {name}": partial(replicates, name) for name in RESAMPLES},
    "derivative": derivative,
    "models": of_models,
    "best points": best_points,
    "precise points": precise_points,
    "limits": limits,
}


# Each has a sort, a scan or draws that others in the fast run have as well.
SLOW = {
    *(f"values of {name}" for name in ("areas", "threshold", "recall")),
    *(f"replicates of {name}" for name in ("amounts", "precision", "table", "bayesian", "cost")),
    *("models", "limits"),
}


def results(names):
    def of(name):
        found = CASES[name]()
        found = list(found) if inspect.isgenerator(found) else found
        return [np.asarray(x) for x in jax.tree.leaves(found)]

    with jax.enable_x64(True):
        return {name: of(name) for name in names}


@cache
def ways(slow):
    """The results of these cases as on a CPU, and compiled anew as on a GPU."""
    names = [name for name in CASES if (name in SLOW) == slow]
    first = results(names)
    jax.clear_caches()
    with pytest.MonkeyPatch.context() as patch:
        for module in (draws, finish, scans, run, in_order, varying):
            patch.setattr(module, "on_gpu", lambda: True)
        for module in (scans, selection, varying):
            patch.setattr(module, "on_cpu", lambda: False)
        patch.setattr(draws, "_DRAWN_AT_ONCE", (1 << 15, 1 << 15))  # several steps
        patch.setattr(narrow_keys, "_MANY", 1)
        second = results(names)
    jax.clear_caches()
    return first, second


@pytest.mark.parametrize("name", [marked(name, fast=name not in SLOW) for name in CASES])
def test_the_same_both_ways(name):
    first, second = (x[name] for x in ways(name in SLOW))
    of_values = name.startswith("values")
    relative, absolute = (1e-14, 0) if of_values else (1e-12, 1e-14)
    for a, b in zip(first, second, strict=True):
        if name == "values of auc":
            np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(a, b, rtol=relative, atol=absolute)


def test_a_rate_of_all_is_1():
    """Leaves of a result, of which the upper limit of the false positive rate is one."""
    for found in ways(False):
        assert any(np.all(x == 1) for x in found["best points"])


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


KEYS = {
    "both signs": [-3.5, 2.0, -0.25, 1e-3, 0.0, -0.0, 2.0],
    "one sign": [0.5, 0.25, 0.75],
    "negative": [-1.0, -2.0],
    "zeros": [0.0, -0.0],
    "the ends": [np.inf, -np.inf, 1e-45, -1e-45],
    "no zero": [1.0, -1.0],
}


@pytest.mark.parametrize("name", KEYS)
def test_keys_without_gaps_tie_and_ascend_as_before(name, x64):
    scores = np.array(KEYS[name], np.float32)
    keys = jnp.asarray(sorting.descending_keys(scores))
    span = narrow_keys.span_of(keys)
    narrow, n_keys = narrow_keys.narrowed(keys, span), span.n_keys
    _, expected = np.unique(-scores, return_inverse=True)
    np.testing.assert_array_equal(np.unique(narrow, return_inverse=True)[1], expected)
    assert narrow.max() < n_keys
    if name == "both signs":
        steps = [x.astype(np.float32).view(np.int32) for x in (np.array([3.5, 0.25]), scores[1::2])]
        assert n_keys == (steps[0][0] - steps[0][1] + 1) + (steps[1][0] - steps[1][1] + 1) + 1


@pytest.mark.parametrize("scale", [1.0, 1e10])
def test_words_of_keys_and_payload_or_pairs(scale, monkeypatch, x64, rng):
    """Keys of numbers from 1e-10 to 1e10 need a bit more than is left: pairs give the same."""
    monkeypatch.setattr(narrow_keys, "_MANY", 1)
    scores = rng.normal(size=(2, 500)).round(1).astype(np.float32) * [[scale], [1 / scale]]
    keys = jnp.asarray(sorting.descending_keys(scores.astype(np.float32).ravel()))
    payload = jnp.asarray(rng.integers(0, 3, 1000).astype(np.uint32))

    def function(keys, payload):
        return jnp.append(True, keys[1:] != keys[:-1]), jnp.cumsum(payload**2)

    def of(keys):
        return narrow_keys.of_sorted(function, lambda *x: x, (keys, payload), most=2)

    begins, sums = jax.jit(of)(keys)
    in_order = np.sort(np.asarray(keys))
    expected = np.append(True, in_order[1:] != in_order[:-1])
    np.testing.assert_array_equal(begins, expected)
    ends = np.append(expected[1:], True)  # where the order within ties does not matter
    by_key = np.asarray(payload)[np.argsort(keys, kind="stable")]
    np.testing.assert_array_equal(sums[ends], np.cumsum(by_key**2)[ends])
    n_bits = int(narrow_keys.span_of(keys).n_keys - 1).bit_length()
    assert n_bits == 31 if scale > 1 else n_bits <= 30
    for a, b in zip(jax.vmap(of)(jnp.stack([keys, keys])), (begins, sums), strict=True):
        np.testing.assert_array_equal(a[:, ends], np.stack([b[ends]] * 2))


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
    monkeypatch.setattr(in_order, "on_gpu", lambda: True)
    monkeypatch.setattr(narrow_keys, "_MANY", 1)
    found = jax.vmap(jax.grad(lambda x: jm.partial_auc(x, LABELS, max_fpr=0.3)))(SCORES)
    np.testing.assert_array_equal(found, 0)
    rates = jnp.array([0.1, 0.3])
    slope = jax.vmap(jax.grad(lambda x: jm.partial_auc(SCORES[0], LABELS, max_fpr=x)))(rates)
    assert np.all(np.asarray(slope) > 0)
    jax.clear_caches()


def test_the_transpose_of_a_running_sum_is_one(monkeypatch, x64):
    """XLA for GPUs takes that of the last entry alone for a window of all items at each."""
    monkeypatch.setattr(cumulative, "on_gpu", lambda: True)
    weights = jnp.arange(5.0)
    slope = str(jax.make_jaxpr(jax.grad(lambda x: cumulative.cumulated(x)[-1]))(weights))
    assert slope.index("= pad") < slope.rindex("= optimization_barrier") < slope.rindex("reverse=T")


def test_a_running_sum_of_an_error_is_of_no_padded_array(monkeypatch, x64):
    """With jax 0.12, XLA for GPUs takes that for a window of all items at each, too."""
    monkeypatch.setattr(
        cumulative.lax, "platform_dependent", lambda *arrays, default, **others: default(*arrays)
    )
    slopes = jnp.arange(5.0)
    program = str(jax.make_jaxpr(sums_below)(slopes % 2 == 0, slopes, slopes))
    assert program.count("cumsum[") == 1
    padded = re.compile(r"(\w+):f64\[2,6\] = (?:concatenate|pad)")
    assert [x for x in padded.finditer(program) if x.start() < program.index("cumsum[")] == []
    assert padded.search(program)


@pytest.mark.parametrize("n", [3, 8, 19])
def test_steps_of_a_few_numbers(n, monkeypatch, x64):
    monkeypatch.setattr(varying, "on_gpu", lambda: True)
    found = varying.repeated(n, lambda x: x * 1.5 + 1, jnp.float64(1))
    assert found == 3 * 1.5**n - 2


def test_a_few_numbers_come_from_any_device(monkeypatch):
    monkeypatch.setattr(host, "on_cpu", lambda: False)
    tree = {"a": jax.device_put(np.float32(2), jax.devices()[1]), "b": np.arange(2), "c": 1}
    found = host.near_tree(tree)
    assert isinstance(found["a"], np.ndarray)
    assert found["b"].dtype == np.float64
    with pytest.raises(jax.errors.TracerArrayConversionError):
        jax.jit(lambda x: np.asarray(host.near_tree(x)))(1.0)


@pytest.mark.parametrize(
    "shape",
    [(0,), (2, 255), *(marked(x, fast=False) for x in ((1,), (2, 3, 513), (70_000,)))],
)
def test_running_sums_and_bounds_of_a_tpu(shape, monkeypatch, x64, rng):
    """In blocks, as XLA's own scans compile slowly."""
    monkeypatch.setattr(cumulative, "on_tpu", lambda: True)
    x = rng.normal(size=shape)
    for found, expected in (
        (cumulative.cumulated, np.cumsum),
        (cumulative.running_maximum, np.maximum.accumulate),
        (cumulative.running_minimum, np.minimum.accumulate),
    ):
        np.testing.assert_allclose(found(jnp.asarray(x)), expected(x, axis=-1), atol=1e-9)
    behind = cumulative.cumulated(jnp.asarray(x), reverse=True)
    np.testing.assert_allclose(np.flip(behind, -1), np.cumsum(np.flip(x, -1), -1), atol=1e-9)
    np.testing.assert_allclose(cumulative.cumulated(x, reverse=True), behind, atol=1e-9)
    counts = rng.integers(0, 1000, shape).astype(np.int32)
    for reverse, turned in ((False, np.asarray), (True, lambda x: np.flip(x, -1))):
        found = cumulative._scanned(jnp.maximum, jnp.asarray(counts), 0, reverse=reverse)
        np.testing.assert_array_equal(turned(found), np.maximum.accumulate(turned(counts), axis=-1))
    some = np.maximum(x, 0)
    total = np.asarray(cumulative._in_tree(jnp.asarray(some)))
    np.testing.assert_allclose(total, np.cumsum(some, axis=-1), rtol=1e-12)
    assert (np.diff(total)[some[..., 1:] == 0] == 0).all()
    monkeypatch.undo()
    monkeypatch.setattr(cumulative, "on_gpu", lambda: True)  # which scans whole numbers
    for some in (x, np.where(x > 1.5, -np.nan, x), np.where(x < 0, -0.0, np.inf)):
        found = cumulative.running_maximum(jnp.asarray(some))
        np.testing.assert_array_equal(found, np.maximum.accumulate(some, axis=-1))
    monkeypatch.undo()
    monkeypatch.setattr(cumulative, "on_tpu", lambda: True)
    weights = rng.normal(size=shape)
    slope = jax.grad(lambda x: jnp.sum(cumulative.cumulated(x) * weights))(jnp.asarray(x))
    expected = np.flip(np.cumsum(np.flip(weights, -1), axis=-1), -1)
    np.testing.assert_allclose(slope, expected, atol=1e-9)


@pytest.mark.parametrize("of", [reported._nearest, reported.rounded_down])
def test_a_rounding_is_no_conversion_there_and_back(of, x64):
    """XLA for GPUs leaves such a pair out: a threshold would not flag the score that it is of."""
    program = jax.jit(lambda x: of(x, np.dtype("float32"))).lower(jnp.ones(3))
    down, up = (f"(tensor<3x{a}>) -> tensor<3x{b}>" for a, b in (("f64", "f32"), ("f32", "f64")))
    text = program.as_text()
    rounded = re.findall(rf"(%\w+) = stablehlo.convert %\w+ : {re.escape(down)}", text)
    assert rounded
    back = re.findall(rf"stablehlo.convert (%\w+) : {re.escape(up)}", text)
    assert not set(rounded) & set(back)
