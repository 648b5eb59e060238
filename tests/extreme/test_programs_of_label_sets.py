"""Label sets under transformations, in blocks, in double precision, and of nothing."""

from functools import partial
from math import nan

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import marked
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
)

import jaxmetrics as jm
from jaxmetrics.extreme import _matching


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
        (np.zeros((3, 2, 0), int), np.zeros((3, 2, 0), int)),
    ],
    ids=["no instances", "no predictions", "no labels", "neither of a batch"],
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
