"""Training continued after cross-entropy with a loss for the partial AUC: is a digit an 8?

A linear model of 16 pixels is trained with cross-entropy, then for as many steps with each of two
losses. Each step evaluates the metric itself on both halves of the data, on the device.

    python examples/partial_auc_training.py [figure.png]
"""

import sys
from functools import partial
from pathlib import Path

import jax
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
training = np.random.default_rng(0).random(len(y)) < 0.5
halves = np.stack([training, ~training])  # masks: one call evaluates both
metric = partial(jm.partial_auc, max_fpr=MAX_FPR, scale="range")


def scores_of(params):
    return x @ params["weight"] + params["bias"]


def cross_entropy(scores, y, where):
    return optax.sigmoid_binary_cross_entropy(scores, y.astype(scores.dtype)).mean(where=where)


@partial(jax.jit, static_argnames="loss")
def train(params, *, loss):
    """Parameters after `STEPS`, and both partial AUCs after each."""
    optimiser = optax.adam(0.02)

    def step(carry, _):
        params, state = carry
        gradient = jax.grad(lambda p: loss(scores_of(p), y, where=training))(params)
        updates, state = optimiser.update(gradient, state)
        params = optax.apply_updates(params, updates)
        return (params, state), metric(scores_of(params), y, where=halves)

    (params, _), areas = jax.lax.scan(step, (params, optimiser.init(params)), None, STEPS)
    return params, areas


zero = {"weight": jnp.zeros(x.shape[1]), "bias": jnp.zeros(())}
start, before = train(zero, loss=cross_entropy)
partial_auc_loss = partial(jm.losses.partial_auc_loss, max_fpr=MAX_FPR)
losses = {"cross-entropy": cross_entropy, "partial-AUC loss": partial_auc_loss}
found = {name: train(start, loss=loss) for name, loss in losses.items()}
scores = jnp.stack([scores_of(params) for params, _ in found.values()])
paired = jm.compare(metric, scores, y, where=~training)
print(f"test partial AUC up to {100 * MAX_FPR:g} % FPR, over the window")
for name, area in zip(found, paired.estimate, strict=True):
    print(f"{name:17} {area:.3f}")
limits = (x[1, 0] for x in (paired.difference, paired.low, paired.high))
print("difference {:+.3f}, 95 % {:+.3f} to {:+.3f}".format(*limits))

figure = Figure(figsize=(8, 3.4), layout="constrained")
for i, ax in enumerate(figure.subplots(1, 2, sharey=True)):
    ax.plot(np.arange(STEPS), before[:, i], color="0.6", label="cross-entropy, first half")
    for (name, (_, areas)), colour in zip(found.items(), ("#0072B2", "#D55E00"), strict=True):
        ax.plot(STEPS + np.arange(STEPS), areas[:, i], color=colour, label=name)
    ax.set(xlabel="step", title=("training data", "test data")[i])
    ax.spines[["top", "right"]].set_visible(False)
figure.axes[0].set(ylabel=f"partial AUC up to {100 * MAX_FPR:g} % FPR")
figure.axes[0].legend(frameon=False, loc="upper left")
path = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(".png"))
figure.savefig(path, dpi=120)
print(f"drew {path.name}")
