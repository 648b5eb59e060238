"""`python -m benchmarks.slices`: how often tests of slices err, and what intervals of folds cover.

All slices of a sample have one population, and its two models are equally good, so that every
difference found is an error. Scores are normal, and correlated between the models.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import numpy as np
from scipy.special import ndtri

import jaxmetrics as jm
from benchmarks.tables import Row, Table, show

CORRELATION = 0.8
METRICS: dict[str, Callable[..., Any]] = {
    "AUC": jm.roc_auc,
    "partial AUC to 0.2": partial(jm.partial_auc, max_fpr=0.2),
    "average precision": jm.average_precision,
    "recall at FPR 0.1": partial(jm.recall_at_fpr, max_fpr=0.1),
}
SHARED = "recall, shared threshold"


def drawn(rng: np.random.Generator, auc: float, n_slices: int, positives: int) -> Any:
    """Scores of two models, labels, and slices of 4 negatives to a positive."""
    labels = np.tile(np.arange(5 * positives) < positives, n_slices)
    shared, own = rng.normal(size=len(labels)), rng.normal(size=(2, len(labels)))
    noise = np.sqrt(CORRELATION) * shared + np.sqrt(1 - CORRELATION) * own
    scores = noise + np.sqrt(2) * ndtri(auc) * labels
    return scores, labels, np.arange(n_slices).repeat(5 * positives)


def family_wise(
    name: str, auc: float, n_slices: int, positives: int, n_samples: int, seed: int = 0
) -> tuple[float, float]:
    """The shares of the samples with a difference of models, and of a slice from the rest."""
    rng = np.random.default_rng(seed)
    metric = METRICS["recall at FPR 0.1" if name == SHARED else name]
    options: Any = {"threshold": "global"} if name == SHARED else {}
    errors = np.zeros(2)
    for _ in range(n_samples):
        found = jm.slices(metric, *drawn(rng, auc, n_slices, positives), **options)
        errors += [np.nanmin(x.simultaneous_p_value) < 0.05 for x in (found.models, found.rest)]
    return errors[0] / n_samples, errors[1] / n_samples


# Laws that were not looked at when the rule was chosen; positives are True.
HELD_OUT: dict[str, Callable[[np.random.Generator, Any], Any]] = {
    "Student t, 3 df, shift 1.3": lambda rng, y: rng.standard_t(3, len(y)) + 1.3 * y,
    "exponential, scale 3": lambda rng, y: rng.exponential(size=len(y)) * np.where(y, 3, 1),
    "logistic, shift 4": lambda rng, y: rng.logistic(size=len(y)) + 4 * y,
    "Poisson, means 2.5 and 1": lambda rng, y: 1.0 * rng.poisson(np.where(y, 2.5, 1)),
}


def held_out(name: str, law: str, n_samples: int, seed: int = 7) -> float:
    """The share of samples with a slice other than the rest; 30 slices of 20 to 100 positives."""
    rng = np.random.default_rng(seed)
    errors = 0
    for _ in range(n_samples):
        positives = np.exp(rng.uniform(np.log(20), np.log(100), 30)).astype(int)
        labels = np.concatenate([np.arange(4 * n) < n for n in positives])
        slices = np.arange(30).repeat(4 * positives)
        found = jm.slices(METRICS[name], HELD_OUT[law](rng, labels), labels, slices)
        errors += np.nanmin(found.rest.simultaneous_p_value) < 0.05
    return errors / n_samples


def fold_coverage(
    auc: float, n: int, n_folds: int, offset: float, n_samples: int, seed: int = 0
) -> tuple[float, float]:
    """How often 95 % intervals of the mean and of the pooled value hold the mean true AUC.

    Scores of each fold are shifted at random, by a normal number with this deviation.
    """
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2 == 1
    folds = (np.arange(n) // 2) % n_folds
    hits = np.zeros(2)
    for _ in range(n_samples):
        shifts = offset * rng.normal(size=n_folds)
        scores = rng.normal(size=n) + np.sqrt(2) * ndtri(auc) * labels + shifts[folds]
        found = jm.fold_interval(jm.roc_auc, scores, labels, folds)
        hits += [x.low <= auc <= x.high for x in (found.mean, found.pooled)]
    return hits[0] / n_samples, hits[1] / n_samples


# True AUC, folds, and the positives and negatives of each.
SMALL_FOLDS = (
    (0.75, 10, 5, 20),
    (0.75, 50, 2, 10),
    (0.95, 10, 5, 20),
    (0.95, 20, 10, 50),
    (0.95, 20, 3, 30),
    (0.95, 50, 2, 10),
    (0.95, 50, 1, 10),
    (0.97, 30, 5, 20),
    (0.99, 10, 10, 50),
)


def misses_of_small_folds(
    auc: float, n_folds: int, positives: int, negatives: int, n_samples: int, seed: int = 0
) -> tuple[float, float]:
    """How often 95 % limits of the mean are above, and below, the true AUC, of 5 n samples."""
    rng = np.random.default_rng(seed)
    labels = np.tile(np.arange(positives + negatives) < positives, n_folds)
    folds = np.arange(n_folds).repeat(positives + negatives)
    misses = np.zeros(2)
    for _ in range(5):
        scores = rng.normal(size=(n_samples, len(labels))) + np.sqrt(2) * ndtri(auc) * labels
        mean = jm.fold_interval(jm.roc_auc, scores, labels, folds).mean
        misses += [np.mean(mean.low > auc), np.mean(mean.high < auc)]
    return misses[0] / 5, misses[1] / 5


def rows_of_slices(n_samples: int) -> Iterator[Row]:
    for name in (*METRICS, SHARED):
        for auc in (0.75, 0.95):
            for n_slices, positives in ((10, 20), (10, 50), (50, 20), (50, 50)):
                models, rest = family_wise(name, auc, n_slices, positives, n_samples)
                yield {
                    "metric": name,
                    "AUC": f"{auc:.2f}",
                    "slices": f"{n_slices}",
                    "positives a slice": f"{positives}",
                    "models": f"{models:.3f}",
                    "slice and rest": f"{rest:.3f}",
                }


def rows_held_out(n_samples: int) -> Iterator[Row]:
    for law in HELD_OUT:
        errors = {name: f"{held_out(name, law, n_samples):.3f}" for name in METRICS}
        yield {"scores": law} | errors


def rows_of_folds(n_samples: int) -> Iterator[Row]:
    for auc, n in ((0.75, 100), (0.75, 400), (0.95, 100), (0.95, 400)):
        for n_folds in (5, 10):
            for offset in (0.0, 0.5):
                mean, pooled = fold_coverage(auc, n, n_folds, offset, n_samples)
                yield {
                    "AUC": f"{auc:.2f}",
                    "items": f"{n}",
                    "folds": f"{n_folds}",
                    "deviation of offsets": f"{offset:.1f}",
                    "mean": f"{mean:.3f}",
                    "pooled": f"{pooled:.3f}",
                }


def rows_of_small_folds(n_samples: int) -> Iterator[Row]:
    for auc, n_folds, positives, negatives in SMALL_FOLDS:
        above, below = misses_of_small_folds(auc, n_folds, positives, negatives, n_samples)
        yield {
            "AUC": f"{auc:.2f}",
            "folds": f"{n_folds}",
            "positives": f"{positives}",
            "negatives": f"{negatives}",
            "coverage": f"{1 - above - below:.3f}",
            "lower limit above": f"{above:.3f}",
            "upper limit below": f"{below:.3f}",
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=400)
    n_samples = parser.parse_args().samples
    jax.config.update("jax_platforms", "cpu")
    warnings.simplefilter("ignore")
    title = f"Family-wise error at 0.05, {n_samples} samples a row."
    show(Table(title, rows_of_slices(n_samples)))
    title = f"Slice and rest, 30 slices of 20 to 100 positives, {n_samples} samples a row."
    show(Table(title, rows_held_out(n_samples)))
    title = f"Coverage of 95 % intervals of cross-validated AUC, {n_samples} samples a row."
    show(Table(title, rows_of_folds(n_samples)))
    title = f"95 % intervals of the mean AUC of small folds, {5 * n_samples} samples a row."
    show(Table(title, rows_of_small_folds(n_samples)))


if __name__ == "__main__":
    main()
