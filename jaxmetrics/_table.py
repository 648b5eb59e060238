"""ScoreTable, the one type between inputs and answers, and how a metric is evaluated on it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Concatenate, NamedTuple, TypeVar, overload

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics import _checks, _numerics, _sorting
from jaxmetrics._types import Array, ArrayLike, Items, P, TableMetric

R = TypeVar("R")


class ScoreTable(NamedTuple):
    """Rows in order of descending score, with the weight of each class in them.

    Attributes:
      thresholds: `[..., rows]`, the score of a row, descending. Items that tie are one row. NaN
        throughout where the data are undefined (NaN in a valid score, or no valid item).
      positives: `[..., rows]`, the total weight of the positives whose score is the threshold;
        their number, an integer, where there are no weights.
      negatives: `[..., rows]`, the same of the negatives.

    The number of rows is the number of items, and at least one. Rows that are left over, because
    items tie or are masked, hold no weight and repeat a neighbour's threshold. The sums of the
    leading rows are the counts of true and of false positives at `score >= threshold`.
    """

    thresholds: Array
    positives: Array
    negatives: Array


def score_table(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> ScoreTable:
    """The score table of scores and labels: one sort, from which every metric follows.

    Row r holds `positives[r]`, the sum of w_i over positives i with s_i = `thresholds[r]`, and
    `negatives[r]` likewise; thresholds descend.

    Args:
      scores: `[..., n]`, higher is more positive; any real dtype.
      labels: `[..., n]`, bool or 0 and 1.
      weights: `[..., n]`, not negative. An item of weight k counts as k items.
      where: `[..., n]` bool, False for items to leave out; whatever they hold, it has no effect.

    Returns:
      A ScoreTable `[..., n]` with the leading axes broadcast; integer counts without weights.

    Raises:
      TypeError, ValueError: an input is not what it should be, or shapes do not fit.

    A row of a batch that holds NaN in a valid score, or no valid item, has NaN thresholds and no
    weight. Time O(n log n), memory O(n).

    Example:
      >>> import jaxmetrics as jm
      >>> table = jm.score_table([.45, .4, .35, .35, .8], [1, 0, 1, 0, 1])
      >>> print(table.positives, table.negatives)
      [1 1 0 1 0] [0 0 1 1 0]

    Reference: T. Fawcett, "An introduction to ROC analysis", Pattern Recognition Letters 27, 2006.
    """
    items = _prepared(_checks.check_items(scores, labels, weights, where))
    dtype = _numerics.default_float()
    with _numerics.double_precision():
        table: ScoreTable = _score_table(items, dtype)
    return table


@functools.partial(jax.jit, static_argnums=1)
def _score_table(items: Items, dtype: Any) -> ScoreTable:
    def build(*leaves: Any) -> ScoreTable:
        table, undefined = _build(jax.tree.unflatten(tree, leaves))
        thresholds = jnp.where(undefined[..., None], jnp.nan, table.thresholds)
        thresholds = jnp.broadcast_to(thresholds, table.positives.shape)
        columns = (thresholds, table.positives, table.negatives)
        return ScoreTable(*(x.astype(dtype) if _numerics.is_inexact(x) else x for x in columns))

    leaves, tree = jax.tree.flatten(items)
    table: ScoreTable = _numerics.in_double(build)(*leaves)
    return table


def _build(items: Items) -> tuple[ScoreTable, Array]:
    """The table, and `[...]` whether it is undefined. Trace in double precision."""
    items = jax.tree.map(jnp.asarray, items)
    keys, payload = _in_order(items) if items.in_order is None else items.in_order
    nan = _numerics.is_nan(items.scores)
    if _labels_ride(items):
        positives, negatives = (payload == 1).astype(jnp.int32), (payload == 2).astype(jnp.int32)
        undefined = jnp.any(nan if items.where is None else nan & items.where, axis=-1)
    else:
        # Sorting depends on the scores alone, so a batch of labels or weights shares one order.
        positives, negatives = class_weights(items)
        undefined = jnp.any(nan & (positives + negatives > 0), axis=-1)
        nan = _sorting.take(nan, payload)
        positives = jnp.where(nan, 0, _sorting.take(positives, payload))
        negatives = jnp.where(nan, 0, _sorting.take(negatives, payload))

    first = jnp.ones_like(keys[..., :1], bool)
    starts = jnp.concatenate([first, keys[..., 1:] != keys[..., :-1]], axis=-1)
    rows = jnp.cumsum(starts, axis=-1, dtype=jnp.int32) - 1
    thresholds = _sorting.scores_of_keys(keys, items.scores)
    thresholds = _at_rows(thresholds, rows, "max", -jnp.inf)
    positives, negatives = _at_rows(positives, rows, "add", 0), _at_rows(negatives, rows, "add", 0)

    weighty = positives + negatives > 0
    undefined |= ~jnp.any(weighty, axis=-1) | not_allowed(items)
    thresholds = jnp.where(weighty, thresholds, -jnp.inf)
    highest = jnp.max(thresholds, axis=-1, keepdims=True)
    thresholds = _numerics.running_minimum(jnp.where(weighty, thresholds, highest))
    return ScoreTable(thresholds, positives, negatives), undefined


def not_allowed(items: Items) -> Array:
    """Whether labels or weights are what an eager call refuses; traced, they make it undefined."""
    refused = jnp.zeros(items.labels.shape, bool)
    if items.labels.dtype != bool:
        refused = (items.labels != 0) & (items.labels != 1)
    if items.weights is not None:
        refused = refused | ~((items.weights >= 0) & (items.weights < jnp.inf))
    return jnp.any(refused if items.where is None else refused & items.where, axis=-1)


def _labels_ride(items: Items) -> bool:
    """Whether the class can be sorted along with the key, so that nothing need be gathered."""
    if items.weights is not None or items.amounts is not None:
        return False
    shapes = [x.shape for x in (items.labels, items.where, items.scores) if x is not None]
    return np.broadcast_shapes(*shapes) == items.scores.shape


def _in_order(items: Items) -> tuple[Any, Any]:
    """Keys in order, and along with each its class or the index of its item."""
    scores, labels, where = items.scores, items.labels, items.where
    library = _numerics.namespace(scores)
    if _labels_ride(items):
        valid = ~_numerics.is_nan(scores) if where is None else ~_numerics.is_nan(scores) & where
        payload = (2 - (labels == 1).astype(np.uint32)) * valid.astype(np.uint32)
    else:
        payload = library.arange(scores.shape[-1], dtype=np.uint32)
    keys = _sorting.descending_keys(scores)
    return _sorting.sort_by_key(keys, library.broadcast_to(payload, keys.shape))


def _prepared(items: Items) -> Items:
    """With at least one item; and in order, where the CPU has the data at hand to do it now."""
    items = at_least_one(items)
    host = at_hand(items)
    ride = _labels_ride(items)
    needed = (host.scores, host.labels, host.where) if ride else (host.scores,)
    return items._replace(in_order=_in_order(host)) if on_host(*needed) else items


def at_least_one(items: Items) -> Items:
    """No items are the same as one that is masked, which spares every reduction a case."""
    if items.scores.shape[-1]:
        return items
    one = items._replace(where=np.zeros(1, bool) if items.where is None else items.where)
    zeros: list[Any] = [x if x is None else np.zeros((*x.shape[:-1], 1), x.dtype) for x in one]
    return Items(*zeros)


def one_id_at_least(ids: Any) -> Any:
    """The ids that go with items of `at_least_one`."""
    if ids is None or ids.shape[-1]:
        return ids
    return np.zeros((*ids.shape[:-1], 1), np.int32)


def at_hand(items: Items) -> Items:
    """With NumPy's arrays, not copied, of those in the memory of the CPU that computes."""
    compiling = not _checks.is_concrete(jnp.zeros(()))
    if compiling or jax.default_backend() != "cpu":
        return items  # as they would become constants of the program, or be sent to a device
    return Items(*map(_on_host, items))


