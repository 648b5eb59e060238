"""Resamples replayed: the metric of items that are repeated as often as they were drawn."""

from functools import partial

import jax
import numpy as np
import pytest
from fast import in_turn, marked
from registry import youden
from resamples import FEW, KEY, N, close, problem, repeated, replicates
from scipy import stats

import jaxmetrics as jm
from jaxmetrics.inference._bootstrap import by_weight as _by_weight
from jaxmetrics.inference._bootstrap import finish as _finish
from jaxmetrics.inference._bootstrap import mixed_rows as _mixed_rows
from jaxmetrics.inference._bootstrap import run as _run


def counted(table):
    """How often the items of each row are drawn."""
    return table.positives + table.negatives


def counts_of_items(labels, where, **options):
    """How often each item is drawn, `[FEW, n]`, if several models are given: those of a further
    model, of which no scores tie. All models get the same resamples."""
    scores = np.broadcast_to(-np.arange(N), (2, N))
    found = replicates(counted, scores, labels, where=where, **options)[:, 0]
    result = np.zeros((len(found), N))
    result[:, where] = found[:, : where.sum()]
    return result


PARTIAL = partial(jm.partial_auc, max_fpr=[0.02, 0.1, 0.25], scale="mcclish")
RECALL = partial(jm.recall_at_fpr, max_fpr=[0.05, 0.2])
# Metrics that are given tables: of one program here, and each by its ordinary call.
OF_TABLES = {
    "linear": partial(jm.recall_at_fpr, max_fpr=0.1, method="linear"),
    "quantile": partial(jm.recall_at_fpr, max_fpr=[0.1, 0.3], method="quantile"),
    "two-way": partial(jm.partial_auc, min_fpr=0.05, max_fpr=0.4, min_tpr=0.2),
    "youden": youden,
}


def all_of_tables(table):
    return {name: metric(table) for name, metric in OF_TABLES.items()}


@pytest.fixture(scope="module")
def drawn_items(data):
    return counts_of_items(data.labels, data.where)


OF_MODELS = {
    "roc_auc": jm.roc_auc,
    "partial_auc": PARTIAL,
    "average_precision": jm.average_precision,
}


@pytest.mark.parametrize(
    ("name", "ties"),
    [*in_turn(OF_MODELS, (True, False)), *(marked("recall", x, fast=False) for x in (True, False))],
)
def test_replay_of_models(name, ties, data, drawn_items):
    """Heavy ties or none, a mask that hides NaN, and two models whose resamples are the same."""
    metric = OF_MODELS.get(name, RECALL)
    scores = problem(ties=ties).scores
    assert (len(np.unique(scores[0])) == N) is not ties
    spoiled = np.where(data.where, scores, np.nan)
    got = replicates(metric, spoiled, data.labels, where=data.where)
    (scores, labels), where = repeated(drawn_items, scores, data.labels)
    expected = metric(scores, labels, where=where)
    close(np.moveaxis(got, 1, 0), expected)


def test_replay_of_tables(data, drawn_items):
    """Of a metric with several values."""
    got = jm.bootstrap(
        all_of_tables, data.scores, data.labels, where=data.where, key=KEY, n_resamples=FEW
    )
    (scores, labels), where = repeated(drawn_items, data.scores, data.labels)
    for name, metric in OF_TABLES.items():
        expected = metric(scores, labels, where=where)
        close(np.moveaxis(np.asarray(got.replicates[name]), 1, 0), expected, rtol=1e-5)
        assert got.standard_error[name].shape == (2, *expected.shape[2:])
    with pytest.raises(TypeError, match="the metric has several results"):
        got.interval()


@pytest.mark.parametrize(
    ("metric", "amounts"),
    [
        pytest.param(
            partial(jm.partial_auc, min_fpr=0.05, max_fpr=0.2), False, marks=pytest.mark.slow
        ),
        (RECALL, True),
        (jm.average_precision, False),
    ],
    ids=["band", "recall", "average_precision"],
)
def test_replay_of_weights(metric, amounts, data, rng):
    """A count multiplies the weight. An item without weight is never drawn, whatever it holds."""
    where = data.where & (data.weights > 0)
    scores = np.where(where, data.scores[0], np.nan)
    weights = data.weights * np.where(data.labels, 10, 1)
    options = {"weights": weights, "where": data.where}
    per_item = [data.scores[0], data.labels, weights]
    if amounts:
        options["amounts"] = rng.random(N)
        per_item.append(options["amounts"])
    got = replicates(metric, scores, data.labels, **options)
    # Items of one model are numbered as they stand in its order, which begins with NaN.
    order = np.lexsort((data.labels, -np.nan_to_num(scores, nan=np.inf), ~data.where))
    drawn = np.zeros((FEW, N))
    drawn[:, order] = counts_of_items(data.labels[order], where[order])
    again, valid = repeated(drawn, *per_item)
    names = dict(zip(("weights", "amounts"), again[2:], strict=False))
    close(got, metric(*again[:2], where=valid, **names), rtol=1e-5)


def test_replay_of_clusters(data):
    clusters = np.arange(N) // 7
    drawn = counts_of_items(data.labels, data.where, clusters=clusters)
    for k in range(5):  # a cluster is drawn as a whole
        members = drawn[:, (clusters == k) & data.where]
        assert (members == members[:, :1]).all()
    got = replicates(PARTIAL, data.scores, data.labels, where=data.where, clusters=clusters)
    (scores, labels), where = repeated(drawn, data.scores, data.labels)
    close(np.moveaxis(got, 1, 0), PARTIAL(scores, labels, where=where))


