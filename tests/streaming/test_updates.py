"""Updates in programs and of millions of rows, and what is refused."""

from functools import partial
from types import MappingProxyType

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from streams import BINS, FOUR, METRICS, UNIFORM, S, filled, sample

import jaxmetrics as jm
from jaxmetrics.streaming._state import _update

# Programs.


def test_in_jit_scan_and_a_batch(rng):
    scores, labels = sample(rng, 600, batch=(3,))
    expected = filled(UNIFORM, scores, labels, batch=(3,))

    @jax.jit
    def run(scores, labels):
        def step(state, batch):
            return S.update(state, *batch, bins=UNIFORM), None

        batches = scores.reshape(3, 6, 100).swapaxes(0, 1), labels.reshape(6, 100)
        state, _ = jax.lax.scan(step, S.init(UNIFORM, (3,)), batches)
        table = S.table(state, bins=UNIFORM)
        return state, jm.roc_auc(table), S.bounds(jm.roc_auc, state, bins=UNIFORM)

    state, value, (low, high) = run(scores, labels)
    assert_array_equal(state.digits, expected.digits)
    assert_allclose(value, jm.roc_auc(S.table(expected, bins=UNIFORM)), rtol=1e-6)
    assert (low <= value).all() & (value <= high).all()


def test_a_state_may_be_a_constant_of_a_program(rng):
    labels = rng.random(200) < 0.4
    state = filled(UNIFORM, (rng.random(200) + labels) / 2, labels)

    def recall(max_fpr):
        return S.bounds(partial(jm.recall_at_fpr, max_fpr=max_fpr), state, bins=UNIFORM)

    assert_allclose(jax.jit(recall)(0.2), recall(0.2), rtol=1e-6)


