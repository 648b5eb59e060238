"""The bootstrap: resamples replayed item by item, against theory, and under all conditions."""

import logging
import warnings
from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import in_turn, marked
from registry import sample, youden
from scipy import stats

import jaxmetrics as jm
from jaxmetrics._base.checks import values as _values
from jaxmetrics.inference._bootstrap import by_weight as _by_weight
from jaxmetrics.inference._bootstrap import finish as _finish
from jaxmetrics.inference._bootstrap import mixed_rows as _mixed_rows
from jaxmetrics.inference._bootstrap import random as _random
from jaxmetrics.inference._bootstrap import run as _run
from jaxmetrics.inference._bootstrap import units as _units
from jaxmetrics.inference._bootstrap.finish import finish_of

# Most tests share shapes and programs; a worker of its own compiles each once.

KEY = jax.random.key(5)
N = 300
# 128 resamples or more are worked on 128 at a time, by one program.
FEW = 200


def problem(seed=0, ties=True):
    """Scores of two models, labels, weights, and a mask, of which the masked scores are NaN."""
    rng = np.random.default_rng(seed)
    labels = rng.random(N) < 0.3
    scores = rng.normal(size=N) + rng.normal(size=(2, N)) / 2 + 1.5 * labels
    # Few enough distinct scores that the runs fit into one tile.
    scores = (np.round(3 * scores) / 3 if ties else scores).astype("float32")
    weights = rng.random(N).astype("float32") + 0.1
    weights[rng.random(N) < 0.1] = 0
    where = rng.random(N) < 0.8
    return SimpleNamespace(scores=scores, labels=labels, weights=weights, where=where)


@pytest.fixture(scope="module")
def data():
    return problem()


def counted(table):
    """How often the items of each row are drawn."""
    return table.positives + table.negatives


def whole_table(table):
    return table


def close(a, b, rtol=2e-6):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=1e-7)


def replicates(metric, scores, labels, n_resamples=FEW, key=KEY, **options):
    result = jm.bootstrap(metric, scores, labels, key=key, n_resamples=n_resamples, **options)
    return np.asarray(result.replicates)


def counts_of_items(labels, where, **options):
    """How often each item is drawn, `[FEW, n]`, if several models are given: those of a further
    model, of which no scores tie. All models get the same resamples."""
    scores = np.broadcast_to(-np.arange(N), (2, N))
    found = replicates(counted, scores, labels, where=where, **options)[:, 0]
    result = np.zeros((len(found), N))
    result[:, where] = found[:, : where.sum()]
    return result


def repeated(counts, *arrays):
    """Each array `[n]` with item i physically repeated counts_i times, `[resamples, n]`; and a
    mask, as the resamples may differ in size."""
    counts = counts.astype(int)
    size = counts.sum(axis=1).max()
    index = np.zeros((len(counts), size), int)
    where = np.zeros(index.shape, bool)
    for row, valid, count in zip(index, where, counts, strict=True):
        items = np.repeat(np.arange(len(count)), count)
        row[: len(items)], valid[: len(items)] = items, True
    return [array[..., index] for array in arrays], where


# ---- replay: the metric of items that are repeated as often as they were drawn

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


def test_replay_of_runs(data, rng):
    """One model: within a run, any items of its class may take its count."""
    scores, labels = data.scores[0], data.labels

    @partial(jm.table_metric, of_roc_curve=True)
    def by_class(table):
        return jnp.stack([table.negatives, table.positives], axis=-1).ravel()

    result = jm.bootstrap(by_class, scores, labels, key=KEY, n_resamples=FEW)
    sizes, drawn = np.asarray(result.estimate, int), np.asarray(result.replicates, int)
    order = np.lexsort((labels, -scores))  # in a tie, negatives first
    runs = np.repeat(np.arange(len(sizes)), sizes)
    assert (labels[order] == runs % 2).all()
    assert sizes.max() > np.unique(scores, return_counts=True)[1].max()  # of several scores
    counts = np.zeros((FEW, N))
    for run in np.unique(runs):
        for resample in range(FEW):
            np.add.at(counts[resample], rng.choice(order[runs == run], drawn[resample, run]), 1)
    (again, kinds), where = repeated(counts, scores, labels)
    assert where.all()
    linear = partial(jm.recall_at_fpr, max_fpr=[0.03, 0.1], method="linear")
    for metric in (jm.roc_auc, linear):
        close(replicates(metric, scores, labels), metric(again, kinds))


