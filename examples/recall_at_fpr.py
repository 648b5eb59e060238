"""Recall at 1 % false positive rate, by count and by amount.

A classifier may flag 1 % of the benign tumours. Which share of the malignant ones does it flag? And
which share of the malignant tissue, if each tumour counts by its area? One sort gives both, at one
limit or at two hundred.

    python examples/recall_at_fpr.py [figure.png]
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import jaxmetrics as jm

data = load_breast_cancer()
malignant = data.target == 0
area = data.data[:, list(data.feature_names).index("worst area")]
shape = data.data[:, 4:10]  # smoothness to fractal dimension, none of which measures size

model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
scores = cross_val_predict(model, shape, malignant, method="decision_function")

# Amounts broadcast like any batch: the first row counts every tumour as one.
amounts = np.stack([np.ones_like(area), area])
limits = np.arange(1, 201) / 2000  # to 10 %
recall = jm.recall_at_fpr(scores, malignant, max_fpr=limits, amounts=amounts)  # [2, 200]
print(f"{len(scores)} tumours, {malignant.sum()} malignant")
for limit in (0.01, 0.05):
    by_count, by_area = recall[:, limits == limit][:, 0]
    print(f"at {limit:.0%} FPR: {by_count:.3f} of the tumours, {by_area:.3f} of the area")

# The threshold may also be a quantile of the negatives, by any of NumPy's methods.
for method in ("linear", "higher", "median_unbiased"):
    options = {"max_fpr": 0.01, "method": "quantile", "quantile_method": method}
    threshold = jm.threshold_at_fpr(scores, malignant, **options)
    print(
        f"quantile, {method}: score > {threshold:.4f}, "
        f"recall {jm.recall_at_fpr(scores, malignant, **options):.3f}"
    )

figure = Figure(figsize=(6.4, 4), layout="constrained")
ax = figure.subplots()
looks = {
    "area of malignant tissue": ("#D55E00", "--", (-28, 6)),
    "malignant tumours": ("#0072B2", "-", (6, -12)),
}
for (name, (colour, line, offset)), row in zip(looks.items(), recall[::-1], strict=True):
    ax.step(limits, row, where="post", color=colour, linestyle=line, label=name)
    at = row[limits == 0.01].item()
    ax.plot(0.01, at, "o", color=colour)
    ax.annotate(f"{at:.2f}", (0.01, at), offset, textcoords="offset points", color=colour)
ax.axvline(0.01, color="black", linestyle=":", linewidth=1)
ax.set(xlim=(0, 0.1), ylim=(0, 1), xlabel="largest false positive rate", ylabel="share flagged")
ax.xaxis.set_major_formatter(lambda x, _: f"{100 * x:g} %")
ax.legend(frameon=False, loc="lower right")
ax.grid(alpha=0.25)
ax.spines[["top", "right"]].set_visible(False)
path = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(".png"))
figure.savefig(path, dpi=120)
print(f"drew {path.name}")
