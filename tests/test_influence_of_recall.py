"""Influence values of recall: what flags an item, and the slope of the curve at the threshold."""

from functools import partial

import interval_formulas as formulas
import jax
import numpy as np
import pytest
from fast import marked
from registry import sample

import jaxmetrics as jm

pytestmark = [pytest.mark.usefixtures("x64")]

LIMIT = 0.2
RECALL = partial(jm.recall_at_fpr, max_fpr=LIMIT)
# Concrete arrays go by NumPy, traced ones by a table.
WAYS = {"host": lambda function: function, "jit": jax.jit}
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def close(a, b, rtol=1e-9):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=1e-12)


def classes(labels):
    return [np.flatnonzero(labels == kind) for kind in (False, True)]


# By a program it is that of the written formula.
@pytest.mark.parametrize("way", [marked(x, fast=x is not jax.jit) for x in WAYS.values()], ids=WAYS)
def test_by_hand(way):
    """Two of ten negatives may be flagged, so all above 8 are."""
    negatives, positives = np.arange(1.0, 11), np.array([10.5, 9.5, 8.5, 8.0, 3.5])
    scores = np.concatenate([negatives, positives])
    labels = np.arange(15) >= 10
    phi = np.asarray(way(partial(jm.influence, RECALL))(scores, labels))
    close(phi[labels], [0.4, 0.4, 0.4, -0.6, -0.6])  # 1 or 0, less 3 of 5; a tie is not above
    # Half of the limit to either side, which is less than sqrt(0.2 0.8 / 10), the recall rises from
    # 2 of 5 to 4 of 5, over two negatives.
    low, high = formulas.around_limit(LIMIT, 10)
    close([low, high], [0.1, 0.3])
    tpr = [formulas.height(positives, negatives, x) for x in (low, high)]
    close(tpr, [0.4, 0.8])
    slope = np.sqrt(formulas.squared_slope(positives, negatives, LIMIT))
    close(phi[~labels], -slope * (np.arange(10) >= 8) + slope * 0.2)
    by_chord = (0.8 - 0.4) / 0.2
    area = formulas.divided_area(positives, negatives, LIMIT)
    middle = formulas.middle(positives, negatives, LIMIT)
    centre = formulas.centre_of_window(area, (10, 5), LIMIT, middle)
    h = formulas.power(centre, LIMIT)
    close(slope**2, (2 * by_chord**2 + 2 * (centre * (1 + h) * h / LIMIT) ** 2) / 4)


def _phi_and_error(scores, labels, limit=LIMIT, **given):
    recall = partial(jm.recall_at_fpr, max_fpr=limit)
    return [f(recall, scores, labels, **given) for f in (jm.influence, jm.standard_error)]


_compiled = jax.jit(_phi_and_error)  # one program for all limits


def phi_and_error(way, scores, labels, limit=LIMIT, **given):
    return (_compiled if way is jax.jit else _phi_and_error)(scores, labels, limit, **given)


@each_way
@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize("limit", [0.07, LIMIT, 0.5])
def test_written_formula(way, ties, limit, rng):
    scores, labels, _ = sample(rng, 60, ties=ties)
    metric = partial(jm.recall_at_fpr, max_fpr=limit)
    phi = np.asarray(phi_and_error(way, scores, labels, limit)[0])
    positives, negatives = (scores[labels == c].astype(float) for c in (True, False))
    recall = formulas.height(positives, negatives, limit)
    close(metric(scores, labels), recall)
    within = [x for x in [np.inf, *negatives] if np.mean(negatives >= x) <= limit + 1e-12]
    flagged = scores > max(negatives[negatives < min(within)])
    close(phi[labels], flagged[labels] - recall)
    slope = np.sqrt(formulas.squared_slope(positives, negatives, limit))
    close(phi[~labels], -slope * (flagged[~labels] - flagged[~labels].mean()))
    for members in classes(labels):
        assert abs(phi[members].sum()) < 1e-11


@each_way
def test_standard_errors_and_covariances(way, rng):
    scores, labels, weights = sample(rng, 60, batch=(3,))
    labels, weights = labels[0], weights[0].astype(float)
    for options in ({"weights": weights},) if way is jax.jit else ({}, {"weights": weights}):
        covariance = np.asarray(way(partial(jm.covariance, RECALL))(scores, labels, **options))
        phi, error = map(np.asarray, _phi_and_error(scores, labels, **options))
        close(np.diagonal(covariance), error**2)
        sizes = [len(x) for x in classes(labels)]
        expected = sum(
            phi[:, x] @ phi[:, x].T / (n * (n - 1))
            for x, n in zip(classes(labels), sizes, strict=True)
        )
        close(covariance, expected)


