"""Recall at 1 % false positive rate, by count and by amount.

Which share of malignant tumours does a classifier flag if it may flag 1 % of the benign ones, and
which share of the malignant tissue, each tumour counted by its area? Both from one sort.

    python examples/recall_at_fpr.py
"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import jaxmetrics as jm

data = load_breast_cancer()
malignant = data.target == 0
area = data.data[:, list(data.feature_names).index("worst area")]
shape = data.data[:, 4:10]  # smoothness to fractal dimension: nothing that measures size

model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
scores = cross_val_predict(model, shape, malignant, method="decision_function")

# Amounts broadcast like any batch: the first row counts every tumour as one.
limits = [0.01, 0.05]
recall = jm.recall_at_fpr(
    scores, malignant, max_fpr=limits, amounts=np.stack([np.ones_like(area), area])
)
print(f"{len(scores)} tumours, {malignant.sum()} malignant")
for i, limit in enumerate(limits):
    by_count, by_area = recall[:, i]
    print(f"at {limit:.0%} FPR: {by_count:.3f} of the tumours, {by_area:.3f} of the area")

# The threshold itself may also be any of NumPy's quantiles of the negatives, flagged when above.
for method in ("linear", "higher", "median_unbiased"):
    options = {"max_fpr": 0.01, "method": "quantile", "quantile_method": method}
    threshold = jm.threshold_at_fpr(scores, malignant, **options)
    print(
        f"quantile, {method}: score > {threshold:.4f}, "
        f"recall {jm.recall_at_fpr(scores, malignant, **options):.3f}"
    )
