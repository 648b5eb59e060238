"""Which of 20 models may one choose, if all were evaluated on the same 569 biopsies?

There are four kinds of classifier in five settings each. The metric has no closed form: one
bootstrap resamples the same biopsies for all models. The intervals of the 190 differences are
simultaneous, as some of 20 models look good by chance. The set of models that are not significantly
worse than the best asks only whether another model is better. It is therefore smaller than the set
that these intervals alone would leave.

    python examples/twenty_models.py [figure.png]
"""

import sys
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import jaxmetrics as jm

features, target = load_breast_cancer(return_X_y=True)
labels = target == 0  # malignant
models = {f"logistic, C = {c:g}": LogisticRegression(C=c) for c in (1e-4, 1e-3, 0.01, 0.1, 1)}
for k in (3, 10, 30, 100, 200):
    models[f"{k} neighbours"] = KNeighborsClassifier(k, weights="distance")
for share in (0, 0.1, 0.3, 0.6, 0.9):
    models[f"discriminant, shrinkage {share:g}"] = LinearDiscriminantAnalysis("lsqr", share)
for variance in (1e-9, 0.03, 0.1, 0.3, 1):
    models[f"naive Bayes, smoothing {variance:g}"] = GaussianNB(var_smoothing=variance)
scaled = (make_pipeline(StandardScaler(), model) for model in models.values())
options = {"cv": 5, "method": "predict_proba"}
scores = np.stack([cross_val_predict(x, features, labels, **options)[:, 1] for x in scaled])

metric = partial(jm.recall_at_fpr, max_fpr=0.05)
own = jm.confidence_interval(metric, scores, labels)
paired = jm.compare(metric, scores, labels)
order = np.argsort(-paired.estimate, stable=True)
limits = (paired.difference, paired.simultaneous_low, paired.simultaneous_high)
difference, low, high = (x[:, order[0]] for x in limits)  # from the best
names, member = np.array([*models]), np.asarray(paired.best_set)
verdict = np.where(member, "in the set", "")
print(f"recall at 5 % FPR of {len(models)} models, 95 %; minus the best, all pairs at once")
for i in order:
    print(f"{names[i]:28} {own.estimate[i]:.3f}  {own.low[i]:.3f} to {own.high[i]:.3f}", end="  ")
    print(f"{difference[i]:+.3f}  {low[i]:+.3f} to {high[i]:+.3f}  {verdict[i]}")

figure = Figure(figsize=(9, 5.2), layout="constrained")
panels = {
    "Recall at 5 % FPR, 95 %": (own.estimate, own.low, own.high),
    "Minus the best, all pairs at once": (difference, low, high),
}
groups = (
    ("in the set of the best", member, {"fmt": "o", "color": "#0072B2"}),
    ("not in the set of the best", ~member, {"fmt": "D", "color": "#D55E00", "mfc": "white"}),
)
row = np.argsort(order)
for ax, (title, limits) in zip(figure.subplots(1, 2, sharey=True), panels.items(), strict=True):
    for label, kept, look in groups:
        middle, below, above = (np.asarray(x)[kept] for x in limits)
        errors = middle - below, above - middle
        ax.errorbar(middle, row[kept], xerr=errors, capsize=2, label=label, **look)
    ax.set(title=title, yticks=row, yticklabels=names, ylim=(len(models) - 0.5, -0.5))
    ax.grid(axis="x", alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
ax.axvline(0, color="black", linewidth=1)
figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
path = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(".png"))
figure.savefig(path, dpi=120)
print(f"drew {path.name}")
