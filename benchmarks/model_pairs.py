"""Pairs of models with known differences of the AUC, for the study of comparisons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

Scores = np.ndarray[Any, Any]
Draw = Callable[[np.random.Generator, tuple[int, int, int]], Scores]  # of simulations, P, N

MILLION = 1_000_000


class Pair(NamedTuple):
    """Two models whose scores are `[simulations, 2, items]`, positives first."""

    draw: Draw
    equal: bool = False

    def truth(self) -> float:
        """The difference of the AUC; of a million items of each class, an error below 0.0005."""
        if self.equal:
            return 0.0
        scores = self.draw(np.random.default_rng(0), (1, MILLION, MILLION))
        values = placements(scores, MILLION)[1].mean(axis=-1)[0]
        return float(values[0] - values[1])


def placements(scores: Scores, n_positive: int) -> tuple[Scores, Scores]:
    """Of negatives and positives: the share of the other class that they are on the right side of.

    Items `[..., n]`, positives first; a tie counts one half.
    """
    n_negative = scores.shape[-1] - n_positive
    ranks = stats.rankdata(scores, axis=-1)
    positives, negatives = np.split(ranks, [n_positive], axis=-1)
    positives = positives - stats.rankdata(scores[..., :n_positive], axis=-1)
    negatives = negatives - stats.rankdata(scores[..., n_positive:], axis=-1)
    return 1 - negatives / n_positive, positives / n_negative


def normal_noise(rng: np.random.Generator, shape: tuple[int, int], r: float) -> Scores:
    z = rng.standard_normal((shape[0], 2, shape[1]))
    z[:, 1] = r * z[:, 0] + np.sqrt(1 - r * r) * z[:, 1]
    return z


def binormal(aucs: tuple[float, float], r: float, deviations: tuple[float, float] = (1, 1)) -> Pair:
    """Negatives are standard normal; positives have these deviations."""
    spread = np.array(deviations)[:, None]
    means = stats.norm.ppf(np.array(aucs))[:, None] * np.sqrt(1 + spread**2)

    def draw(rng: np.random.Generator, shape: tuple[int, int, int]) -> Scores:
        k, *sizes = shape
        positives, negatives = (normal_noise(rng, (k, n), r) for n in sizes)
        return np.concatenate([means + spread * positives, negatives], axis=-1)

    return Pair(draw, aucs[0] == aucs[1] and deviations[0] == deviations[1])


def student(shifts: tuple[float, float], r: float, df: float) -> Pair:
    def draw(rng: np.random.Generator, shape: tuple[int, int, int]) -> Scores:
        k, n_positive, n_negative = shape
        n = n_positive + n_negative
        scores = normal_noise(rng, (k, n), r) / np.sqrt(rng.chisquare(df, (k, 1, n)) / df)
        scores[..., :n_positive] += np.array(shifts)[:, None]
        return scores

    return Pair(draw, shifts[0] == shifts[1])


def mixed(r: float) -> Pair:
    """Two normal components in each class: a part of each is like the other class."""

    def draw(rng: np.random.Generator, shape: tuple[int, int, int]) -> Scores:
        k, n_positive, n_negative = shape

        def of_class(n: int, share: float, means: Scores, deviations: Scores) -> Scores:
            which = (rng.random((k, 2, n)) < share).astype(int)
            return means[which] + deviations[which] * normal_noise(rng, (k, n), r)

        positives = of_class(n_positive, 0.3, np.array([2.0, 0.0]), np.array([1.0, 0.5]))
        negatives = of_class(n_negative, 0.15, np.array([0.0, 2.5]), np.array([1.0, 0.7]))
        return np.concatenate([positives, negatives], axis=-1)

    return Pair(draw, equal=True)


def skewed(scales: tuple[float, float]) -> Pair:
    """Exponential scores, half of which is common to both models."""

    def draw(rng: np.random.Generator, shape: tuple[int, int, int]) -> Scores:
        k, n_positive, n_negative = shape
        n = n_positive + n_negative
        scores = rng.gamma(0.5, size=(k, 1, n)) + rng.gamma(0.5, size=(k, 2, n))
        scores[..., :n_positive] *= np.array(scales)[:, None]
        return scores

    return Pair(draw)


def rounded(pair: Pair, models: tuple[int, ...] = (0, 1)) -> Pair:
    """These models have whole numbers for scores."""

    def draw(rng: np.random.Generator, shape: tuple[int, int, int]) -> Scores:
        scores = pair.draw(rng, shape)
        scores[:, models] = np.round(scores[:, models])
        return scores

    return Pair(draw, pair.equal)


def coarsened(auc: float) -> Pair:
    """The second model has the scores of the first one, as whole numbers."""
    return rounded(binormal((auc, auc), 1.0), (1,))._replace(equal=False)


def missed(
    shares: tuple[float, float], shift: float, deviation: float, drop: float, r: float = 0.5
) -> Pair:
    """Each model gives a share of the positives, drawn by itself, scores lower by `drop`."""

    def draw(rng: np.random.Generator, shape: tuple[int, int, int]) -> Scores:
        k, n_positive, n_negative = shape
        scores = deviation * normal_noise(rng, (k, n_positive + n_negative), r)
        lost = rng.random((k, 2, n_positive)) < np.array(shares)[:, None]
        scores[..., :n_positive] += shift - drop * lost
        return scores

    return Pair(draw, shares[0] == shares[1])


def alarms(share: float) -> Pair:
    """The second model gives a share of the negatives the highest scores."""
    other = missed((0, share), 2, 1, 6, 0.6)

    def draw(rng: np.random.Generator, shape: tuple[int, int, int]) -> Scores:
        k, n_positive, n_negative = shape
        scores = -other.draw(rng, (k, n_negative, n_positive))
        return np.roll(scores, n_positive, axis=-1)

    return Pair(draw)


_AREAS = [((0.9, 0.9), 0.5), ((0.9, 0.8), 0.5), ((0.9, 0.8), 0.9), ((0.95, 0.85), 0.8)]
_AREAS += [((0.99, 0.9), 0.5), ((0.99, 0.97), 0.9), ((0.8, 0.6), 0), ((0.99, 0.7), 0.3)]
_AREAS += [((0.97, 0.9), 0.95)]
TUNED = {
    **{f"binormal {a[0]:g}, {a[1]:g}; r = {r:g}": binormal(a, r) for a, r in _AREAS},
    **{f"one misses {100 * s:g} %": missed((0, s), 3, 0.42, 4) for s in (0.05, 0.1, 0.2)},
}
HELD_OUT = {
    "deviations 0.5 and 2; 0.9, 0.8": binormal((0.9, 0.8), 0.5, (0.5, 2)),
    "deviation 2; 0.8, 0.8": binormal((0.8, 0.8), 0.7, (2, 2)),
    "binormal 0.995, 0.98; r = 0.8": binormal((0.995, 0.98), 0.8),
    "binormal 0.99, 0.99; r = 0.3": binormal((0.99, 0.99), 0.3),
    "Student t, 2 df, shifts 3, 2": student((3, 2), 0.6, 2),
    "Student t, 2 df, shifts 2, 2": student((2, 2), 0.6, 2),
    "exponential, scales 6, 3": skewed((6, 3)),
    "whole numbers; 0.9, 0.8": rounded(binormal((0.9, 0.8), 0.5)),
    "whole numbers; 0.9, 0.9": rounded(binormal((0.9, 0.9), 0.5)),
    "coarsened; 0.9": coarsened(0.9),
    **{f"overlap, one misses {100 * s:g} %": missed((0, s), 2, 1, 6, 0.6) for s in (0.05, 0.1)},
    "overlap, one misses 20 %": missed((0, 0.2), 2, 1, 6, 0.6),
    "overlap, each misses 10 %": missed((0.1, 0.1), 2, 1, 6, 0.6),
    "overlap, one flags 5 % of negatives": alarms(0.05),
}
