"""Label sets: by hand, and against plain Python on random lists, by group and padded."""

from functools import partial
from math import isnan, log2, nan
from statistics import mean, median

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import in_turn, marked

import jaxmetrics as jm
from jaxmetrics.extreme import _matching

N_LABELS, N_GROUPS = 40, 4


def lists(seed=0, n=60, listed=12, relevant=6):
    """Lists of several lengths, some of them empty, and labels in groups, one of them empty."""
    rng = np.random.default_rng(seed)

    def draw(columns, lengths):
        ids = rng.permuted(np.tile(np.arange(N_LABELS), (n, 1)), axis=1)[:, :columns]
        return np.where(np.arange(columns) < lengths[:, None], ids, -1)

    predicted = draw(listed, rng.integers(0, listed + 1, n))
    truth = rng.permuted(draw(relevant, rng.integers(0, relevant + 1, n)), axis=1)
    groups = rng.choice([0, 1, 3], N_LABELS)
    return predicted, truth, groups


PREDICTED, RELEVANT, GROUPS = lists()
PROPENSITIES = np.random.default_rng(1).uniform(0.05, 1, N_LABELS)
BY_GROUP = {"groups": GROUPS, "num_groups": N_GROUPS}
KS = (1, 2, 5, 50)


# Plain Python. Each takes the list and the labels of one instance, of one group.


def precision(listed, wanted, k):
    return sum(x in wanted for x in listed[:k]) / max(len(listed[:k]), 1)


def recall(listed, wanted, k):
    return sum(x in wanted for x in listed[:k]) / min(k, len(wanted))


def ndcg(listed, wanted, k, ideal=None):
    gain = sum(1 / log2(i + 2) for i, x in enumerate(listed[:k]) if x in wanted)
    return gain / sum(1 / log2(i + 2) for i in range(min(ideal or len(wanted), len(wanted))))


def k_for_recall(listed, wanted, min_recall):
    for k in range(1, len(listed) + 1):
        if sum(x in wanted for x in listed[:k]) / len(wanted) >= min_recall:
            return k
    return N_LABELS / 2


def scored(listed, wanted, k, discounted):
    """What an instance has, and the best that it could have."""

    def gain(places):
        return sum(g / (log2(i + 2) if discounted else 1) for i, g in places if i < k)

    had = [(i, 1 / PROPENSITIES[x]) for i, x in enumerate(listed) if x in wanted]
    best = enumerate(sorted((1 / PROPENSITIES[x] for x in wanted), reverse=True))
    return gain(had), gain(best)


def instances(score, by_group):
    """`[n, num_groups]`, or one group; None where nothing is relevant."""
    members = np.eye(N_GROUPS, dtype=bool)[:, GROUPS] if by_group else [GROUPS >= 0]
    rows = []
    for predicted, relevant in zip(PREDICTED, RELEVANT, strict=True):
        row = []
        for member in members:
            wanted = {x for x in relevant if x >= 0 and member[x]}
            listed = [x for x in predicted if x >= 0 and member[x]]
            row.append(score(listed, wanted) if wanted else None)
        rows.append(row)
    return rows


def reduced(rows, reduce):
    columns = [[x for x in column if x is not None] for column in zip(*rows, strict=True)]
    return [reduce(column) if column else nan for column in columns]


def check(metric, score, options, by_group, reduce=mean):
    """The metric, reduced and not, for each option by itself and for all at once."""
    name, values = options
    given = BY_GROUP if by_group else {}
    rows = [instances(partial(score, **{name: value}), by_group) for value in values]
    expected = np.array([reduced(r, reduce) for r in rows]).T  # [groups, several]
    each = np.array([[[nan if x is None else x for x in row] for row in r] for r in rows])
    each = np.moveaxis(each, 0, -1)  # [n, groups, several]
    if not by_group:
        expected, each = expected[0], each[:, 0]
    found = metric(PREDICTED, RELEVANT, **{name: values}, **given)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    alone = metric(PREDICTED, RELEVANT, **{name: values[1]}, **given)
    np.testing.assert_array_equal(alone, found[..., 1])
    apart = metric(PREDICTED, RELEVANT, **{name: values}, **given, reduce=None)
    np.testing.assert_allclose(apart, each, rtol=1e-6)


