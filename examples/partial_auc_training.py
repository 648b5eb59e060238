"""Training continued after cross-entropy with a loss for the partial AUC: is a digit an 8?

A linear model of 16 pixels is trained with cross-entropy. One call tries a loss for the partial AUC
and takes it only if it is better on validation data than as many steps of cross-entropy.

    python examples/partial_auc_training.py [figure.png]
"""

import sys
from functools import partial
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import optax
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

import jaxmetrics as jm

MAX_FPR, STEPS = 0.05, 400
images, digit = load_digits(return_X_y=True)
pixels = images.reshape(-1, 4, 2, 4, 2).mean((2, 4)).reshape(-1, 16)  # too few for a perfect fit
x, y = jnp.asarray(pixels / 16), jnp.asarray(digit == 8)
part = np.random.default_rng(0).choice(3, len(y), p=[0.4, 0.3, 0.3])
train, validation, test = ((x[part == i], y[part == i]) for i in range(3))
metric = partial(jm.partial_auc, max_fpr=MAX_FPR, scale="range")


def apply(params, x):
    return x @ params["weight"] + params["bias"]


zero = {"weight": jnp.zeros(x.shape[1]), "bias": jnp.zeros(())}
data = optax.adam(0.02), train, validation
options = {"metric": metric, "steps": STEPS, "checkpoints": 40}
start = jm.training.fit(apply, zero, *data, **options)
partial_auc_loss = partial(jm.losses.partial_auc_loss, max_fpr=MAX_FPR)
found = jm.training.finetune(apply, start.params, *data, loss=partial_auc_loss, **options)
print(f"taken on validation data: {found.taken}")

runs = {"cross-entropy": found.cross_entropy, "partial-AUC loss": found.loss}
scores = jnp.stack([apply(run.params, test[0]) for run in runs.values()])
paired = jm.compare(metric, scores, test[1])
print(f"test partial AUC up to {100 * MAX_FPR:g} % FPR, over the window")
for name, area in zip(runs, paired.estimate, strict=True):
    print(f"{name:17} {area:.3f}")
limits = (x[1, 0] for x in (paired.difference, paired.low, paired.high))
print("difference {:+.3f}, 95 % {:+.3f} to {:+.3f}".format(*limits))

figure = Figure(figsize=(6, 3.4), layout="constrained")
ax = figure.subplots()
ax.plot(start.steps, start.values, color="0.6", label="cross-entropy, before")
for (name, run), colour in zip(runs.items(), ("#0072B2", "#D55E00"), strict=True):
    ax.plot(start.step + run.steps, run.values, color=colour, label=name)
ax.set(xlabel="step", ylabel=f"validation partial AUC up to {100 * MAX_FPR:g} % FPR")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="upper left")
path = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(".png"))
figure.savefig(path, dpi=120)
print(f"drew {path.name}")
