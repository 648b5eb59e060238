"""What is claimed of losses: bounds, convexity, invariances and scales."""

from functools import partial

import numpy as np
import pytest
from every_loss import CONVEX, EVERY_LOSS, LOSSES, SET_TWICE, compiled, sample
from fast import marked
from numpy.testing import assert_allclose

import jaxmetrics as jm


@pytest.mark.slow
def test_bounded_loss_tends_to_the_partial_area(rng, x64):
    """With an error of the second order in the temperature."""
    labels = np.arange(20_000) < 4_000
    scores = rng.normal(size=len(labels)) + labels
    exact = 1 - jm.partial_auc(scores, labels, max_fpr=0.2, scale="range")
    loss = partial(jm.losses.partial_auc_loss, scores, labels, max_fpr=0.2, band=0.0)
    errors = [float(loss(temperature=t) - exact) for t in (0.2, 0.1, 0.05)]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.15)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.15)
    assert_allclose(loss(temperature=1e-10), exact, rtol=1e-9)


# The values of the others are compared with naive sums.
@pytest.mark.parametrize(
    "surrogate", [marked(x, fast=x in ("squared_hinge", "logistic")) for x in CONVEX]
)
def test_upper_bounds(surrogate, rng, x64):
    scores, labels, _ = sample(rng)
    for max_fpr in (0.013, 0.25, 1.0):
        missed = 1 - jm.partial_auc(scores, labels, max_fpr=max_fpr, scale="range")
        for scale in (0.01, 1.0, 30.0):
            loss = jm.losses.partial_auc_loss(
                scale * scores, labels, max_fpr=max_fpr, surrogate=surrogate, band=0.0
            )
            assert loss / (np.log(2) if surrogate == "logistic" else 1) >= missed - 1e-12


@pytest.mark.parametrize("surrogate", [marked(x, fast=x == "hinge") for x in CONVEX])
def test_convex_in_the_scores(surrogate, rng, x64):
    _, labels, weights = sample(rng)
    loss = partial(jm.losses.partial_auc_loss, surrogate=surrogate, max_fpr=0.3, min_tpr=0.2)
    ends = rng.normal(size=(2, 50, len(labels)))
    shares = rng.random((50, 1))
    middle = shares * ends[0] + (1 - shares) * ends[1]
    for band in (0.0, 0.5):
        values = loss(np.stack([*ends, middle]), labels, weights=weights, band=band)
        chord = shares[:, 0] * values[0] + (1 - shares[:, 0]) * values[1]
        assert (values[2] <= chord + 1e-12).all()
        assert (values[2] < chord - 1e-6).any()


@pytest.mark.parametrize("name", [marked(x, fast=x != "logistic") for x in LOSSES])
def test_invariances(name, rng, x64):
    scores, labels, _ = sample(rng)
    everything = np.ones(len(labels), bool)
    counts = rng.permutation(np.repeat([0.0, 1.0, 2.0, 3.0], [16, 12, 6, 4]))
    counts = np.append([2.0, 2.0], counts)  # of as many copies as there are items, in one program
    of = compiled(name)
    value, gradient = of(scores, labels, counts, everything)
    assert value.dtype == gradient.dtype == np.float64
    order = rng.permutation(len(labels))
    shuffled = of(scores[order], labels[order], counts[order], everything)
    assert_allclose(shuffled[0], value, rtol=1e-12)
    assert_allclose(shuffled[1], gradient[order], atol=1e-12)
    assert_allclose(of(scores + 100, labels, counts, everything)[0], value, rtol=1e-9)
    assert_allclose(of(scores, labels, 7 * counts, everything)[0], value, rtol=1e-12)
    if name != "average precision":  # of which copies are above each other by half
        which = np.repeat(np.arange(len(labels)), counts.astype(int))
        copies = of(scores[which], labels[which], np.ones(len(which)), everything)
        assert_allclose(copies[0], value, rtol=1e-9)
        sums = np.zeros(len(labels))
        np.add.at(sums, which, copies[1])
        assert_allclose(sums, gradient, rtol=1e-8, atol=1e-12)
    if name not in ("squared_hinge", "logistic"):  # bounded ones have no scale
        for scale in (1e-3, 1e5):
            assert_allclose(of(scale * scores, labels, counts, everything)[0], value, rtol=1e-9)


