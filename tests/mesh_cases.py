"""Every public function of arrays, with arrays that can be laid out on a mesh.

The axes of an array are letters: m for models, n for items, and others for what is never divided.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxmetrics as jm
from jaxmetrics import extreme, losses, streaming

M, N, C = 4, 24, 3  # models, items, classes
_rng = np.random.default_rng(3)
_labels = np.arange(N) % 3 == 0
_classes = np.arange(N, dtype=np.int32) % C
ARRAYS: dict[str, tuple[Any, str]] = {
    "scores": (
        (_rng.normal(size=(M, N)).round(1) + _labels).astype(np.float32),
        "mn",
    ),
    "row": ((_rng.normal(size=N).round(1) + _labels).astype(np.float32), "n"),
    "labels": (_labels, "n"),
    "weights": (_rng.random(N).astype(np.float32) + 0.1, "n"),
    "where": (_rng.random(N) < 0.9, "n"),
    "chances": (np.linspace(0.1, 1, N, dtype=np.float32), "n"),
    "classes": (_classes, "n"),
    "predictions": (np.where(_rng.random((M, N)) < 0.7, _classes, 1).astype(np.int32), "mn"),
    "columns": (
        (_rng.normal(size=(N, C)) + (_classes[:, None] == np.arange(C))).astype(np.float32),
        "nc",
    ),
    "truths": (_rng.random((N, C)) < 0.5, "nc"),
    "grades": (_rng.integers(0, 3, N).astype(np.float32), "n"),
    "segments": (np.arange(N, dtype=np.int32) // 12, "n"),
    "lists": (np.argsort(_rng.random((N, 6)), axis=-1)[:, :4].astype(np.int32), "nk"),
    "relevant": (np.argsort(_rng.random((N, 6)), axis=-1)[:, :2].astype(np.int32), "nk"),
    "label_counts": (np.arange(1, 25, dtype=np.int32), "n"),
    "propensities": (np.linspace(0.2, 0.9, 6).astype(np.float32), "l"),
}
KEY = np.zeros(2, np.uint32)  # a typed key would begin JAX's devices before its processes
FEW: dict[str, Any] = {"key": KEY, "n_resamples": 16}
RECALL = partial(jm.recall_at_fpr, max_fpr=0.2)
PARTIAL = partial(jm.partial_auc, max_fpr=0.4)
BINS = streaming.uniform_bins(8, low=-3.0, high=3.0)


@jm.table_metric
def youden(table: jm.ScoreTable) -> jax.Array:
    tpr = jnp.cumsum(table.positives) / jnp.sum(table.positives)
    fpr = jnp.cumsum(table.negatives) / jnp.sum(table.negatives)
    return jnp.max(tpr - fpr)


class Case(NamedTuple):
    """A function of the named arrays."""

    function: Callable[..., Any]
    names: tuple[str, ...]
    traced: bool = True  # whether it also works within programs
    differentiated: bool = False  # by JAX, which needs a mesh as context where axes are explicit

    def arrays(self) -> tuple[Any, ...]:
        return tuple(ARRAYS[name][0] for name in self.names)


def case(function: Callable[..., Any], *names: str, **by_name: str) -> Case:
    """`function(*names, **by_name)`, with the arrays of these names."""

    def of(*arrays: Any) -> Any:
        return function(
            *arrays[: len(names)], **dict(zip(by_name, arrays[len(names) :], strict=True))
        )

    return Case(of, (*names, *by_name.values()))


def _of_items(metric: Callable[..., Any], **options: str) -> Case:
    return case(metric, "scores", "labels", **options)


def _updated(scores: Any, labels: Any, weights: Any = None) -> Any:
    state = streaming.init(BINS, scores.shape[:-1], weighted=weights is not None)
    return streaming.update(state, scores, labels, bins=BINS, weights=weights)


def _of_stream(function: Callable[..., Any], **options: Any) -> Case:
    def of(scores: Any, labels: Any) -> Any:
        return function(_updated(scores, labels), bins=BINS, **options)

    return case(of, "scores", "labels")


def _in_clusters(function: Callable[..., Any]) -> Callable[..., Any]:
    """In pairs of items; a program that is traced needs to know the clusters."""

    def of(scores: Any, labels: Any) -> Any:
        return function(scores, labels, clusters=np.arange(len(labels)) // 2)

    return of


def _of_halves(metric: Callable[..., Any]) -> Callable[..., Any]:
    """Which a program that is traced needs to know."""

    def of(scores: Any, labels: Any) -> Any:
        groups = 2 * np.arange(len(labels)) // len(labels)
        return jm.compare_samples(metric, scores, labels, groups=groups)

    return of


def _gradient(loss: Callable[..., Any]) -> Callable[..., Any]:
    def total(scores: Any, *arrays: Any, **options: Any) -> Any:
        return jnp.sum(loss(scores, *arrays, **options))

    return jax.value_and_grad(total)


def _memory(module: Any, **options: float) -> Callable[..., Any]:
    def of(scores: Any, labels: Any) -> Any:
        return module.apply(module.init(N), scores, labels, jnp.arange(len(scores)), **options)

    return of


LOSSES: dict[str, Callable[..., Any]] = {
    "pairwise_auc_loss": losses.pairwise_auc_loss,
    "partial_auc_loss": partial(losses.partial_auc_loss, max_fpr=0.4),
    "partial_auc_loss-hinge": partial(
        losses.partial_auc_loss, max_fpr=0.4, min_tpr=0.2, surrogate="hinge"
    ),
    "recall_at_fpr_loss": partial(losses.recall_at_fpr_loss, max_fpr=0.3),
    "average_precision_loss": losses.average_precision_loss,
}
CASES: dict[str, Case] = {
    "roc_auc": _of_items(jm.roc_auc),
    "roc_auc-weights": _of_items(jm.roc_auc, weights="weights", where="where"),
    "partial_auc": _of_items(PARTIAL),
    "partial_auc-two-way": _of_items(
        partial(jm.partial_auc, max_fpr=0.5, min_tpr=0.4, scale="mcclish"), weights="weights"
    ),
    "recall_at_fpr": _of_items(RECALL),
    "recall_at_fpr-amounts": _of_items(RECALL, amounts="weights"),
    "recall_at_fpr-quantile": _of_items(
        partial(jm.recall_at_fpr, max_fpr=0.2, method="quantile"), where="where"
    ),
    "threshold_at_fpr": _of_items(partial(jm.threshold_at_fpr, max_fpr=0.2)),
    "average_precision": _of_items(jm.average_precision),
    "precision_at_recall": _of_items(
        partial(jm.precision_at_recall, min_recall=0.5, return_threshold=True)
    ),
    "recall_at_precision": _of_items(partial(jm.recall_at_precision, min_precision=0.5)),
    "sensitivity_at_specificity": _of_items(
        partial(jm.sensitivity_at_specificity, min_specificity=0.8)
    ),
    "specificity_at_sensitivity": _of_items(
        partial(jm.specificity_at_sensitivity, min_sensitivity=0.7)
    ),
    "specificity_at_sensitivity-threshold": _of_items(
        partial(jm.specificity_at_sensitivity, min_sensitivity=0.7, return_threshold=True)
    ),
    "min_cost_threshold": _of_items(partial(jm.min_cost_threshold, fp_cost=1.0, fn_cost=3.0)),
    "table_metric": _of_items(youden),
    "score_table": _of_items(jm.score_table, weights="weights"),
    "of a table": _of_items(lambda *arrays: jm.roc_auc(jm.score_table(*arrays))),
    "roc_auc_sampled": _of_items(partial(jm.roc_auc_sampled, KEY, n_pairs=50)),
    "roc_curve": _of_items(jm.roc_curve),
    "precision_recall_curve": _of_items(jm.precision_recall_curve),
    "det_curve": _of_items(jm.det_curve),
    "cost_curve": _of_items(jm.cost_curve),
    "one_vs_rest": case(jm.one_vs_rest(jm.roc_auc), "columns", "classes", weights="weights"),
    "one_vs_one": case(jm.one_vs_one(jm.roc_auc), "columns", "classes"),
    "multilabel": case(jm.multilabel(jm.average_precision), "columns", "truths"),
    "multilabel-samples": case(jm.multilabel(jm.roc_auc, "samples"), "columns", "truths"),
    "confusion_matrix": case(
        partial(jm.confusion_matrix, n_classes=C), "predictions", "classes", weights="weights"
    ),
    "recall": case(partial(jm.recall, average="macro", n_classes=C), "predictions", "classes"),
    "precision": case(partial(jm.precision, average=None, n_classes=C), "predictions", "classes"),
    "f_beta": case(partial(jm.f_beta, average="micro", n_classes=C), "predictions", "classes"),
    "specificity": case(
        partial(jm.specificity, average="weighted", n_classes=C), "predictions", "classes"
    ),
    "accuracy": case(jm.accuracy, "predictions", "classes", where="where"),
    "balanced_accuracy": case(partial(jm.balanced_accuracy, n_classes=C), "predictions", "classes"),
    "matthews_corrcoef": case(partial(jm.matthews_corrcoef, n_classes=C), "predictions", "classes"),
    "dcg": case(jm.dcg, "scores", "grades"),
    "ndcg": case(partial(jm.ndcg, k=5), "scores", "grades", where="where"),
    "ndcg-segments": case(
        partial(jm.ndcg, num_segments=2), "scores", "grades", segments="segments"
    ),
    "expected_reciprocal_rank": case(
        partial(jm.expected_reciprocal_rank, max_grade=2), "scores", "grades"
    ),
    "rank_biased_precision": case(jm.rank_biased_precision, "scores", "labels"),
    "precision_at_k": case(partial(jm.precision_at_k, k=5), "scores", "labels"),
    "recall_at_k": case(partial(jm.recall_at_k, k=5), "scores", "labels"),
    "average_precision_at_k": case(partial(jm.average_precision_at_k, k=5), "scores", "labels"),
    "reciprocal_rank": case(jm.reciprocal_rank, "scores", "labels"),
    "hit_rate_at_k": case(partial(jm.hit_rate_at_k, k=5), "scores", "labels"),
    "ordered_pair_accuracy": case(jm.ordered_pair_accuracy, "scores", "grades"),
    "segment_roc_auc": case(
        partial(jm.segment_roc_auc, num_segments=2), "scores", "labels", segments="segments"
    ),
    "segment_partial_auc": case(
        partial(jm.segment_partial_auc, num_segments=2, max_fpr=0.5),
        "scores",
        "labels",
        segments="segments",
    ),
    "influence": _of_items(partial(jm.influence, jm.roc_auc)),
    "influence-recall": _of_items(partial(jm.influence, RECALL)),
    "standard_error": _of_items(partial(jm.standard_error, jm.roc_auc), weights="weights"),
    "standard_error-clusters": _of_items(_in_clusters(partial(jm.standard_error, PARTIAL))),
    "covariance": _of_items(partial(jm.covariance, jm.average_precision)),
    "confidence_interval": _of_items(partial(jm.confidence_interval, jm.roc_auc)),
    "confidence_interval-precision": _of_items(
        partial(jm.confidence_interval, jm.average_precision)
    ),
    "confidence_interval-recall": _of_items(partial(jm.confidence_interval, RECALL)),
    "confidence_interval-clusters": _of_items(
        _in_clusters(partial(jm.confidence_interval, RECALL))
    ),
    "confidence_interval-bca": _of_items(
        partial(jm.confidence_interval, jm.roc_auc, method="bca", **FEW)
    ),
    "bootstrap": _of_items(partial(jm.bootstrap, jm.roc_auc, **FEW)),
    "bootstrap-clusters": _of_items(_in_clusters(partial(jm.bootstrap, PARTIAL, **FEW))),
    "bootstrap-interval": _of_items(
        lambda *arrays: jm.bootstrap(jm.roc_auc, *arrays, **FEW).interval()
    ),
    "bootstrap_mean": case(partial(jm.bootstrap_mean, **FEW), "scores"),
    "roc_band": _of_items(jm.roc_band),
    "roc_band-clusters": _of_items(_in_clusters(jm.roc_band)),
    "roc_band-weights": _of_items(jm.roc_band, weights="weights"),
    "compare": _of_items(partial(jm.compare, jm.roc_auc)),
    "compare-clusters": _of_items(_in_clusters(partial(jm.compare, PARTIAL))),
    "compare-bootstrap": _of_items(partial(jm.compare, jm.average_precision, **FEW)),
    "compare_means": case(jm.compare_means, "scores"),
    "mean_interval": case(jm.mean_interval, "scores"),
    "compare_samples": _of_items(_of_halves(jm.roc_auc)),
    "compare_samples-precision": _of_items(_of_halves(jm.average_precision)),
    "compare_to_value": _of_items(partial(jm.compare_to_value, jm.roc_auc, value=0.5)),
    "operating_point": _of_items(partial(jm.operating_point, max_fpr=0.2)),
    "sample_size": case(partial(jm.sample_size, jm.roc_auc, width=0.2), "row", "labels"),
    "sample_size-clusters": _of_items(_in_clusters(partial(jm.sample_size, jm.roc_auc, width=0.2))),
    "power": case(partial(jm.power, jm.roc_auc, difference=0.1, n_positives=50), "row", "labels"),
    "prediction_powered_interval": _of_items(
        partial(jm.prediction_powered_interval, jm.roc_auc), proxy="chances", labelled="where"
    ),
    "permutation_test": _of_items(partial(jm.permutation_test, jm.roc_auc, **FEW)),
    "permutation_test-clusters": _of_items(
        _in_clusters(partial(jm.permutation_test, jm.roc_auc, **FEW))
    ),
    "extreme.precision_at_k": case(partial(extreme.precision_at_k, k=3), "lists", "relevant"),
    "extreme.ndcg_at_k": case(partial(extreme.ndcg_at_k, k=3), "lists", "relevant"),
    "extreme.normalized_recall_at_k": case(
        partial(extreme.normalized_recall_at_k, k=3), "lists", "relevant"
    ),
    "extreme.k_for_recall": case(
        partial(extreme.k_for_recall, min_recall=0.5, n_labels=6), "lists", "relevant"
    ),
    "extreme.label_deciles": case(extreme.label_deciles, "label_counts"),
    "extreme.propensities": case(partial(extreme.propensities, n_instances=24), "label_counts"),
    "extreme.propensity_scored_precision_at_k": case(
        partial(extreme.propensity_scored_precision_at_k, k=3),
        "lists",
        "relevant",
        propensities="propensities",
    ),
    "extreme.propensity_scored_ndcg_at_k": case(
        partial(extreme.propensity_scored_ndcg_at_k, k=3),
        "lists",
        "relevant",
        propensities="propensities",
    ),
    "extreme.positive_coverage_at_k": case(
        partial(extreme.positive_coverage_at_k, k=3), "lists", "relevant"
    ),
    "extreme.prediction_proportions_at_k": case(
        partial(extreme.prediction_proportions_at_k, k=3, num_groups=2, groups=np.arange(6) % 2),
        "lists",
    ),
    "streaming.update": _of_items(_updated),
    "streaming.update-weights": _of_items(_updated, weights="weights"),
    "streaming.merge": _of_stream(lambda state, bins: streaming.merge(state, state)),
    "streaming.n_items": _of_stream(lambda state, bins: streaming.n_items(state)),
    "streaming.table": _of_stream(streaming.table),
    "streaming.bounds": _of_stream(partial(streaming.bounds, jm.roc_auc)),
    "streaming.interval": _of_stream(partial(streaming.interval, jm.roc_auc)),
    "streaming.bootstrap": _of_stream(partial(streaming.bootstrap, jm.roc_auc), **FEW)._replace(
        traced=False
    ),
    "streaming.means": case(
        lambda values: streaming.means.result(
            streaming.means.update(streaming.means.init(values.shape[:-1]), values)
        ),
        "scores",
    ),
    **{
        name: _of_items(_gradient(loss), weights="weights")._replace(differentiated=True)
        for name, loss in LOSSES.items()
    },
    "approx_ndcg_loss": case(_gradient(losses.approx_ndcg_loss), "scores", "grades")._replace(
        differentiated=True
    ),
    "kl_partial_auc": case(_memory(losses.kl_partial_auc), "row", "labels"),
    "cvar_partial_auc": case(_memory(losses.cvar_partial_auc, max_fpr=0.3), "row", "labels"),
}
# How arrays lie and what is done with them: the mode, the type of the mesh's axes, or whether
# shard_map checks types, and what is divided.
FORMS = (
    *(
        f"eager {kind} {layout}"
        for kind in ("Explicit", "Auto")
        for layout in ("items", "models", "both", "replicated")
    ),
    "context Explicit both",
    "jit Explicit items",
    "jit Explicit models",
    "jit Explicit both",
    "jit Explicit replicated",
    "jit Auto both",
    *(
        f"shard_map {check} {layout}"
        for check in ("checked", "free")
        for layout in ("models", "both")
    ),
)
# These run always, and all others with -m slow.
FIRST = ("roc_auc-weights", "standard_error", "partial_auc_loss", "streaming.update")
FIRST_CASES = tuple(zip(FIRST, ("jit Explicit both", "shard_map checked models") * 2, strict=True))
