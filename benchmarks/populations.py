"""Populations of scores with known metrics, from which the coverage study draws data sets.

Nearly half of them are held out: no rule was made for them, but they were seen beside the others
when constants were compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

Scores = np.ndarray[Any, Any]


class Law(Protocol):
    """The distribution of the scores of a class."""

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Scores: ...


@dataclass(frozen=True)
class Continuous:
    """A distribution of SciPy's."""

    law: Any

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Scores:
        return self.law.rvs(size=shape, random_state=rng)

    def upper(self, x: Scores) -> Scores:
        return self.law.sf(x)

    def upper_inverse(self, share: Scores) -> Scores:
        return self.law.isf(share)

    not_below = upper


@dataclass(frozen=True)
class Mixture:
    """A `share` of the scores from `other`, the rest from `law`."""

    share: float
    law: Continuous
    other: Continuous

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Scores:
        is_other = rng.random(shape) < self.share
        return np.where(is_other, self.other.draw(rng, shape), self.law.draw(rng, shape))

    def upper(self, x: Scores) -> Scores:
        return (1 - self.share) * self.law.upper(x) + self.share * self.other.upper(x)


@dataclass(frozen=True)
class Power:
    """Positives whose ROC curve against uniform negatives is u^exponent."""

    exponent: float

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Scores:
        return -(rng.random(shape) ** (1 / self.exponent))


@dataclass(frozen=True, eq=False)
class Discrete:
    """A few scores, in rising order, and the share of each."""

    scores: Scores
    shares: Scores

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Scores:
        return rng.choice(self.scores, shape, p=self.shares)

    def upper(self, x: Scores) -> Scores:
        return self._beyond[np.searchsorted(self.scores, x, side="right")]

    def not_below(self, x: Scores) -> Scores:
        return self._beyond[np.searchsorted(self.scores, x, side="left")]

    @property
    def _beyond(self) -> Scores:
        return np.append(np.cumsum(self.shares[::-1])[::-1], 0)


def levels(*shares: float) -> Discrete:
    """The scores 0, 1, ..."""
    return Discrete(np.arange(len(shares)).astype(float), np.array(shares))


def finite(scores: Scores) -> Discrete:
    """The held-out scores of a classifier, drawn with replacement."""
    found, counts = np.unique(scores.astype(float), return_counts=True)
    return Discrete(found, counts / len(scores))


class Population(NamedTuple):
    """The scores of both classes."""

    name: str
    positives: Any
    negatives: Any
    held_out: bool

    def draw(
        self, rng: np.random.Generator, data_sets: int, n_positive: int, n_negative: int
    ) -> tuple[Scores, Scores]:
        """The counts of positives and of negatives in runs of falling score, `[data_sets, runs]`.

        The scores of the positives are drawn, and the number of negatives between them. A run ties
        with a positive, and the next one is below it.
        """
        scores = self.positives.draw(rng, (data_sets, n_positive)).astype(np.float32)
        scores = -np.sort(-scores.astype(float), axis=1)
        reached = np.stack([self.negatives.upper(scores), self.negatives.not_below(scores)], -1)
        reached = np.maximum.accumulate(reached.reshape(data_sets, -1), axis=1)
        reached = np.minimum(reached, 1)  # which sums of shares exceed by rounding
        shares = np.diff(reached, prepend=0, append=1)
        places = np.arange(n_positive)
        new = np.diff(scores, prepend=np.inf) != 0
        run = 2 * np.maximum.accumulate(np.where(new, places, 0), axis=1) + 1
        positives = np.zeros(shares.shape, int)
        np.add.at(positives, (np.arange(data_sets)[:, None], run), 1)
        return positives, rng.multinomial(n_negative, shares)

    def curve(self) -> tuple[Scores, Scores, bool]:
        """FPR, TPR, and whether these are all points of a curve with straight lines."""
        if isinstance(self.negatives, Discrete):
            fpr, tpr = _points(self.positives, self.negatives)
            return fpr, tpr, True
        grid = np.linspace(0, 1, 400_001)
        fpr = np.concatenate([[0.0], np.logspace(-14, -6, 4_000), grid[grid > 0.1778] ** 8])
        if isinstance(self.positives, Power):
            return fpr, fpr**self.positives.exponent, False
        tpr = self.positives.upper(self.negatives.upper_inverse(fpr))
        tpr[0], tpr[-1] = 0, 1
        return fpr, np.maximum.accumulate(tpr), False

    def truth(self, limits: tuple[float, ...], prevalence: float) -> dict[str, float]:
        """The metrics of the population, by their names; `limits` are those of the FPR."""
        fpr, tpr, straight = self.curve()
        values = {"roc_auc": float(np.trapezoid(tpr, fpr))}
        for limit in limits:
            if straight:
                left = fpr < limit
                at = np.interp(limit, fpr, tpr)
                area = np.trapezoid(np.append(tpr[left], at), np.append(fpr[left], limit))
                recall = tpr[fpr <= limit + 1e-9].max()
            else:
                inside = np.linspace(0, 1, 200_001) ** 8 * limit
                area = np.trapezoid(np.interp(inside, fpr, tpr), inside)
                recall = np.interp(limit, fpr, tpr)
            values[f"partial_auc {limit:g}"] = float(area / limit)
            values[f"recall_at_fpr {limit:g}"] = float(recall)
        caught, flagged = prevalence * tpr, prevalence * tpr + (1 - prevalence) * fpr
        precision = np.where(flagged > 0, caught / np.where(flagged > 0, flagged, 1), 1.0)
        rise = np.diff(tpr)
        mean = precision[1:] if straight else (precision[1:] + precision[:-1]) / 2
        values["average_precision"] = float(np.sum(mean * rise))
        return values


