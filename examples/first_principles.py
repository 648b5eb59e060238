"""ROC, precision-recall and cost curves from first principles.

The script counts positives and negatives at every threshold and draws the curves. From them it
reads areas, the chance that a positive outranks a negative, and the threshold of least cost.

    python examples/first_principles.py [figure.png]
"""

import sys
from pathlib import Path

import jax
import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict

import jaxmetrics as jm
from jaxmetrics import plots

# 1. By hand: sort by score, and count positives and negatives down to each distinct score.
table = jm.score_table([0.45, 0.4, 0.35, 0.35, 0.8], [1, 0, 1, 0, 1])
print("threshold  true positives  false positives")
counts = (np.cumsum(x) for x in (table.positives, table.negatives))
for row in zip(table.thresholds, *counts, strict=True):
    print("{:9.2f}{:16d}{:17d}".format(*(x.item() for x in row)))

# 2. A real problem: is a handwritten digit an 8?
features, digits = load_digits(return_X_y=True)
labels = digits == 8
forest = RandomForestClassifier(random_state=0)
scores = cross_val_predict(forest, features, labels, method="predict_proba")[:, 1]

fpr, tpr, _ = jm.roc_curve(scores, labels)
trapezoids = np.trapezoid(tpr, fpr)
sampled = jm.roc_auc_sampled(jax.random.key(0), scores, labels, n_pairs=100_000)
print(f"AUC: {jm.roc_auc(scores, labels):.5f}, by trapezoids {trapezoids:.5f}, ", end="")
print(f"by 100,000 random pairs {sampled:.5f}")

precision, recall, _ = jm.precision_recall_curve(scores, labels)
steps = -np.sum(np.diff(recall) * precision[:-1])
print(f"average precision: {jm.average_precision(scores, labels):.5f}, by steps {steps:.5f}")

# 3. A false negative costs 1,000, a false positive 100.
costs = {"fp_cost": 100, "fn_cost": 1000}
best = jm.min_cost_threshold(scores, labels, **costs)
cheapest = jm.cost_curve(scores, labels, **costs).cost.min()
print(f"cheapest: {cheapest:,.0f} at score >= {best:.2f}")

figure = Figure(figsize=(13, 4.2), layout="constrained")
panels = figure.subplots(1, 3)
plots.roc(scores, labels, ax=panels[0])
plots.precision_recall(scores, labels, ax=panels[1])
plots.cost(scores, labels, ax=panels[2], **costs)
path = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(".png"))
figure.savefig(path, dpi=120)
print(f"drew {path.name}")