@each_way
def test_where_is_deletion(way, rng):
    scores, labels, weights = sample(rng, 60)
    where = rng.random(60) < 0.7
    spoiled = np.where(where, scores, np.nan)
    of_items = {"weights": weights.astype(float)}
    for given in (of_items,) if way is jax.jit else ({}, of_items):
        left = {name: x[where] for name, x in given.items()}
        alone = np.asarray(jm.influence(RECALL, scores[where], labels[where], **left))
        found = phi_and_error(way, spoiled, labels, where=where, **given)
        phi, error_of_some = map(np.asarray, found)
        close(phi[where], alone)
        assert (phi[~where] == 0).all()
        error = jm.standard_error(RECALL, scores[where], labels[where], **left)
        close(error_of_some, error)
        weights_of_none = given.get("weights", np.ones(60)) * where
        close(phi_and_error(way, scores, labels, weights=weights_of_none)[1], error)


@each_way
def test_weights(way, rng):
    """An item is one observation with its share of the weight; the slope is of effective sizes."""
    scores, labels, _ = sample(rng, 60)

    def influence(*given, **options):
        return phi_and_error(way, *given, **options)[0]

    alone = np.asarray(influence(scores, labels))
    close(influence(scores, labels, weights=np.full(60, 3.0)), alone)
    weights = rng.integers(1, 4, 60).astype(float)
    phi = np.asarray(influence(scores, labels, weights=weights))
    copies = weights.astype(int)
    recall = float(RECALL(np.repeat(scores, copies), np.repeat(labels, copies)))
    close(RECALL(scores, labels, weights=weights), recall)
    negatives, positives = classes(labels)
    w = weights[positives]
    share = phi[positives] * w.sum() / (len(w) * w)  # 1 - recall if flagged, else - recall
    flagged = share > 0
    close(share, flagged - recall)
    close(np.sum(w * flagged) / w.sum(), recall)
    w = weights[negatives]
    jumps = phi[negatives] * w.sum() / (len(w) * w)
    flags = jumps < 0
    slope = np.ptp(jumps)
    close(jumps, -slope * (flags - np.sum(w * flags) / w.sum()))
    assert 0 < np.sum(w * flags) / w.sum() <= LIMIT
    # The window of the slope is that of (sum w)^2 / sum w^2 negatives, not of their weight.
    close(influence(scores, labels, weights=weights * 7), phi)
    single = [x.sum() ** 2 / np.sum(x**2) for x in (w, weights[positives])]
    assert single[0] < len(negatives)
    by_size = slope_of_weighted(scores, labels, weights, single)
    close(slope, by_size)


def slope_of_weighted(scores, labels, weights, sizes):
    """The root of S of the curve of copies, with these sizes of the classes."""
    copies = weights.astype(int)
    repeated = np.repeat(labels, copies)
    values = np.repeat(scores, copies).astype(float)
    positives, negatives = values[repeated], values[~repeated]
    low, high = formulas.around_limit(LIMIT, sizes[0])
    m = sizes[0] * (high - low)
    rise = np.diff([formulas.height(positives, negatives, x) for x in (low, high)])[0]
    area = formulas.divided_area(positives, negatives, LIMIT)
    middle = formulas.middle(positives, negatives, LIMIT)
    centre = formulas.centre_of_window(area, sizes, LIMIT, middle)
    prior = centre * (1 + formulas.power(centre, LIMIT)) * formulas.power(centre, LIMIT) / LIMIT
    return np.sqrt((m * (rise / (high - low)) ** 2 + 2 * prior**2) / (m + 2))


@each_way
def test_amounts(way, rng):
    """The amount of a positive is its weight; negatives have none."""
    scores, labels, _ = sample(rng, 60)
    amounts = rng.lognormal(size=60)
    error = way(partial(jm.standard_error, RECALL))(scores, labels, amounts=amounts)
    weights = np.where(labels, amounts, 1.0)
    close(error, jm.standard_error(RECALL, scores, labels, weights=weights))
    recall = float(RECALL(scores, labels, amounts=amounts))
    phi = np.asarray(jm.influence(RECALL, scores, labels, weights=weights))
    a = amounts[labels]
    flagged = phi[labels] > 0
    close(phi[labels], len(a) * a / a.sum() * (flagged - recall))
    parts = [
        len(phi[x]) / (len(phi[x]) - 1) * np.sum(phi[x] ** 2) / len(phi[x]) ** 2
        for x in classes(labels)
    ]
    close(error**2, sum(parts))


