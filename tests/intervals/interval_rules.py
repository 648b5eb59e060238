"""The rules of intervals and the samples that their tests share."""

import math

import jax
import numpy as np

from jaxmetrics._base import numerics
from jaxmetrics._base.double import double_precision
from jaxmetrics.inference._intervals import areas, precision, recall, rules

LEVELS = (0.5, 0.9, 0.95, 0.99)
MAX_FPR = np.float64(0.1)
WIDTH = 100


def doubled(function, *args):
    """The result of `function`, compiled, on the host.

    Element by element, in rows of one width, so that each function is compiled once.
    """
    leaves, tree = jax.tree.flatten(args)
    shape = np.broadcast_shapes(*map(np.shape, leaves))
    flat = [np.broadcast_to(np.asarray(x, np.float64), shape).ravel() for x in leaves]
    padded = [np.pad(x, (0, -x.size % WIDTH), mode="edge").reshape(-1, WIDTH) for x in flat]
    with double_precision():
        compiled = jax.jit(function)
        rows = [compiled(*tree.unflatten(row)) for row in zip(*padded, strict=True)]
    size = math.prod(shape)
    return jax.tree.map(lambda *x: np.concatenate(x)[:size].reshape(shape), *rows)


def by_numpy(function, *args):
    """The result by NumPy, which is that of JAX: see test_numpy_and_jax_say_the_same."""
    with np.errstate(all="ignore"):
        return function(*jax.tree.map(np.float64, args))


def moments(estimate, variances, sizes):
    return rules.Moments(estimate, variances, sizes)


def partial_auc(sample, level, max_fpr=MAX_FPR, tpr=None):
    if tpr is None:
        library = numerics.namespace(sample.estimate)
        tpr = library.minimum(library.asarray(1.0), library.asarray(sample.estimate) * 1.2)
    return areas.partial_auc(sample, level, max_fpr, tpr)


def average_precision(sample, level, odds=None):
    n0, n1 = sample.sizes
    odds = n0 / n1 if odds is None else odds
    numbers = precision.Precisions(sample.estimate * (1 - 0.5 / (n1 + 1)), odds)
    return precision.average_precision(sample, level, numbers)


def recall_of(sample, level, max_fpr=MAX_FPR):
    """Of the curve A (u / max_fpr)^0.3, with A the estimate."""
    a, sizes = sample.estimate, sample.sizes
    library = numerics.namespace(a, *sizes)

    def height(fpr):
        return library.minimum(a * (library.clip(fpr, 0.0, 1.0) / max_fpr) ** 0.3, 1.0)

    lower, upper = map(height, recall.around_limit(max_fpr, sizes[0]))
    heights = recall.Heights(a, a, lower, upper, a / 1.3)
    box = recall.box_of(lambda *fpr: [*map(height, fpr)], max_fpr, sizes[0], level)
    unweighted = moments(a, (0 * a, 0 * a), sizes)  # which no variance is too large for
    return recall.recall(unweighted, heights, box, max_fpr, level)


RULES = {
    "logit_t": rules.logit_t,
    "auc": areas.auc,
    "partial_auc": partial_auc,
    "average_precision": average_precision,
    "recall": recall_of,
}