AT_CUTOFFS = {
    "precision": (jm.extreme.precision_at_k, precision),
    "recall": (jm.extreme.normalized_recall_at_k, recall),
    "ndcg": (jm.extreme.ndcg_at_k, ndcg),
    "ndcg truncated": (
        partial(jm.extreme.ndcg_at_k, truncate_ideal=True),
        lambda *a, k: ndcg(*a, k, k),
    ),
}


@pytest.mark.parametrize(("name", "by_group"), in_turn(AT_CUTOFFS, (False, True)))
def test_at_cutoffs(name, by_group):
    metric, score = AT_CUTOFFS[name]
    check(metric, score, ("k", KS), by_group)


@pytest.mark.parametrize(("reduce", "by_group"), in_turn(("median", "mean"), (False, True)))
def test_k_for_recall(reduce, by_group):
    """Shares such as 1/3 are met by their own quotient."""
    metric = partial(jm.extreme.k_for_recall, n_labels=N_LABELS)
    expected = {"median": median, "mean": mean}[reduce]

    def reducing(*arrays, **options):
        return metric(*arrays, **{"reduce": reduce, **options})

    check(reducing, k_for_recall, ("min_recall", (0.1, 1 / 3, 0.6, 1.0)), by_group, expected)


@pytest.mark.parametrize(("discounted", "by_group"), in_turn((False, True), (True, False)))
def test_propensity_scored(discounted, by_group):
    name = "propensity_scored_ndcg_at_k" if discounted else "propensity_scored_precision_at_k"
    given = {"propensities": PROPENSITIES, "k": KS, **(BY_GROUP if by_group else {})}
    found = getattr(jm.extreme, name)(PREDICTED, RELEVANT, **given)
    apart = getattr(jm.extreme, name)(PREDICTED, RELEVANT, **given, reduce=None)
    if not by_group:
        found, apart = found[None], jax.tree.map(lambda x: x[:, None], apart)
    for j, k in enumerate(KS):
        rows = instances(partial(scored, k=k, discounted=discounted), by_group)
        for g, column in enumerate(zip(*rows, strict=True)):
            kept = [x for x in column if x is not None]
            ratio = sum(a for a, _ in kept) / sum(b for _, b in kept) if kept else nan
            np.testing.assert_allclose(found[g, j], ratio, rtol=1e-6)
            values = [nan if x is None else x[0] / x[1] for x in column]
            np.testing.assert_allclose(apart.values[:, g, j], values, rtol=1e-6)
            weights = [0 if x is None else x[1] for x in column]
            np.testing.assert_allclose(apart.weights[:, g, j], weights, rtol=1e-6)


def test_prediction_proportions():
    found = jm.extreme.prediction_proportions_at_k(PREDICTED, k=KS, **BY_GROUP)
    for j, k in enumerate(KS):
        made = [GROUPS[x] for row in PREDICTED for x in row[:k] if x >= 0]
        shares = np.bincount(made, minlength=N_GROUPS) / len(made)
        np.testing.assert_allclose(found[:, j], shares, rtol=1e-6)
    one = jm.extreme.prediction_proportions_at_k(PREDICTED, k=2, groups=GROUPS)
    np.testing.assert_array_equal(one, found[:, 1])


def test_positive_coverage():
    """Of whole lists, also by group."""
    found = jm.extreme.positive_coverage_at_k(PREDICTED, RELEVANT, k=KS, **BY_GROUP)
    overall = jm.extreme.positive_coverage_at_k(PREDICTED, RELEVANT, k=KS)
    everything = set(RELEVANT.flat) - {-1}
    for j, k in enumerate(KS):
        pairs = zip(PREDICTED, RELEVANT, strict=True)
        hit = {x for p, r in pairs for x in set(p[:k]) & set(r) if x >= 0}
        np.testing.assert_allclose(overall[j], len(hit) / len(everything), rtol=1e-6)
        for g in range(N_GROUPS):
            there = {x for x in everything if GROUPS[x] == g}
            share = len(hit & there) / len(there) if there else nan
            np.testing.assert_allclose(found[g, j], share, rtol=1e-6)