@pytest.mark.parametrize(
    ("way", "dtype"),
    [
        *((WAYS["host"], dtype) for dtype in ("float32", "int32", "int8", "uint8")),
        pytest.param(WAYS["jit"], "float32", marks=pytest.mark.slow),
        (WAYS["jit"], "int8"),
    ],
)
def test_specificity_is_the_recall_of_reversed_scores(way, dtype, rng):
    scores, labels, _ = sample(rng, 60)
    if dtype != "float32":
        info = np.iinfo(dtype)
        scores = (np.clip(np.round(9 * scores), -60, 60) + (60 if info.min == 0 else 0)).astype(
            dtype
        )
        scores[4:6], scores[6:8] = info.min, info.max
    specificity = partial(jm.specificity_at_sensitivity, min_sensitivity=0.8)
    sensitivity = partial(jm.sensitivity_at_specificity, min_specificity=0.8)
    phi, error, of_sensitivity = way(
        lambda *x: [
            jm.influence(specificity, *x),
            jm.standard_error(specificity, *x),
            jm.influence(sensitivity, *x),
        ]
    )(scores, labels)
    mirrored = partial(jm.recall_at_fpr, max_fpr=0.2 + 1e-9)
    expected = jm.influence(mirrored, -scores.astype(float), ~labels)
    close(phi, expected, rtol=1e-6)
    close(specificity(scores, labels), mirrored(-scores.astype(float), ~labels))
    close(error, jm.standard_error(mirrored, -scores.astype(float), ~labels), rtol=1e-6)
    close(of_sensitivity, jm.influence(mirrored, scores, labels), rtol=1e-6)


def test_limits_that_flag_all_or_nothing(rng):
    scores, labels, _ = sample(rng, 60)
    phi = np.asarray(jm.influence(partial(jm.recall_at_fpr, max_fpr=1.0), scores, labels))
    close(phi, np.zeros(60))
    few = np.asarray(jm.influence(partial(jm.recall_at_fpr, max_fpr=1e-3), scores, labels))
    assert (few[~labels] == 0).all()
    assert (few[labels] > 0).sum() == np.sum(scores[labels] > scores[~labels].max())


@each_way
@pytest.mark.parametrize("weighted", [marked(False, fast=False), True])
def test_within_a_tie_the_straight_line_flags_a_part(way, weighted, rng):
    """Of ratings, at a limit within the tie of the highest ones and within a later one: finite
    differences in the weights of the curve's own two points, and errors of the same."""
    labels = np.arange(60) < 20
    scores = rng.integers(0, 4, 60) + 1.0 * labels
    weights = rng.choice([1.0, 2.0], 60) if weighted else np.ones(60)
    given = {"weights": weights} if weighted else {}

    def linear(limit):
        recall = partial(jm.recall_at_fpr, max_fpr=limit, method="linear")
        return [f(recall, scores, labels, **given) for f in (jm.influence, jm.standard_error)]

    for limit, (phi, error) in zip((0.02, 0.4), map(way(linear), (0.02, 0.4)), strict=True):
        recall, phi = partial(jm.recall_at_fpr, max_fpr=limit, method="linear"), np.asarray(phi)
        positives, negatives = (weights * x for x in (labels, ~labels))
        points = [scores >= x for x in np.unique(scores)[::-1]]
        fprs = np.array([0, *(negatives[x].sum() / negatives.sum() for x in points)])
        tprs = np.array([0, *(positives[x].sum() / positives.sum() for x in points)])
        i = int(np.searchsorted(fprs, limit, "right"))
        part = (limit - fprs[i - 1]) / (fprs[i] - fprs[i - 1])
        at = scores == np.unique(scores)[::-1][i - 1]
        flagged = (scores > scores[at][0]) + part * at
        height = tprs[i - 1] + part * (tprs[i] - tprs[i - 1])
        close(jm.recall_at_fpr(scores, labels, max_fpr=limit, method="linear", **given), height)
        weighty = (weights / np.where(labels, positives.sum() / 20, negatives.sum() / 40)).astype(
            float
        )
        close(phi[labels], ((flagged - height) * weighty)[labels])
        steep = (-phi / weighty / (flagged - limit))[~labels]
        close(steep, steep[0] + 0 * steep)
        assert steep[0] > 0
        both = np.sqrt(jm.covariance(recall, scores[None], labels, **given)[0, 0])
        close(error, both)
        if not weighted:
            squares = [np.var(phi[x], ddof=1) / x.sum() for x in (labels, ~labels)]
            close(error, np.sqrt(sum(squares)))
            found = jm.confidence_interval(recall, scores, labels)
            assert found.low < height < found.high
            whole = jm.slices(recall, scores, labels, np.zeros(60, int))
            close(whole.standard_error[0], error)
            mixed = jm.slices(recall, scores, labels, np.arange(60) % 2, threshold="global")
            assert np.all(np.asarray(mixed.standard_error) > 0)


@pytest.mark.parametrize("method", ["step", "linear"])
def test_without_a_class_nothing_is_known(method):
    recall = partial(jm.recall_at_fpr, max_fpr=0.3, method=method)
    scores, labels = np.arange(12.0).reshape(2, 6), np.array([[0] * 6, [1, 0, 1, 0, 1, 0]])
    phi = np.asarray(jm.influence(recall, scores, labels))
    assert np.isnan(phi[0]).all()
    assert np.isfinite(phi[1]).all()
    assert jm.influence(recall, np.zeros(0), np.zeros(0, int)).shape == (0,)
    assert np.isnan(jm.standard_error(recall, scores[0], labels[0]))
