"""What the tests of confidence intervals share."""

from functools import partial

import jax
import numpy as np
from scipy import stats

import jaxmetrics as jm

KEY = jax.random.key(21)
Z = stats.norm.ppf(0.975)
LIMIT = 0.2
PARTIAL = partial(jm.partial_auc, max_fpr=LIMIT)
RECALL = partial(jm.recall_at_fpr, max_fpr=[0.1, LIMIT])
BY_WILSON = partial(jm.confidence_interval, RECALL, method="wilson", key=KEY)


def close(a, b, rtol=2e-5):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=1e-7)


def placements(scores, labels):
    """Of each class, the influence values of the AUC, whose mean is the AUC."""
    positive, negative = scores[labels][:, None], scores[~labels]
    wins = (positive > negative) + (positive == negative) / 2
    return wins.mean(axis=0), wins.mean(axis=1)


def moments(parts):
    """The estimate, and of each class the variance and the size."""
    return parts[0].mean(), [x.var(ddof=1) for x in parts], [len(x) for x in parts]


def limits(interval):
    return np.stack([interval.low, interval.high])
