"""What a slice holds changes nothing in the others, and what masked items hold changes nothing."""

from functools import partial

import numpy as np
import pytest

import jaxmetrics as jm

pytestmark = [pytest.mark.filterwarnings("ignore")]

N = 120
METRICS = (jm.roc_auc, jm.average_precision)
RNG = np.random.default_rng(0)
LABELS, WEIGHTS = RNG.random(N) < 0.5, RNG.random(N) + 0.1
SCORES = np.round(RNG.normal(size=(2, N)) + LABELS, 1)  # with ties


@pytest.mark.parametrize("metric", METRICS)
def test_a_slice_leaves_the_others_their_digits(metric):
    """Whatever the unit of its weights is, and where it has positives only."""
    ids, unit = np.arange(N) // 24, np.array([1.0, 1e-30, 1e9, 1, 1e-9])
    labels = LABELS | (ids == 3)
    alike = jm.slices(metric, SCORES, labels, ids, weights=WEIGHTS)
    found = jm.slices(metric, SCORES, labels, ids, weights=WEIGHTS * unit[ids])
    for key in ("estimate", "standard_error", "low", "high", "difference"):
        got, wanted = (getattr(x.models if key == "difference" else x, key) for x in (found, alike))
        np.testing.assert_allclose(got, wanted, rtol=1e-5, err_msg=key)
    last = jm.confidence_interval(metric, SCORES, labels, where=ids == 4, weights=WEIGHTS)
    np.testing.assert_allclose(found.low[4], last.low, rtol=2e-5)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("ties", [False, True])
def test_models_that_are_equal_in_a_slice_do_not_differ_there(metric, ties):
    """What the slices before it hold is not in the digits of its sums of weights."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        ids, labels, weights = np.arange(N) // 30, rng.random(N) < 0.4, rng.lognormal(size=N)
        scores = rng.normal(size=(2, N)) + labels
        scores[1, ids == 2] = scores[0, ids == 2]
        scores = scores.round() if ties else scores
        found = jm.slices(metric, scores, labels, ids, weights=weights).models
        for name, value in (("difference", 0), ("low", 0), ("high", 0), ("p_value", 1)):
            assert getattr(found, name)[2, 0, 1] == value


def test_models_without_errors_are_compared_as_outside_of_slices():
    """Also one with an area of 0, of which rounding leaves a variance that is not exactly 0."""
    rng = np.random.default_rng(7)
    labels, first = rng.random(400) < 0.3, np.zeros(400, int)
    perfect, equal = labels + rng.random(400) / 10, np.full(400, 0.5)
    for scores in ([equal, perfect], [equal, -perfect], [perfect, -perfect]):
        found = jm.slices(jm.roc_auc, np.stack(scores), labels, first).models
        alone = jm.compare(jm.roc_auc, np.stack(scores), labels)
        for name in ("difference", "low", "high", "p_value"):
            got, wanted = getattr(found, name)[0, 0, 1], getattr(alone, name)[0, 1]
            np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("weight", [None, 0.7, 1e-20])
def test_one_threshold_on_a_line_does_not_depend_on_the_unit_of_weights(weight):
    """Of models of equal scores, and of perfect ones, whose errors are rounding."""
    recall = partial(jm.recall_at_fpr, max_fpr=0.2, method="linear")
    given = {"min_items": 3, "threshold": "global"}
    for n in (30, 90, 200):
        weights = None if weight is None else np.full(n, weight)
        labels, first = np.arange(n) % 5 < 2, np.zeros(n, int)
        both = jm.slices(recall, np.zeros((2, n)), labels, first, weights=weights, **given)
        alone = jm.compare(recall, np.zeros((2, n)), labels)
        np.testing.assert_allclose(both.models.low[0, 0, 1], alone.low[0, 1], rtol=1e-5)
        ids = np.arange(n) % 3
        labels = labels | (ids == 0)
        found = jm.slices(recall, labels * 1.0, labels, ids, weights=weights, **given).rest
        expected = jm.slices(recall, labels * 1.0, labels, ids, **given).rest
        np.testing.assert_allclose(found.low, expected.low, rtol=1e-5)


@pytest.mark.parametrize("weight", [0.1, 0.3, 7.7])
def test_limits_of_a_recall_on_a_line_do_not_depend_on_the_unit_of_weights(weight, rng):
    """The line is at 0 or 1, but for rounding, at likely numbers of negatives."""
    labels = np.arange(19) < 6
    scores = rng.normal(size=(300, 19)).round(1) + labels
    given = (partial(jm.recall_at_fpr, max_fpr=[0.1, 0.3, 0.5], method="linear"), scores, labels)
    found = jm.confidence_interval(*given, weights=np.full(19, weight))
    expected = jm.confidence_interval(*given)
    np.testing.assert_allclose(found.low, expected.low, atol=1e-6)
    np.testing.assert_allclose(found.high, expected.high, atol=1e-6)


@pytest.mark.parametrize("missing", [None, np.nan])
def test_masked_items_may_lack_a_name(missing):
    masked = np.arange(N) < 5
    names = np.arange(N) % 3 if missing else np.array(["a", "b", "c"])[np.arange(N) % 3]
    lacking = np.where(masked, missing, names)
    given = (jm.roc_auc, SCORES[0], LABELS)
    for call in (
        lambda names: jm.slices(*given, names, where=~masked).low,
        lambda names: jm.slices(*given, (np.arange(N) % 2, names), where=~masked).low,
        lambda names: jm.fold_interval(*given, names, where=~masked).pooled.low,
        lambda names: jm.confidence_interval(*given, clusters=names, where=~masked).low,
        lambda names: jm.compare_samples(*given, names, where=~masked).difference,
    ):
        np.testing.assert_array_equal(call(lacking), call(names))
    with pytest.raises(ValueError, match="slices must not be None or NaN"):
        jm.slices(*given, lacking, where=np.stack([~masked, np.arange(N) > 3]).any(axis=0))


@pytest.mark.parametrize("weights", [None, [1, 2, 1, 3, 0.5, 1, 1, 1]])
def test_all_positives_are_caught_where_all_negatives_may_be(weights):
    """Also those below every negative of their slice."""
    scores, labels = [0, 1, 2, 3, 5, 4, 0, 9], [1, 0, 1, 0, 0, 1, 1, 0]
    metric = partial(jm.recall_at_fpr, max_fpr=1.0)
    found = jm.slices(metric, scores, labels, np.repeat([0, 1], 4), weights=weights)
    assert found.estimate.tolist() == [1, 1]