@pytest.mark.slow
def test_replay_of_bayesian_runs(data):
    """The weight of a run is that of its items together."""
    scores, labels = data.scores[0], data.labels

    @partial(jm.table_metric, of_roc_curve=True)
    def by_class(table):
        return jnp.stack([table.negatives, table.positives], axis=-1).ravel()

    result = jm.bootstrap(by_class, scores, labels, key=KEY, n_resamples=FEW, resampling="bayesian")
    sizes, weights = np.asarray(result.estimate), np.asarray(result.replicates)
    assert (sizes > 0).sum() < len(np.unique(scores)) * 2
    row, kind = np.divmod(np.arange(len(sizes)), 2)
    for metric in (jm.roc_auc, partial(jm.partial_auc, max_fpr=[0.02, 0.3])):
        got = replicates(metric, scores, labels, resampling="bayesian")
        close(got, metric(np.broadcast_to(-row, weights.shape), kind, weights=weights), rtol=1e-5)
    one_by_one = replicates(jm.roc_auc, data.scores[[0, 0]], labels, resampling="bayesian")[:, 0]
    got = replicates(jm.roc_auc, scores, labels, resampling="bayesian", n_resamples=20_000)
    assert stats.ks_2samp(got, one_by_one).pvalue > 1e-3


OF_POSITIVES = {
    "average precision": jm.average_precision,
    "min_recall": partial(jm.precision_at_recall, min_recall=0.4),
    "min_precision": partial(jm.recall_at_precision, min_precision=0.6),
    "min_sensitivity": partial(jm.specificity_at_sensitivity, min_sensitivity=0.8),
    "max_fpr": partial(jm.threshold_at_fpr, max_fpr=0.1),
    "costs": partial(jm.min_cost_threshold, fp_cost=1.0, fn_cost=2.0),
}


@pytest.mark.parametrize(
    ("name", "width"),
    [
        # One of each way to find the point: a least recall, another rule, and costs.
        *(marked(x, 0, fast=x in ("min_recall", "min_precision", "costs")) for x in OF_POSITIVES),
        *(marked(x, 6, fast=False) for x in [*OF_POSITIVES][::2]),
    ],
)
def test_replay_of_runs_of_negatives(name, width, data, monkeypatch):
    """What positives alone decide: negatives between rows with positives are drawn as one.

    Rounded to multiples of 6, more positives tie than a unit can hold.
    """
    labels, scores = data.labels, problem(ties=False).scores[0]
    if width:
        scores = np.round(scores / width) * width
    metric = OF_POSITIVES[name]
    got = replicates(metric, scores, labels)
    rows_of_positives, largest = np.unique(scores[labels], return_counts=True)
    assert (largest.max() > _random.MAX_SIZE) == (width > 0)

    def of_tables(metric):
        how, arrays = finish_of(metric)
        return how._replace(merges=(True, False)), arrays

    monkeypatch.setattr(_run, "finish_of", of_tables)
    result = jm.bootstrap(whole_table, scores, labels, key=KEY, n_resamples=FEW)
    used = np.asarray(result.estimate.positives + result.estimate.negatives) > 0
    if not width:
        assert used.sum() < 2 * len(rows_of_positives) + 1 < N
    both = result.replicates
    rows = np.stack([both.negatives, both.positives], axis=-1).reshape(FEW, -1)
    values = np.repeat(np.asarray(both.thresholds[0]), 2)
    (again, kinds), where = repeated(rows, values, np.arange(len(values)) % 2)
    assert where.all()
    close(got, metric(again, kinds))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("metric", "name"),
    [
        (jm.precision_at_recall, "min_recall"),
        (jm.threshold_at_fpr, "max_fpr"),
    ],
)
def test_a_traced_limit_that_is_no_rate_gives_nan(metric, name, data):
    @jax.jit
    def drawn(limit):
        given = data.scores[0], data.labels
        limited = partial(metric, **{name: limit})
        return jm.bootstrap(limited, *given, where=data.where, key=KEY, n_resamples=8)

    for found in (drawn(np.nan), drawn(5.0)):
        assert np.isnan(found.estimate)
        assert np.isnan(found.replicates).all()


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


