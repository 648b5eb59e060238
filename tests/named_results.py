"""Results of two models that have names."""

import functools

import jax
import numpy as np
import pandas

import jaxmetrics as jm

KEY = jax.random.key(0)
_rng = np.random.default_rng(3)
LABELS = np.arange(60) % 3 == 0
OLD, NEW = _rng.normal(size=(2, 60)) + np.array([[0.5], [1.5]]) * LABELS
FRAME = pandas.DataFrame({"old": OLD, "new <b>": NEW, "label": LABELS})
SCORES = FRAME[["old", "new <b>"]]
GROUPS = np.array(["x", "y"] * 30)
FEW = {"key": KEY, "n_resamples": 16}
# Every function whose result reads itself, of two models.
RESULTS = {
    "interval": lambda s: jm.confidence_interval(jm.roc_auc, s, LABELS),
    "compare": lambda s: jm.compare(jm.roc_auc, s, LABELS, margin=0.1),
    "reference": lambda s: jm.compare(jm.roc_auc, s, LABELS, reference=0),
    "to_value": lambda s: jm.compare_to_value(jm.roc_auc, s, LABELS, value=0.5),
    "samples": lambda s: jm.compare_samples(jm.roc_auc, s, LABELS, GROUPS),
    "slices": lambda s: jm.slices(jm.roc_auc, s, LABELS, GROUPS),
    "slices_of_models": lambda s: jm.slices(jm.roc_auc, s, LABELS, GROUPS).models,
    "folds": lambda s: jm.fold_interval(jm.roc_auc, s, LABELS, GROUPS),
    "point": lambda s: jm.operating_point(s, LABELS, max_fpr=0.1, fp_cost=1, fn_cost=5),
    "permutation": lambda s: jm.permutation_test(jm.roc_auc, s, LABELS, **FEW),
    "bootstrap": lambda s: jm.bootstrap(jm.roc_auc, s, LABELS, **FEW),
    "bootstrap_interval": lambda s: jm.bootstrap(jm.roc_auc, s, LABELS, **FEW).interval(),
    "band": lambda s: jm.roc_band(s, LABELS, fpr=[0.0, 0.1, 0.2]),
    "mean": lambda s: jm.mean_interval(s),
    "means": lambda s: jm.compare_means(s),
}


@functools.cache
def result_of(name):
    return RESULTS[name](SCORES)