def test_by_hand():
    """Group 0 is of labels 0, 1, 2 and group 1 of 3, 4; the second instance has none of group 1."""
    predicted, relevant = [[3, 0, 4, 1], [2, 1, -1, -1]], [[1, 4, -1], [0, 1, 2]]
    groups = [0, 0, 0, 1, 1]
    precision = partial(jm.extreme.precision_at_k, predicted, relevant, k=2)
    assert precision(reduce=None).tolist() == [0, 1]
    np.testing.assert_allclose(precision(groups=groups), [0.75, 0.5])  # [0, 1], [2, 1]; [3, 4]
    assert isnan(precision(groups=groups, reduce=None)[1, 1])
    found = jm.extreme.k_for_recall(
        predicted, relevant, min_recall=0.7, groups=groups, n_labels=5, reduce=None
    )
    np.testing.assert_array_equal(found, [[2, 2], [2.5, nan]])  # 2 of 3 are not .7
    coverage = jm.extreme.positive_coverage_at_k(predicted, relevant, k=2, groups=groups)
    np.testing.assert_allclose(coverage, [2 / 3, 0])  # of 0, 1, 2 those that are found are 1, 2
    shares = jm.extreme.prediction_proportions_at_k(predicted, k=3, groups=groups)
    np.testing.assert_allclose(shares, [3 / 5, 2 / 5], rtol=1e-6)


def test_label_deciles():
    counts = [5, 30, 5, 20, 0, 20, 10, 10]
    # In order 1, 3, 5, 6, 7, 0, 2, 4, of which 0, 30, 50, 70, 80, 90, 95 and 100 % come before.
    assert jm.extreme.label_deciles(counts).tolist() == [0, 9, 0, 6, 0, 4, 2, 1]
    assert jm.extreme.label_deciles(np.ones(20, int), by="labels").tolist() == [
        9 - i // 2 for i in range(20)
    ]
    assert jm.extreme.label_deciles([0, 0]).tolist() == [0, 0]
    big = np.array([3 * 10**17, 10**17, 6 * 10**17])
    assert jm.extreme.label_deciles(big).tolist() == [3, 0, 9]
    np.testing.assert_array_equal(
        jax.jit(jm.extreme.label_deciles)(jnp.array(counts)), [0, 9, 0, 6, 0, 4, 2, 1]
    )


def test_deciles_share_occurrences():
    rng = np.random.default_rng(3)
    counts = (1e6 / np.arange(1, 5001) ** 0.8).astype(int)[rng.permutation(5000)]
    groups = np.asarray(jm.extreme.label_deciles(counts))
    shares = np.bincount(groups, counts, 10) / counts.sum()
    np.testing.assert_allclose(shares, 0.1, atol=counts.max() / counts.sum())
    assert counts[groups == 9].min() >= counts[groups == 0].max()


def test_propensities():
    found = jm.extreme.propensities([0, 7, 900], 1000, a=0.6, b=2.6)
    scale = (np.log(1000) - 1) * 3.6**0.6
    expected = 1 / (1 + scale * np.exp(-0.6 * np.log(np.array([0, 7, 900]) + 2.6)))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def every_metric(predicted, relevant, groups, propensities):
    """One result of each, by group."""
    given = {"groups": groups, "num_groups": N_GROUPS}
    return {
        "precision": jm.extreme.precision_at_k(predicted, relevant, k=3, **given),
        "recall": jm.extreme.normalized_recall_at_k(predicted, relevant, k=KS, **given),
        "ndcg": jm.extreme.ndcg_at_k(predicted, relevant, k=3, reduce=None, **given),
        "k": jm.extreme.k_for_recall(
            predicted, relevant, min_recall=0.5, n_labels=N_LABELS, **given
        ),
        "proportions": jm.extreme.prediction_proportions_at_k(predicted, k=KS, **given),
        "coverage": jm.extreme.positive_coverage_at_k(predicted, relevant, k=5, **given),
        "psp": jm.extreme.propensity_scored_precision_at_k(
            predicted, relevant, k=3, propensities=propensities, **given
        ),
        "psndcg": jm.extreme.propensity_scored_ndcg_at_k(
            predicted, relevant, k=3, propensities=propensities, reduce=None, **given
        ),
    }


