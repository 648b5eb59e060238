"""Few clusters: intervals of the AUC of one model, and comparisons of equal models."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import special, stats

import jaxmetrics as jm
from benchmarks.model_pairs import Scores, placements
from jaxmetrics.inference._intervals.rules import Moments, logit_t


def labels_of_clusters(kind: str, n_clusters: int) -> Scores:
    """`[clusters, 10]`: of one class each, 3 in 10 of each positive, or every second one so."""
    alone = np.zeros((n_clusters, 10), bool)
    alone[::3] = True
    both = np.broadcast_to(np.arange(10) < 3, alone.shape)
    halves = np.where(np.arange(n_clusters)[:, None] % 4 < 2, alone, both)
    return {"of one class": alone, "mixed": both, "partly mixed": halves}[kind]


def clustered_scores(
    rng: np.random.Generator, labels: Scores, shape: tuple[int, ...], shift: float
) -> Scores:
    """`[*shape, clusters, 10]`, with effects of a cluster on each class, of correlation 0.5."""
    common, own = rng.standard_normal((*shape, len(labels), 3)), np.sqrt(0.5)
    effects = own * (common[..., :1] + common[..., 1:])
    at = np.where(labels, effects[..., 1:], effects[..., :1])
    found: Scores = at + rng.standard_normal(at.shape) + shift * labels
    return found


def limits_before(scores: Scores, labels: Scores, level: np.float64) -> tuple[Scores, Scores]:
    """One sum of influence a cluster, K / (K - 1), and t with K - 1 degrees of freedom."""
    k = len(labels)
    order = np.argsort(~labels.ravel(), kind="stable")
    n1 = int(labels.sum())
    negatives, positives = placements(scores.reshape(len(scores), -1)[:, order], n1)
    area = positives.mean(axis=-1)
    values = np.zeros((len(scores), labels.size))
    both = np.concatenate([positives / n1, negatives / (labels.size - n1)], axis=1)
    means = area[:, None] * np.where(np.arange(labels.size) < n1, 1 / n1, 1 / (labels.size - n1))
    values[:, order] = both - means
    sums = values.reshape(-1, *labels.shape).sum(axis=-1)
    variance = k / (k - 1) * ((sums - sums.mean(axis=-1, keepdims=True)) ** 2).sum(axis=-1)
    sizes = np.full_like(area, k), np.full_like(area, k)
    low, high = logit_t(Moments(area, (0 * variance, k * variance), sizes), level)
    return low, high


def rows_of_clusters(simulations: int) -> Iterator[list[str]]:
    shift = 1.8
    truth = stats.norm.cdf(shift / 2)  # of items of two clusters: each has a variance of 2
    most = 50
    for kind in ("of one class", "partly mixed", "mixed"):
        for k in (5, 6, 10, 20, 50):
            labels = labels_of_clusters(kind, k)
            rng = np.random.default_rng([k, *kind.encode()])
            scores = clustered_scores(rng, labels, (simulations,), shift)
            # Masked items make all sizes one shape, for which JAX compiles once.
            padded = np.zeros((simulations, most * 10))
            padded[:, : labels.size] = scores.reshape(simulations, -1)
            interval = jm.confidence_interval(
                jm.roc_auc,
                padded,
                np.pad(labels.ravel(), (0, most * 10 - labels.size)),
                clusters=np.arange(most * 10) // 10,
                where=np.arange(most * 10) < labels.size,
            )
            before = limits_before(scores, labels, np.float64(0.95))
            cells = []
            for low, high in (before, (np.asarray(interval.low), np.asarray(interval.high))):
                above, below = np.mean(low > truth), np.mean(high < truth)
                cells.append(f"{1 - above - below:.3f} ({100 * above:.1f}, {100 * below:.1f})")
            width = np.mean(np.asarray(interval.high - interval.low))
            wider = width / np.mean(before[1] - before[0])
            yield [kind, str(k), str(int(labels.any(axis=1).sum())), *cells, f"{wider:.2f}"]


def rows_of_equal_models(simulations: int, counts: tuple[int, ...]) -> Iterator[list[str]]:
    """Rejections among five equal models at 5 %: of one pair, and of any."""
    tukey = stats.studentized_range.ppf(0.95, 5, np.inf) / np.sqrt(2)
    most = max(counts)
    for kind in ("of one class", "mixed"):
        for k in counts:
            labels = np.resize(labels_of_clusters(kind, k), (most, 10))
            rng = np.random.default_rng([k, *kind.encode()])
            found = []
            for _ in range(simulations):
                shared = clustered_scores(rng, labels, (), 1.5)
                own = clustered_scores(rng, labels, (5,), 1.5)
                result = jm.compare(
                    jm.roc_auc,
                    (shared + own).reshape(5, -1),
                    labels.ravel(),
                    clusters=np.arange(most * 10) // 10,
                    where=np.arange(most * 10) < k * 10,
                )
                error = np.asarray(result.standard_error)
                z = np.abs(result.difference) / np.where(error > 0, error, np.inf)
                pair = z[0, 1] > special.ndtri(0.975), result.p_value[0, 1] < 0.05
                smallest = np.min(np.asarray(result.simultaneous_p_value))
                found.append((*pair, z.max() > tukey, smallest < 0.05))
            yield [kind, str(k), *(f"{x:.3f}" for x in np.mean(found, axis=0))]
