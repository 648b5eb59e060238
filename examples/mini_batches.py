"""Training for the partial AUC in mini-batches that are too small to hold the top negatives.

A batch has 29 negatives, of which one or two are in the window up to 5 % FPR. These are rarely the
negatives in the window of all data. `kl_partial_auc` remembers for each positive, from batch to
batch, how it compares with all negatives. A scan carries this state along with the parameters. With
the same surrogate but without a state, the partial AUC jumps from epoch to epoch. The bounded
sigmoid, the default of `partial_auc_loss`, needs no state here: try it first.

    python examples/mini_batches.py [figure.png]
"""

import sys
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import optax
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

import jaxmetrics as jm

EPOCHS, BATCH, MAX_FPR = 40, 32, 0.05
images, digit = load_digits(return_X_y=True)
pixels = images.reshape(-1, 4, 2, 4, 2).mean((2, 4)).reshape(-1, 16)  # too few for a perfect fit
x, labels = jnp.asarray(pixels - pixels.mean(0)) / 16, jnp.asarray(digit == 8)
kl = jm.losses.kl_partial_auc
alone = partial(jm.losses.partial_auc_loss, max_fpr=MAX_FPR)
losses = {  # functions of the state, the scores and labels of a batch, and its rows
    "squared hinge, with a state": partial(kl.apply, kl_weight=0.2),
    "squared hinge, each batch alone": lambda state, scores, labels, _: (
        alone(scores, labels, surrogate="squared_hinge"),
        state,
    ),
    "sigmoid, each batch alone": lambda state, scores, labels, _: (alone(scores, labels), state),
}


def train(loss):
    """The partial AUC of the training data after each epoch."""
    optimiser = optax.adam(0.01)

    def step(carry, rows):
        params, moments, state = carry
        given = jax.value_and_grad(
            lambda p: loss(state, x[rows] @ p, labels[rows], rows), has_aux=True
        )
        (_, state), gradient = given(params)
        updates, moments = optimiser.update(gradient, moments)
        return (optax.apply_updates(params, updates), moments, state), None

    def epoch(carry, key):
        order = jax.random.permutation(key, len(x))[: len(x) // BATCH * BATCH]
        carry, _ = jax.lax.scan(step, carry, order.reshape(-1, BATCH))
        return carry, jm.partial_auc(x @ carry[0], labels, max_fpr=MAX_FPR, scale="range")

    start = jnp.zeros(x.shape[1])
    carry = (start, optimiser.init(start), kl.init(len(x)))
    return jax.lax.scan(epoch, carry, jax.random.split(jax.random.key(0), EPOCHS))[1]


figure = Figure(figsize=(6.8, 3.6), layout="constrained")
ax = figure.subplots()
print(f"partial AUC up to {100 * MAX_FPR:g} % FPR, mean and range of the last ten epochs")
looks = "#0072B2 -", "#D55E00 --", "#009E73 :"
for (name, loss), look in zip(losses.items(), looks, strict=True):
    areas = train(loss)
    last = areas[-10:]
    print(f"{name:32} {last.mean():.3f}  {last.min():.3f} to {last.max():.3f}")
    colour, line = look.split()
    ax.plot(range(1, EPOCHS + 1), areas, line, color=colour, label=name)
ax.set(xlabel=f"epochs in batches of {BATCH}", ylabel=f"partial AUC up to {100 * MAX_FPR:g} % FPR")
ax.set(ylim=(0, 0.4))
ax.legend(frameon=False, loc="upper left")
ax.spines[["top", "right"]].set_visible(False)
path = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(".png"))
figure.savefig(path, dpi=120)
print(f"drew {path.name}")
