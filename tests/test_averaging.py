"""Class averages against scikit-learn, and against the definition."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sklearn.metrics as sk
from fast import in_turn
from registry import youden

import jaxmetrics as jm

N, CLASSES = 60, 4


@pytest.fixture
def problem(rng):
    labels = np.r_[np.arange(CLASSES), rng.integers(0, CLASSES, N - CLASSES)]
    scores = rng.dirichlet(np.ones(CLASSES), N) + np.eye(CLASSES)[labels] / 3
    scores /= scores.sum(1, keepdims=True)
    return scores, labels, rng.random(N) + 0.1


def close(a, b):
    np.testing.assert_allclose(np.asarray(a), b, rtol=2e-6)


@pytest.mark.parametrize(
    ("average", "weighted"), in_turn(("macro", "weighted", "micro", None), (False, True))
)
def test_one_vs_rest(problem, average, weighted):
    scores, labels, weights = problem
    weights = weights if weighted else None
    options = {"average": average, "sample_weight": weights}
    expected = sk.roc_auc_score(labels, scores, multi_class="ovr", **options)
    close(jm.one_vs_rest(jm.roc_auc, average)(scores, labels, weights=weights), expected)
    expected = sk.average_precision_score(np.eye(CLASSES)[labels], scores, **options)
    close(jm.one_vs_rest(jm.average_precision, average)(scores, labels, weights=weights), expected)


@pytest.mark.parametrize("average", ["macro", "weighted"])
def test_one_vs_one(problem, average):
    scores, labels, _ = problem
    expected = sk.roc_auc_score(labels, scores, multi_class="ovo", average=average)
    close(jm.one_vs_one(jm.roc_auc, average)(scores, labels), expected)


@pytest.mark.parametrize("turns", [pytest.param(1, marks=pytest.mark.slow), 3, 100])
def test_one_vs_one_by_pairs_in_turns(problem, turns, monkeypatch):
    scores, labels, weights = problem
    monkeypatch.setattr("jaxmetrics._roc.averaging._PAIR_WEIGHTS", CLASSES**2 * N // turns)
    metric = partial(jm.partial_auc, max_fpr=[0.2, 0.5])
    expected = []
    for a in range(CLASSES):
        for b in range(a + 1, CLASSES):
            pair = np.isin(labels, (a, b))
            forth, back = (
                metric(scores[pair, c], labels[pair] == c, weights=weights[pair]) for c in (a, b)
            )
            expected.append((np.asarray(forth) + np.asarray(back)) / 2)
    values = jm.one_vs_one(metric, None)(scores, labels, weights=weights)
    close(values, np.array(expected))


@pytest.mark.parametrize(
    ("average", "weighted"), in_turn(("macro", "weighted", "micro", "samples", None), (False, True))
)
def test_multilabel(average, weighted, rng):
    truth = rng.random((N, 5)) < 0.4
    truth[:, 0], truth[:, 1] = True, False  # every row has both, as "samples" needs
    truth[0], truth[1] = [1, 0, 1, 1, 1], [0, 1, 0, 0, 0]
    scores = np.round(rng.random((N, 5)) + truth / 3, 1)
    weights = rng.random(N) + 0.1 if weighted else None
    options = {"average": average, "sample_weight": weights}
    for ours, theirs in (
        (jm.roc_auc, sk.roc_auc_score),
        (
            partial(jm.partial_auc, max_fpr=0.5, scale="mcclish"),
            partial(sk.roc_auc_score, max_fpr=0.5),
        ),
        (jm.average_precision, sk.average_precision_score),
    ):
        value = jm.multilabel(ours, average)(scores, truth, weights=weights)
        close(value, theirs(truth, scores, **options))


@pytest.mark.parametrize(
    ("average", "kind"),
    in_turn(["macro", "weighted", "micro", None], ["one_vs_rest", "one_vs_one", "multilabel"]),
)
def test_where_equals_deletion(problem, average, kind, rng):
    if kind == "one_vs_one" and average == "micro":
        pytest.skip("not defined")
    scores, labels, weights = problem
    keep = rng.random(N) < 0.8
    keep[:CLASSES] = True
    metric = getattr(jm, kind)(youden, average)
    truth = np.eye(CLASSES)[labels] if kind == "multilabel" else labels
    expected = metric(scores[keep], truth[keep], weights=weights[keep])
    spoiled = np.where(keep[:, None], scores, np.nan)
    hidden = np.where(keep[:, None] if kind == "multilabel" else keep, truth, -1)
    close(metric(spoiled, hidden, weights=weights, where=keep), expected)


def test_samples_where(rng):
    truth = np.tile([1, 0, 1], (4, 1))
    scores = rng.random((4, 3))
    where = np.array([True, False, True, True])
    spoiled = np.where(where[:, None], scores, np.nan)
    metric = jm.multilabel(jm.roc_auc, "samples")
    close(metric(spoiled, truth, where=where), metric(scores[where], truth[where]))


def test_decisions_are_pooled_for_each_row_of_a_batch(problem):
    scores, labels, weights = problem
    scores = np.stack([scores, scores[::-1]])
    metric = partial(jm.one_vs_rest(jm.roc_auc, "micro"), weights=weights)
    close(metric(scores, labels), [metric(x, labels) for x in scores])


@pytest.mark.parametrize(
    ("kind", "average"), in_turn(["one_vs_rest", "one_vs_one"], ["macro", None])
)
def test_batch_and_transforms(problem, kind, average, rng):
    scores, labels, _ = problem
    scores = jnp.asarray(np.stack([scores, scores[::-1]]), jnp.float32)
    labels = jnp.asarray(labels)
    metric = getattr(jm, kind)(partial(jm.recall_at_fpr, max_fpr=[0.1, 0.3]), average)
    expected = np.stack([np.asarray(metric(row, labels)) for row in scores])
    close(metric(scores, labels), expected)
    close(jax.jit(metric)(scores, labels), expected)
    close(jax.vmap(metric, (0, None))(scores, labels), expected)


def test_gradient_of_an_average(problem):
    scores, labels, weights = problem
    metric = jm.one_vs_rest(jm.roc_auc)
    gradient = jax.grad(lambda w: metric(scores, labels, weights=w))(jnp.asarray(weights))
    assert np.isfinite(gradient).all()
    np.testing.assert_allclose(gradient @ weights, 0, atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "average"),
    [
        *in_turn(("one_vs_rest", "one_vs_one"), ("macro", "weighted", None)),
        ("one_vs_rest", "micro"),
    ],
)
def test_a_traced_class_without_a_column_is_nan_unless_it_is_left_out(problem, kind, average):
    scores, labels, _ = problem
    padded = np.where(np.arange(N) < N - 9, labels, -1)
    metric = getattr(jm, kind)(jm.roc_auc, average)
    traced = jax.jit(metric)
    for odd in (padded, np.where(padded < 0, CLASSES, padded)):
        value = traced(scores, odd)
        assert value.size
        assert jnp.isnan(value).all()
    expected = metric(scores[:-9], labels[:-9])
    assert jnp.isfinite(expected).all()
    close(traced(scores, padded, where=padded >= 0), expected)
    close(jax.jit(lambda where: metric(scores, padded, where=where))(padded >= 0), expected)


def test_an_absent_class_is_nan_and_not_dropped(problem):
    scores, labels, _ = problem
    labels = np.where(labels == 2, 0, labels)
    values = np.asarray(jm.one_vs_rest(jm.roc_auc, None)(scores, labels))
    assert np.isnan(values).tolist() == [False, False, True, False]
    assert np.isnan(jm.one_vs_rest(jm.roc_auc)(scores, labels))
    assert np.isfinite(jm.one_vs_rest(jm.roc_auc, "weighted")(scores, labels))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s, y: jm.one_vs_rest(jm.roc_auc, "samples"), "average must be one of"),
        (lambda s, y: jm.one_vs_one(jm.roc_auc, "micro"), "average must be one of"),
        (lambda s, y: jm.multilabel(jm.roc_auc, "mean"), "average must be one of"),
        (lambda s, y: jm.one_vs_rest(jm.roc_auc)(s, y + 1), "class indices from 0 to 3.*got 4"),
        (lambda s, y: jm.one_vs_rest(jm.roc_auc)(s[:, 0], y), r"\[..., n, classes\]"),
        (lambda s, y: jm.one_vs_rest(jm.roc_auc)(s.T, y), r"scores \[4, 60\], labels \[60\]"),
        (lambda s, y: jm.multilabel(jm.roc_auc)(s, y), r"\[..., n, labels\]"),
    ],
)
def test_errors(problem, call, words):
    scores, labels, _ = problem
    with pytest.raises(ValueError, match=words):
        call(scores, labels)


@pytest.mark.parametrize("build", [jm.one_vs_rest, jm.one_vs_one, jm.multilabel])
def test_a_metric_is_checked_before_it_is_called(build):
    with pytest.raises(TypeError, match=r"write jaxmetrics.roc_auc without quotes"):
        build("roc_auc")


@pytest.mark.parametrize("average", ["macro", "weighted", None])
@pytest.mark.parametrize("metric", [jm.roc_auc, youden], ids=["ours", "user's"])
@pytest.mark.parametrize("kind", ["one_vs_rest", "one_vs_one"])
def test_results_are_arrays_of_jax_on_the_device_of_the_scores(problem, kind, metric, average):
    scores, labels, _ = problem
    of_classes = getattr(jm, kind)(metric, average)
    expected = of_classes(scores, labels)
    assert isinstance(expected, jax.Array)
    device = jax.devices()[1]
    found = of_classes(*(jax.device_put(x, device) for x in (scores.astype(np.float32), labels)))
    assert found.devices() == {device}
    close(found, expected)


@pytest.mark.parametrize("kind", ["one_vs_rest", "one_vs_one"])
def test_weights_of_any_size(problem, kind):
    """Their totals were infinite or 0 in single precision, and the mean NaN."""
    scores, labels, weights = problem
    metric = getattr(jm, kind)(jm.roc_auc, "weighted")
    expected = metric(scores, labels, weights=weights)
    for scale in (2.0**900, 2.0**-900):
        assert metric(scores, labels, weights=weights * scale) == expected


@pytest.mark.parametrize(
    ("scores", "labels", "way"), [((3, 60), (60,), "scores.swapaxes"), ((60, 3), (60, 3), "argmax")]
)
def test_classes_are_columns_of_scores_and_indices_in_labels(scores, labels, way):
    with pytest.raises(ValueError, match=rf"scores must be \[..., n, classes\].*: write .*{way}"):
        jm.one_vs_rest(jm.roc_auc)(np.zeros(scores), np.zeros(labels, int))
    with pytest.raises(ValueError, match=r"got scores \[60\], labels \[60\]$"):
        jm.one_vs_rest(jm.roc_auc)(np.zeros(60), np.zeros(60, int))