def on_host(*arrays: Any) -> bool:
    """Whether NumPy is to sort: it is allowed to work now, and all arrays are its own."""
    ready = _checks.is_concrete(jnp.zeros(())) and jax.default_backend() == "cpu"
    return ready and all(x is None or isinstance(x, np.ndarray) for x in arrays)


def _on_host(array: Any) -> Any:
    """As NumPy's, without a copy, if it lies in this process's memory; else as it is."""
    if isinstance(array, jax.Array) and _checks.is_concrete(array):
        device, *others = array.devices()
        if device.platform == "cpu" and not others:
            return np.asarray(array)
    return array


def class_weights(items: Items) -> tuple[Array, Array]:
    """What each item adds to the positives and to the negatives; 0 where it is masked."""
    _, labels, weights, where, amounts, _ = items
    counted = weights is None and amounts is None
    valid = jnp.array(True) if where is None else where
    weight = jnp.where(valid, 1 if weights is None else weights, 0)
    weight = weight.astype(jnp.int32 if counted else jnp.float64)
    positive, negative = (labels == 1) & valid, (labels != 1) & valid
    amount = 1 if amounts is None else jnp.where(positive, amounts, 0)
    return jnp.where(positive, weight * amount, 0), jnp.where(negative, weight, 0)


def _at_rows(values: Array, rows: Array, operation: str, start: float) -> Array:
    """Items in sorted order gathered into their rows; `rows` ascends along the last axis."""

    def scatter(values: Array, rows: Array) -> Array:
        at = jnp.full_like(values, start).at[rows]
        result: Array = getattr(at, operation)(
            values, indices_are_sorted=True, mode="promise_in_bounds"
        )
        return result

    scattered: Array = jnp.vectorize(scatter, signature="(n),(n)->(n)")(values, rows)
    return scattered


