"""The metrics of hard predictions, and items that their tests share."""

from functools import partial

import numpy as np
import pytest
import sklearn.metrics as theirs

import jaxmetrics as jm

C = 5
# ours and scikit-learn's, of averages over classes
AVERAGED = {
    "recall": (jm.recall, theirs.recall_score),
    "precision": (jm.precision, theirs.precision_score),
    "f_beta": (partial(jm.f_beta, beta=0.5), partial(theirs.fbeta_score, beta=0.5)),
}
METRICS = {
    **{name: partial(ours, average="macro") for name, (ours, _) in AVERAGED.items()},
    "specificity": partial(jm.specificity, average="macro"),
    "binary": partial(jm.recall, positive_class=2),
    "balanced_accuracy": jm.balanced_accuracy,
    "matthews_corrcoef": jm.matthews_corrcoef,
    "confusion_matrix": jm.confusion_matrix,
    "accuracy": lambda predictions, labels, n_classes=None, **o: jm.accuracy(
        predictions, labels, **o
    ),
}
# One for each way to count; the rest are other formulas of the same counts.
COUNTING = ("recall", "binary", "matthews_corrcoef", "confusion_matrix", "accuracy")
EVERY_COUNT = pytest.mark.parametrize("metric", [METRICS[n] for n in COUNTING], ids=COUNTING)


def close(a, b, rtol=1e-6):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=1e-7)


def problem(rng, n=60, n_classes=C, batch=()):
    """Predictions and labels, in which every class occurs, and weights."""
    labels = rng.integers(0, n_classes, (*batch, n))
    labels[..., :n_classes] = np.arange(n_classes)
    predictions = np.where(
        rng.random((*batch, n)) < 0.6, labels, rng.integers(0, n_classes, (*batch, n))
    )
    predictions[..., :n_classes] = np.arange(n_classes)
    return predictions, labels, rng.random((*batch, n)) + 0.1