# ---- theory


@pytest.mark.parametrize("ties", [True, marked(False, fast=False)])
def test_spread_of_the_auc(ties):
    """The variance of the bootstrap AUC has a closed form."""
    data, n_resamples = problem(1, ties), 20_000
    positive, negative = data.scores[0][data.labels], data.scores[0][~data.labels]
    difference = positive[:, None] - negative
    wins = (difference > 0) + (difference == 0) / 2
    area, (n1, n0) = wins.mean(), wins.shape
    v10, v01 = wins.mean(axis=1).var(), wins.mean(axis=0).var()
    within = area - np.mean(difference == 0) / 4 - area**2
    variance = (within + (n0 - 1) * v10 + (n1 - 1) * v01) / (n0 * n1)
    options = {"key": KEY, "n_resamples": n_resamples, "batch": 128}  # of the program of few
    result = jm.bootstrap(jm.roc_auc, data.scores[0], data.labels, **options)
    close(result.estimate, area)
    error = np.sqrt(variance)
    assert abs(result.standard_error / error - 1) < 4 / np.sqrt(2 * n_resamples)
    assert abs(np.mean(result.replicates) - area) < 4 * error / np.sqrt(n_resamples)
    assert result.n_undefined == 0


def resampled_by_numpy(data, n_resamples):
    rng = np.random.default_rng(3)
    classes = [np.flatnonzero(data.labels == c) for c in (False, True)]
    index = np.concatenate([rng.choice(c, (n_resamples, len(c))) for c in classes], axis=1)
    return data.scores[0][index], data.labels[index]


@pytest.mark.parametrize(
    ("metric", "ties"),
    [
        pytest.param(partial(jm.partial_auc, max_fpr=0.1), True, marks=pytest.mark.slow),
        pytest.param(jm.average_precision, False, marks=pytest.mark.slow),
        pytest.param(partial(jm.partial_auc, max_fpr=0.1), False, marks=pytest.mark.slow),
        pytest.param(jm.average_precision, True, marks=pytest.mark.slow),
        pytest.param(partial(jm.recall_at_fpr, max_fpr=0.05), True, marks=pytest.mark.slow),
        pytest.param(partial(jm.recall_at_fpr, max_fpr=0.05), False, marks=pytest.mark.slow),
    ],
)
def test_against_numpy(metric, ties):
    """Where only the items of the highest scores are drawn, and where negatives are in runs."""
    data = problem(2, ties)
    got = replicates(metric, data.scores[0], data.labels, n_resamples=20_000)
    expected = np.asarray(metric(*resampled_by_numpy(data, 5000)))
    error = expected.std() * np.sqrt(1 / 20_000 + 1 / 5000)
    assert abs(got.mean() - expected.mean()) < 4 * error
    kurtosis = np.mean((expected - expected.mean()) ** 4) / expected.var() ** 2
    error_of_spread = np.sqrt((kurtosis - 1) / 4 * (1 / 20_000 + 1 / 5000))
    assert abs(got.std() / expected.std() - 1) < 4 * error_of_spread
    for share in (0.025, 0.975):
        tail = np.mean(got <= np.quantile(expected, share))
        below = np.mean(expected <= np.quantile(expected, share))
        assert abs(tail - below) < 4 * np.sqrt(below * (1 - below) / 5000) + 1e-3


