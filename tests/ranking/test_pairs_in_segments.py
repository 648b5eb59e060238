"""Ordered pairs, and areas of segments."""

from functools import partial

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from ranked import flattened, sample

import jaxmetrics as jm
from jaxmetrics._ranking import segments as segment_metrics


def _ordered_pairs(scores, labels):
    better = labels[:, None] > labels
    right = (1 + np.sign(scores[:, None] - scores)) / 2
    return (better * right).sum() / better.sum() if better.any() else np.nan


_ordered_in_segments = jax.jit(partial(jm.ordered_pair_accuracy, num_segments=7))


@pytest.mark.parametrize(("n", "grades"), [(1, 3), (2, 2), (30, 5), (33, 1000)])
def test_ordered_pairs(rng, x64, n, grades):
    scores, labels, where = sample(rng, (7, n), grades=grades)
    found = jm.ordered_pair_accuracy(scores, labels, where=where)
    rows = zip(scores, labels, where, strict=True)
    assert_allclose(found, [_ordered_pairs(s[w], y[w]) for s, y, w in rows], rtol=1e-12)
    *flat, segments = flattened(rng, scores, labels, where)
    # Filled up with masked items, so that all cases have one program.
    *flat, segments = (np.append(x, np.zeros(7 * 33 - 7 * n, x.dtype)) for x in (*flat, segments))
    again = _ordered_in_segments(*flat[:2], where=flat[2], segments=segments)
    assert_array_equal(again, found)


def test_ordered_pairs_of_many_items(rng, x64):
    n = 200_000  # of which there is no matrix of pairs
    scores, labels = rng.normal(size=n), rng.random(n) < 0.3
    assert_allclose(
        jm.ordered_pair_accuracy(scores, labels), jm.roc_auc(scores, labels), rtol=1e-12
    )


@pytest.mark.parametrize("weighted", [pytest.param(False, marks=pytest.mark.slow), True])
def test_areas_of_segments(rng, x64, weighted):
    n, count = 400, 8
    scores, labels = rng.normal(size=(2, n)).round(1), rng.random(n) < 0.4
    segments, where = rng.integers(0, count - 1, n), rng.random(n) < 0.9
    weights = rng.random(n).round(1) * 1e-8**segments  # each segment may have its own unit
    items = {"where": where} | ({"weights": weights} if weighted else {})
    window = {"max_fpr": [0.1, 0.3, 1.0], "min_fpr": 0.05, "min_tpr": 0.2, "scale": "mcclish"}
    areas = jm.segment_roc_auc(scores, labels, segments=segments, num_segments=count, **items)
    parts = jm.segment_partial_auc(
        scores, labels, segments=segments, num_segments=count, **items, **window
    )
    assert areas.shape == (2, count)
    assert parts.shape == (2, count, 3)
    assert np.isnan(areas[:, -1]).all()
    inside = segments == np.arange(count - 1)[:, None]
    for ours, metric in ((areas, jm.roc_auc), (parts, partial(jm.partial_auc, **window))):
        weights = items.get("weights")
        expected = metric(scores[:, None], labels, weights=weights, where=inside & where)
        assert_allclose(ours[:, :-1], expected, rtol=1e-11)


def test_areas_of_segments_in_jit(rng):
    scores, labels = rng.normal(size=50).astype("float32"), rng.random(50) < 0.4
    segments = rng.integers(0, 3, 50)
    found = jax.jit(partial(jm.segment_roc_auc, num_segments=3))(scores, labels, segments=segments)
    assert_allclose(found, jm.segment_roc_auc(scores, labels, segments=segments), rtol=1e-6)
    scores[segments == 1] = np.nan
    broken = jm.segment_roc_auc(scores, labels, segments=segments)
    assert_array_equal(np.isnan(broken), [False, True, False])


def test_areas_of_segments_in_memory_compile_nothing(rng):
    """And equal the compiled ones: ties, weights, a mask, ids in any order, NaN, several limits."""
    scores, labels = rng.normal(size=(2, 60)).round(1), rng.random(60) < 0.4
    segments, where = rng.integers(0, 5, 60), rng.random(60) < 0.9
    scores[1, 0], where[0] = np.nan, True
    weights = rng.integers(0, 3, 60).astype(float)
    weights[0] = 1
    items = {"where": where, "weights": weights}
    metric = partial(
        jm.segment_partial_auc, segments=segments, num_segments=6, max_fpr=[0.2, 0.8], **items
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment_metrics, "_areas_of_batch", None)
        found = metric(scores, labels)
    assert np.isnan(found[1, segments[0]]).all()
    assert not np.isnan(found[0, segments[0]]).any()
    assert_allclose(found, jax.jit(metric)(scores, labels), rtol=1e-6)