def evaluate(function: Callable[..., Any], source: Items | ScoreTable, **options: Any) -> Any:
    """`function(table, **options)` for each table of a batch, compiled, in double precision.

    `function` sees one ScoreTable `[rows]`, of integer counts where there are no weights; results
    are in JAX's default float, and NaN where the table is undefined. Options that are arrays are
    traced, others are static.
    """
    static, arrays = static_options(options)
    dtype = _numerics.default_float()
    if isinstance(source, Items):
        source = _prepared(source)
    with _numerics.double_precision():
        return _evaluate((source, arrays), function, static, dtype)


def static_options(
    options: dict[str, Any],
) -> tuple[tuple[tuple[str, Any], ...], dict[str, Any]]:
    """The options that are compile-time constants, hashable, and those that are arrays."""
    arrays = {k: v for k, v in options.items() if isinstance(v, (jax.Array, np.ndarray))}
    static = tuple(sorted((k, v) for k, v in options.items() if k not in arrays))
    for name, option in static:
        if not isinstance(option, Hashable):
            raise TypeError(
                f"option {name} must be an array or a constant, got {option!r}: "
                "write numpy.asarray(...) or a tuple"
            )
    return static, arrays


@functools.partial(jax.jit, static_argnums=(1, 2, 3))
def _evaluate(
    arrays: tuple[Items | ScoreTable, dict[str, Any]],
    function: Callable[..., Any],
    static: tuple[tuple[str, Any], ...],
    dtype: Any,
) -> Any:
    leaves, tree = jax.tree.flatten(arrays)

    def compute(*leaves: Any) -> Any:
        source, options = jax.tree.unflatten(tree, leaves)
        table, undefined = _build(source) if isinstance(source, Items) else _given(source)

        def of_one(table: ScoreTable, undefined: Array) -> Any:
            value = function(table, **options, **dict(static))
            return jax.tree.map(
                lambda x: jnp.where(undefined, jnp.nan, jnp.asarray(x, jnp.float64)), value
            )

        batch = table.positives.shape[:-1]
        table = ScoreTable(*(jnp.broadcast_to(x, table.positives.shape) for x in table))
        undefined = jnp.broadcast_to(undefined, batch)
        values = _numerics.over_batch(of_one, len(batch))(table, undefined)
        return jax.tree.map(lambda x: x.astype(dtype), values)

    return _numerics.in_double(compute)(*leaves)


