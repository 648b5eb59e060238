"""A program for each public function that runs on a device, and its gradient where it has one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import jaxmetrics as jm


class Program(NamedTuple):
    """A function of arrays, the shapes of its arguments, and the number of items among them."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    n_items: int


# What runs on the host by design, reads batches there, or makes a function or a constant.
ON_THE_HOST = {
    "compare_samples",
    "fold_interval",
    "report",
    "slices",
    "trend",
    "drop_intermediate",
    "table_metric",
    "streaming.exact",
    "streaming.edges",
    "streaming.float16_bins",
    "streaming.quantile_bins",
    "streaming.uniform_bins",
    "streaming.clu_metric",
    "streaming.nnx_metric",
    "streaming.bounds",
    "streaming.interval",
    "streaming.bootstrap",
    "extreme.label_deciles",
}
_LISTS, _CLASSES, _MODELS, _LABELS = 100, 10, 8, 1000
_OF_LISTS: dict[str, dict[str, Any]] = {
    "dcg": {"k": 10},
    "ndcg": {"k": 10},
    "expected_reciprocal_rank": {"max_grade": 4.0},
    "rank_biased_precision": {},
    "ordered_pair_accuracy": {},
    "precision_at_k": {"k": 10},
    "recall_at_k": {"k": 10},
    "average_precision_at_k": {"k": 10},
    "hit_rate_at_k": {"k": 10},
    "reciprocal_rank": {},
}
_OF_SCORES: dict[str, dict[str, Any]] = {
    "roc_auc": {},
    "partial_auc": {"max_fpr": 0.01},
    "recall_at_fpr": {"max_fpr": 0.01},
    "threshold_at_fpr": {"max_fpr": 0.01},
    "average_precision": {},
    "precision_at_recall": {"min_recall": 0.8},
    "recall_at_precision": {"min_precision": 0.8},
    "sensitivity_at_specificity": {"min_specificity": 0.99},
    "specificity_at_sensitivity": {"min_sensitivity": 0.9},
    "min_cost_threshold": {},
    "score_table": {},
    "roc_curve": {},
    "precision_recall_curve": {},
    "det_curve": {},
    "cost_curve": {},
}
_OF_LABEL_SETS: dict[str, dict[str, Any]] = {
    "precision_at_k": {"k": 10},
    "normalized_recall_at_k": {"k": 10},
    "ndcg_at_k": {"k": 10},
    "positive_coverage_at_k": {"k": 10},
    "prediction_proportions_at_k": {"k": 10},
    "k_for_recall": {"min_recall": 0.5, "n_labels": _LABELS},
}
_LOSSES: dict[str, dict[str, Any]] = {
    "pairwise_auc_loss": {},
    "partial_auc_loss": {"max_fpr": 0.05},
    "recall_at_fpr_loss": {"max_fpr": 0.05},
    "average_precision_loss": {},
}


def programs(n: int) -> dict[str, Program]:
    """The programs for n items, which must be a multiple of 100, by the names of their functions.

    A name may have words after it, such as `of 8 models`; `gradient of` comes before it.
    """
    scores, labels = _array((n,), jnp.float32), _array((n,), jnp.bool_)
    models = _array((_MODELS, n), jnp.float32)
    key = _array((2,), jnp.uint32)
    found: dict[str, Program] = {}

    def add(name: str, function: Callable[..., Any], *arguments: Any, n_items: int = n) -> None:
        found[name] = Program(function, arguments, n_items)

    for name, options in _OF_SCORES.items():
        add(name, partial(getattr(jm, name), **options), scores, labels)
    add(f"roc_auc of {_MODELS} models", jm.roc_auc, models, labels)
    add("roc_auc, weights", _weighted(jm.roc_auc), scores, scores, labels)
    for name in ("roc_auc", "partial_auc", "average_precision"):
        metric = _weighted(partial(getattr(jm, name), **_OF_SCORES[name]))
        add(f"gradient of {name}", jax.grad(metric), scores, scores, labels)
    add("roc_auc_sampled", partial(jm.roc_auc_sampled, n_pairs=n), key, scores, labels)
    _add_of_classes(add, n)
    _add_of_lists(add, n)
    _add_inference(add, scores, models, labels, key)
    _add_streams(add, n, scores, labels)
    _add_label_sets(add, n)
    for name, options in _LOSSES.items():
        loss = partial(getattr(jm.losses, name), **options)
        add(f"losses.{name}", loss, scores, labels)
        add(f"gradient of losses.{name}", jax.grad(loss), scores, labels)
    _add_minibatch_losses(add, min(n, 1000))
    return found


