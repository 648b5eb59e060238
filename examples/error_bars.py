"""Which of four classifiers is best, and how certain is that?

The script computes intervals for three metrics on the 569 biopsies of scikit-learn's breast cancer
data. It then compares the models in pairs, all on the same biopsies. Models may differ
significantly even if their own intervals overlap.

    python examples/error_bars.py [figure.png]
"""

import sys
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import jaxmetrics as jm

features, target = load_breast_cancer(return_X_y=True)
labels = target == 0  # malignant
models = {
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
    "random forest": RandomForestClassifier(random_state=0),
    "naive Bayes": GaussianNB(),
    "decision tree": DecisionTreeClassifier(max_depth=3, random_state=0),
}
scores = np.stack(
    [
        cross_val_predict(model, features, labels, cv=5, method="predict_proba")[:, 1]
        for model in models.values()
    ]
).astype(np.float32)

metrics = {
    "AUC": jm.roc_auc,
    "partial AUC to 5 % FPR": partial(jm.partial_auc, max_fpr=0.05, scale="range"),
    "recall at 5 % FPR": partial(jm.recall_at_fpr, max_fpr=0.05),
}
figure = Figure(figsize=(10, 2.6), layout="constrained")
rows = np.arange(len(models))[::-1]
for (name, metric), ax in zip(metrics.items(), figure.subplots(1, 3, sharey=True), strict=True):
    found = jm.confidence_interval(metric, scores, labels)
    print(f"{name} ({found.method})")
    for model, *numbers in zip(models, found.estimate, found.low, found.high, strict=True):
        print("  {:20} {:.3f}  {:.3f} to {:.3f}".format(model, *numbers))
    errors = np.abs(np.stack([found.low, found.high]) - found.estimate)
    ax.errorbar(found.estimate, rows, xerr=errors, fmt="o", color="#0072b2", capsize=3)
    ax.set(title=f"{name}, 95 %", yticks=rows, yticklabels=models, ylim=(-0.5, len(models) - 0.5))
    ax.grid(axis="x", alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)

result = jm.compare(jm.roc_auc, scores, labels)
best = int(np.argmax(result.estimate))
print(f"AUC, {list(models)[best]} minus the others; simultaneous 95 % intervals:")
for i, model in enumerate(models):
    if i != best:
        low, high = result.simultaneous_low[best, i], result.simultaneous_high[best, i]
        difference, p = result.difference[best, i], result.simultaneous_p_value[best, i]
        print(f"  {model:20} {difference:.4f}  {low:.4f} to {high:.4f}  p = {p:.2g}")
not_worse = [name for name, member in zip(models, result.best_set, strict=True) if member]
print(f"not significantly worse than the best: {', '.join(not_worse)}")

path = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(".png"))
figure.savefig(path, dpi=120)
print(f"drew {path.name}")