# ---- the same key, the same answer


def test_any_chunk_gives_the_same(data):
    for scores, options in (
        (data.scores[0], {"batch": 37}),
        (data.scores, {"memory_budget": 20_000}),
    ):
        expected = replicates(jm.roc_auc, scores, data.labels)
        got = replicates(jm.roc_auc, scores, data.labels, **options)
        np.testing.assert_array_equal(got, expected)


def test_keys(data):
    scores, labels = data.scores[0], data.labels
    first = replicates(jm.roc_auc, scores, labels)
    np.testing.assert_array_equal(replicates(jm.roc_auc, scores, labels), first)
    # More resamples begin with the same.
    more = replicates(jm.roc_auc, scores, labels, n_resamples=3 * FEW)
    np.testing.assert_array_equal(more[:FEW], first)
    other = replicates(jm.roc_auc, scores, labels, key=jax.random.key(6))
    assert (first != other).mean() > 0.9
    raw = replicates(jm.roc_auc, scores, labels, key=jax.random.key_data(KEY))
    np.testing.assert_array_equal(raw, first)


@pytest.mark.slow  # the next has a program of a batch
def test_jit(data):
    def result(scores, labels):
        return jm.bootstrap(jm.roc_auc, scores, labels, key=KEY, n_resamples=FEW)

    jax.tree.map(close, jax.jit(result)(data.scores, data.labels), result(data.scores, data.labels))


def test_a_program_over_problems_that_may_be_undefined(data):
    """Under jit and vmap each is resampled as it would be alone, and what is undefined is NaN."""
    scores, labels = np.stack([data.scores[0]] * 6), np.stack([data.labels] * 6)
    where = np.stack([labels[0], ~labels[0], labels[0] & ~labels[0], *np.ones((3, N), bool)])
    scores[3, 17] = np.nan
    scores[5] = data.scores[1]

    def result(scores, labels, where):
        return jm.bootstrap(jm.roc_auc, scores, labels, where=where, key=KEY, n_resamples=FEW)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = jax.jit(jax.vmap(result))(scores, labels, where)
    for leaf in (found.estimate, found.replicates, found.standard_error):
        assert np.isnan(leaf[:4]).all()
        assert np.isfinite(leaf[4:]).all()
    np.testing.assert_array_equal(found.n_undefined, [FEW] * 4 + [0] * 2)
    for row, model in zip(found.replicates[4:], data.scores, strict=True):
        close(row, replicates(jm.roc_auc, model, data.labels))
    for i in range(4):
        with pytest.warns(UserWarning, match="undefined"):
            alone = result(scores[i], labels[i], where[i])
        assert np.isnan(alone.estimate)
        assert np.isnan(alone.replicates).all()
        assert np.isnan(alone.standard_error)
        assert alone.n_undefined == FEW


def test_x64_mode(data):
    single = replicates(jm.roc_auc, data.scores[0], data.labels)
    with jax.enable_x64(True):
        double = replicates(jm.roc_auc, data.scores[0], data.labels)
    assert (single.dtype, double.dtype) == (np.float32, np.float64)
    np.testing.assert_array_equal(double.astype("float32"), single)


def test_strict_promotion_of_the_callers(data):
    expected = replicates(jm.roc_auc, data.scores[0], data.labels)
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        got = replicates(jm.roc_auc, data.scores[0], data.labels)
    np.testing.assert_array_equal(got, expected)


def test_double_precision_scores_do_not_tie(data):
    order = np.argsort(np.argsort(data.scores[0] + 1e-3 * np.arange(N)))
    close_together = 1 + order * 1e-12
    assert len(np.unique(close_together.astype("float32"))) == 1
    got = replicates(jm.roc_auc, close_together, data.labels)
    np.testing.assert_array_equal(got, replicates(jm.roc_auc, order, data.labels))