def same(found, expected, rtol=1e-6):
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=rtol)


@pytest.mark.parametrize("way", ["eager", marked("jit", fast=False), "vmap"])
def test_models_and_transformations(way):
    """A batch of models is each of them, also traced, in vmap, and with groups traced."""
    models = np.stack([PREDICTED, PREDICTED[::-1]])
    each = [every_metric(model, RELEVANT, GROUPS, PROPENSITIES) for model in models]
    expected = jax.tree.map(lambda *x: jnp.stack(x), *each)
    if way == "vmap":
        mapped = jax.vmap(lambda model: every_metric(model, RELEVANT, GROUPS, PROPENSITIES))
        same(jax.jit(mapped)(jnp.asarray(models)), expected)
        return
    batched = jax.jit(every_metric) if way == "jit" else every_metric
    same(batched(models, RELEVANT, GROUPS, PROPENSITIES), expected)


def test_the_order_of_instances_has_no_effect():
    order = np.random.default_rng(5).permutation(len(PREDICTED))
    found = every_metric(PREDICTED[order], RELEVANT[order], GROUPS, PROPENSITIES)
    expected = every_metric(PREDICTED, RELEVANT, GROUPS, PROPENSITIES)
    for name in ("ndcg", "psndcg"):  # those of each instance
        expected[name] = jax.tree.map(lambda x: x[order], expected[name])
    same(found, expected)


@pytest.mark.parametrize("grouped", [pytest.param(False, marks=pytest.mark.slow), True])
def test_an_accelerator_finds_the_same(grouped):
    """All comparisons at once, also of ids that eager calls refuse, are what the walk finds."""
    rng = np.random.default_rng(6)
    predicted, relevant = (jnp.array(rng.integers(-2, 14, (50, size))) for size in (9, 6))
    of_labels, groups = jnp.array(rng.integers(0, 3, 12)), 3 if grouped else 1

    @jax.jit
    def both(predicted, relevant):
        table = _matching.group_table(of_labels, 3) if grouped else None
        ids = _matching._narrow_ids(predicted, relevant, table, 12, False)
        return _matching._walk(ids, groups, False), _matching._at_once(ids, groups)

    walked, at_once = both(predicted, relevant)
    known = np.asarray(walked.groups) >= 0
    np.testing.assert_array_equal(walked.groups, at_once.groups)
    np.testing.assert_array_equal(walked.listed, at_once.listed)
    np.testing.assert_array_equal(walked.positions[known], at_once.positions[known])
    assert 0 < np.sum(np.asarray(walked.positions)[known] < _matching.NOWHERE) < known.sum()


def test_metrics_of_one_program_share_the_walk(monkeypatch):
    monkeypatch.setattr(_matching, "_BLOCK", 1)
    predicted, relevant = (np.concatenate([x] * 3) for x in (PREDICTED, RELEVANT))  # two blocks

    def three(predicted, relevant):
        return (
            jm.extreme.precision_at_k(predicted, relevant, k=3, **BY_GROUP),
            jm.extreme.ndcg_at_k(predicted, relevant, k=(1, 3), **BY_GROUP),
            jm.extreme.k_for_recall(predicted, relevant, min_recall=0.5, **BY_GROUP),
        )

    program = jax.jit(three).lower(predicted, relevant).compile().as_text()
    listed = [line for line in program.splitlines() if f"s16[{N_GROUPS},128]" in line]
    assert sum(" while(" in line for line in listed) == 1


def test_double_precision(x64):
    found = every_metric(PREDICTED, RELEVANT, GROUPS, PROPENSITIES)
    assert {x.dtype for x in jax.tree.leaves(found)} == {np.dtype(np.float64)}
    rows = instances(partial(ndcg, k=3), by_group=True)
    expected = np.array([[nan if x is None else x for x in row] for row in rows])
    np.testing.assert_allclose(found["ndcg"], expected, rtol=1e-14)