@pytest.mark.parametrize("n", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_stream_of_millions_of_rows(n):
    """Made on the fly, in a hundred batches; the memory is that of a tenth of them.

    And the bounds hold the exact AUC.
    """
    bins = BINS["float16"]

    def batch(key):
        chance, noise = jax.random.split(key)
        labels = jax.random.bernoulli(chance, 0.1, (n,))
        return jax.nn.sigmoid(jax.random.normal(noise, labels.shape) + labels - 2), labels

    @jax.jit
    def run(keys):
        def step(state, key):
            return S.update(state, *batch(key), bins=bins), None

        return jax.lax.scan(step, S.init(bins), keys)[0]

    keys = jax.random.split(jax.random.key(0), 100)
    state = run(keys)
    scores, labels = (np.asarray(x).ravel() for x in jax.lax.map(batch, keys))
    low, high = S.bounds(jm.roc_auc, state, bins=bins)
    assert S.n_items(state) == len(labels) == 100 * n
    assert low <= jm.roc_auc(scores, labels) <= high < low + 1e-3
    whole, tenth = (run.lower(x).compile().memory_analysis() for x in (keys, keys[:10]))
    assert whole.temp_size_in_bytes == tenth.temp_size_in_bytes < 20_000_000


def test_update_is_compiled_once_and_takes_the_memory_of_the_state(rng):
    scores, labels = sample(rng, 333)
    before = _update._cache_size()
    state = S.init(UNIFORM)
    for _ in range(3):
        old = state
        state = S.update(state, scores, labels, bins=S.uniform_bins(20))
    assert _update._cache_size() == before + 1
    assert old.digits.is_deleted()


def test_a_restored_state_goes_on(rng):
    scores, labels = sample(rng)
    state = filled(UNIFORM, scores[:100], labels[:100])
    restored = jax.tree.map(lambda x: jnp.asarray(np.array(x)), state)
    state = S.update(restored, scores[100:], labels[100:], bins=UNIFORM)
    assert_array_equal(state.digits, filled(UNIFORM, scores, labels).digits)


def test_items_without_weights_have_a_weight_of_1(rng):
    scores, labels = sample(rng)
    found = [
        S.update(S.init(UNIFORM, weighted=True), scores, labels, bins=UNIFORM, weights=given)
        for given in (None, np.ones(labels.shape[-1]))
    ]
    np.testing.assert_array_equal(*(x.digits for x in found))


# Bad input.


def test_states_of_other_bins_are_refused(rng, monkeypatch):
    scores, labels = sample(rng)
    other = S.uniform_bins(20, 0.0, 2.0)
    # An update does not wait for the one before, and looks at a state that is there.
    state = jax.block_until_ready(filled(UNIFORM, scores, labels))
    with pytest.raises(ValueError, match="the state has 20 bins, and bins has 5"):
        S.table(state, bins=S.edges(FOUR))
    with pytest.raises(ValueError, match="the state, or one merged into it, is of other bins"):
        S.update(state, scores, labels, bins=other)
    with pytest.raises(ValueError, match="states are of different bins"):
        S.merge(state, filled(other, scores, labels))
    mixed = jax.tree.map(jnp.add, state, filled(other, scores, labels))
    with pytest.raises(ValueError, match="or one merged into it, is of other bins"):
        S.bounds(jm.roc_auc, mixed, bins=UNIFORM)
    monkeypatch.setattr(S._state, "is_ready", lambda array: False)
    unseen = S.update(filled(UNIFORM, scores, labels), scores, labels, bins=other)
    for read in (S.table, partial(S.bounds, jm.roc_auc)):
        with pytest.raises(ValueError, match="or one merged into it, is of other bins"):
            read(unseen, bins=UNIFORM)
    with pytest.raises(ValueError, match=r"5 bins, batch .*, without weights and 20 bins"):
        S.merge(S.init(S.edges(FOUR)), state)
    with pytest.raises(ValueError, match=r"without weights and 20 bins, batch .*, with weights"):
        S.merge(state, S.init(UNIFORM, weighted=True))
    assert S.merge(state, S.init(UNIFORM)).digits.shape == (2, 24, 2)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("power", [16, 20, 32])
def test_other_bins_are_refused_of_numbers_with_many_factors_of_two(power, weighted):
    """The fingerprints of these bins agree in their 12 lowest bits."""
    bins, other = S.uniform_bins(100, -7.5, 2.5), S.uniform_bins(100, 0, 10)

    def many(bins):
        state = S.update(S.init(bins, weighted=weighted), [0.5, 0.7], [0, 1], bins=bins)
        for _ in range(power - 1):
            state = S.merge(state, state)
        return state

    states = many(bins), many(other)
    assert S.n_items(states[0]) == 2**power
    assert not np.isnan(jax.jit(lambda x: S.table(x, bins=bins))(states[0]).thresholds).all()
    assert np.isnan(jax.jit(lambda x: S.table(x, bins=other))(states[0]).thresholds).all()
    with pytest.raises(ValueError, match="is of other bins"):
        S.table(states[0], bins=other)
    with pytest.raises(ValueError, match="of different bins"):
        S.merge(*states)
    S.merge(states[0], S.init(bins, weighted=weighted))


def test_traced_states_of_other_bins_make_all_values_nan(rng):
    """One of a batch; and what is returned is refused."""
    scores, labels = sample(rng)
    other = S.uniform_bins(20, 0.0, 2.0)

    @jax.jit
    def read(plain, weighted):
        updated = S.update(plain, scores, labels, bins=UNIFORM)
        merged = weighted + jax.tree.map(lambda x: x[::-1], weighted)
        table, one = (S.table(x, bins=UNIFORM) for x in (weighted, S.State(merged.digits[0])))
        found = S.interval(jm.roc_auc, updated, bins=UNIFORM)
        numbers = found.estimate, found.low, found.high, found.standard_error
        return updated, table, (one, S.bounds(jm.roc_auc, updated, bins=UNIFORM), numbers)

    right, wrong = (filled(bins, scores, labels) for bins in (UNIFORM, other))
    ones = np.ones(300, np.float32)
    of_bins = [filled(bins, scores, labels, weights=ones).digits for bins in (UNIFORM, other)]
    for plain, second in ((right, 0), (wrong, 1)):
        found = read(plain, S.State(jnp.stack([of_bins[0], of_bins[second]])))
        updated, table, values = jax.tree.map(np.asarray, found)
        assert all(np.isnan(x).all() == second for x in jax.tree.leaves(values))
        assert_array_equal([np.isnan(x).all(axis=-1) for x in table], [[False, second]] * 3)
    with pytest.raises(ValueError, match="is of other bins"):
        S.table(updated, bins=UNIFORM)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: S.update(s, [0.1], [1], bins=UNIFORM, weights=[1.0]), "weighted=True"),
        (lambda s: S.update(s, [[0.1]], [1], bins=UNIFORM), r"batch_shape=\(1,\)"),
        (lambda s: S.update(s, [0.1], [-1], bins=UNIFORM), "labels must be bool or 0 and 1"),
        (lambda s: S.update(0, [0.1], [1], bins=UNIFORM), "state must be a State"),
        (lambda s: S.update(s._asdict(), [0.1], [1], bins=UNIFORM), r"State\(\*\*restored\)"),
        (lambda s: S.table(MappingProxyType(s._asdict()), bins=UNIFORM), r"State\(\*\*restored"),
        (lambda s: S.table(tuple(s), bins=UNIFORM), r"write State\(\*restored\)"),
        (lambda s: S.table(S.State([1]), bins=UNIFORM), r"State\(jnp.asarray\(digits, jnp"),
        (lambda s: S.table(s, bins=UNIFORM, ignore_nan=1), "ignore_nan must be True or False"),
        (lambda s: S.bounds(jm.min_cost_threshold, s, bins=UNIFORM), "got min_cost_threshold"),
        (lambda s: S.bounds(lambda table: 0, s, bins=UNIFORM), "bounds are known for roc_auc"),
        (
            lambda s: S.bounds(
                partial(jm.recall_at_fpr, max_fpr=0.1, method="quantile"), s, bins=UNIFORM
            ),
            "write 'step' or 'linear'",
        ),
        (lambda s: S.interval(METRICS["recall"], s, bins=UNIFORM), "key is missing"),
        (lambda s: S.interval(METRICS["threshold"], s, bins=UNIFORM), "key is missing"),
        (lambda s: S.interval(jm.min_cost_threshold, s, bins=UNIFORM), "bounds are known for"),
        (lambda s: S.bootstrap(jm.roc_auc, s, bins=UNIFORM, key=None), "key is missing"),
        (
            lambda s: jax.jit(
                lambda s: S.bootstrap(jm.roc_auc, s, bins=UNIFORM, key=jax.random.key(0))
            )(s),
            "resampled outside of jit, got a traced state",
        ),
        (
            lambda s: S.interval(jm.roc_auc, S.init(UNIFORM, weighted=True), bins=UNIFORM),
            "sampling error of weighted items",
        ),
    ],
)
def test_bad_input(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call(S.init(UNIFORM))