def _given(table: ScoreTable) -> tuple[ScoreTable, Array]:
    thresholds, *counts = (jnp.asarray(x) for x in table)
    if not thresholds.shape[-1]:
        thresholds = jnp.full((*thresholds.shape[:-1], 1), jnp.nan)
        counts = [jnp.zeros((*x.shape[:-1], 1), x.dtype) for x in counts]
    counts = [x.astype(jnp.float64 if _numerics.is_inexact(x) else jnp.int64) for x in counts]
    table = ScoreTable(thresholds.astype(jnp.float64), *counts)
    return table, jnp.isnan(table.thresholds[..., 0])


class Traits(NamedTuple):
    """What inference has to know of a metric.

    Attributes:
      public: the function as its author wrote it.
      smooth: whether the gradient with respect to weights is its influence function.
      of_roc_curve: whether it depends on the ROC curve alone, as a set of points.
      amounts: whether it takes amounts.
    """

    public: Callable[..., Any]
    smooth: bool = True
    of_roc_curve: bool = False
    amounts: bool = False


@dataclass(frozen=True)
class _OfDoubles:
    """A user's function of a table in float64, for whom sums and products of counts are safe.

    The library's own take integer counts as they come.
    """

    function: Callable[..., Any]

    def __call__(self, table: ScoreTable, **options: Any) -> Any:
        return self.function(ScoreTable(*(x.astype(jnp.float64) for x in table)), **options)


@overload
def table_metric(
    function: Callable[Concatenate[ScoreTable, P], R],
    *,
    check: Callable[[dict[str, Any]], dict[str, Any]] = ...,
    amounts: bool = ...,
    of_roc_curve: bool = ...,
) -> TableMetric[P, R]: ...


@overload
def table_metric(
    *,
    check: Callable[[dict[str, Any]], dict[str, Any]] = ...,
    amounts: bool = ...,
    of_roc_curve: bool = ...,
) -> Callable[[Callable[Concatenate[ScoreTable, P], R]], TableMetric[P, R]]: ...


def table_metric(
    function: Any = None,
    *,
    check: Callable[[dict[str, Any]], dict[str, Any]] = dict,
    amounts: bool = False,
    of_roc_curve: bool = False,
) -> Any:
    """Make a function of one ScoreTable into a metric like the library's own.

    The result takes `(scores, labels, *, weights=None, where=None, **options)` or one ScoreTable,
    with any leading axes as a batch, and is compiled once a shape. `function` is given one table
    `[rows]`, in double precision whatever the x64 mode, and returns an array or a pytree of them.

    Args:
      function: `function(table, *, option=default, ...)`. Options are keyword-only; those that
        are arrays are traced, others are compile-time constants.
      check: called with the options before any work, returns those to use; raises what is wrong.
      amounts: also accept `amounts=` `[..., n]`, by which the positives' weights are multiplied.
      of_roc_curve: whether the value depends on the ROC curve alone, drawn with straight lines
        between its points: neither on thresholds nor on how many rows a straight part has. Its
        bootstrap is then faster, as neighbouring rows of one class are drawn as one.

    Returns:
      The metric. It works under `jit`, `vmap` and, with respect to weights, reverse-mode `grad`.

    Raises:
      TypeError: the metric is given an option that `function` does not have.

    The value is NaN where a valid score is NaN or no item is valid. Time O(n log n) and memory O(n)
    for the table, and what `function` takes.

    Example:
      >>> import jax.numpy as jnp
      >>> import jaxmetrics as jm
      >>> @jm.table_metric
      ... def youden(table):
      ...     '''The largest vertical distance of the ROC curve from the diagonal.'''
      ...     tpr = jnp.cumsum(table.positives) / jnp.sum(table.positives)
      ...     fpr = jnp.cumsum(table.negatives) / jnp.sum(table.negatives)
      ...     return jnp.max(tpr - fpr)
      >>> print(youden([.1, .4, .35, .8], [0, 0, 1, 1]))
      0.5

    Reference: W. J. Youden, "Index for rating diagnostic tests", Cancer 3, 1950.
    """
    if function is None:
        return functools.partial(
            table_metric, check=check, amounts=amounts, of_roc_curve=of_roc_curve
        )
    traits = Traits(function, True, of_roc_curve, amounts)
    return _metric(function, _OfDoubles(function), check, traits)


