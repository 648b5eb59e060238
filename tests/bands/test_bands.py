"""Bands of the ROC curve: invariances, programs, ends and errors."""

import jax
import numpy as np
import pytest
from of_bands import FROM_0, GRID, KEY, LIMITS, PROGRAM, N, same

import jaxmetrics as jm


def test_a_band_is_around_the_curve(data, band, resampled):
    curve = jm.roc_curve(data[0][1], data[1])
    # Linear between the points; on a step, its upper end.
    expected = np.interp(GRID + 1e-9, np.asarray(curve.fpr, float), curve.tpr)
    for found, share in ((band, 0.5), (resampled, 0.99)):
        np.testing.assert_allclose(found.tpr, expected, atol=1e-5)
        np.testing.assert_allclose(found.fpr, GRID, rtol=1e-6)
        assert (found.simultaneous_low <= found.low).all()
        assert (found.low <= found.tpr).all()
        assert (found.tpr <= found.high).all()
        assert (found.high <= found.simultaneous_high).all()
        assert np.mean(found.simultaneous_low[:-1] < found.low[:-1]) > share
        for name in LIMITS:
            limit = getattr(found, name)
            assert (np.diff(limit) >= 0).all()
            assert (limit >= 0).all()
            assert (limit <= 1).all()


def test_the_curve_of_a_band_is_the_linear_recall(data):
    fpr = np.arange(1, 41) / 40
    found = jm.roc_band(*data, fpr=fpr)
    expected = jm.recall_at_fpr(*data, max_fpr=fpr, method="linear")
    np.testing.assert_allclose(found.tpr, expected, rtol=1e-6)


def test_no_key_is_needed_and_none_is_used(data, band):
    same(jm.roc_band(data[0][1], data[1], fpr=GRID, key=KEY, stratify=False), band, rtol=0)


def test_only_the_order_of_the_scores_counts(data, band):
    scores, labels = data[0][1], data[1]
    order = np.random.default_rng(3).permutation(N)
    same(jm.roc_band(np.exp(scores[order]), labels[order], fpr=GRID), band, rtol=0)


def test_masked_items_are_left_out(data, band):
    scores = np.concatenate([data[0][1], [9.0, np.nan, -9.0]])
    labels = np.concatenate([data[1], [False, True, True]])
    found = jm.roc_band(scores, labels, fpr=GRID, where=np.arange(N + 3) < N)
    same(found, band, rtol=0)


def test_a_program_finds_the_same(data):
    """Of a batch, with ties and masks, where labels and class sizes are traced.

    Of 49 negatives, k times the reciprocal of 49 is not always the rate k / 49.
    """
    scores, labels = data
    for n in (110, 85):
        where = np.arange(N) < n
        expected = FROM_0(scores, labels, where=where)
        assert expected.low.shape == (2, 21)
        same(PROGRAM(scores, labels, where), expected)
        row = FROM_0(scores[1], labels, where=where)
        same(row, jax.tree.map(_second, expected))


def _second(x):
    return x[1] if x.ndim == 2 else x


@pytest.mark.usefixtures("x64")
def test_a_band_in_double_precision(data, band):
    found = jm.roc_band(data[0][1], data[1], fpr=GRID)
    assert found.low.dtype == np.float64
    same(found, band, rtol=1e-6)


def test_the_ends_of_a_band(data, band):
    """The curve ends at (1, 1) by definition, and nothing shows that it rises at 0 itself."""
    whole = jm.roc_band(data[0][1], data[1], fpr=[0, *GRID])
    for name in LIMITS:
        limit = getattr(whole, name)
        np.testing.assert_array_equal(limit[1:], getattr(band, name))
        assert limit[-1] == 1
    assert whole.low[0] == whole.simultaneous_low[0] == 0
    assert whole.tpr[0] < whole.high[0] <= whole.simultaneous_high[0] < 1


def test_the_points_of_a_band(data):
    np.testing.assert_allclose(jm.roc_band(*data).fpr, np.arange(101) / 100, rtol=1e-6)


def test_a_band_of_a_perfect_model(data):
    labels = data[1]
    found = jm.roc_band(labels.astype(float), labels, fpr=GRID)
    for name in ("tpr", "high", "simultaneous_high"):
        np.testing.assert_array_equal(getattr(found, name), 1)
    assert (found.simultaneous_low <= found.low).all()
    assert (found.low[2:] > 0.9).all()


@pytest.mark.parametrize("labels", [[1, 0, 0, 0, 0], [1, 1, 1, 1, 0], [1, 0]])
def test_one_item_of_a_class(labels):
    found = jm.roc_band(np.arange(len(labels)), labels)
    for name in LIMITS:
        limit = np.asarray(getattr(found, name))
        assert np.isfinite(limit).all()
        assert (np.diff(limit) >= 0).all()
    assert (found.simultaneous_high - found.simultaneous_low)[50] > 0.5


@pytest.mark.parametrize(
    ("scores", "labels"),
    [
        (np.arange(4.0), np.zeros(4, bool)),
        (np.arange(4.0), np.ones(4, bool)),
        (np.array([1, np.nan, 2, 3]), np.array([0, 1, 1, 0])),
        (np.zeros(0), np.zeros(0, bool)),
    ],
)
def test_undefined_bands(scores, labels):
    found = jm.roc_band(scores, labels, fpr=GRID)
    for name in ("tpr", *LIMITS):
        assert np.isnan(getattr(found, name)).all()


@pytest.mark.parametrize(
    ("fpr", "message"),
    [
        ([-0.1, 0.5], r"fpr must be \[points\] in \[0, 1\]"),
        ([1, 5, 10], r"fpr must be \[points\] in \[0, 1\].*write 0\.01 for 1 %"),
        ([0.5, 0.1], "fpr must increase"),
        (0.1, r"fpr must be \[points\]"),
    ],
)
def test_errors_of_points(fpr, message, data):
    with pytest.raises(ValueError, match=message):
        jm.roc_band(*data, fpr=fpr)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"method": "bootstrap"}, TypeError, r"key is missing.*write key=jax\.random\.key\(0\)"),
        ({"method": "exact", "clusters": np.arange(N)}, ValueError, "write method='auto'"),
        ({"method": "exact", "weights": np.ones(N)}, ValueError, "write method='auto'"),
        ({"method": "wald"}, ValueError, "method must be one of"),
        ({"key": 0}, TypeError, "key must be one JAX random key"),
    ],
)
def test_errors_of_options(options, error, message, data):
    with pytest.raises(error, match=message):
        jm.roc_band(data[0][0], data[1], **options)
