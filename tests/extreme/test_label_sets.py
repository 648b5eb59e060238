"""Label sets: by hand, against plain Python on random lists, by group, and what is refused."""

from functools import partial
from math import isnan, log2, nan
from statistics import mean, median

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import in_turn
from label_lists import (
    BY_GROUP,
    GROUPS,
    KS,
    N_GROUPS,
    N_LABELS,
    PREDICTED,
    PROPENSITIES,
    RELEVANT,
    instances,
    ndcg,
    precision,
    recall,
)

import jaxmetrics as jm


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
    assert jm.extreme.label_deciles([10**18, 1, 5]).tolist() == [9, 0, 0]
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
        (lambda: jm.extreme.label_deciles([2**62, 2**62]), ValueError, "less than 2.63"),
        (
            lambda: jm.extreme.k_for_recall(*PAIR, min_recall=0.5, n_labels=2**31),
            ValueError,
            "n_labels must be below 2.30",
        ),
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


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_the_highest_id_of_32_bits_is_a_label(kind):
    """It stood for no label."""
    last = np.iinfo(np.int32).max
    predicted, relevant = np.array([[last, 7]], kind), np.array([[7, last]], kind)
    assert jm.extreme.positive_coverage_at_k(predicted, relevant, k=1) == 0.5
    assert jm.extreme.positive_coverage_at_k(predicted, relevant[:, 1:], k=1) == 1


@pytest.mark.slow
def test_a_list_of_more_relevant_labels_than_16_bits_count():
    labels = np.arange(1 << 15)[None]
    found = jm.extreme.k_for_recall(labels, labels, min_recall=1.0, n_labels=1 << 15)
    assert found == 1 << 15


def test_coverage_does_not_count_padding():
    relevant = [[3, -1], [3, 2]]
    assert jm.extreme.positive_coverage_at_k([[3], [0]], relevant[:1] * 2, k=1) == 1
    assert jm.extreme.positive_coverage_at_k([[3], [0]], relevant, k=1) == 0.5


def test_ndcg_of_one_long_list():
    assert jm.extreme.ndcg_at_k([[0, 1, 2]], [[2]], k=3) == 0.5  # 1 / log2(4)
    with pytest.raises(TypeError, match="truncate_ideal must be"):
        jm.extreme.ndcg_at_k([[0, 1, 2]], [[2]], k=3, truncate_ideal="yes")


def test_propensities_of_the_fewest_instances():
    """1 / (1 + log 3 - 1), as the factor of the count is 1 where it is 1."""
    np.testing.assert_allclose(jm.extreme.propensities([1], 3), [1 / np.log(3)], rtol=1e-6)
    with pytest.raises(ValueError, match="at least 3, got 2"):
        jm.extreme.propensities([1], 2)


@pytest.mark.parametrize("by", ["occurrences", "labels"])
def test_deciles_of_any_total(by, rng):
    """9 - floor(10 x share before the label), where a tenth of the total may be no whole number."""
    for most in (1, 2, 5, 50):
        counts = np.sort(rng.integers(1, most + 1, 27))[::-1]
        sizes = counts if by == "occurrences" else np.ones_like(counts)
        before = np.cumsum(sizes) - sizes
        expected = 9 - 10 * before // sizes.sum()
        np.testing.assert_array_equal(jm.extreme.label_deciles(counts, by=by), expected)


@pytest.mark.parametrize(("ids", "place"), [([5, 4, -1, 0, -1], 2), ([-1, -1, 3, 1, 2], 1)])
def test_the_place_of_a_gap_in_a_list(ids, place):
    words = f"got -1 in list 1 at place {place} with ids behind it"
    with pytest.raises(ValueError, match=words):
        jm.extreme.precision_at_k([[0, 1, 2, 3, 4], ids], [[1], [1]], k=1)


def test_labels_beyond_32_bits_are_covered():
    """They are alike in their low 32 bits."""
    predicted, relevant = np.array([[2**33]]), np.array([[2**33, 2**34]])
    assert jm.extreme.positive_coverage_at_k(predicted, relevant, k=1) == 0.5


def test_traced_lists_end_at_their_first_gap():
    groups = {"groups": np.array([0, 1]), "num_groups": 2}
    shares = jax.jit(lambda x: jm.extreme.prediction_proportions_at_k(x, k=3, **groups))
    assert shares(jnp.array([[0, -1, 1]])).tolist() == [1, 0]
