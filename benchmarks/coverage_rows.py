"""The rows of `benchmarks.coverage`: pairs of distributions of scores, and their true values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import integrate, stats

MAX_FPR = 0.1


class Law(NamedTuple):
    """The distribution of a class's scores: continuous, with `upper`, or levels with `shares`."""

    draw: Callable[[jax.Array, tuple[int, ...]], jax.Array]
    upper: Callable[[Any], Any] | None = None  # P(score > x)
    upper_inverse: Callable[[Any], Any] | None = None
    shares: tuple[float, ...] = ()  # of the levels, in descending order


def continuous(
    standard: Callable[..., jax.Array], exact: Any, shift: float = 0.0, scale: float = 1.0
) -> Law:
    """shift + scale X, where `standard` draws X and `exact` is its distribution in SciPy."""
    return Law(
        draw=lambda key, shape: shift + scale * standard(key, shape=shape),
        upper=lambda x: exact.sf((x - shift) / scale),
        upper_inverse=lambda p: shift + scale * exact.isf(p),
    )


def mixture(share: float, law: Law, other: Law) -> Law:
    """A `share` of the scores from `other`, the rest from `law`."""

    def draw(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        which, one, two = jax.random.split(key, 3)
        is_other = jax.random.bernoulli(which, share, shape)
        return jnp.where(is_other, other.draw(two, shape), law.draw(one, shape))

    return Law(draw, lambda x: (1 - share) * law.upper(x) + share * other.upper(x))


def levels(*shares: float) -> Law:
    """A few levels, within which scores tie, in descending order."""
    heights = jnp.arange(len(shares), 0, -1, dtype=jnp.float32)
    return Law(
        draw=lambda key, shape: jax.random.choice(key, heights, shape, p=jnp.array(shares)),
        shares=shares,
    )


class Row(NamedTuple):
    """A row of the table: a population and the class sizes of its data sets."""

    name: str
    n_positive: int
    n_negative: int
    positives: Law
    negatives: Law

    def draw(self, key: jax.Array, size: int) -> tuple[jax.Array, np.ndarray]:
        """Scores `[size, n]` and labels `[n]`, positives first."""
        one, two = jax.random.split(key)
        scores = [
            self.positives.draw(one, (size, self.n_positive)),
            self.negatives.draw(two, (size, self.n_negative)),
        ]
        labels = np.arange(self.n_positive + self.n_negative) < self.n_positive
        return jnp.concatenate(scores, axis=1), labels

    def truth(self) -> dict[str, float]:
        """The population's metrics: by quadrature of the ROC curve, or by sums over levels."""
        if self.positives.shares:
            fpr, tpr = (np.cumsum((0, *x.shares)) for x in (self.negatives, self.positives))
            recall = tpr[fpr <= MAX_FPR + 1e-9].max()
            at_limit = np.interp(MAX_FPR, fpr, tpr)
            within = fpr < MAX_FPR
            partial_area = np.trapezoid(
                np.append(tpr[within], at_limit), np.append(fpr[within], MAX_FPR)
            )
            area = np.trapezoid(tpr, fpr)
        else:
            area = self._area(1.0)
            partial_area = self._area(MAX_FPR)
            recall = self._roc(MAX_FPR)
        return {
            "roc_auc": float(area),
            "partial_auc": float(partial_area / MAX_FPR),
            "recall_at_fpr": float(recall),
        }

    def _roc(self, fpr: Any) -> Any:
        return self.positives.upper(self.negatives.upper_inverse(fpr))

    def _area(self, limit: float) -> float:
        # In the variable FPR^(1/8), as curves can be steep at FPR 0.
        def slice_at(x: float) -> float:
            return self._roc(x**8) * 8 * x**7

        return integrate.quad(slice_at, 0, limit**0.125, limit=200, epsabs=1e-10)[0]


NORMAL = partial(continuous, jax.random.normal, stats.norm)
STUDENT = partial(continuous, partial(jax.random.t, df=3.0), stats.t(3))
LOGISTIC = partial(continuous, jax.random.logistic, stats.logistic)
GAMMA = partial(continuous, partial(jax.random.gamma, a=2.0), stats.gamma(2))


def _shift(auc: float, b: float = 1.0) -> float:
    """The mean of positives, a / b, with AUC = Phi(a / sqrt(1 + b^2))."""
    return float(stats.norm.ppf(auc)) * (1 + b * b) ** 0.5 / b


def binormal(n_positive: int, n_negative: int, auc: float, b: float = 1.0) -> Row:
    """ROC(t) = Phi(a + b Phi^-1(t))."""
    positives = NORMAL(_shift(auc, b), 1 / b)
    return Row(f"AUC {auc:g}, b = {b:g}", n_positive, n_negative, positives, NORMAL())


# In each of these rows `auto` must reach GOAL.
GOAL_ROWS = (
    binormal(20, 20, 0.9),
    binormal(20, 180, 0.7),
    binormal(20, 180, 0.9),
    binormal(20, 180, 0.97),
    binormal(10, 490, 0.9),
    binormal(50, 50, 0.8),
    binormal(100, 900, 0.95),
    binormal(100, 900, 0.95, 0.5),
    binormal(30, 3000, 0.95),
)
OTHER_ROWS = (
    binormal(15, 1000, 0.99),
    binormal(50, 50, 0.95, 2),
    binormal(180, 20, 0.9),
    binormal(10, 90, 0.8),
    Row("Student t, 3 df, shift 2", 30, 120, STUDENT(2), STUDENT()),
    Row("logistic, shift 2.5", 25, 100, LOGISTIC(2.5), LOGISTIC()),
    Row("gamma 2, scale 4", 30, 300, GAMMA(0, 4), GAMMA()),
    Row(
        "15 % contaminated, AUC 0.9",
        40,
        400,
        mixture(0.15, NORMAL(_shift(0.9)), NORMAL(0, 3)),
        NORMAL(),
    ),
    Row(
        "10 % mislabelled, AUC 0.97",
        20,
        180,
        mixture(0.1, NORMAL(_shift(0.97)), NORMAL()),
        NORMAL(),
    ),
    Row("binary, 0.7 and 0.8", 50, 100, levels(0.7, 0.3), levels(0.2, 0.8)),
    Row("binary, 0.7 and 0.97", 50, 100, levels(0.7, 0.3), levels(0.03, 0.97)),
    Row(
        "five levels", 20, 20, levels(0.4, 0.25, 0.2, 0.1, 0.05), levels(0.05, 0.1, 0.2, 0.25, 0.4)
    ),
    Row(
        "five levels",
        50,
        200,
        levels(0.4, 0.25, 0.2, 0.1, 0.05),
        levels(0.02, 0.06, 0.12, 0.3, 0.5),
    ),
)
SIZES = (5, 10, 20, 30, 50, 100, 200)
SIZE_ROWS = tuple(
    binormal(n_positive, n_negative, auc)
    for size in SIZES
    for n_positive, n_negative in ((size, size), (size, 10 * size), (10 * size, size))
    for auc in (0.8, 0.95)
)