def test_other_containers(data):
    expected = replicates(jm.roc_auc, data.scores[0], data.labels)
    given = data.scores[0].tolist(), data.labels.astype(int).tolist()
    np.testing.assert_array_equal(replicates(jm.roc_auc, *given), expected)
    on_device = jnp.asarray(data.scores[0]), jnp.asarray(data.labels)
    np.testing.assert_array_equal(replicates(jm.roc_auc, *on_device), expected)


# ---- several models


def test_models_are_paired(data):
    pair = replicates(jm.roc_auc, data.scores, data.labels)
    swapped = replicates(jm.roc_auc, data.scores[::-1], data.labels)
    np.testing.assert_array_equal(swapped, pair[:, ::-1])
    same = replicates(jm.roc_auc, data.scores[[1, 1]], data.labels)
    np.testing.assert_array_equal(same, pair[:, [1, 1]])
    # The models share the noise of the sample, so that their difference varies less.
    assert np.corrcoef(pair.T)[0, 1] > 0.5


def test_labels_that_differ_along_the_batch(data, rng):
    labels = np.stack([data.labels, rng.permutation(data.labels)])
    got = jm.bootstrap(jm.roc_auc, data.scores, labels, key=KEY, n_resamples=FEW)
    for i in range(2):
        alone = jm.bootstrap(jm.roc_auc, data.scores[i], labels[i], key=KEY, n_resamples=FEW)
        close(got.estimate[i], alone.estimate)
        close(got.replicates[:, i], alone.replicates)
    # A batch of two axes, of which the scores have one and the labels the other.
    both = jm.bootstrap(jm.roc_auc, data.scores[:, None], labels, key=KEY, n_resamples=FEW)
    assert both.replicates.shape == (FEW, 2, 2)
    close(both.replicates[:, [0, 1], [0, 1]], got.replicates)


def test_axes_of_length_one(data):
    got = replicates(jm.roc_auc, data.scores[:1], data.labels[None])
    assert got.shape == (FEW, 1)
    close(got[:, 0], replicates(jm.roc_auc, data.scores[0], data.labels))


def test_where_equals_deletion(data):
    """Of one model, whose runs do not see what is left out."""
    scores, labels, where = data.scores[0], data.labels, data.where
    extra = np.concatenate([np.full(15, np.nan), scores]).astype("float32")
    got = replicates(
        jm.roc_auc,
        extra,
        np.concatenate([np.full(15, -1), labels]),
        where=np.arange(N + 15) >= 15,
    )
    np.testing.assert_array_equal(got, replicates(jm.roc_auc, scores, labels))
    short = replicates(jm.roc_auc, scores[where], labels[where])
    np.testing.assert_array_equal(replicates(jm.roc_auc, scores, labels, where=where), short)


# ---- where heads do not suffice


def test_a_head_that_is_too_short_is_made_whole(monkeypatch):
    """It is noticed if any resample needs more, and all are done again."""
    n = 2 * N  # a size that no other test has, since programs are kept
    rng = np.random.default_rng(8)
    labels = rng.random(n) < 0.3
    scores = np.round(10 * (rng.normal(size=n) + labels))
    found = []
    collect = _run._collect

    def watched(*arguments):
        result = collect(*arguments)
        found.append(result[1])
        return result

    monkeypatch.setattr(_run, "_collect", watched)
    monkeypatch.setattr(_units, "SPARE", 0.0)
    got = replicates(partial(jm.partial_auc, max_fpr=[0.1, 0.05]), scores, labels)
    # Up to 1 there is no head.
    whole = replicates(partial(jm.partial_auc, max_fpr=[0.1, 1.0]), scores, labels)
    assert found == [False, True, True]
    np.testing.assert_array_equal(got[:, 0], whole[:, 0])


