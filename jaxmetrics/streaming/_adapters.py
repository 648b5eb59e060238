"""Metrics of streams as classes of flax and clu, which are imported only when they are needed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks
from jaxmetrics._base.host import is_concrete
from jaxmetrics._base.keywords import takes_metric
from jaxmetrics._base.types import Array
from jaxmetrics._roc.record import choose
from jaxmetrics.streaming._bins import Bins, float16_bins
from jaxmetrics.streaming._state import State, init, merge, update
from jaxmetrics.streaming._tables import table

_Metric = Callable[..., Any]


@takes_metric
def nnx_metric(metric: _Metric, *, bins: Bins | None = None, weighted: bool = False) -> Any:
    """A metric of a stream as a `flax.nnx.Metric`.

    update(scores=, labels=, weights=, where=) adds a batch. compute() returns the metric of
    `jaxmetrics.streaming.table`. reset() forgets all items. update ignores other keywords, as a
    `flax.nnx.MultiMetric` passes them to all its metrics.

    Args:
      metric: any that takes a ScoreTable, such as
        functools.partial(jm.recall_at_fpr, max_fpr=0.01).
      bins: the bins that count the scores; `float16_bins()` by default.
      weighted: whether items have weights.

    Returns:
      The metric, whose state is one `flax.nnx.metrics.MetricState`.

    Raises:
      ImportError: flax is not installed.
      TypeError: metric is not a metric of score tables, or `weighted` is not a bool.

    NaN where the metric is undefined, or an item has no score. Time and memory are those of
    `jaxmetrics.streaming.update`.

    Example:
      >>> import jaxmetrics as jm
      >>> auc = jm.streaming.nnx_metric(jm.roc_auc)
      >>> auc.update(scores=[0.1, 0.4, 0.35, 0.8], labels=[0, 0, 1, 1])
      >>> print(auc.compute())
      0.75

    Reference: J. Heek and others, "Flax: a neural network library and ecosystem for JAX", 2024.
    """
    checks.check_flag("weighted", weighted)
    choose(metric)  # refuses a wrong metric now, not after the stream has been read
    return _nnx_class()(metric, float16_bins() if bins is None else bins, weighted)


@functools.cache
def _nnx_class() -> Any:
    from flax import nnx

    class StreamMetric(nnx.Metric):
        """A metric of the items that `update` has seen."""

        def __init__(self, metric: _Metric, bins: Bins, weighted: bool) -> None:
            self.metric, self.bins, self.weighted = metric, bins, weighted
            self.digits = nnx.metrics.MetricState(init(bins, weighted=weighted).digits)

        def reset(self) -> None:
            """Forget all items."""
            self.digits[...] = init(self.bins, weighted=self.weighted).digits

        def update(  # type: ignore[override]
            self, *, scores: Any, labels: Any, weights: Any = None, where: Any = None, **_: Any
        ) -> None:
            """Add a batch of items."""
            # A copy, as `update` donates its buffer and flax still reads the old array.
            state = State(jnp.copy(self.digits[...]))
            state = update(state, scores, labels, bins=self.bins, weights=weights, where=where)
            self.digits[...] = state.digits

        def compute(self) -> Any:
            """The metric of all items so far."""
            return self.metric(table(State(self.digits[...]), bins=self.bins))

    return StreamMetric


def _valid(mask: Any) -> Any:
    """A mask as bool; those of clu may be 0 and 1."""
    mask = checks.as_array("mask", mask)
    if mask.dtype == bool:
        return mask
    other = (mask != 0) & (mask != 1)
    if is_concrete(mask) and np.any(other):
        given = np.asarray(mask)[np.asarray(other)][0]
        raise ValueError(f"mask must be 0 and 1, got {given}: other numbers are sample_weights")
    return mask == 1


@takes_metric
def clu_metric(metric: _Metric, *, bins: Bins | None = None, weighted: bool = False) -> Any:
    """A metric of a stream as a class with the protocol of `clu.metrics` and metrax.

    empty() and from_model_output(predictions, labels, sample_weights=None, mask=None) return an
    instance. merge(other) and reduce() merge instances. compute() returns the metric of
    `jaxmetrics.streaming.table`.

    Args:
      metric: any that takes a ScoreTable, such as
        functools.partial(jm.recall_at_fpr, max_fpr=0.01).
      bins: the bins that count the scores; `float16_bins()` by default.
      weighted: whether items have weights.

    Returns:
      A subclass of `clu.metrics.Metric`, whose instances are pytrees of one array.

    Raises:
      ImportError: clu is not installed.
      TypeError: metric is not a metric of score tables, or `weighted` is not a bool.

    NaN where the metric is undefined, or an item has no score. Time and memory are those of
    `jaxmetrics.streaming.update`.

    Example:
      >>> import jaxmetrics as jm
      >>> AUC = jm.streaming.clu_metric(jm.roc_auc)
      >>> first = AUC.from_model_output(predictions=[0.1, 0.4], labels=[0, 0])
      >>> second = AUC.from_model_output(predictions=[0.35, 0.8], labels=[1, 1])
      >>> print(first.merge(second).compute())
      0.75

    Reference: The CLU authors, "Common loop utils", 2024.
    """
    checks.check_flag("weighted", weighted)
    choose(metric)  # refuses a wrong metric now, not after the stream has been read
    import flax.struct
    from clu import metrics

    chosen = float16_bins() if bins is None else bins

    @flax.struct.dataclass
    class StreamMetric(metrics.Metric):  # type: ignore[misc]
        """A metric of the items of all model outputs that were merged."""

        digits: Array

        @classmethod
        def empty(cls) -> Any:
            """The metric of no items."""
            return cls(digits=init(chosen, weighted=weighted).digits)

        @classmethod
        def from_model_output(
            cls,
            predictions: Any,
            labels: Any,
            sample_weights: Any = None,
            mask: Any = None,
            **_: Any,
        ) -> Any:
            """The metric of one batch."""
            state = update(
                init(chosen, weighted=weighted),
                predictions,
                labels,
                bins=chosen,
                weights=sample_weights,
                where=None if mask is None else _valid(mask),
            )
            return cls(digits=state.digits)

        def merge(self, other: Any) -> Any:
            """The metric of the items of both."""
            return type(self)(digits=merge(State(self.digits), State(other.digits)).digits)

        def compute(self) -> Any:
            """The metric of all items."""
            return metric(table(State(self.digits), bins=chosen))

    return StreamMetric
