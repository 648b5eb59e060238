"""Training for the partial AUC in mini-batches that are too small to hold the top negatives.

Each positive has a slot that remembers, from batch to batch, how it stands against all negatives;
the state goes through a scan with the parameters, and can be saved with them.

    python examples/mini_batches.py
"""

import jax
import jax.numpy as jnp
import optax
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

import jaxmetrics as jm

EPOCHS, BATCH = 30, 64
x, y = load_breast_cancer(return_X_y=True)
x, labels = jnp.asarray(scale(x), jnp.float32), jnp.asarray(y == 0)
kl = jm.losses.kl_partial_auc
optimiser = optax.adam(0.01)


def step(carry, rows):
    params, moments, state = carry

    def loss(params):
        return kl.apply(state, x[rows] @ params, labels[rows], rows, kl_weight=0.2)

    (_, state), gradient = jax.value_and_grad(loss, has_aux=True)(params)
    updates, moments = optimiser.update(gradient, moments)
    return (optax.apply_updates(params, updates), moments, state), None


@jax.jit
def epoch(carry, key):
    order = jax.random.permutation(key, len(x))[: len(x) // BATCH * BATCH]
    carry, _ = jax.lax.scan(step, carry, order.reshape(-1, BATCH))
    params, _, state = carry
    area = jm.partial_auc(x @ params, labels, max_fpr=0.05, scale="range")
    return carry, (kl.objective(state, kl_weight=0.2), area)


params = jnp.zeros(x.shape[1])
carry = (params, optimiser.init(params), kl.init(len(x)))
_, (objectives, areas) = jax.lax.scan(epoch, carry, jax.random.split(jax.random.key(0), EPOCHS))
print("epoch  objective  partial AUC up to 5 % FPR, of the training data")
for i in (0, 4, 9, EPOCHS - 1):
    print(f"{i + 1:5}  {objectives[i]:9.3f}  {areas[i]:.3f}")
