"""What mypy sees of a user's program, in its strict mode: never run, and not a test of pytest.

An error that is ignored must be there, as mypy warns of comments that it does not need.
"""

from collections.abc import Iterator
from functools import partial
from typing import assert_type

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes

import jaxmetrics as jm
from jaxmetrics import losses, plots, streaming

key = jax.random.key(0)
scores, labels = np.ones((3, 100)), np.arange(100) % 2
ids = np.arange(100) // 10

# Metrics, of scores and of a table.
assert_type(jm.roc_auc(scores, labels), jax.Array)
assert_type(jm.roc_auc(scores, labels, weights=labels, where=[True] * 100), jax.Array)
assert_type(jm.partial_auc(scores, labels, max_fpr=0.1, scale="mcclish"), jax.Array)
assert_type(jm.recall_at_fpr(scores, labels, max_fpr=[0.1, 0.2], amounts=labels), jax.Array)
table = jm.score_table(scores, labels)
assert_type(table, jm.ScoreTable)
assert_type(jm.roc_auc(table), jax.Array)
assert_type(jm.partial_auc(table, max_fpr=0.1), jax.Array)
assert_type(jm.min_cost_threshold(table, fp_cost=2), jax.Array)
assert_type(jm.roc_curve(table), jm.RocCurve)
assert_type(jm.cost_curve(scores, labels, fn_cost=2).cost, jax.Array)
assert_type(jm.recall(labels, labels, average=None), jax.Array)
assert_type(jm.ndcg(scores, labels, segments=ids, k=5), jax.Array)
assert_type(jm.extreme.ndcg_at_k(labels, labels, k=3), jax.Array)

# A partial is a metric.
recall = partial(jm.recall_at_fpr, max_fpr=0.1)
assert_type(recall(scores, labels), jax.Array)
interval = jm.confidence_interval(recall, scores, labels, key=key, confidence_level=0.9)
assert_type(interval, jm.Interval)
assert_type(interval.low, jax.Array)
assert_type(jm.standard_error(jm.roc_auc, scores, labels), jax.Array)
assert_type(jm.covariance(jm.roc_auc, scores, labels), jax.Array)
assert_type(jm.influence(jm.roc_auc, scores, labels), jax.Array)
result = jm.compare(jm.roc_auc, scores, labels)
assert_type(result.simultaneous_low, jax.Array)
assert_type(result.best_set, jax.Array)
assert_type(jm.bootstrap(jm.roc_auc, scores, labels, key=key).interval(), jm.Interval)
assert_type(jm.roc_band(scores, labels).low, jax.Array)


@jm.table_metric
def youden(table: jm.ScoreTable, *, power: float = 1.0) -> jax.Array:
    tpr = jnp.cumsum(table.positives) / jnp.sum(table.positives)
    return jnp.max(tpr) ** power


@jm.table_metric(of_roc_curve=True)
def twice(table: jm.ScoreTable) -> tuple[jax.Array, jax.Array]:
    return jm.roc_auc(table), jm.partial_auc(table, max_fpr=0.1)


assert_type(youden(scores, labels, power=2.0), jax.Array)
assert_type(youden(table), jax.Array)
assert_type(twice(scores, labels, where=labels), tuple[jax.Array, jax.Array])
jm.bootstrap(youden, scores, labels, key=key)

# Streams.
bins = streaming.float16_bins()
state = streaming.update(streaming.init(bins), scores[0], labels, bins=bins)
assert_type(streaming.table(streaming.merge(state, state), bins=bins), jm.ScoreTable)
low, high = streaming.bounds(jm.roc_auc, state, bins=bins)
assert_type(low, jax.Array)
assert_type(streaming.interval(jm.roc_auc, state, bins=bins), jm.Interval)
assert_type(streaming.means.result(streaming.means.init()).mean, jax.Array)


def batches() -> Iterator[tuple[list[float], list[int]]]:
    yield [0.1, 0.9], [0, 1]


assert_type(streaming.exact(jm.roc_auc, batches, memory_items=100), jax.Array)


# Losses.
def loss(weights: jax.Array) -> jax.Array:
    return losses.partial_auc_loss(weights, labels, max_fpr=0.1, surrogate="hinge")


slots = losses.kl_partial_auc.init(100)
value, slots = losses.kl_partial_auc.apply(slots, scores[0], labels, ids, kl_weight=0.5)
assert_type(value, jax.Array)

assert_type(plots.roc(scores, labels, names=["a", "b", "c"]), Axes)
assert_type(jm.plots.roc(scores, labels), Axes)
assert_type(jm.precision_at_recall(table, min_recall=0.5), jax.Array)
chosen = jm.precision_at_recall(table, min_recall=0.5, return_threshold=True)
assert_type(chosen.threshold, jax.Array)

# A keyword or an argument that there is not, is missing or has the wrong type.
jm.partial_auc(scores, labels, max_fp=0.1)  # type: ignore
jm.ndcg(scores, labels, kk=5)  # type: ignore
jm.partial_auc(table, max_fp=0.1)  # type: ignore
jm.roc_auc(scores)  # type: ignore
jm.recall_at_fpr(table)  # type: ignore
youden(table, pow=2.0)  # type: ignore
youden(table, power="two")  # type: ignore
jm.recall(labels, labels, avrage=None)  # type: ignore
jm.confidence_interval(jm.roc_auc, scores, labels, level=0.9)  # type: ignore
jm.bootstrap(jm.roc_auc, scores, labels)  # type: ignore
assert jm.compare(jm.roc_auc, scores, labels).best  # type: ignore
streaming.update(state, scores, labels)  # type: ignore
streaming.bounds(jm.roc_auc, state, bins=100)  # type: ignore
losses.partial_auc_loss(scores, labels, max_fpr=0.1, surogate="hinge")  # type: ignore
plots.roc(scores, labels, name=["a"])  # type: ignore
