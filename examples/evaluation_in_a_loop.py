"""Evaluation inside a training loop of flax and optax, without a round trip to the host.

Each step of a `scan` trains on a batch and adds the batch's scores, from before the step, to a
state. After each pass over the data the script has the AUC of these scores, with bounds that hold
the exact one, and the partial AUC of held-out data with its interval. All passes are one program.
It needs flax:

    python -m pip install flax && python examples/evaluation_in_a_loop.py [figure.png]
"""

import sys
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import jaxmetrics as jm
from jaxmetrics import streaming

images, digit = load_digits(return_X_y=True)
parts = train_test_split(images / 16, digit == 8, stratify=digit == 8, random_state=0)
x, x_test, y, y_test = map(jnp.asarray, parts)
BATCH, PASSES = 64, 12
bins = streaming.float16_bins()
metric = partial(jm.partial_auc, max_fpr=0.05, scale="range")
optimiser = optax.adam(0.005)
rngs = nnx.Rngs(0)
net = nnx.Sequential(nnx.Linear(64, 16, rngs=rngs), nnx.relu, nnx.Linear(16, 1, rngs=rngs))
graph, start = nnx.split(net)  # the static part, and the parameters


def loss_of(params, x, y):
    scores = nnx.merge(graph, params)(x)[:, 0]
    return optax.sigmoid_binary_cross_entropy(scores, y.astype(scores.dtype)).mean(), scores


def step(carry, rows):
    params, moments, state = carry
    (_, scores), gradient = jax.value_and_grad(loss_of, has_aux=True)(params, x[rows], y[rows])
    updates, moments = optimiser.update(gradient, moments)
    state = streaming.update(state, scores, y[rows], bins=bins)
    return (optax.apply_updates(params, updates), moments, state), None


def one_pass(carry, key):
    rows = jax.random.permutation(key, len(y))[: len(y) // BATCH * BATCH].reshape(-1, BATCH)
    (params, moments, state), _ = jax.lax.scan(step, (*carry, streaming.init(bins)), rows)
    seen = jm.roc_auc(streaming.table(state, bins=bins))
    bounds = streaming.bounds(jm.roc_auc, state, bins=bins)
    held_out = jm.confidence_interval(metric, loss_of(params, x_test, y_test)[1], y_test)
    return (params, moments), (seen, bounds, held_out)


keys = jax.random.split(jax.random.key(0), PASSES)
_, (seen, bounds, held_out) = jax.lax.scan(one_pass, (start, optimiser.init(start)), keys)
print("pass  AUC while training, certain bounds   held-out partial AUC up to 5 % FPR, 95 %")
low, middle, high = held_out.low, held_out.estimate, held_out.high
rows = zip(seen, *bounds, middle, low, high, strict=True)
for i, row in enumerate(rows, 1):
    print("{:4}  {:.4f}  {:.5f}, {:.5f}  {:21.3f}  {:.3f} to {:.3f}".format(i, *row))

figure = Figure(figsize=(6.4, 3.6), layout="constrained")
ax = figure.subplots()
at = range(1, PASSES + 1)
ax.plot(at, seen, color="#D55E00", linestyle="--", label="AUC of what was trained on, streamed")
ax.plot(at, middle, color="#0072B2", label="partial AUC up to 5 % FPR, held out")
ax.fill_between(at, low, high, color="#0072B2", alpha=0.2, label="95 % interval")
ax.set(xlabel="pass over the data", ylim=(0, 1.01), xlim=(1, PASSES), xticks=at)
ax.legend(frameon=False, loc="lower right")
ax.spines[["top", "right"]].set_visible(False)
path = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(".png"))
figure.savefig(path, dpi=120)
print(f"drew {path.name}")