def test_a_head_that_is_long_enough_is_used(data, monkeypatch):
    found = []
    collect = _run._collect
    monkeypatch.setattr(
        _run,
        "_collect",
        lambda prepared, *rest: found.append(prepared) or collect(prepared, *rest),
    )
    given = partial(jm.partial_auc, max_fpr=0.1), data.scores[0], data.labels
    result, error = jm.bootstrap(*given, key=KEY, n_resamples=FEW), jm.standard_error(*given)
    assert abs(np.mean(result.replicates) - result.estimate) < 4 * error / np.sqrt(FEW)
    assert abs(result.standard_error / error - 1) < 4 / np.sqrt(2 * FEW)
    (prepared,) = found
    units = prepared.sampler.units
    assert units.drawn[0] < units.total[0] == (~data.labels).sum()


@pytest.mark.parametrize("by_amount", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_of_many_items_only_the_heads_of_models_are_drawn(monkeypatch, by_amount):
    """Which does not change the distribution; a head that is too short is drawn again."""
    found = []
    collect = _run._collect

    def watched(prepared, *rest):
        result = collect(prepared, *rest)
        found.append((int(prepared.sampler.units.drawn[0]), result[1]))
        return result

    monkeypatch.setattr(_run, "_collect", watched)
    rng = np.random.default_rng(11)
    labels, where = rng.random(4000) < 0.2, rng.random(4000) < 0.9
    scores = np.round(20 * (rng.normal(size=(2, 4000)) + rng.normal(size=4000) + labels))
    scores[:, ~where] = np.nan
    amounts = np.exp(rng.normal(size=4000)) if by_amount else None
    draw = partial(
        replicates,
        partial(jm.recall_at_fpr, max_fpr=0.05),
        scores,
        labels,
        n_resamples=3000,
        where=where,
        amounts=amounts,
    )
    whole = draw()
    monkeypatch.setattr(_run, "FEW_NEGATIVES", 0)
    head = draw()
    n_negatives = (where & ~labels).sum()
    assert found[0] == (n_negatives, True)
    assert found[1][0] < n_negatives / 4
    assert found[1][1]
    np.testing.assert_allclose(head.mean(0), whole.mean(0), atol=5e-3 * whole.mean())
    found_covariance, expected = np.cov(head.T), np.cov(whole.T)
    variances = np.diagonal(expected)
    error = np.sqrt((np.outer(variances, variances) + expected**2) / len(whole))
    assert np.all(np.abs(found_covariance - expected) < 4 * np.sqrt(2) * error)
    monkeypatch.setattr(_units, "SPARE", 0.0)
    np.testing.assert_array_equal(draw(n_resamples=FEW), whole[:FEW])
    assert [sufficient for _, sufficient in found[2:]] == [False, True]


@pytest.mark.parametrize(
    "options",
    [
        marked({}, fast=False),
        marked({"weights": ()}, fast=False),
        {"weights": (), "amounts": ()},
        marked({"weights": (2,)}, fast=False),
        marked({"resampling": "bayesian", "weights": ()}, fast=False),
        {"weights": "few"},
    ],
    ids=["models", "weights", "weights and amounts", "weights of models", "bayesian", "few"],
)
def test_where_all_items_are_drawn_only_the_head_is_scanned(monkeypatch, options):
    """With the same result, also where it is too short."""
    found, few = [], options.get("weights") == "few"
    collect = _run._collect

    def watched(prepared, *rest):
        result = collect(prepared, *rest)
        head, used = np.max(prepared.cells.head), np.max(prepared.cells.used)
        found.append((head < (used / 2 if few else 1000), few or used == 4000, result[1]))
        return result

    monkeypatch.setattr(_run, "_collect", watched)
    rng = np.random.default_rng(12)
    labels = rng.random(4000) < 0.1
    scores = np.round(20 * (rng.normal(size=(2, 4000)) + labels))
    # Arrays of the shape and the number of items; weights of a mean of 2, some 0.
    drawn = {
        name: np.maximum(rng.gamma(1, 3, (*shape, 4000)) - 1, 0)
        for name, shape in options.items()
        if name != "resampling" and not few
    }
    if few:
        drawn = {"weights": rng.integers(1, 3, 4000)}
    draw = partial(
        replicates,
        partial(jm.recall_at_fpr if "amounts" in options else jm.partial_auc, max_fpr=[0.02, 0.04]),
        scores if options.get("weights", (2,)) == (2,) else scores[0],
        labels,
        **{**options, **drawn},
    )
    got = draw()
    monkeypatch.setattr(_run, "weight_of_head", lambda *_: np.full(1, np.inf))
    whole = draw()
    assert found == [(True, "weights" in drawn, True), (False, True, True)]
    np.testing.assert_allclose(got, whole, rtol=1e-12)
    monkeypatch.undo()
    monkeypatch.setattr(_run, "_collect", watched)
    monkeypatch.setattr(_units, "SPARE", -0.1)
    np.testing.assert_array_equal(draw(), whole)
    assert [sufficient for *_, sufficient in found[2:]] == [False, True]


# ---- what is undefined


def test_resamples_that_lack_a_class(data):
    labels = np.arange(N) < 2
    with pytest.warns(UserWarning, match="resamples have items of one class only"):
        result = jm.bootstrap(
            jm.roc_auc, data.scores[0], labels, key=KEY, n_resamples=5000, stratify=False
        )
    lacking = (1 - 2 / N) ** N
    error = np.sqrt(lacking * (1 - lacking) / 5000)
    assert abs(result.n_undefined / 5000 - lacking) < 4 * error
    assert np.isnan(result.replicates).sum() == result.n_undefined
    assert np.isfinite(result.standard_error)
    close(result.standard_error, np.nanstd(result.replicates, ddof=1), rtol=1e-5)
    assert np.isfinite(result.interval().low)


def test_a_model_with_nan_does_not_spoil_others(data):
    scores = data.scores.copy()
    scores[1, 7] = np.nan
    with pytest.warns(UserWarning, match="undefined"):
        result = jm.bootstrap(jm.roc_auc, scores, data.labels, key=KEY, n_resamples=FEW)
    expected = replicates(jm.roc_auc, data.scores, data.labels)
    np.testing.assert_array_equal(result.replicates[:, 0], expected[:, 0])
    assert np.isnan(result.replicates[:, 1]).all()
    np.testing.assert_array_equal(result.n_undefined, [0, FEW])


def test_no_items():
    with pytest.warns(UserWarning, match="undefined"):
        result = jm.bootstrap(jm.roc_auc, [], [], key=KEY, n_resamples=FEW)
    assert np.isnan(result.estimate)
    assert np.isnan(result.replicates).all()


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

    all_of(6000, 0)
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        all_of(6011, 1)
        all_of(6022, 2)
    compiled = [r.getMessage() for r in caplog.records if r.getMessage().startswith("Compiling")]
    assert compiled == []


# ---- means


def means(values, weights=None, where=None, n_resamples=FEW, **options):
    """Replicates of the means of three rows of values, and the shares that the queries have in
    them, which are the replicates of the means of indicators."""
    n = values.shape[-1]
    result = jm.bootstrap_mean(
        np.concatenate([values, np.eye(n)]),
        key=KEY,
        n_resamples=n_resamples,
        weights=np.ones(n) if weights is None else weights,
        where=np.ones(n, bool) if where is None else where,
        **options,
    )
    return result, np.asarray(result.replicates[:, :3], float), np.asarray(result.replicates[:, 3:])


def test_replay_of_means(rng):
    values = rng.random((3, 40))
    result, got, shares = means(values)
    close(shares.sum(axis=1), 1)
    np.testing.assert_allclose(40 * shares, np.round(40 * shares), atol=1e-4)
    close(got, shares @ values.T, rtol=1e-5)
    close(result.estimate[:3], values.mean(axis=1))
    alone = jm.bootstrap_mean(values, key=KEY, n_resamples=FEW)
    close(alone.replicates, got)


def test_means_have_weights_and_masks(rng):
    weights, where = rng.random(40), rng.random(40) < 0.7
    values = np.where(where, rng.random((3, 40)), np.nan)
    result, got, shares = means(values, weights, where)
    assert (shares[:, ~where] == 0).all()
    close(got, shares[:, where] @ values[:, where].T, rtol=1e-5)
    close(result.estimate[:3], np.average(values[:, where], weights=weights[where], axis=1))
    counts = shares / np.where(where, weights, 1)
    counts *= np.sum(where) / counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-3)
    values[1, np.flatnonzero(where)[3]] = np.nan  # which spoils its row alone
    result, again, _ = means(values, weights, where)
    np.testing.assert_array_equal(np.isnan(result.estimate[:3]), [False, True, False])
    np.testing.assert_array_equal(again[:, [0, 2]], got[:, [0, 2]])


