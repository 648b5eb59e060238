"""How good are suggested labels if they are frequent, and how good if they are rare?

Two models rank labels for documents. Each decile of labels holds a tenth of all occurrences. Both
models get the same resamples of documents, and their difference has an interval too.

    python examples/label_deciles.py [figure.png]
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from scipy.special import logit
from sklearn.datasets import make_multilabel_classification
from sklearn.neighbors import KNeighborsClassifier

import jaxmetrics as jm

N_LABELS, LISTED, K = 200, 60, 5
words, member = make_multilabel_classification(
    4000, n_features=400, n_classes=N_LABELS, n_labels=6, length=120, random_state=0
)
# These labels are about equally frequent: make most of them rarer, as in real data.
kept = np.random.default_rng(0).random(member.shape) < 1 / (1 + np.arange(N_LABELS) / 15)
member = member * kept
train, test = slice(0, 2500), slice(2500, None)
groups = jm.extreme.label_deciles(member[train].sum(0))


def naive_bayes(words, labels, new):
    """The log odds of each label against all others: multinomials, each word counted once more."""
    having = labels.T @ words
    others = words.sum(0) - having
    chances = (np.log(x + 1) - np.log((x + 1).sum(1, keepdims=True)) for x in (having, others))
    return new @ np.subtract(*chances).T + logit(labels.mean(0))


def neighbours(words, labels, new):
    """The number of the 30 nearest documents that have each label."""
    nearest = KNeighborsClassifier(30, metric="cosine").fit(words, labels[:, 0])
    return labels[nearest.kneighbors(new, return_distance=False)].sum(1)


models = {"naive Bayes": naive_bayes, "nearest documents": neighbours}
scores = [model(words[train], member[train], words[test]) for model in models.values()]
predicted = np.argsort(-np.stack(scores), axis=-1, kind="stable")[..., :LISTED]
# The label ids of each document, padded with -1.
order = np.argsort(-member[test], axis=-1, kind="stable")[:, : member[test].sum(1).max()]
relevant = np.where(np.take_along_axis(member[test], order, axis=-1) > 0, order, -1)

# [models, documents, deciles], NaN where a document has no label of the decile
values = jm.extreme.ndcg_at_k(predicted, relevant, k=K, groups=groups, num_groups=10, reduce=None)
values = jnp.moveaxis(values, -1, 0)
found = jm.bootstrap_mean(values, where=~jnp.isnan(values), key=jax.random.key(0))
interval = found.interval()
difference = found.replicates[..., 0] - found.replicates[..., 1]
print(f"decile  labels  nDCG at {K}: {', '.join(models)}; difference, 95 %")
for g in range(9, -1, -1):
    limits = np.percentile(difference[:, g], [2.5, 97.5])
    row = "  ".join(f"{x:.3f}" for x in found.estimate[g])
    print(f"{g + 1:6}  {int((groups == g).sum()):6}  {row}   {limits[0]:+.3f} to {limits[1]:+.3f}")

figure = Figure(figsize=(8, 3.4), layout="constrained")
ax = figure.subplots()
for i, (name, colour) in enumerate(zip(models, ("#0072B2", "#D55E00"), strict=True)):
    at, height = np.arange(10, 0, -1) + 0.2 - 0.4 * i, found.estimate[::-1, i]
    errors = np.abs(np.stack([interval.low, interval.high])[:, ::-1, i] - height)
    ax.bar(at, height, 0.38, yerr=errors, color=colour, capsize=2, label=name)
ax.set(xlabel="decile of labels, 10 most frequent", xticks=range(1, 11), xlim=(10.6, 0.4))
ax.set_ylabel(f"nDCG at {K}, 95 %")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
path = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(".png"))
figure.savefig(path, dpi=120)
print(f"drew {path.name}")
