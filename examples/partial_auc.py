"""Three models with equal AUC that differ in partial AUC.

All have an AUC of 0.7. The first ranks many negatives at the top, the second a few, the third none.
Only the area left of the largest acceptable false positive rate shows which is best.

    python examples/partial_auc.py [figure.png]
"""

import sys
from pathlib import Path

import numpy as np

import jaxmetrics as jm
from jaxmetrics import plots

MAX_FPR = 0.3
labels = [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]
models = {
    "many false positives": [0, 0, 1, 1, 1, 1, 1, 1, 1, 1],
    "few false positives": [1, 0, 0, 0, 1, 1, 1, 1, 1, 0],
    "no false positives": [0, 0, 0, 0, 0, 0, 0, 0, 1, 1],
}
scores = np.array(list(models.values()))

auc = jm.roc_auc(scores, labels)
partial = jm.partial_auc(scores, labels, max_fpr=MAX_FPR, scale="mcclish")
two_way = jm.partial_auc(scores, labels, max_fpr=MAX_FPR, min_tpr=0.3, scale="range")
print(f"{'':22}{'AUC':>8}{f'to {MAX_FPR}':>8}{'two-way':>9}")
for row in zip(models, auc, partial, two_way, strict=True):
    print("{:22}{:8.4f}{:8.4f}{:9.4f}".format(*row))

figure = plots.roc_with_window(scores, labels, names=list(models), max_fpr=MAX_FPR)
figure.suptitle("One AUC, three models")
path = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(".png"))
figure.savefig(path, dpi=120)
print(f"drew {path.name}")