@pytest.mark.parametrize("resampling", ["multinomial", "bayesian"])
def test_spread_of_a_mean(resampling, rng):
    values = rng.gamma(1, size=(3, 40))
    result, got, _ = means(values, n_resamples=20_000, resampling=resampling, batch=128)
    expected = values.std(axis=1) / np.sqrt(40 if resampling == "multinomial" else 41)
    np.testing.assert_allclose(result.standard_error[:3], expected, rtol=4 / 200)
    np.testing.assert_allclose(np.corrcoef(got.T), np.corrcoef(values), atol=0.04)


def test_mean_of_no_queries():
    for values, options in (
        (np.ones((3, 40)), {"where": np.zeros(40, bool)}),
        (np.ones((3, 40)), {"weights": np.zeros(40)}),
    ):
        assert np.isnan(means(values, **options)[0].estimate[:3]).all()
    assert np.isnan(jm.bootstrap_mean(np.zeros((2, 0)), key=KEY, n_resamples=FEW).estimate).all()


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


def test_replicates_that_are_nan_are_counted_and_said(rng):
    """A user's precision is 0 / 0 in rows that a resample draws no items of."""

    def best_f1(table):
        tps, fps = jnp.cumsum(table.positives), jnp.cumsum(table.negatives)
        precision, recall = tps / (tps + fps), tps / tps[-1]
        return jnp.max(2 * precision * recall / (precision + recall))

    def guarded(table):
        tps, fps = jnp.cumsum(table.positives), jnp.cumsum(table.negatives)
        return jnp.max(2 * tps / (tps + fps + tps[-1]))

    scores, labels, _ = sample(rng, 60, ties=False)
    with pytest.warns(UserWarning, match="have both classes, but the metric is NaN"):
        result = jm.bootstrap(best_f1, scores, labels, key=KEY, n_resamples=FEW)
    assert result.n_undefined == np.isnan(result.replicates).sum() > FEW / 5
    result = jm.bootstrap(guarded, scores, labels, key=KEY, n_resamples=FEW)
    assert result.n_undefined == 0


@pytest.mark.parametrize("limit", [marked(x, fast=x == 0.7) for x in (0.15, 0.3, 0.6, 0.7)])
def test_a_limit_that_a_count_reaches_is_reached_in_resamples(limit, rng):
    """49 times 1 / 49 is not 1: XLA multiplies by the reciprocal of a number that it knows."""
    labels = np.arange(50) < 30  # and 20 negatives
    scores = rng.normal(size=50) + labels
    found, above = (
        jm.bootstrap(partial(jm.recall_at_fpr, max_fpr=x), scores, labels, key=KEY, n_resamples=100)
        for x in (limit, limit + 1e-9)
    )
    np.testing.assert_array_equal(found.replicates, above.replicates)
    assert found.estimate == jm.recall_at_fpr(scores, labels, max_fpr=limit)
