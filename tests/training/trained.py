"""The data and the runs that tests of training share."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

import jaxmetrics as jm

METRIC = partial(jm.partial_auc, max_fpr=0.2, scale="range")
LOSS = partial(jm.losses.partial_auc_loss, max_fpr=0.2)
KEY = jax.random.key(0)
ADAM, SGD = optax.adam(0.05), optax.sgd(0.1)
START = jnp.array([1.0, -1.0])


def linear(params, x):
    return x @ params


def sample(seed, n=200):
    """Positives of two kinds: a line that finds one kind at a low FPR cannot fit the other."""
    rng = np.random.default_rng(seed)
    labels = rng.random(n) < 0.3
    easy = labels & (rng.random(n) < 0.5)
    x = rng.normal(size=(n, 2)) * [1, 2]
    x[easy, 0] += 3
    x[labels & ~easy, 1] -= 2
    return x.astype(np.float32), labels


TRAIN, HELD = sample(0), sample(1)
RUN = {"apply": linear, "params": START, "optimizer": ADAM, "train": TRAIN, "validation": HELD}
RUN |= {"loss": LOSS, "metric": METRIC, "steps": 20, "checkpoints": 4}


def fit(**options):
    return jm.training.fit(**RUN | options)


def finetune(**options):
    return jm.training.finetune(**RUN | options)


X, Y = TRAIN