def _array(shape: tuple[int, ...], dtype: Any) -> Any:
    return jax.ShapeDtypeStruct(shape, dtype)


def _weighted(metric: Callable[..., Any]) -> Callable[..., Any]:
    def of(weights: Any, scores: Any, labels: Any) -> Any:
        return metric(scores, labels, weights=weights)

    return of


def _add_of_classes(add: Callable[..., None], n: int) -> None:
    index, rows = _array((n,), jnp.int32), n // _CLASSES
    for name in ("confusion_matrix", "balanced_accuracy", "matthews_corrcoef"):
        add(name, partial(getattr(jm, name), n_classes=_CLASSES), index, index)
    add("accuracy", jm.accuracy, index, index)
    for name in ("precision", "recall", "specificity", "f_beta"):
        options = {"average": "macro", "n_classes": _CLASSES}
        add(name, partial(getattr(jm, name), **options), index, index)
    columns, classes = _array((rows, _CLASSES), jnp.float32), _array((rows,), jnp.int32)
    for name in ("one_vs_rest", "one_vs_one"):
        add(name, getattr(jm, name)(jm.roc_auc), columns, classes)
    add("multilabel", jm.multilabel(jm.roc_auc), columns, _array((rows, _CLASSES), jnp.bool_))


def _add_of_lists(add: Callable[..., None], n: int) -> None:
    shape = (n // _LISTS, _LISTS)
    scores, labels, binary = (_array(shape, x) for x in (jnp.float32, jnp.int32, jnp.bool_))
    graded = ("dcg", "ndcg", "expected_reciprocal_rank", "rank_biased_precision")
    for name, options in _OF_LISTS.items():
        kind = labels if name in (*graded, "ordered_pair_accuracy") else binary
        add(name, partial(getattr(jm, name), **options), scores, kind)
    add("losses.approx_ndcg_loss", jm.losses.approx_ndcg_loss, scores, labels)

    def total(scores: Any, labels: Any) -> Any:
        return jnp.sum(jm.losses.approx_ndcg_loss(scores, labels))

    add("gradient of losses.approx_ndcg_loss", jax.grad(total), scores, labels)
    flat, yes, ids = (_array((n,), x) for x in (jnp.float32, jnp.bool_, jnp.int32))
    for name in ("segment_roc_auc", "segment_partial_auc"):

        def of_segments(scores: Any, labels: Any, ids: Any, name: str = name) -> Any:
            return getattr(jm, name)(scores, labels, segments=ids, num_segments=n // _LISTS)

        add(name, of_segments, flat, yes, ids)


def _add_inference(
    add: Callable[..., None], scores: Any, models: Any, labels: Any, key: Any
) -> None:
    pauc = partial(jm.partial_auc, max_fpr=0.01)
    add("influence", partial(jm.influence, jm.roc_auc), scores, labels)
    add("standard_error", partial(jm.standard_error, jm.roc_auc), scores, labels)
    add("standard_error of partial_auc", partial(jm.standard_error, pauc), scores, labels)
    add("covariance", partial(jm.covariance, jm.roc_auc), models, labels)
    add("confidence_interval", partial(jm.confidence_interval, jm.roc_auc), scores, labels)
    add("compare", partial(jm.compare, jm.roc_auc), models, labels)
    add("roc_band", jm.roc_band, scores, labels)
    add("mean_interval", jm.mean_interval, scores)
    add("compare_means", jm.compare_means, models)
    value = partial(jm.compare_to_value, jm.roc_auc, value=0.5)
    add("compare_to_value", value, scores, labels)
    add("operating_point", partial(jm.operating_point, max_fpr=0.01), scores, labels)
    add("sample_size", partial(jm.sample_size, jm.roc_auc, width=0.1), scores, labels)

    def powered(scores: Any, labels: Any, proxy: Any, labelled: Any) -> Any:
        metric = jm.roc_auc
        return jm.prediction_powered_interval(metric, scores, labels, proxy, labelled=labelled)

    add("prediction_powered_interval", powered, scores, labels, scores, labels)
    add("power", partial(jm.power, jm.roc_auc, difference=0.02), scores, labels)

    def resampled(metric: Any) -> Callable[..., Any]:
        def error(scores: Any, labels: Any, key: Any) -> Any:
            return jm.bootstrap(metric, scores, labels, key=key, n_resamples=2000).standard_error

        return error

    add("bootstrap", resampled(jm.roc_auc), scores, labels, key)
    add("bootstrap of partial_auc", resampled(pauc), scores, labels, key)

    def of_means(values: Any, key: Any) -> Any:
        return jm.bootstrap_mean(values, key=key, n_resamples=2000).standard_error

    add("bootstrap_mean", of_means, scores, key)

    def permuted(models: Any, labels: Any, key: Any) -> Any:
        found = jm.permutation_test(jm.roc_auc, models[:2], labels, key=key, n_resamples=1000)
        return found.p_value

    add("permutation_test", permuted, models, labels, key)


def _add_streams(add: Callable[..., None], n: int, scores: Any, labels: Any) -> None:
    for name, bins in (
        ("streaming.update", jm.streaming.float16_bins()),
        ("streaming.update, uniform", jm.streaming.uniform_bins(65_536)),
    ):
        state = jax.eval_shape(partial(jm.streaming.init, bins))
        add(name, partial(jm.streaming.update, bins=bins), state, scores, labels)
    bins = jm.streaming.float16_bins()
    state = jax.eval_shape(partial(jm.streaming.init, bins))
    add("streaming.init", partial(jm.streaming.init, bins))
    add("streaming.merge", jm.streaming.merge, state, state)
    add("streaming.n_items", jm.streaming.n_items, state)
    add("streaming.table", partial(jm.streaming.table, bins=bins), state)
    means = jax.eval_shape(jm.streaming.means.init)
    add("streaming.means.update", jm.streaming.means.update, means, scores)


def _add_label_sets(add: Callable[..., None], n: int) -> None:
    rows = n // _LISTS
    predicted, relevant = _array((rows, _LISTS), jnp.int32), _array((rows, 10), jnp.int32)
    groups, chances = _array((_LABELS,), jnp.int32), _array((_LABELS,), jnp.float32)
    for name, options in _OF_LABEL_SETS.items():

        def of_groups(
            predicted: Any,
            relevant: Any,
            groups: Any,
            name: str = name,
            options: dict[str, Any] = options,
        ) -> Any:
            grouped = {"groups": groups, "num_groups": 10, **options}
            return getattr(jm.extreme, name)(predicted, relevant, **grouped)

        add(f"extreme.{name}", of_groups, predicted, relevant, groups)
    for name in ("propensity_scored_precision_at_k", "propensity_scored_ndcg_at_k"):

        def scored(predicted: Any, relevant: Any, chances: Any, name: str = name) -> Any:
            return getattr(jm.extreme, name)(predicted, relevant, k=10, propensities=chances)

        add(f"extreme.{name}", scored, predicted, relevant, chances)
    add("extreme.propensities", partial(jm.extreme.propensities, n_instances=n), groups)


def _add_minibatch_losses(add: Callable[..., None], n: int) -> None:
    """Of a batch of n items, as each has all its pairs in memory."""
    scores, labels, index = (_array((n,), x) for x in (jnp.float32, jnp.bool_, jnp.int32))
    for name, options in (("kl_partial_auc", {}), ("cvar_partial_auc", {"max_fpr": 0.05})):
        module = getattr(jm.losses, name)
        state = jax.eval_shape(partial(module.init, n))
        apply = partial(module.apply, **options)

        def gradient(
            scores: Any, state: Any, labels: Any, index: Any, apply: Callable[..., Any] = apply
        ) -> Any:
            def loss(scores: Any) -> Any:
                return apply(state, scores, labels, index)

            return jax.value_and_grad(loss, has_aux=True)(scores)

        arguments = (scores, state, labels, index)
        add(f"gradient of losses.{name}.apply", gradient, *arguments, n_items=n)