@EVERY_LOSS
def test_tied_negatives_have_no_deviation(name, rng):
    """Wherever they are: the mean of tied scores may be rounded, and is no scale."""
    labels, weights, where = np.arange(40) % 7 == 0, 0.1 + rng.random(40), np.ones(40, bool)
    for apart in (0, 0.125):  # the positives above
        value, slopes = compiled(name)(np.float32(apart) * labels, labels, weights, where)
        assert np.abs(slopes).max() > 0
        for constant in (0.3, -2.7, 1234.567):
            scores = np.where(labels, np.float32(constant) + apart, np.float32(constant))
            found, moved = compiled(name)(scores, labels, weights, where)
            assert_allclose(found, value, rtol=1e-3 if apart else 1e-6)
            assert_allclose(moved, slopes, rtol=2e-3, atol=1e-6)


@pytest.mark.parametrize("name", ["sigmoid", SET_TWICE, "recall", "average precision"])
def test_bounded_losses_have_no_scale_in_float32(name, rng):
    """Also where squares of the scores are no numbers."""
    labels = np.arange(40) % 7 == 0
    scores, rest = rng.normal(size=40) + labels, (np.ones(40), np.ones(40, bool))
    value, slopes = compiled(name)(scores.astype(np.float32), labels, *rest)
    for power in (-110, -60, 60, 90):
        scale = np.ldexp(np.float32(1), power)
        found, moved = compiled(name)(scale * scores.astype(np.float32), labels, *rest)
        assert_allclose(found, value, rtol=1e-5)
        assert_allclose(moved * scale, slopes, rtol=1e-3, atol=1e-4 * np.abs(slopes).max())


@pytest.mark.parametrize("name", ["sigmoid", "recall", "average precision"])
def test_positives_far_beyond_the_negatives(name):
    """In the unit of these they are no numbers."""
    labels = np.arange(40) % 4 == 0
    scores = np.where(labels, 1e20 * (1 - 2 * (np.arange(40) % 8 > 0)), 1e-20 * np.arange(40))
    value, slopes = compiled(name)(
        scores.astype(np.float32), labels, np.ones(40), np.ones(40, bool)
    )
    assert 0.3 < value < 0.6
    assert np.isfinite(slopes).all()


@pytest.mark.parametrize("name", ["sigmoid", SET_TWICE, "recall"])
def test_how_far_a_positive_is_makes_no_difference(name, rng):
    """Its square may be infinite, and has no part in the deviation of the negatives."""
    scores, labels, weights = sample(rng)
    for far in (1.0, -1.0):
        found = [
            compiled(name)(np.append(far * x, scores[1:]), labels, weights, np.ones(40, bool))
            for x in (1e9, 1e18, 1e20, 3e38)
        ]
        for value, slopes in found[1:]:
            assert_allclose(value, found[0][0], rtol=1e-6)
            assert_allclose(slopes, found[0][1], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("max_fpr", [0.5, 0.8])
def test_a_narrow_band_is_none_within_wide_ties(max_fpr):
    """Each half of the negatives ties: the set takes 1/2 of them, or 3/5 of the lower half, too."""
    scores, labels = [1.0, 1.0, 0.0, 0.0, 0.5, 2.0], [0, 0, 0, 0, 1, 1]
    loss = partial(jm.losses.partial_auc_loss, scores, labels, max_fpr=max_fpr, surrogate="hinge")
    # Hinges of the upper half are 1.5 and 0, and those of the lower half 0.5 and 0.
    expected = {0.5: 0.75, 0.8: (0.5 * 0.75 + 0.3 * 0.25) / 0.8}[max_fpr]
    assert_allclose(loss(band=0.0), expected, rtol=1e-6)
    assert_allclose(loss(band=1e-3), expected, rtol=2e-3)