@pytest.mark.parametrize("n_labels", [marked(100, fast=False), 65_532, 65_533])
def test_a_traced_id_out_of_range_takes_a_place(n_labels):
    predicted, relevant = jnp.array([[900_000, 5]]), jnp.array([[5]])
    needed = jax.jit(partial(jm.extreme.k_for_recall, min_recall=1.0, n_labels=n_labels))
    assert needed(predicted, relevant) == 2
    propensities, score = np.ones(n_labels), jm.extreme.propensity_scored_precision_at_k
    found = jax.jit(partial(score, k=(1, 2), propensities=propensities))(predicted, relevant)
    np.testing.assert_allclose(found, [0, 1])


def test_a_list_longer_than_what_is_checked_at_once():
    ids = np.arange(1 << 20)[None]
    assert jm.extreme.precision_at_k(ids, ids[:, :1], k=1) == 1


@pytest.mark.parametrize("traced", [False, marked(True, fast=False)])
def test_blocks(monkeypatch, traced):
    """Chunks and blocks, with a rest of each, give what the whole does."""
    expected = every_metric(PREDICTED, RELEVANT, GROUPS, PROPENSITIES)
    monkeypatch.setattr(_matching, "_CHUNK", 1)
    monkeypatch.setattr(_matching, "_BLOCK", 1)
    predicted, relevant = (np.concatenate([x] * 13) for x in (PREDICTED, RELEVANT))  # 780 rows
    metrics = jax.jit(every_metric) if traced else every_metric
    found = metrics(predicted, relevant, GROUPS, PROPENSITIES)
    for name in ("precision", "recall", "k", "proportions", "coverage", "psp"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-6)
    np.testing.assert_allclose(found["ndcg"], np.concatenate([expected["ndcg"]] * 13), rtol=1e-6)


def test_traced_ids_that_eager_calls_refuse():
    """An id out of range never hits; a list ends at its first -1; a label counts once."""
    predicted, relevant = jnp.array([[99, 1, 1, 2], [1, -1, 2, 3]]), jnp.array([[1, 1], [2, 99]])
    values = jax.jit(partial(jm.extreme.precision_at_k, k=4, reduce=None, num_groups=1))
    found = values(predicted, relevant, groups=np.zeros(5, int))
    np.testing.assert_allclose(found[:, 0], [1 / 3, 0], rtol=1e-6)
    recall = jax.jit(partial(jm.extreme.normalized_recall_at_k, k=4, reduce=None, num_groups=1))
    np.testing.assert_allclose(recall(predicted, relevant, groups=np.zeros(5, int))[:, 0], [1, 0])


@pytest.mark.parametrize(
    ("predicted", "relevant"),
    [
        (np.zeros((0, 3), int), np.zeros((0, 2), int)),
        (np.zeros((2, 0), int), [[-1], [-1]]),
        ([[1], [2]], np.zeros((2, 0), int)),
    ],
    ids=["no instances", "no predictions", "no labels"],
)
def test_nothing(predicted, relevant):
    """Nothing that is relevant is NaN."""
    found = every_metric(predicted, relevant, GROUPS, PROPENSITIES)
    for name in ("precision", "recall", "ndcg", "k", "coverage", "psp"):
        assert np.all(np.isnan(found[name])), name


def test_wide_ids():
    """Ids that do not fit 16 bits."""
    shifted = [np.where(x < 0, -1, x + 2_000_000_000) for x in (PREDICTED, RELEVANT)]
    expected = jm.extreme.ndcg_at_k(PREDICTED, RELEVANT, k=5)
    np.testing.assert_allclose(jm.extreme.ndcg_at_k(*shifted, k=5), expected)


