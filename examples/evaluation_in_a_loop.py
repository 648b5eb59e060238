"""Evaluation inside a training loop, without a round trip to the host for each batch.

Each step of a `scan` trains on a batch and adds its scores, from before the step, to a state; after
each pass over the data there is its AUC with bounds that hold the exact one, and the mean loss with
its standard error. All of it is one program.

    python examples/evaluation_in_a_loop.py
"""

from functools import partial

import jax
import jax.numpy as jnp
import optax
from sklearn.datasets import load_digits

import jaxmetrics as jm

images, digit = load_digits(return_X_y=True)
x, y = jnp.asarray(images / 16), jnp.asarray(digit == 8)
BATCH, PASSES = 64, 5
steps = len(y) // BATCH
bins = jm.streaming.float16_bins()
streaming, means = jm.streaming, jm.streaming.means
optimiser = optax.adam(0.05)


def loss_of(params, x, y):
    logits = x @ params["weight"] + params["bias"]
    losses = optax.sigmoid_binary_cross_entropy(logits, y.astype(logits.dtype))
    return losses.mean(), (logits, losses)


def step(carry, rows):
    params, moments, state, losses_seen = carry
    (_, (logits, losses)), gradient = jax.value_and_grad(loss_of, has_aux=True)(
        params, x[rows], y[rows]
    )
    updates, moments = optimiser.update(gradient, moments)
    state = streaming.update(state, logits, y[rows], bins=bins)
    losses_seen = means.update(losses_seen, losses)
    return (optax.apply_updates(params, updates), moments, state, losses_seen), None


def one_pass(carry, key):
    rows = jax.random.permutation(key, len(y))[: steps * BATCH].reshape(steps, BATCH)
    start = (*carry, streaming.init(bins), means.init())
    (*carry, state, losses_seen), _ = jax.lax.scan(step, start, rows)
    table = streaming.table(state, bins=bins)
    found = {
        "auc": jm.roc_auc(table),
        "bounds": streaming.bounds(jm.roc_auc, state, bins=bins),
        "recall": jm.recall_at_fpr(table, max_fpr=0.01),
        "loss": means.result(losses_seen),
    }
    return tuple(carry), found


@partial(jax.jit, static_argnums=1)
def train(key, passes):
    params = {"weight": jnp.zeros(x.shape[1]), "bias": jnp.zeros(())}
    keys = jax.random.split(key, passes)
    return jax.lax.scan(one_pass, (params, optimiser.init(params)), keys)


_, found = train(jax.random.key(0), PASSES)
print("pass  AUC     surely between     recall at 1 % FPR  loss")
for i in range(PASSES):
    low, high = found["bounds"].low[i], found["bounds"].high[i]
    loss, error = found["loss"].mean[i], found["loss"].standard_error[i]
    print(
        f"{i + 1:4}  {found['auc'][i]:.4f}  {low:.5f}, {high:.5f}"
        f"   {found['recall'][i]:.3f}              {loss:.4f} ({error:.4f})"
    )
