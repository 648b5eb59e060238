"""The exact metric of batches that can be read again."""

import tracemalloc
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from streams import METRICS, S, read, sample

import jaxmetrics as jm


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=()
            if name in ("roc_auc", "two-way", "threshold", "average precision")
            else pytest.mark.slow,
        )
        for name in METRICS
    ],
)
@pytest.mark.parametrize("weighted", [pytest.param(False, marks=pytest.mark.slow), True])
def test_exact_is_exact(name, weighted, rng, x64):
    """Of both precisions, with and without ties, in memory for all items and for a few."""
    n = 800
    weights = rng.random(n) * (rng.random(n) < 0.9) if weighted else None
    labels = rng.random(n) < 0.3
    for dtype, digits, memories in (
        (np.float32, 9, (10**6, 45)),
        (np.float64, 9, (10**6, 200, 45)),
        (np.float64, 1, (10**6, 45)),
    ):
        scores = np.round(rng.normal(size=n) + labels, digits).astype(dtype)
        expected = METRICS[name](scores, labels, weights=weights)
        for memory in memories:
            batches = read(scores, labels, weights, size=300)
            found = S.exact(METRICS[name], batches, memory_items=memory)
            assert_allclose(found, expected, rtol=1e-13)
            assert batches.passes <= 3 or memory < 10**6


def test_exact_reads_only_what_it_must(rng):
    """A threshold is in one cell, however many items there are."""
    labels = rng.random(50_000) < 0.1
    scores = rng.normal(size=50_000) + labels
    batches = read(scores, labels, size=5000)
    S.exact(METRICS["recall"], batches, memory_items=1000)
    assert batches.passes == 3  # the dtype, the counts, the cell


@pytest.mark.parametrize("name", ["roc_auc", "two-way", "average precision"])
@pytest.mark.parametrize("ties", [False, True])
def test_exact_keeps_to_its_memory(name, ties, rng, x64):
    """However little it is: then cells are small, but not many, and passes are no more than due."""
    n, memory = 3000, 35
    labels = rng.random(n) < 0.3
    scores = rng.normal(size=n) + labels
    scores = np.round(scores, 2) if ties else scores
    batches = read(scores, labels, size=1000)
    expected = METRICS[name](scores, labels)
    S.exact(METRICS[name], lambda: [(scores[:9], labels[:9])])  # what is compiled and imported
    tracemalloc.start()
    try:
        found = S.exact(METRICS[name], batches, memory_items=memory)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert_allclose(found, expected, rtol=1e-13)
    assert peak < 150 << 17  # bytes for each of the most cells
    assert batches.passes < 1.3 * n / memory + 10


def test_exact_joins_areas_without_loss(x64):
    """An area that is tiny beside the weights of its cells, and one that is nearly all."""
    scores, weights = np.array([4.0, 3.0, 2.0, 1.0]), np.array([2.0**40, 1.0, 2.0**-20, 3.0])
    for labels in ([0, 1, 0, 1], [1, 0, 1, 0]):
        batches = read(scores, np.array(labels), weights)
        found = S.exact(jm.roc_auc, batches, memory_items=1)
        assert_allclose(found, jm.roc_auc(scores, labels, weights=weights), rtol=1e-15)


def test_exact_and_nan(rng):
    scores, labels = sample(rng)
    scores[5] = np.nan
    assert np.isnan(S.exact(jm.roc_auc, read(scores, labels)))
    there = ~np.isnan(scores)
    found = S.exact(jm.roc_auc, read(scores, labels), ignore_nan=True)
    assert_allclose(found, jm.roc_auc(scores[there], labels[there]), rtol=1e-6)
    assert np.isnan(S.exact(jm.roc_auc, list))
    assert np.isnan(S.exact(jm.roc_auc, read(scores[6:], labels[6:] & False)))
    assert S.exact(jm.average_precision, read(scores[6:], labels[6:] & False)) == 0


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_exact_of_infinite_scores(dtype):
    """Those of one class are in a cell that is not sorted, and begins with keys of NaN."""
    for scores, labels in (
        ([np.inf, 0.5], [1, 0]),
        ([np.inf, 0.5], [0, 1]),
        ([np.inf, np.inf, 0.5, 0.2], [1, 1, 0, 1]),
        ([np.inf, -np.inf, 0.5], [0, 1, 1]),
    ):
        given = np.array(scores, dtype), np.array(labels)
        for name in ("roc_auc", "partial", "recall"):
            found = S.exact(METRICS[name], lambda given=given: [given])
            assert_allclose(found, METRICS[name](*given), rtol=1e-6)


def test_exact_refuses_batches_that_change(rng):
    scores, labels = sample(rng)
    sizes = iter([300, 300, 200])

    def batches():
        n = next(sizes)
        yield scores[:n], labels[:n]

    with pytest.raises(ValueError, match="the same items each time, got 10 items, then 8"):
        S.exact(jm.roc_auc, batches, memory_items=10)
    with pytest.raises(TypeError, match="write yield scores, labels"):
        S.exact(jm.roc_auc, lambda: [scores])
    with pytest.raises(ValueError, match=r"a batch must be \[n\]"):
        S.exact(jm.roc_auc, lambda: [(scores[None], labels)])
    with pytest.raises(ValueError, match="one dtype, got float32, then float64"):
        S.exact(jm.roc_auc, lambda: [(scores, labels), (scores.astype(float), labels)])
    with pytest.raises(ValueError, match="take one limit at a time"):
        S.exact(partial(jm.recall_at_fpr, max_fpr=[0.1, 0.2]), read(scores, labels))
    with_threshold = partial(METRICS["precision"], return_threshold=True)
    with pytest.raises(TypeError, match="leave return_threshold out"):
        S.exact(with_threshold, read(scores, labels))


@pytest.mark.parametrize("again", [False, True])
def test_exact_refuses_what_can_be_read_once(again, rng):
    """An iterator, and a function that returns the same one, whose first batch would be lost."""
    once = read(*sample(rng))()
    with pytest.raises((TypeError, ValueError), match="which can be read once"):
        S.exact(jm.roc_auc, (lambda: once) if again else once)
    with pytest.raises(TypeError, match=r"each time, got list: write .* lambda: batches"):
        S.exact(jm.roc_auc, [*read(*sample(rng))()])
