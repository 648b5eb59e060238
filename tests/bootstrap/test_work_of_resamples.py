"""Work, memory and errors of the bootstrap."""

import logging
from functools import partial

import jax
import numpy as np
import pytest
from resamples import FEW, KEY, N, replicates

import jaxmetrics as jm
from jaxmetrics._base.checks import values as _values
from jaxmetrics.inference._bootstrap import run as _run
from jaxmetrics.inference._bootstrap.units import TILE, few_lengths

# ---- work and memory


def test_progress(data):
    reports = []
    replicates(jm.roc_auc, data.scores[0], data.labels, n_resamples=3000, progress=reports.append)
    assert reports == sorted(reports)
    assert reports[-1] == 3000
    assert len(reports) > 2


@pytest.mark.parametrize("budget", [20_000, 2**28])
def test_memory(budget, data, monkeypatch):
    """Counts of one chunk fit into the budget, whatever the number of resamples is."""
    chunks = []
    compiled = _run._compiled_chunk

    def watched(prepared, first, plan, lanes):
        chunks.append(lanes * len(prepared.sampler.units.size) * 2)
        return compiled(prepared, first, plan, lanes)

    monkeypatch.setattr(_run, "_compiled_chunk", watched)
    replicates(jm.roc_auc, data.scores, data.labels, memory_budget=budget)
    assert max(chunks) <= budget
    assert len(chunks) >= FEW * N * 2 // budget


def test_an_option_that_xla_lacks_is_left_out(monkeypatch):
    def lacking(*_, compiler_options):
        raise jax.errors.JaxRuntimeError(f"No such compile option: {compiler_options}")

    ask = _run._wide_vectors.__wrapped__
    assert ask() is not None
    monkeypatch.setattr(jax, "jit", lacking)
    assert ask() is None


def test_another_data_set_of_like_size_compiles_nothing(caplog):
    def all_of(n, seed):
        rng = np.random.default_rng(seed)
        labels = rng.random(n) < 0.3
        scores = rng.normal(size=n) + labels
        options = {"key": jax.random.key(seed), "n_resamples": FEW}
        jm.bootstrap(jm.roc_auc, scores, labels, **options)
        jm.bootstrap(partial(jm.partial_auc, max_fpr=0.05), scores, labels, **options)
        both = np.stack([scores, -scores])
        jm.bootstrap(jm.roc_auc, both, labels, **options)
        jm.permutation_test(jm.roc_auc, both, labels, **options)
        jm.bootstrap_mean(scores, **options)
        jm.bootstrap_mean(both, where=labels, **options)

    all_of(6000, 0)
    # Chunks are compiled in threads, of which jax.log_compiles() says nothing.
    jax.config.update("jax_log_compiles", True)
    try:
        with caplog.at_level(logging.WARNING):
            all_of(6011, 1)
            all_of(6022, 2)
    finally:
        jax.config.update("jax_log_compiles", False)
    compiled = [r.getMessage() for r in caplog.records if r.getMessage().startswith("Compiling")]
    assert compiled == []


def test_lengths_are_few_and_hardly_longer():
    sizes = np.arange(1, 1 << 14)
    lengths = np.array([few_lengths(n) for n in sizes])
    assert np.all((sizes <= lengths) & (lengths % TILE == 0))
    assert np.all(lengths < sizes * 1.125 + TILE)
    for octave in (1 << 11, 1 << 12, 1 << 13):
        inside = (octave < sizes) & (sizes <= 2 * octave)
        assert len(np.unique(lengths[inside])) == 8


# ---- errors


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"key": None}, TypeError, r"key is missing.*jax\.random\.key\(0\)"),
        ({"key": 3}, TypeError, "key must be one JAX random key"),
        ({"key": jax.random.split(KEY)}, TypeError, "key must be one JAX random key"),
        ({"n_resamples": -1}, ValueError, "n_resamples must be at least 1, got -1"),
        ({"n_resamples": 1e3}, TypeError, "n_resamples must be an int"),
        ({"batch": 0}, ValueError, "batch must be at least 1"),
        ({"memory_budget": "1 GB"}, TypeError, "memory_budget must be an int"),
        ({"stratify": "yes"}, TypeError, "stratify must be True or False"),
        ({"resampling": "normal"}, ValueError, "resampling must be one of 'multinomial'"),
        ({"clusters": [0, 1]}, ValueError, r"clusters must be \[n\].* 4 items, got \[2\]"),
        ({"clusters": [0, 1, np.nan, 1]}, ValueError, "clusters must not be None or NaN"),
        ({"amounts": [1, 2, 3, 4]}, TypeError, "amounts are for metrics that take them"),
    ],
)
def test_errors(options, error, message):
    given = {"key": KEY, **options}
    with pytest.raises(error, match=message):
        jm.bootstrap(jm.roc_auc, [0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1], **given)


@pytest.mark.parametrize("n", [10**14, 10**20, 2**31, np.int64(2**62)])
def test_what_memory_cannot_hold_is_refused(n, monkeypatch):
    """With the figure, and before any work."""
    monkeypatch.setattr(_values, "memory_size", lambda: 2.0**34)
    data = np.zeros((2, 4)), [0, 1, 0, 1]
    state = jm.streaming.init(jm.streaming.uniform_bins(4))
    recall = partial(jm.recall_at_fpr, max_fpr=0.1)
    calls = (
        partial(jm.bootstrap, jm.roc_auc, *data),
        partial(jm.confidence_interval, recall, *data),
        partial(jm.standard_error, recall, *data),
        partial(jm.compare, recall, *data),
        partial(jm.roc_band, *data),
        partial(jm.permutation_test, jm.roc_auc, *data),
        partial(jm.bootstrap_mean, data[0]),
        partial(jm.streaming.bootstrap, jm.roc_auc, state, bins=jm.streaming.uniform_bins(4)),
    )
    for call in calls:
        with pytest.raises(ValueError, match=r"n_resamples (= [\d,]+ needs .* GB|must be at most)"):
            call(key=KEY, n_resamples=n)
    with pytest.raises(
        ValueError, match=r"n_resamples = 10,000,000 needs 32 GB .* has 17 GB: write"
    ):
        jm.roc_band(
            *data, method="bootstrap", key=KEY, n_resamples=10_000_000, fpr=np.arange(1, 51) / 50
        )
    many = np.zeros(1000), np.arange(1000) % 2
    with pytest.raises(ValueError, match=r"batch = 100,000,000 needs .* GB .*: leave batch out"):
        jm.bootstrap(jm.roc_auc, *many, key=KEY, batch=10**8, n_resamples=10**8)


def test_a_batch_is_at_most_what_is_drawn(data):
    found, expected = (
        jm.bootstrap(
            jm.roc_auc, data.scores, data.labels, key=KEY, n_resamples=FEW, **options
        ).replicates
        for options in ({"batch": 10**12}, {})
    )
    np.testing.assert_array_equal(found, expected)
