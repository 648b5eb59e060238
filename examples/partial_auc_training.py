"""Going on from cross-entropy with a loss for the partial AUC: is a digit an 8?

A linear model of 16 pixels is trained with cross-entropy, then for as many steps with each loss.
The partial AUC on both halves of the data is found within the loop, by the metric itself, without
leaving the device.

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
from sklearn.model_selection import train_test_split

import jaxmetrics as jm

MAX_FPR, STEPS = 0.05, 400
images, digit = load_digits(return_X_y=True)
pixels = images.reshape(-1, 4, 2, 4, 2).mean((2, 4)).reshape(-1, 16)  # too few to tell all apart
parts = train_test_split(
    pixels / 16, digit == 8, stratify=digit == 8, random_state=0, test_size=0.5
)
x_train, x_test, y_train, y_test = map(jnp.asarray, parts)
metric = partial(jm.partial_auc, max_fpr=MAX_FPR, scale="range")


def scores_of(params, x):
    return x @ params["weight"] + params["bias"]


def cross_entropy(scores, labels):
    return optax.sigmoid_binary_cross_entropy(scores, labels.astype(scores.dtype)).mean()


partial_auc_loss = partial(jm.losses.partial_auc_loss, max_fpr=MAX_FPR)


@partial(jax.jit, static_argnames="loss")
def train(params, *, loss):
    """Parameters after `STEPS`, and both partial AUCs after each."""
    optimiser = optax.adam(0.02)

    def step(carry, _):
        params, state = carry
        gradient = jax.grad(lambda p: loss(scores_of(p, x_train), y_train))(params)
        updates, state = optimiser.update(gradient, state)
        params = optax.apply_updates(params, updates)
        areas = [metric(scores_of(params, x), y) for x, y in ((x_train, y_train), (x_test, y_test))]
        return (params, state), jnp.stack(areas)

    (params, _), areas = jax.lax.scan(step, (params, optimiser.init(params)), None, STEPS)
    return params, areas


zero = {"weight": jnp.zeros(pixels.shape[1]), "bias": jnp.zeros(())}
start, before = train(zero, loss=cross_entropy)
losses = {"cross-entropy": cross_entropy, "partial-AUC loss": partial_auc_loss}
found = {name: train(start, loss=loss) for name, loss in losses.items()}
scores = jnp.stack([scores_of(params, x_test) for params, _ in found.values()])
paired = jm.compare(metric, scores, y_test)
print(f"test partial AUC up to {MAX_FPR:.0%} FPR, over the window")
for name, area in zip(found, metric(scores, y_test), strict=True):
    print(f"{name:17} {area:.3f}")
low, high = paired.low[1, 0], paired.high[1, 0]
print(f"difference {paired.difference[1, 0]:+.3f}, 95 % {low:+.3f} to {high:+.3f}")

figure = Figure(figsize=(8, 3.4), layout="constrained")
for ax, column, title in zip(
    figure.subplots(1, 2, sharey=True), (0, 1), ("training", "test"), strict=True
):
    ax.plot(np.arange(STEPS), before[:, column], color="0.6")
    for (name, (_, areas)), colour in zip(found.items(), ("#0072B2", "#D55E00"), strict=True):
        ax.plot(STEPS + np.arange(STEPS), areas[:, column], color=colour, label=name)
    ax.set(xlabel="step", title=title)
    ax.spines[["top", "right"]].set_visible(False)
figure.axes[0].set(ylabel=f"partial AUC up to {MAX_FPR:.0%} FPR")
figure.axes[0].legend(frameon=False, loc="upper left")
path = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(".png"))
figure.savefig(path, dpi=120)
print(f"drew {path.name}")
