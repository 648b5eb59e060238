"""Which of three rankers is best on 300 queries, and how certain is that?

Simulated queries have 5 to 60 documents with grades from 0 to 4, in one flat array with query ids.
Every metric has a value per query. The intervals are of the mean over queries, and whole queries
are resampled. All rankers get the same resamples, which makes the interval of a difference narrow.

    python examples/learning_to_rank.py [figure.png]
"""

import sys
from functools import partial
from pathlib import Path

import jax
import numpy as np
from matplotlib.figure import Figure

import jaxmetrics as jm

# Documents match a query to some degree. Grades and scores are the match with different noise.
rng = np.random.default_rng(3)
sizes = rng.integers(5, 61, 300)
query = np.repeat(np.arange(len(sizes)), sizes)
match = rng.normal(size=len(query)) + rng.normal(0, 0.8, len(sizes))[query]
grades = np.digitize(match + rng.normal(0, 0.3, len(query)), [0.6, 1.2, 1.8, 2.4])
noise = {"ranker A": 1.6, "ranker B": 0.8, "ranker C": 0.7}
shared = rng.normal(size=len(query))  # noise that all rankers share
own = rng.normal(size=(len(noise), len(query)))
scores = match + np.array([[*noise.values()]]).T * (0.8 * shared + 0.6 * own)

metrics = {
    "nDCG at 10": partial(jm.ndcg, k=10, gain="exponential", empty=np.nan),
    "precision at 10": partial(jm.precision_at_k, k=10),
    "recall at 10": partial(jm.recall_at_k, k=10),
    "reciprocal rank": jm.reciprocal_rank,
    "expected reciprocal rank": partial(jm.expected_reciprocal_rank, max_grade=4),
}
key = jax.random.key(0)
colours = ("#0072B2", "#D55E00", "#009E73")
figure = Figure(figsize=(10, 4), layout="constrained")
left, right = figure.subplots(1, 2)
for row, (name, metric) in enumerate(metrics.items()):
    values = metric(scores, grades, segments=query, num_segments=len(sizes))  # [rankers, queries]
    defined = ~np.isnan(values).any(axis=0)  # NaN where a query has nothing relevant
    result = jm.bootstrap_mean(values, key=key, where=defined)
    found = result.interval()
    print(f"{name}, mean of {defined.sum()} queries")
    for ranker, *numbers in zip(noise, found.estimate, found.low, found.high, strict=True):
        print("  {:16} {:.3f}  {:.3f} to {:.3f}".format(ranker, *numbers))
    difference = result.replicates[:, 2] - result.replicates[:, 1]
    low, high = np.quantile(difference, [0.025, 0.975])
    gain = float(found.estimate[2] - found.estimate[1])
    verdict = "significantly better" if low > 0 else "not significant"
    print(f"  ranker C - ranker B: {gain:.4f}  {low:.4f} to {high:.4f}, {verdict}")
    for i, (ranker, colour) in enumerate(zip(noise, colours, strict=True)):
        errors = np.abs(np.array([[found.low[i]], [found.high[i]]]) - found.estimate[i])
        y, label = row + 0.2 * (i - 1), "" if row else ranker
        left.errorbar(
            found.estimate[i], y, xerr=errors, fmt="os^"[i], color=colour, capsize=3, label=label
        )
    right.errorbar(gain, row, xerr=[[gain - low], [high - gain]], fmt="o", color="k", capsize=3)

left.set(title="Mean over queries", yticks=range(len(metrics)), yticklabels=metrics)
left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=3, frameon=False)
right.set(title="Ranker C minus ranker B", yticks=range(len(metrics)), yticklabels=[])
right.axvline(0, color="#767676", linewidth=1)
for ax in (left, right):
    ax.set_ylim(len(metrics) - 0.5, -0.5)
    ax.grid(axis="x", alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
path = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(".png"))
figure.savefig(path, dpi=120)
print(f"drew {path.name}")
