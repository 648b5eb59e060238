"""Recall of several classes, averaged in each of the ways there are.

Which share of the wines of each cultivar does a classifier find that sees little of them? By class
index with `jaxmetrics`, by the cultivars' names with `jaxmetrics.sklearn`; both count alike.

    python examples/recall_averages.py
"""

import numpy as np
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
for name, row in zip(names, jm.confusion_matrix(predictions, labels), strict=True):
    print(f"  {name:11}" + "".join(f"{count:4}" for count in row.tolist()))

# The same from indices and from names; of all classes, or of two that are chosen.
by_name = names[labels], names[predictions]
ways = {
    "micro": {},
    "macro": {},
    "weighted": {},
    "micro, Barolo and Barbera": {"classes": [0, 2]},
    "macro, Barolo and Barbera": {"classes": [0, 2]},
}
print(f"{'recall':27}indices   names")
for way, options in ways.items():
    average = way.split(",")[0]
    ours = jm.recall(predictions, labels, average=average, **options)
    chosen = names[options["classes"]] if options else None
    theirs = recall_score(*by_name, average=average, labels=chosen)
    print(f"  {way:27}{ours:.4f}  {theirs:.4f}")
# One class against the rest; of names there must be two for that.
ours = jm.recall(predictions, labels, positive_class=2)
two = (np.where(y == "Barbera", y, "other") for y in by_name)
theirs = recall_score(*two, pos_label="Barbera")
print(f"  {'binary, Barbera or not':27}{ours:.4f}  {theirs:.4f}")

print("of each class:", jm.recall(predictions, labels, average=None))
for name, value in recall_score(*by_name, average=None, as_dict=True).items():
    print(f"  {name:11}{value:.4f}")

# A class that is neither there nor predicted has no recall, and neither has the mean over it.
four = {"n_classes": 4, "average": "macro"}
print(
    f"a fourth class without wines: macro {jm.recall(predictions, labels, **four):.4f}, "
    f"{jm.recall(predictions, labels, zero_division=0, **four):.4f} with zero_division=0"
)
