"""Training for a metric after cross-entropy; a gate keeps the result only if it is better."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import optax

from jaxmetrics._base.keywords import takes_metric
from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics._roc.record import MetricLike
from jaxmetrics.inference import Comparison, compare
from jaxmetrics.training._cross_entropy import cross_entropy
from jaxmetrics.training._data import (
    OF_LOSSES,
    OF_METRICS,
    Batch,
    check_params,
    checked,
    of_both,
    rows_of,
)
from jaxmetrics.training._fit import Apply, Fitted, Loss, fit


@dataclass(frozen=True)
class Finetuned:
    """The model that passed the gate, and the two runs it was chosen from.

    Attributes:
      params: the parameters of the model that was taken.
      taken: "loss", or "cross_entropy" if the loss did not gain enough.
      comparison: of the loss (model 0) and cross-entropy (model 1), on validation data.
      loss: the run with the loss, a Fitted.
      cross_entropy: the run with cross-entropy, a Fitted.
    """

    params: Any = field(repr=False)
    taken: str
    comparison: Comparison
    loss: Fitted = field(repr=False)
    cross_entropy: Fitted = field(repr=False)

    def __str__(self) -> str:
        return f"Taken: {self.taken}\n\n{self.comparison}"


@takes_metric
def finetune(
    apply: Apply,
    params: Any,
    optimizer: optax.GradientTransformation,
    train: Any,
    validation: Any,
    *,
    loss: Loss,
    metric: MetricLike,
    steps: int,
    checkpoints: int = 10,
    batch: Batch = None,
    key: Array | None = None,
    clusters: ArrayLike | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> Finetuned:
    """Train on for a metric, and take the result only if it beats as many cross-entropy steps.

    Both runs go on from `params` and keep their best checkpoint by validation metric. The model of
    the loss is taken if d > SE(d), where d is its metric minus that of cross-entropy, on the same
    validation items.

    Args:
      apply: `apply(params, features)`, scores `[n]`, as in `fit`; log-odds, for cross-entropy.
      params: a pytree of arrays of floats, trained with cross-entropy.
      optimizer: of optax, for both runs.
      train: (features, labels), or with a dict of options as third, as in `fit`. Both losses are
        given the options.
      validation: the same, for the metric and the comparison.
      loss: the loss to try, as in `fit`.
      metric: one value, higher is better; any that `compare` takes.
      steps: of each run, a multiple of `checkpoints`.
      checkpoints: how often the metric is evaluated in each run.
      batch: as in `fit`. If it is a pair, cross-entropy takes batches of the same total size, drawn
        from both classes together: another share of positives would change this loss.
      key: a JAX random key, for batches and for metrics that `compare` resamples.
      clusters: `[n]` of the validation items, for `compare`: items of one cluster (a patient, a
        user) may depend on each other.
      progress: a function of the finished steps and the validation metric, for the run with the
        loss and then for that with cross-entropy, each from step 0.

    Returns:
      A Finetuned.

    Raises:
      TypeError, ValueError: before the first step, as in `fit` and `compare`.

    If the standard error is NaN, cross-entropy is taken. The comparison is of models that were
    chosen on the same items, so its limits are too narrow for a report: evaluate on test data.
    Cost: that of two runs of `fit`, and of two calls of `compare`, the first of which checks the
    input.

    Example:
      >>> import jax.numpy as jnp, jaxmetrics as jm, optax
      >>> from functools import partial
      >>> x = jnp.stack([jnp.arange(40.) % 7, jnp.arange(40.) % 5], 1)
      >>> data = x, (x[:, 0] * x[:, 1]) > 9
      >>> found = jm.training.finetune(
      ...     lambda w, x: x @ w, jnp.ones(2), optax.sgd(0.1), data, data,
      ...     loss=partial(jm.losses.partial_auc_loss, max_fpr=0.2), metric=jm.roc_auc, steps=10)
      >>> print(found.taken)
      cross_entropy

    Reference: the study "Gain of a partial-AUC loss over cross-entropy" of the documentation.
    """
    params = check_params(params)
    held = checked("validation", validation, apply, params, OF_METRICS, clusters=clusters)

    def compared(*models: Any) -> Comparison:
        each = (apply(model, held.features) for model in models)
        scores = dict(zip(("loss", "cross_entropy"), each, strict=True))
        own = None if key is None else jax.random.fold_in(key, 0)
        return compare(metric, scores, held.labels, key=own, clusters=clusters, **held.options)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the final comparison gives them
        compared(params, params)

    def run(loss: Loss, batch: Batch) -> Fitted:
        return fit(
            apply,
            params,
            optimizer,
            train,
            validation,
            loss=loss,
            metric=metric,
            steps=steps,
            checkpoints=checkpoints,
            batch=batch,
            key=key,
            progress=progress,
        )

    of_loss = run(loss, batch)
    tuning = checked("train", train, apply, params, OF_LOSSES)
    reference = run(cross_entropy, of_both(batch, rows_of(tuning, batch, key)))
    comparison = compared(of_loss.params, reference.params)
    better = comparison.difference[0, 1] > comparison.standard_error[0, 1]
    return Finetuned(
        params=of_loss.params if better else reference.params,
        taken="loss" if better else "cross_entropy",
        comparison=comparison,
        loss=of_loss,
        cross_entropy=reference,
    )
