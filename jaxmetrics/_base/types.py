"""Array aliases, the inputs of a metric as one value, and the protocol that a metric satisfies."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, Protocol, TypeAlias, TypeVar, overload

import jax
import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from jaxmetrics._roc.table import ScoreTable

Array: TypeAlias = jax.Array
# Inputs may be anything that holds numbers: JAX and NumPy arrays, lists, columns of pandas or
# polars, tensors with `__dlpack__`. `_checks.as_array` decides, so the static type stays open.
ArrayLike: TypeAlias = Any
HostArray: TypeAlias = npt.NDArray[Any]
HostOrDeviceArray: TypeAlias = jax.Array | HostArray
FloatArray: TypeAlias = npt.NDArray[np.float64]

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


class Items(NamedTuple):
    """The arrays that describe items, checked; `[..., n]` each, leading axes broadcast."""

    scores: HostOrDeviceArray
    labels: HostOrDeviceArray
    weights: HostOrDeviceArray | None = None
    where: HostOrDeviceArray | None = None
    amounts: HostOrDeviceArray | None = None
    # `(keys, payload)` of `_table._in_order`, where that was done before tracing.
    in_order: Any = None


class TableMetric(Protocol[P, R_co]):
    """A metric of the ROC family: takes one ScoreTable, or scores and labels."""

    @property
    def table_function(self) -> Callable[..., R_co]:
        """The function of one unbatched ScoreTable that the metric evaluates."""

    @overload
    def __call__(self, table: ScoreTable, /, *args: P.args, **options: P.kwargs) -> R_co: ...

    # A ParamSpec cannot be joined with keywords, so that options beside weights, a mask or amounts
    # are checked when the metric is called, not before.
    @overload
    def __call__(
        self, scores: ArrayLike, labels: ArrayLike, *args: P.args, **options: P.kwargs
    ) -> R_co: ...

    @overload
    def __call__(
        self,
        scores: ArrayLike,
        labels: ArrayLike,
        *,
        weights: ArrayLike,
        where: ArrayLike | None = None,
        **options: Any,
    ) -> R_co: ...

    @overload
    def __call__(
        self, scores: ArrayLike, labels: ArrayLike, *, where: ArrayLike, **options: Any
    ) -> R_co: ...

    @overload
    def __call__(
        self, scores: ArrayLike, labels: ArrayLike, *, amounts: ArrayLike, **options: Any
    ) -> R_co: ...


class ListMetric(Protocol[P]):
    """A metric of ranked lists: rows of documents, or segments of flat items."""

    @overload
    def __call__(
        self, scores: ArrayLike, labels: ArrayLike, *args: P.args, **options: P.kwargs
    ) -> Array: ...

    @overload
    def __call__(
        self,
        scores: ArrayLike,
        labels: ArrayLike,
        *,
        segments: ArrayLike,
        num_segments: int | None = None,
        where: ArrayLike | None = None,
        **options: Any,
    ) -> Array: ...

    @overload
    def __call__(
        self, scores: ArrayLike, labels: ArrayLike, *, where: ArrayLike, **options: Any
    ) -> Array: ...