@pytest.mark.parametrize(
    ("metric", "resampling"),
    [
        (jm.average_precision, "multinomial"),
        marked(RECALL, "bayesian", fast=False),
        marked(jm.roc_auc, "multinomial", fast=False),
        marked(PARTIAL, "bayesian", fast=False),
    ],
)
def test_few_weights_are_drawn_in_runs(metric, resampling, monkeypatch):
    """Ties, masked items and weights of 0; the law is that of items drawn one by one."""
    rng = np.random.default_rng(11)
    n, few = N, []
    labels = rng.random(n) < 0.05
    scores = np.round(rng.normal(size=n) + 1.5 * labels, 1).astype("float32")
    weights = rng.choice([0.0, 0.5, 3.0], n, p=[0.1, 0.6, 0.3]) * np.where(labels, 1, 20)
    given = {"weights": weights, "where": rng.random(n) < 0.9}
    scores[weights == 0] = np.nan

    def few_weights(items):
        few.append(_by_weight.few_weights(items))
        return few[-1]

    def resampled():
        options = {"resampling": resampling, "key": KEY, "n_resamples": 1000, "batch": 128}
        return jm.bootstrap(metric, scores, labels, **given, **options)

    monkeypatch.setattr(_run, "few_weights", few_weights)
    got = resampled()
    assert few == [True]
    monkeypatch.setattr(_run, "few_weights", lambda items: False)
    expected = resampled()
    np.testing.assert_allclose(got.estimate, metric(scores, labels, **given), rtol=1e-6)
    np.testing.assert_allclose(got.standard_error, expected.standard_error, rtol=0.12)
    columns = (np.asarray(x.replicates).reshape(1000, -1).T for x in (got, expected))
    for one, other in zip(*columns, strict=True):
        assert stats.ks_2samp(one, other).pvalue > 1e-3


@pytest.mark.slow
def test_few_weights_draw_the_same_wherever_the_arrays_lie():
    rng = np.random.default_rng(2)
    labels = rng.random(640) < 0.05
    scores = rng.normal(size=640).astype("float32")
    given = scores, labels, np.where(labels, 1.0, 20.0).astype("float32")
    mesh = jax.make_mesh((2,), ("d",))
    with jax.set_mesh(mesh):
        on_mesh = [jax.device_put(x, jax.NamedSharding(mesh, jax.P("d"))) for x in given]
        found = replicates(jm.roc_auc, *on_mesh[:2], weights=on_mesh[2])
    np.testing.assert_array_equal(found, replicates(jm.roc_auc, *given[:2], weights=given[2]))


def test_a_weight_for_each_class_changes_no_replicate_of_the_auc(data):
    labels = data.labels & (np.arange(N) % 4 == 0)
    weights = np.where(labels, 2.0, 32.0)
    got = replicates(jm.roc_auc, data.scores[0], labels, weights=weights)
    np.testing.assert_array_equal(got, replicates(jm.roc_auc, data.scores[0], labels))


@pytest.mark.parametrize(
    "options", [marked(x, fast=x == "weights") for x in ("", "weights", "clusters")]
)
def test_few_rows_of_both_classes_are_counted_apart(options, monkeypatch, rng):
    """Beside cells in rows of their own, which are counted in whole numbers if they are many."""
    n, mixed, whole = 2000, [], []
    labels = rng.random(n) < 0.3
    scores = (rng.normal(size=(2, n)) + labels).astype("float32")
    scores[0, :30], scores[1, 40:52], scores[:, np.flatnonzero(labels)[-5:]] = 9, 0.5, 1
    given = {"clusters": np.arange(n) // 4, "weights": rng.random(n)}
    given = {options: given[options]} if options else {}

    def with_mixed(cells):
        mixed.append(_mixed_rows.with_mixed(cells))
        return mixed[-1]

    counted_in_tiles = _finish._area_of_counts

    def area_of_counts(*given):
        whole.append(given)
        return counted_in_tiles(*given)

    monkeypatch.setattr(_run, "with_mixed", with_mixed)
    monkeypatch.setattr(_finish, "MANY", 0)
    monkeypatch.setattr(_finish, "_area_of_counts", area_of_counts)
    got = replicates(jm.roc_auc, scores, labels, **given)
    assert mixed[-1].mixed.used.tolist() == [30, 12]
    assert bool(whole) == (options != "weights")
    monkeypatch.setattr(_run, "with_mixed", lambda cells: None)
    np.testing.assert_allclose(
        got, replicates(jm.roc_auc, scores, labels, **given), rtol=2e-7 * bool(given)
    )


def test_rates_of_all_the_weight_are_exact(rng):
    """Sums in another order would make a recall of all differ from 1, and a specificity from 0."""
    scores, labels, weights = rng.normal(size=300), rng.random(300) < 0.3, 10 * rng.random(300)
    labels[scores.argmin()] = True
    given = scores, labels
    recall = replicates(partial(jm.recall_at_precision, min_precision=0.0), *given, weights=weights)
    np.testing.assert_array_equal(recall, 1)
    strict = partial(jm.specificity_at_sensitivity, min_sensitivity=1.0)
    specificity = replicates(strict, *given, weights=weights)
    assert specificity.min() == 0
