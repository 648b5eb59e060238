"""Recall of several classes, with each average.

A classifier sees two features of each wine. Which share of the wines of each cultivar does it find?
`jaxmetrics` takes class indices, `jaxmetrics.sklearn` the cultivars' names, with equal results.

    python examples/recall_averages.py [figure.png]
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB

import jaxmetrics as jm
from jaxmetrics.sklearn import recall_score

data = load_wine()
names = np.array(["Barolo", "Grignolino", "Barbera"])
some = [data.feature_names.index(name) for name in ("alcohol", "hue")]
labels = data.target
predictions = cross_val_predict(GaussianNB(), data.data[:, some], labels, cv=5)

print(f"{len(labels)} wines: rows are true cultivars, columns predicted ones")
matrix = np.asarray(jm.confusion_matrix(predictions, labels))
for name, row in zip(names, matrix, strict=True):
    print(f"  {name:11}" + "".join(f"{count:4}" for count in row))

# From indices and from names, over all classes or over two of them.
by_name = names[labels], names[predictions]
print(f"{'recall':29}  indices   names")
for average in ("micro", "macro", "weighted"):
    for chosen, which in ((None, ""), ([0, 2], ", Barolo and Barbera")):
        ours = jm.recall(predictions, labels, average=average, classes=chosen)
        kept = None if chosen is None else names[chosen]
        theirs = recall_score(*by_name, average=average, labels=kept)
        print(f"  {average + which:29}{ours:.4f}  {theirs:.4f}")
# One class against the rest; with names, a binary recall needs exactly two.
ours = jm.recall(predictions, labels, positive_class=2)
two = (np.where(y == "Barbera", y, "other") for y in by_name)
theirs = recall_score(*two, pos_label="Barbera")
print(f"  {'binary, Barbera or not':29}{ours:.4f}  {theirs:.4f}")

each = jm.recall(predictions, labels, average=None)
print("of each class:", each)
for name, value in recall_score(*by_name, average=None, as_dict=True).items():
    print(f"  {name:11}{value:.4f}")

# A class without items has no recall, and a mean that includes it is NaN.
four = {"n_classes": 4, "average": "macro"}
print(f"a fourth class without wines: macro {jm.recall(predictions, labels, **four):.4f}")
print(f"with zero_division=0: {jm.recall(predictions, labels, zero_division=0, **four):.4f}")

figure = Figure(figsize=(8.5, 3.2), layout="constrained")
left, right = figure.subplots(1, 2)
left.imshow(matrix, cmap="Blues", vmax=2 * matrix.max())  # light enough to read the numbers
for (row, column), count in np.ndenumerate(matrix):
    left.text(column, row, count, ha="center", va="center")
left.set(xticks=range(3), yticks=range(3), xticklabels=names, yticklabels=names)
left.set(xlabel="predicted", ylabel="true", title="Wines")
means = {x: jm.recall(predictions, labels, average=x) for x in ("micro", "macro", "weighted")}
values = dict(zip(names, each, strict=True)) | means
bars = right.barh([*values], [*values.values()], color=["#0072B2"] * 3 + ["#D55E00"] * 3)
right.bar_label(bars, fmt="%.3f", padding=3)
right.set(xlim=(0, 1.1), title="Recall of each cultivar, and averages")
right.invert_yaxis()
right.spines[["top", "right"]].set_visible(False)
path = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(".png"))
figure.savefig(path, dpi=120)
print(f"drew {path.name}")
