"""Training on a loss, which keeps the checkpoint with the best validation metric."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxmetrics import losses as losses_of_library
from jaxmetrics._base import checks
from jaxmetrics._base.host import is_compiling
from jaxmetrics._base.keywords import of_partials, takes_metric
from jaxmetrics._base.types import Array
from jaxmetrics._base.warned import warn
from jaxmetrics._roc.record import MetricLike, check_metric
from jaxmetrics.losses import cvar_partial_auc, kl_partial_auc
from jaxmetrics.training._cross_entropy import cross_entropy
from jaxmetrics.training._data import (
    OF_LOSSES,
    OF_METRICS,
    Batch,
    Data,
    beside,
    check_params,
    check_processes,
    checked,
    drawn,
    rows_of,
    taken,
)

Apply = Callable[[Any, Any], Any]
Loss = Callable[..., Any]
STATES: dict[Any, Callable[[int], Any]] = {
    module.apply: module.init for module in (kl_partial_auc, cvar_partial_auc)
}


@dataclass(frozen=True)
class Fitted:
    """The best checkpoint of a run, and its history.

    Attributes:
      params: the parameters of the checkpoint with the highest validation metric.
      step: the number of steps before this checkpoint; 0 is the start.
      steps: `[checkpoints + 1]`, the steps of the start and of each checkpoint.
      values: `[checkpoints + 1]`, the validation metric at each.
      losses: `[checkpoints]`, the mean training loss of the steps before each checkpoint.
    """

    params: Any = field(repr=False)
    step: int
    steps: np.ndarray[Any, Any]
    values: np.ndarray[Any, Any]
    losses: np.ndarray[Any, Any]


@takes_metric
def fit(
    apply: Apply,
    params: Any,
    optimizer: optax.GradientTransformation,
    train: Any,
    validation: Any,
    *,
    loss: Loss = cross_entropy,
    metric: MetricLike,
    steps: int,
    checkpoints: int = 10,
    batch: Batch = None,
    key: Array | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> Fitted:
    """Train, and keep the best checkpoint by a metric of validation data.

    params = argmax over c of metric(apply(params_c, validation)), c = 0, ..., checkpoints, where
    params_0 is the start. Of equal values the first is kept.

    Args:
      apply: `apply(params, features)`, scores `[n]`, higher is more positive; a function that can
        be hashed, without randomness.
      params: a pytree of arrays of floats.
      optimizer: an optimiser of optax; also one that takes the value of the loss, as `optax.lbfgs`
        does.
      train: (features, labels), or with a dict of `[n]` arrays as third, whose keys may be
        "weights" and "where". Features are a pytree of arrays `[n, ...]`, labels `[n]`, bool or 0
        and 1.
      validation: the same, for the metric; also "amounts", if it takes them.
      loss: a function of scores and labels, and of the options of `train` by name. Or
        `kl_partial_auc.apply` or `cvar_partial_auc.apply`, whose state `fit` then keeps, with a
        slot for each item. Options by `functools.partial`.
      metric: one value, higher is better. For a loss of validation data write
        `lambda scores, labels: -loss(scores, labels)`.
      steps: the number of steps, a multiple of `checkpoints`.
      checkpoints: how often the metric is evaluated; the steps between are one program.
      batch: None for all items in each step; the number of items of a batch, drawn with
        replacement; or a pair of numbers: of positives, drawn without replacement (at most all of
        them), and of negatives, drawn with replacement.
      key: a JAX random key, for batches.
      progress: a function of the finished steps and the validation metric, at the start and each
        checkpoint.

    Returns:
      A Fitted.

    Raises:
      TypeError, ValueError: before the first step, as the conventions list under Errors; scores are
        not `[n]`, params hold something else than floats, steps are not a multiple of checkpoints,
        a batch has no key, or the metric of the start is NaN. At a checkpoint, if the loss is NaN
        and a score of train at the start is NaN too.

    A later checkpoint whose metric is NaN is not kept. Each call begins anew: going on from
    `params` of an earlier one, the moments of the optimiser start at 0, and the same key draws the
    same batches. Warns of a loss that is NaN, or 0 in all steps. Train arrays that are sharded over
    a mesh stay where they are; if the axes of the mesh are `Explicit`, each device has the whole of
    a batch. Cost: that of the steps and of checkpoints + 1 evaluations, and one compilation for
    each apply, optimizer, loss and shape: a later call with the same objects uses it again. Memory:
    two copies of params, and the optimiser's state.

    Example:
      >>> import jax.numpy as jnp, jaxmetrics as jm, optax
      >>> data = jnp.array([[0., 1.], [1., 0.], [2., 1.], [3., 0.]]), jnp.array([0, 1, 0, 1])
      >>> fitted = jm.training.fit(
      ...     lambda w, x: x @ w, jnp.zeros(2), optax.sgd(0.5), data, data,
      ...     metric=jm.roc_auc, steps=20)
      >>> print(fitted.values[0], fitted.values.max())
      0.5 1.0

    Reference: L. Prechelt, "Early stopping - but when?", 1998.
    """
    length = _interval(steps, checkpoints)
    check_metric(metric)
    _refuse_loss(metric, loss)
    if not callable(getattr(optimizer, "init", None)):
        raise TypeError(
            f"optimizer must be one of optax, got {checks.brief(optimizer)}: write optax.adam(1e-3)"
        )
    params = check_params(params)
    if is_compiling():
        raise TypeError("fit chooses a checkpoint, and cannot be traced: call it outside of jit")
    tuning = checked("train", train, apply, params, OF_LOSSES)
    held = checked("validation", validation, apply, params, OF_METRICS)
    check_processes((params, tuning, held, key))
    params, state = beside(tuning, (params, _state(loss, len(tuning.labels))))
    groups = rows_of(tuning, batch, key)
    keys: Any = [None] * checkpoints
    if key is not None and batch is not None:
        keys = jax.random.split(key, (checkpoints, length))
    score = jax.jit(apply)
    values: list[float] = []
    losses: list[float] = []
    best = params, 0

    def evaluate(params: Any) -> None:
        value = metric(score(params, held.features), held.labels, **held.options)
        if np.ndim(value):
            raise ValueError(
                f"metric must have one value, got {list(np.shape(value))}: take one limit at a time"
            )
        values.append(float(value))
        if progress is not None:
            progress(len(losses) * length, values[-1])

    evaluate(params)
    if np.isnan(values[0]):
        raise ValueError(
            "the metric of the start is NaN: validation lacks a class, or a score is NaN"
        )
    carry = params, optimizer.init(params), state
    for i in range(checkpoints):
        carry, mean = _steps(carry, tuning, groups, keys[i], apply, optimizer, loss, batch, length)
        losses.append(float(mean))
        if np.isnan(losses[-1]) and jnp.isnan(score(params, tuning.features)).any():
            raise ValueError(
                "scores of train are NaN at the start: fill the NaN of its features, also in rows "
                "that where= leaves out, whose gradients are 0 times NaN; or drop these rows"
            )
        evaluate(carry[0])
        if values[-1] > values[best[1]]:
            best = carry[0], i + 1
    lost = np.isnan(losses)
    if lost[-1]:
        first = 0 if lost.all() else len(lost) - int(lost[::-1].argmin())
        first *= length
        warn(
            f"the loss is NaN after step {first:,}, as after steps that are too large: lower the "
            "learning rate; params are those of the best checkpoint before"
        )
    elif lost.any():
        first = length * int(lost.argmax())
        warn(
            f"the loss is NaN in some of the steps {first:,} to {first + length:,}, but not in the "
            "last ones: where a batch does not explain it, lower the learning rate"
        )
    elif not np.any(losses):
        warn(
            f"nothing was learned: the loss of all steps is {losses[0]:g}, as that of pairs is in "
            "data or batches without a class, such as a batch of one item"
        )
    return Fitted(
        params=best[0],
        step=best[1] * length,
        steps=length * np.arange(checkpoints + 1),
        values=np.array(values),
        losses=np.array(losses),
    )


def _interval(steps: int, checkpoints: int) -> int:
    """The steps between checkpoints."""
    checks.check_count("steps", steps)
    checks.check_count("checkpoints", checkpoints)
    if steps % checkpoints:
        raise ValueError(
            f"steps must be a multiple of checkpoints; got {steps} and {checkpoints}: write "
            f"steps={checkpoints * -(-steps // checkpoints)}"
        )
    return steps // checkpoints


def _refuse_loss(metric: MetricLike, loss: Loss) -> None:
    """Refuse a loss as the metric: the checkpoint with the highest one is the worst."""
    function, *_ = of_partials(metric)
    losses = [getattr(losses_of_library, name) for name in losses_of_library.__all__]
    if any(function is x for x in (cross_entropy, of_partials(loss)[0], *losses)):
        name = getattr(function, "__name__", type(function).__name__)
        raise TypeError(
            f"metric must be higher for a better model, and {name} is a loss: write "
            "lambda scores, labels: -loss(scores, labels)"
        )


def _state(loss: Loss, n: int) -> Any:
    """The state of a mini-batch loss before the first batch; None for other losses."""
    function, *_ = of_partials(loss)
    return STATES[function](n) if function in STATES else None


def _without_state(loss: Loss, scores: Array, part: Data) -> Any:
    """The value of a loss without state; its TypeError is extended by how `fit` calls it."""
    try:
        return loss(scores, part.labels, **part.options)
    except TypeError as error:
        options = "".join(f", {name}=" for name in part.options)
        raise TypeError(
            f"{error}: fit calls loss(scores, labels{options}); fix other arguments, as in "
            "functools.partial(loss, max_fpr=0.05); if the loss has a state, pass "
            "kl_partial_auc.apply or cvar_partial_auc.apply itself, or a functools.partial of it, "
            "and not another function that calls it"
        ) from error


def _accepted(optimizer: optax.GradientTransformation, extra: dict[str, Any]) -> dict[str, Any]:
    """The extra arguments that the optimiser takes: `optax.contrib.sam` refuses all others."""
    parameters = inspect.signature(optimizer.update).parameters
    every = any(x.kind is x.VAR_KEYWORD for x in parameters.values())
    return {name: x for name, x in extra.items() if every or name in parameters}


@functools.partial(jax.jit, static_argnums=(4, 5, 6, 7, 8))
def _steps(
    carry: Any,
    train: Data,
    groups: tuple[Array, ...],
    keys: Any,
    apply: Apply,
    optimizer: optax.GradientTransformation,
    loss: Loss,
    batch: Batch,
    length: int,
) -> tuple[Any, Array]:
    """Parameters, optimiser state and loss state after `length` steps, and their mean loss."""

    def objective(params: Any, state: Any, part: Data, rows: Any) -> tuple[Array, Any]:
        scores = apply(params, part.features)
        if state is None:
            value = _without_state(loss, scores, part)
        else:
            value, state = loss(state, scores, part.labels, rows, **part.options)
        if not isinstance(value, (jax.Array, float)) or jnp.ndim(value):
            given = list(value.shape) if isinstance(value, jax.Array) else type(value).__name__
            raise ValueError(
                f"loss must return one number, got {given}: write its mean, as in "
                "lambda scores, labels: loss(scores, labels).mean()"
            )
        return jnp.asarray(value), state

    def step(carry: Any, key: Any) -> Any:
        params, moments, state = carry
        if batch is None:
            rows, part = jnp.arange(len(train.labels)), train
        else:
            rows = drawn(key, groups, batch)
            part = taken(train, rows)
        (value, after), gradient = jax.value_and_grad(objective, has_aux=True)(
            params, state, part, rows
        )

        def value_of(params: Any) -> Array:
            return objective(params, state, part, rows)[0]

        extra = _accepted(optimizer, {"value": value, "grad": gradient, "value_fn": value_of})
        updates, moments = optimizer.update(gradient, moments, params, **extra)
        return (optax.apply_updates(params, updates), moments, after), value

    carry, values = jax.lax.scan(step, carry, keys, length)
    return carry, jnp.mean(values)
