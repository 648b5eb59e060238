"""Whole numbers are divided in double precision: JAX divides 32-bit ones in single precision."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import marked
from registry import CURVES, METRICS

import jaxmetrics as jm

SCORES = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
LABELS = np.array([0, 1, 0, 1])
PREDICTED = np.array([[0, 1, 2], [2, 1, 0]])
RELEVANT = np.array([[0, 1], [2, 3]])
KEY = jax.random.key(0)


def _of_lists(metric, **options):
    in_segments = {"segments": np.array([0, 0, 1, 1]), "num_segments": 2}
    return lambda s, y: (metric(s, y, **options), metric(s, y, **in_segments, **options))


def _of_sets(metric, **options):
    return lambda s, y: metric(PREDICTED + 0 * y[:1], RELEVANT + 0 * y[:1], **options)


def _of_predictions(metric, **options):
    return lambda s, y: metric(y, y, **options)


def _of_models(test, **options):
    return lambda s, y: jax.tree.leaves(test(jm.roc_auc, jnp.stack([s, s[::-1]]), y, **options))


PROGRAMS = {entry.name: entry.metric for entry in METRICS} | CURVES
OF_CLASSES = ("recall", "precision", "f_beta", "specificity")
AVERAGES = ("binary", "macro", "weighted", "micro", None)
PROGRAMS |= {
    f"{name} {average}": _of_predictions(getattr(jm, name), average=average, n_classes=2)
    for name in OF_CLASSES
    for average in AVERAGES
}
PROGRAMS |= {
    name: _of_predictions(getattr(jm, name), n_classes=2)
    for name in ("balanced_accuracy", "matthews_corrcoef", "confusion_matrix")
}
PROGRAMS |= {
    name: _of_lists(getattr(jm, name), **options)
    for name, options in {
        "dcg": {},
        "ndcg": {},
        "precision_at_k": {"k": 2},
        "recall_at_k": {"k": 2},
        "hit_rate_at_k": {"k": 2},
        "average_precision_at_k": {},
        "reciprocal_rank": {},
        "expected_reciprocal_rank": {"max_grade": 1},
        "rank_biased_precision": {},
        "ordered_pair_accuracy": {},
    }.items()
}
OF_SETS = {
    "precision_at_k": {"k": 2},
    "normalized_recall_at_k": {"k": 2},
    "ndcg_at_k": {"k": 2},
    "k_for_recall": {"min_recall": 0.5, "n_labels": 4},
    "propensity_scored_precision_at_k": {"k": 2, "propensities": np.ones(4)},
    "propensity_scored_ndcg_at_k": {"k": 2, "propensities": np.ones(4)},
}
REDUCTIONS = ("mean", None)
PROGRAMS |= {
    f"extreme.{name} {reduce}": _of_sets(getattr(jm.extreme, name), reduce=reduce, **options)
    for name, options in OF_SETS.items()
    for reduce in REDUCTIONS
}
PROGRAMS |= {
    "extreme.positive_coverage_at_k": _of_sets(jm.extreme.positive_coverage_at_k, k=2),
    "extreme.prediction_proportions_at_k": _of_sets(
        jm.extreme.prediction_proportions_at_k, k=2, groups=np.array([0, 0, 1, 1])
    ),
    "accuracy": _of_predictions(jm.accuracy),
    "roc_auc_sampled": lambda s, y: jm.roc_auc_sampled(KEY, s, y, n_pairs=5),
    "one_vs_rest": lambda s, y: jm.one_vs_rest(jm.roc_auc)(jnp.stack([s, s], -1), y),
    "one_vs_one": lambda s, y: jm.one_vs_one(jm.roc_auc, "weighted")(jnp.stack([s, s], -1), y),
    "permutation_test": _of_models(jm.permutation_test, key=KEY, n_resamples=20),
    "compare": _of_models(jm.compare),
}
# Averages and reductions, of which each is fast with a metric in turn.
SLOW = {
    f"{name} {average}"
    for i, name in enumerate(OF_CLASSES)
    for j, average in enumerate(AVERAGES)
    if (j - i) % 4
} | {
    f"extreme.{name} {reduce}"
    for i, name in enumerate(OF_SETS)
    for j, reduce in enumerate(REDUCTIONS)
    if (i + j) % 2
}
RANKS_IN_SINGLE = {"permutation_test": 1}  # ranks, which are compared and not divided


def _single_from_whole(jaxpr):
    """How often a program turns whole numbers or truth values into single precision."""
    found = 0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "convert_element_type":
            before, after = equation.invars[0].aval.dtype, equation.outvars[0].aval.dtype
            found += after == np.float32 and not jnp.issubdtype(before, jnp.floating)
        for inner in jax.tree.leaves(
            list(equation.params.values()), is_leaf=lambda x: hasattr(x, "eqns")
        ):
            inner = getattr(inner, "jaxpr", inner)  # also those that `opaque` hides
            inner = getattr(inner, "jaxpr", inner)
            found += _single_from_whole(inner) if hasattr(inner, "eqns") else 0
    return found


@pytest.mark.parametrize("name", [marked(x, fast=x not in SLOW) for x in PROGRAMS])
def test_no_whole_number_becomes_single_precision(name):
    program = jax.make_jaxpr(PROGRAMS[name])(SCORES, LABELS if "." in name else LABELS > 0)
    assert _single_from_whole(program.jaxpr) <= RANKS_IN_SINGLE.get(name, 0)


@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz"])
@pytest.mark.parametrize("library", [np, jnp])
def test_numbers_of_8_bits(kind, library):
    """JAX promotes none of them, and some have no infinity."""
    scores, labels, weights = np.array([0.5, 0.25, 1.0]), [1, 0, 0], np.array([1.0, 2.0, 0.5])
    small, light = (library.asarray(x, getattr(jnp, kind)) for x in (scores, weights))
    for metric in (jm.roc_auc, jm.average_precision, jm.losses.pairwise_auc_loss):
        assert metric(small, labels, weights=light) == metric(scores, labels, weights=weights)
    traced = jax.jit(lambda s, w: jm.roc_auc(s, labels, weights=w))(small, light)
    assert traced == jm.roc_auc(scores, labels, weights=weights)
    assert jm.mean_interval(small).estimate == jm.mean_interval(scores).estimate


def test_thirds_of_label_sets(x64):
    """2 / 3 came out 2e-8 off."""
    one = {"predicted": [[0, 1, 2]], "relevant": [[0, 1, 5]], "k": 3}
    assert jm.extreme.precision_at_k(**one) == 2 / 3
    assert jm.extreme.normalized_recall_at_k(**one) == 2 / 3
    three = np.array([[0, 1, 2]] * 3), np.array([[0], [0], [1]])
    assert jm.extreme.k_for_recall(*three, min_recall=1, n_labels=5, reduce="mean") == 4 / 3


def test_shares_are_from_0_to_1_whatever_their_sums_round_to(rng, x64):
    """Of perfect models, and of the worst, whose weights add up to other digits elsewhere."""
    labels = np.arange(40) % 2 == 0
    scores, classes = rng.random(40).round(1) + 2 * labels, rng.integers(0, 3, 40)
    part = {"max_fpr": 0.3}
    metrics = (
        jm.roc_auc,
        jm.average_precision,
        partial(jm.partial_auc, **part, scale="range"),
        partial(jm.partial_auc, **part, min_tpr=0.2, scale="mcclish"),
        partial(jm.recall_at_fpr, **part, method="linear"),
    )
    weights = rng.random((200, 40))
    for metric in metrics:
        for way in (metric, jax.jit(metric)):
            for order in (scores, -scores):
                found = np.asarray(way(order, labels, weights=weights))
                assert (found >= 0).all()
                assert (found <= 1).all()
    assert (jm.matthews_corrcoef(classes, classes, weights=weights) <= 1).all()
    for row in weights[:20]:
        found = jm.slices(jm.roc_auc, scores, labels, np.arange(40) // 8, weights=row)
        assert (found.estimate <= 1).all()
    slopes = jax.grad(lambda w: jm.roc_auc(scores, labels, weights=w).sum())(weights)
    np.testing.assert_allclose(slopes, 0, atol=1e-14)


def test_averages_are_in_double_precision(rng):
    scores, labels = rng.random((999, 3)), np.tile([1, 0, 0], (999, 1))
    weights = rng.random(999) * 10.0 ** rng.integers(-6, 6, 999)
    values = np.asarray(jm.roc_auc(scores, labels), float)
    found = jm.multilabel(jm.roc_auc, "samples")(scores, labels, weights=weights)
    assert found == np.float32(np.average(values, weights=weights))
