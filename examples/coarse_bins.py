"""A binned AUC that is wrong without a warning, and one with bounds on its error.

Where positives are rare, calibrated probabilities lie near 0, and the first of 200 bins from 0 to 1
holds nearly all of them. The bounds show the error. Bins of float16 are narrow where scores are.

    python examples/coarse_bins.py [figure.png]
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
from matplotlib.figure import Figure

import jaxmetrics as jm

N, BATCH = 1_000_000, 50_000
key = jax.random.key(0)
kinds = {
    "200 uniform": jm.streaming.uniform_bins(200),
    "2,000 uniform": jm.streaming.uniform_bins(2000),
    "65,536 uniform": jm.streaming.uniform_bins(65_536),
    "float16": jm.streaming.float16_bins(),
}


def batch(i):
    """Calibrated probabilities, and labels of which one in a thousand is positive."""
    noise, chance = jax.random.split(jax.random.fold_in(key, i))
    logits = jax.random.normal(noise, (BATCH,)) - 7.4
    scores = jax.nn.sigmoid(logits)
    return scores, jax.random.uniform(chance, (BATCH,)) < scores


states = {name: jm.streaming.init(bins) for name, bins in kinds.items()}
everything = []
for i in range(N // BATCH):
    scores, labels = batch(i)
    everything.append((scores, labels))
    for name, bins in kinds.items():
        states[name] = jm.streaming.update(states[name], scores, labels, bins=bins)
exact = float(jm.roc_auc(*map(jnp.concatenate, zip(*everything, strict=True))))

figure = Figure(figsize=(6.4, 2.4), layout="constrained")
ax = figure.subplots()
print(f"exact AUC of {N:,} items: {exact:.4f}")
for row, (name, bins) in enumerate(kinds.items()):
    value = float(jm.roc_auc(jm.streaming.table(states[name], bins=bins)))
    low, high = jm.streaming.bounds(jm.roc_auc, states[name], bins=bins)
    interval = jm.streaming.interval(jm.roc_auc, states[name], bins=bins)
    print(f"{name:15} {value:.4f}, bounds {low:.4f} to {high:.4f}", end="; ")
    print(f"95 % interval {interval.low:.4f} to {interval.high:.4f}")
    ax.plot([interval.low, interval.high], [row, row], color="#56B4E9", linewidth=2)
    ax.plot([low, high], [row, row], color="#0072B2", linewidth=7, solid_capstyle="butt")
    ax.plot(value, row, "o", color="#D55E00")
ax.axvline(exact, color="0.4", linewidth=1)
ax.set(yticks=range(len(kinds)), yticklabels=kinds, xlabel="AUC", ylim=(len(kinds) - 0.5, -0.5))
ax.set_title("binned value, certain bounds, 95 % interval; line: exact", fontsize=10)
ax.spines[["top", "right"]].set_visible(False)
path = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(".png"))
figure.savefig(path, dpi=120)
print(f"drew {path.name}")