def _points(positives: Discrete, negatives: Discrete) -> tuple[Scores, Scores]:
    """The points of the ROC curve of two discrete laws."""
    thresholds = np.union1d(positives.scores, negatives.scores)[::-1]
    fpr, tpr = (np.append(0, x.not_below(thresholds)) for x in (negatives, positives))
    return fpr, tpr


def _normal(mean: float = 0.0, deviation: float = 1.0) -> Continuous:
    return Continuous(stats.norm(mean, deviation))


def _binormal(auc: float, b: float = 1.0) -> Continuous:
    """Positives beside standard normal negatives: ROC(u) = Phi(a + b Phi^-1(u))."""
    return _normal(stats.norm.ppf(auc) * np.sqrt(1 + b * b) / b, 1 / b)


def _tuned() -> Iterator[tuple[str, Any, Any]]:
    for auc in (0.6, 0.7, 0.8, 0.9, 0.95, 0.99):
        yield f"binormal {auc:g}", _binormal(auc), _normal()
    for auc, b in ((0.8, 0.5), (0.95, 0.5), (0.9, 2.0), (0.7, 2.0)):
        yield f"binormal {auc:g}, b = {b:g}", _binormal(auc, b), _normal()
    for exponent in (0.5, 0.1, 0.02):
        yield f"ROC(u) = u^{exponent:g}", Power(exponent), Continuous(stats.uniform(-1, 1))
    yield "Student t, 3 df, shift 2", Continuous(stats.t(3, 2)), Continuous(stats.t(3))
    yield "5 % low outliers", Mixture(0.05, _binormal(0.97), _normal(-3)), _normal()
    yield "2 % low outliers", Mixture(0.02, _binormal(0.99), _normal(-3)), _normal()
    yield "10 % mislabelled", Mixture(0.1, _binormal(0.97), _normal()), _normal()
    flat_then_steep = Mixture(0.5, _normal(-0.3, 0.1), _normal(6, 1))
    yield "flat, then steep", flat_then_steep, Continuous(stats.uniform(-1, 2))
    yield "five levels", levels(0.05, 0.1, 0.2, 0.25, 0.4), levels(0.5, 0.28, 0.13, 0.06, 0.03)


def _held_out() -> Iterator[tuple[str, Any, Any]]:
    logistic = Continuous(stats.logistic())
    yield "logistic, shift 2.5", Continuous(stats.logistic(2.5)), logistic
    yield "logistic, shift 6", Continuous(stats.logistic(6)), logistic
    yield "gamma 2, scale 4", Continuous(stats.gamma(2, 0, 4)), Continuous(stats.gamma(2))
    yield "Beta(5, 1) and Beta(1, 5)", Continuous(stats.beta(5, 1)), Continuous(stats.beta(1, 5))
    yield "lognormal", Continuous(stats.lognorm(1, 0, np.exp(1.5))), Continuous(stats.lognorm(1))
    yield "Laplace, shift 2", Continuous(stats.laplace(2)), Continuous(stats.laplace())
    yield "Cauchy, shift 3", Continuous(stats.cauchy(3)), Continuous(stats.cauchy())
    yield "Gumbel, shift 2", Continuous(stats.gumbel_r(2)), Continuous(stats.gumbel_r())
    yield "15 % contaminated", Mixture(0.15, _binormal(0.9), _normal(0, 3)), _normal()
    low = Continuous(stats.logistic(-2))
    yield "8 % low", Mixture(0.08, Continuous(stats.logistic(5)), low), logistic
    positives = levels(0.02, 0.03, 0.05, 0.1, 0.2, 0.25, 0.35)
    yield "seven levels", positives, levels(0.615, 0.2, 0.09, 0.047, 0.028, 0.014, 0.006)


def _classifiers() -> Iterator[tuple[str, Any, Any]]:
    """The scores of classifiers on two thirds of bundled data that they were not fitted to."""
    x, y = load_breast_cancer(return_X_y=True)
    digits, digit = load_digits(return_X_y=True)
    problems = {
        "cancer": (x[:, :3], 1 - y),
        "digit 8": (digits[:, ::3], (digit == 8).astype(int)),
        "odd digit": (digits[:, ::5], digit % 2),
    }
    models = {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
        "forest": RandomForestClassifier(60, random_state=0),
        "boosted": HistGradientBoostingClassifier(max_iter=40, random_state=0),
        "neighbours": KNeighborsClassifier(15),
        "Bayes": GaussianNB(),
    }
    for problem, (features, labels) in problems.items():
        order = np.random.default_rng(0).permutation(len(labels))
        fitted, rest = np.split(order, [len(labels) // 3])
        for name, model in models.items():
            shares = model.fit(features[fitted], labels[fitted]).predict_proba(features[rest])
            scores = shares[:, 1].astype(np.float32)  # as data sets have them: some tie in float32
            classes = (finite(scores[labels[rest] == k]) for k in (1, 0))
            yield (f"{problem}, {name}", *classes)


def populations() -> list[Population]:
    """All of them; every second and third classifier is held out."""
    found = [Population(*x, held_out=False) for x in _tuned()]
    found += [Population(*x, held_out=True) for x in _held_out()]
    found += [Population(*x, held_out=i % 3 > 0) for i, x in enumerate(_classifiers())]
    return found
