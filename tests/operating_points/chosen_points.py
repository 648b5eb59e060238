"""What the tests of operating points share."""

import jax
import numpy as np

N, N_POSITIVE = 120, 40
LABELS = np.arange(N) < N_POSITIVE
KEY = jax.random.key(0)
# Resamples of one number, of at most 128 items that tie, or do not, are one program for each rule.
FEW = {"key": KEY, "n_resamples": 400}
COSTS = {"fp_cost": 1.0, "fn_cost": 5.0}
RULES = {
    "max_fpr": {"max_fpr": 0.1},
    "min_recall": {"min_recall": 0.7},
    "min_precision": {"min_precision": 0.6, **FEW},
    "threshold": {"threshold": 0.8},
    "youden": {"criterion": "youden", **FEW},
    "cost": FEW,
}


def drawn(rng, *shape):
    return rng.normal(size=(*shape, N)) + 1.2 * LABELS


def best(scores, labels, objective, allowed):
    """The threshold of all scores and +inf that maximises an objective, the highest of several."""
    thresholds = np.append(np.inf, np.unique(scores)[::-1])
    tpr, fpr = ((scores[x][:, None] >= thresholds).mean(axis=0) for x in (labels, ~labels))
    share = labels.mean()
    with np.errstate(invalid="ignore"):
        precision = share * tpr / (share * tpr + (1 - share) * fpr)
    # Rounded, so that equal values of different sums tie.
    rank = np.where(allowed(tpr, fpr, precision), np.round(objective(tpr, fpr), 12), -np.inf)
    return thresholds[np.argmax(rank)]