def library_metric(
    function: Callable[Concatenate[ScoreTable, P], R],
    *,
    amounts: bool = False,
    smooth: bool = False,
    of_roc_curve: bool = False,
) -> TableMetric[P, R]:
    """`table_metric` for the library's own: options are checked, and counts stay integers."""
    traits = Traits(function, smooth, of_roc_curve, amounts)
    metric: TableMetric[P, R] = _metric(function, function, _checks.check_options, traits)
    return metric


def _metric(
    function: Callable[..., Any],
    evaluated: Callable[..., Any],
    check: Callable[[dict[str, Any]], dict[str, Any]],
    traits: Traits,
) -> Any:
    amounts = traits.amounts
    options = list(inspect.signature(function).parameters.values())[1:]
    if any(option.kind is not option.KEYWORD_ONLY for option in options):
        raise TypeError(
            f"the options of {function.__name__} must be keyword-only: "
            f"write def {function.__name__}(table, *, option=...)"
        )
    names = {option.name for option in options}
    taken = names & {"scores", "labels", "weights", "where", "amounts"}
    if taken:
        raise TypeError(f"{function.__name__} may not call an option {', '.join(sorted(taken))}")
    defaults = {o.name: o.default for o in options if o.default is not o.empty}

    def settings(given: dict[str, Any]) -> dict[str, Any]:
        unknown, missing = given.keys() - names, names - defaults.keys() - given.keys()
        if unknown or missing:
            listed = ", ".join(sorted(unknown or missing))
            raise TypeError(
                f"{function.__name__} {'has no option' if unknown else 'needs'} {listed}; "
                f"it is called as {function.__name__}{inspect.signature(metric)}"
            )
        return check({**defaults, **given})

    @functools.wraps(function)
    def metric(
        scores: ArrayLike | ScoreTable,
        labels: ArrayLike = None,
        *,
        weights: ArrayLike = None,
        where: ArrayLike = None,
        **given: Any,
    ) -> Any:
        per_item = (weights, where, given.pop("amounts", None) if amounts else None)
        chosen = settings(given)
        if not isinstance(scores, ScoreTable):
            return evaluate(evaluated, _checks.check_items(scores, labels, *per_item), **chosen)
        if any(x is not None for x in (labels, *per_item)):
            raise TypeError(
                "a ScoreTable already holds labels and weights: pass it alone, "
                "or build it with score_table(scores, labels, weights=..., where=...)"
            )
        return evaluate(evaluated, scores, **chosen)

    public: Any = metric
    public.table_function, public.settings, public.traits = evaluated, settings, traits
    public.__signature__ = _signature(options, amounts)
    return public


def _signature(options: list[inspect.Parameter], amounts: bool) -> inspect.Signature:
    positional, keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    per_item = ("weights", "where", "amounts") if amounts else ("weights", "where")
    return inspect.Signature(
        [
            inspect.Parameter("scores", positional),
            inspect.Parameter("labels", positional, default=None),
            *(inspect.Parameter(name, keyword, default=None) for name in per_item),
            *options,
        ]
    )


def resolve(metric: Callable[..., Any]) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The function of a table, and its options, that a metric or a partial of one stands for.

    Partials are taken apart, so that two that say the same share one compiled program.
    """
    options: dict[str, Any] = {}
    while isinstance(metric, functools.partial):
        if metric.args:
            raise TypeError("fix options by keyword, as in functools.partial(metric, max_fpr=0.1)")
        options = {**metric.keywords, **options}
        metric = metric.func
    settings = getattr(metric, "settings", None)
    if settings is None:
        return _OfDoubles(metric), options
    return metric.table_function, settings(options)  # type: ignore[attr-defined]


def traits(metric: Callable[..., Any]) -> Traits:
    """The traits of a metric, of a partial of one, or of a plain function of a table."""
    while isinstance(metric, functools.partial):
        metric = metric.func
    found: Traits = getattr(metric, "traits", Traits(metric))
    return found
