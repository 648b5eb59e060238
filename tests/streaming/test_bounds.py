"""What a stream is certain of: bounds that hold the exact value."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import marked
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from streams import BINS, METRICS, UNIFORM, S, filled, index_of, sample

import jaxmetrics as jm
from jaxmetrics._base.numerics import SLACK
from jaxmetrics.streaming._bounds import _ROUNDING, _share_at, _widened
from jaxmetrics.streaming._ends import Counted, _least_precision, ends_by_precision, ends_by_score

OF_ENDS = ("roc_auc", "range", "linear", "threshold", "average precision")
OF_ENDS += ("recall at precision", "specificity")
PARTIAL = ("partial", "range", "two-way")
UNWEIGHTED = ("roc_auc", "recall", "threshold", "average precision")


@pytest.mark.parametrize(
    ("name", "weighted"),
    [  # Each way to an end; that they hold is seen of the others by the two tests of weights, too.
        marked(x, weighted, fast=x in OF_ENDS and weighted == (x not in UNWEIGHTED))
        for x in METRICS
        for weighted in (True, False)
    ],
)
def test_bounds_hold(name, weighted, rng, x64):
    """Of scores with ties, in one bin and in many; the best and the worst order reach them.

    Of as many models as NumPy takes one by one.
    """
    metric = METRICS[name]
    bins = UNIFORM
    weights = rng.integers(1, 5, 60).astype(np.float32) if weighted else None
    rows = np.round(rng.random((8, 60)), 3).astype(np.float32)
    rows[0] = 0.5
    labels = rng.random(60) < 0.3
    labels[:2] = True, False
    index = index_of(bins, rows)
    inside = np.float32(1e-4) * rng.permuted(np.tile(np.arange(60), (8, 1)), axis=1)
    worst = bins.lower[index].clip(0) + np.where(labels, 0, 0.01).astype(np.float32)
    best = bins.lower[index].clip(0) + np.where(labels, 0.01, 0).astype(np.float32)
    for scores in (rows, bins.lower[index].clip(0) + inside, worst, best):
        assert_array_equal(index_of(bins, scores), index)
        state = filled(bins, scores, labels, weights=weights, batch=(8,))
        low, high = S.bounds(metric, state, bins=bins)
        value = metric(scores, labels, weights=weights)
        assert (low <= value).all()
        assert (value <= high).all()
        tied = metric(S.table(state, bins=bins))
        assert (low <= tied).all()
        assert (tied <= high).all()
    if name not in ("threshold", "average precision"):
        # With weights, a rate within 2^-40 of a limit of a partial area is taken for the limit.
        room = 2e-12 if weighted and name in PARTIAL else 0
        assert_allclose(metric(worst, labels, weights=weights), low, rtol=1e-12, atol=room)
        assert_allclose(metric(best, labels, weights=weights), high, rtol=1e-12, atol=room)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_bounds_cannot_be_broken(data):
    """Adversarial scores, ties, weights and merges; on the grid of the bins and beside it."""
    bins = BINS[data.draw(st.sampled_from(["uniform", "edges"]))]
    n = 12
    grid = np.concatenate([bins.lower[1:], np.nextafter(bins.lower[1:], np.float32(-np.inf))])
    score = st.one_of(
        st.sampled_from(grid.tolist()),
        st.floats(-2, 2, width=32),
        st.sampled_from([float("inf"), float("-inf"), 0.0, -0.0]),
    )
    scores = np.float32(data.draw(st.lists(score, min_size=n, max_size=n)))
    labels = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    weights = np.float32(
        data.draw(st.lists(st.sampled_from([0, 0.25, 1, 3, 1000]), min_size=n, max_size=n))
    )
    cut = data.draw(st.integers(1, n - 1))
    parts = [slice(None, cut), slice(cut, None)]
    # Padded, so that shapes are few.
    states = []
    for part in parts:
        where = np.zeros(n, bool)
        where[part] = True
        states.append(filled(bins, scores, labels, weights=weights, where=where))
    state = S.merge(*states)
    name = data.draw(
        st.sampled_from(["roc_auc", "two-way", "recall", "threshold", "average precision"])
    )
    low, high = S.bounds(METRICS[name], state, bins=bins)
    value = METRICS[name](scores, labels, weights=weights)
    if np.isnan(value):
        assert np.isnan(low) or name == "average precision"
    else:
        assert low <= value <= high


UNEQUAL = [0.9, 0.3, 0.3, 0.1], [0, 1, 0, 0]
BESIDE_LIMITS = {
    "all": (UNEQUAL, [2.0**24, 1, 2.0**-20, 0], {"max_fpr": 1.0}),
    "half": (UNEQUAL, [2.0**24, 1, 2.0**-20, 2.0**24 - 2.0**-20], {"max_fpr": 0.5}),
    "without weights": (([0.9, 0.4, 0.3], [0, 1, 0]), None, {"max_fpr": 0.5 + 2.0**-43}),
    "two-way": (
        ([1, 0.94, 0.87, 0.75, 0.44, 0.44, 0.19, 0.12, 0.12], [0, 0, 1, 1, 1, 0, 0, 1, 0]),
        [2.0**29, 2.0**-23, 0.125, 2.0**19, 2.0**16, 2.0**11, 2.0**-13, 2.0**21, 2.0**-16],
        {"max_fpr": 1.0, "min_tpr": 0.7, "scale": "range"},
    ),
}


@pytest.mark.parametrize("name", BESIDE_LIMITS)
def test_bounds_hold_where_rates_are_beside_a_limit(name, x64):
    """An area of differences between rates and limits, each of which is rounding."""
    (scores, labels), weights, limits = BESIDE_LIMITS[name]
    metric, bins = partial(jm.partial_auc, **limits), S.edges([0.2, 0.5])
    given, weights = (None if x is None else np.array(x) for x in (scores, weights))
    given = given.astype(np.float32)
    state = filled(bins, given, np.array(labels), weights=weights)
    low, high = S.bounds(metric, state, bins=bins)
    assert low <= metric(given, labels, weights=weights) <= high
    assert high - low < 1e-11


def test_bounds_of_a_rare_class(rng):
    """200 uniform bins take an AUC of .75 for .54; they say so, and float16 bins do not."""
    labels = np.arange(200_000) % 1000 == 0
    scores = 1 / (1 + np.exp(8 - rng.normal(size=len(labels)) - labels))
    scores = scores.astype(np.float32)
    exact = float(jm.roc_auc(scores, labels))
    coarse, fine = (filled(b, scores, labels) for b in (S.uniform_bins(200), BINS["float16"]))
    assert jm.roc_auc(S.table(coarse, bins=S.uniform_bins(200))) < exact - 0.1
    low, high = S.bounds(jm.roc_auc, coarse, bins=S.uniform_bins(200))
    assert low < exact < high
    low, high = S.bounds(jm.roc_auc, fine, bins=BINS["float16"])
    assert low < exact < high
    assert high - low < 1e-3


def test_bounds_are_rounded_outwards(rng):
    scores, labels = sample(rng, 3000)
    state = filled(UNIFORM, scores, labels)
    with jax.enable_x64(True):
        wide = S.bounds(jm.roc_auc, state, bins=UNIFORM)
    narrow = S.bounds(jm.roc_auc, state, bins=UNIFORM)
    assert narrow.low.dtype == np.float32
    assert float(narrow.low) <= float(wide.low) < float(wide.high) <= float(narrow.high)


@pytest.mark.slow
def test_bounds_where_rounding_takes_all_positives():
    """Each weighs less than the unit of the sums."""
    bins, labels = jm.streaming.edges([0.2, 0.5]), np.arange(200) < 50
    scores = np.random.default_rng(0).random(200).astype(np.float32)
    weights = np.where(labels, 1e-12, 1e-3).astype(np.float32)
    state = jm.streaming.init(bins, weighted=True)
    state = jm.streaming.update(state, scores, labels, bins=bins, weights=weights)
    for metric in (
        partial(jm.precision_at_recall, min_recall=0.5),
        partial(jm.threshold_at_fpr, max_fpr=0.2),
        partial(jm.threshold_at_fpr, max_fpr=1.0),
        jm.average_precision,
    ):
        low, high = jm.streaming.bounds(metric, state, bins=bins)
        assert low <= metric(scores, labels, weights=weights) <= high


def test_rounding_moves_a_limit_between_bins_whose_edge_is_near_it(x64):
    """2 negatives in each of 5 bins: with weights it may be in each bin that it touches."""
    negatives, positives = jnp.full(5, 2.0), jnp.array([1.0, 1, 3, 0, 5])
    ends, none = jnp.arange(5.0), jnp.zeros(())
    bins = Counted(positives, negatives, ends, ends + 1, none > 0, jnp.zeros(2))
    limits = jnp.array([0.4, 0.4 + 1e-9, 0.4 - 1e-9, 0.5])
    found = _share_at(limits, bins, 0, 1e-6, False)
    assert_allclose(found, [0, 0.4, 0.4, 0])  # the edge itself is exact
    found = _share_at(limits, bins, 0, 1e-6, True)
    assert_allclose(found, [0.4, 0.4, 0.4, 0.3])


def test_ends_of_a_window_are_widened_by_the_rounding_at_its_limits(x64):
    """Half of the positives are in the last bin, and the floor is by the edge between two bins."""
    one, ends = jnp.ones(2), jnp.arange(2.0)
    bins = Counted(one, one, ends, ends + 1, jnp.asarray(False), jnp.zeros(2))
    options = {"max_fpr": 1.0, "min_fpr": 0.0, "min_tpr": 0.5 + 1e-14, "scale": "raw"}
    for weighted, room in ((False, SLACK), (True, 2 * (SLACK + _ROUNDING))):
        low, high = _widened(jnp.asarray(0.2), jnp.asarray(0.2), options, bins, weighted)
        assert_allclose([0.2 - low, high - 0.2], room, rtol=1e-3)


def of_ends(table):
    """The positives and negatives of the first row and of the last one."""
    return jnp.stack([x[i] for i in (0, -1) for x in (table.positives, table.negatives)])


def test_lost_weights_are_where_they_lower_or_raise_the_value(x64):
    """0.5 of the negatives and 0.25 of the positives, beside 3 and 4 and 1 and 2."""
    ends = jnp.arange(2.0)
    lost = Counted(
        jnp.array([1.0, 2]),
        jnp.array([3.0, 4]),
        ends,
        ends,
        jnp.asarray(False),
        jnp.array([0.5, 0.25]),
    )
    low, _, high = ends_by_precision(of_ends, lost, True)
    assert_allclose(low, [0, 3.5, 2.25, 7.5 * 0.25 / 3])
    assert_allclose(high, [1.25, 0, 0, 4.5])
    best, _, worst = ends_by_score(of_ends, lost, True)
    assert_allclose(best, [1.25, 0, 0, 4.5])
    assert_allclose(worst, [0, 3.5, 2, 0])


@pytest.mark.parametrize(
    ("positives", "weight", "undefined", "infinite"),
    [(0, 0.5, False, True), (1, 0.5, False, False), (0, 0, False, False), (0, 0.5, True, False)],
)
def test_a_threshold_where_all_positives_may_be_lost(positives, weight, undefined, infinite):
    at, none = jnp.arange(1.0), jnp.zeros(1)
    lost = jnp.array([0, weight])
    bins = Counted(none + positives, none + 1, at, at, jnp.asarray(undefined), lost)
    value = ends_by_score(lambda table: jnp.zeros(()), bins, True)[2]
    assert jnp.isinf(value) == infinite


def test_least_average_precision_of_a_bin_by_hand():
    """A positive below a negative: it is 1 / 2, and less where both may be split."""
    one = jnp.ones(1)
    assert_allclose(_least_precision(one, one, False), 1 - np.log(2.5 / 1.5), rtol=1e-6)
    assert_allclose(_least_precision(one, one, True), 1 - np.log(2), rtol=1e-6)