def test_bootstrap_is_paired_over_models():
    models = np.stack([PREDICTED, PREDICTED[::-1]])
    given = {"k": 3, **BY_GROUP, "reduce": None}
    values = jm.extreme.ndcg_at_k(models, RELEVANT, **given)[..., 0]  # [models, n]
    result = jm.bootstrap_mean(
        values, where=~jnp.isnan(values), key=jax.random.key(0), n_resamples=50
    )
    given["reduce"] = "mean"
    expected = jm.extreme.ndcg_at_k(models, RELEVANT, **given)[..., 0]
    np.testing.assert_allclose(result.estimate, expected, rtol=1e-6)
    given |= {"propensities": PROPENSITIES}
    expected = jm.extreme.propensity_scored_precision_at_k(models, RELEVANT, **given)[..., 0]
    given["reduce"] = None
    parts = jm.extreme.propensity_scored_precision_at_k(models, RELEVANT, **given)
    values, weights = (x[..., 0] for x in parts)
    result = jm.bootstrap_mean(
        values, weights=weights, where=weights > 0, key=jax.random.key(0), n_resamples=50
    )
    np.testing.assert_allclose(result.estimate, expected, rtol=1e-6)


PAIR = ([[0, 1]], [[1, -1]])
TABLE = {"groups": [0, 1, 1]}


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: jm.extreme.precision_at_k(*PAIR, k=0), ValueError, "k must be at least 1"),
        (lambda: jm.extreme.precision_at_k(*PAIR, k=1.5), TypeError, "k must be an int"),
        (lambda: jm.extreme.precision_at_k([[0.5, 1]], PAIR[1], k=1), TypeError, "whole numbers"),
        (lambda: jm.extreme.precision_at_k([0, 1], [1], k=1), ValueError, "predicted"),
        (lambda: jm.extreme.precision_at_k(PAIR[0], [[1], [0]], k=1), ValueError, "relevant"),
        (lambda: jm.extreme.precision_at_k([[0, 0]], PAIR[1], k=1), ValueError, "once"),
        (lambda: jm.extreme.precision_at_k(PAIR[0], [[1, 1]], k=1), ValueError, "once"),
        (lambda: jm.extreme.precision_at_k([[-1, 1]], PAIR[1], k=1), ValueError, "end of a list"),
        (lambda: jm.extreme.precision_at_k([[-2, 1]], PAIR[1], k=1), ValueError, "-2"),
        (lambda: jm.extreme.precision_at_k([[3, 1]], PAIR[1], k=1, **TABLE), ValueError, "got 3"),
        (lambda: jm.extreme.precision_at_k(PAIR[0], [[3]], k=1, **TABLE), ValueError, "got 3"),
        (
            lambda: jm.extreme.precision_at_k(*PAIR, k=1, **TABLE, num_groups=1),
            ValueError,
            "num_groups",
        ),
        (
            lambda: jm.extreme.precision_at_k(*PAIR, k=1, groups=[0, -1, 0]),
            ValueError,
            "groups must be from 0",
        ),
        (
            lambda: jm.extreme.precision_at_k(*PAIR, k=1, groups=[0, 10**15, 0]),
            ValueError,
            "GB: number the groups with",
        ),
        (lambda: jm.extreme.precision_at_k(*PAIR, k=1, num_groups=2), TypeError, "groups="),
        (lambda: jm.extreme.ndcg_at_k(*PAIR, k=1, reduce="sum"), ValueError, "reduce"),
        (
            lambda: jax.jit(lambda g: jm.extreme.ndcg_at_k(*PAIR, k=1, groups=g))(
                jnp.zeros(3, int)
            ),
            TypeError,
            "num_groups",
        ),
        (
            lambda: jm.extreme.k_for_recall(*PAIR, min_recall=1.5, n_labels=3),
            ValueError,
            "min_recall",
        ),
        (lambda: jm.extreme.label_deciles([1, 2], by="both"), ValueError, "by must be"),
        (lambda: jm.extreme.label_deciles([1, -2]), ValueError, "negative"),
        (lambda: jm.extreme.label_deciles([0.5]), TypeError, "whole numbers"),
        (lambda: jm.extreme.propensities([1], 2), ValueError, "n_instances"),
        (
            lambda: jm.extreme.propensity_scored_ndcg_at_k(*PAIR, k=1, propensities=[0.5, 0, 1]),
            ValueError,
            "propensities must be in",
        ),
        (
            lambda: jm.extreme.prediction_proportions_at_k(PAIR[0], k=1, groups=None),
            TypeError,
            "groups",
        ),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()
