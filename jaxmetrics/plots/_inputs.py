"""Inputs of plots: models, their names, and the values of each."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Any, TypeVar

import numpy as np

import jaxmetrics as jm
from jaxmetrics._base import checks
from jaxmetrics._base.frames import names_in
from jaxmetrics._base.results import Caption, Result
from jaxmetrics._base.types import ArrayLike
from jaxmetrics._base.words import decimals_of_metric, fixed, with_limits
from jaxmetrics.plots._names import short_names

Curve = TypeVar("Curve", jm.RocCurve, jm.PrecisionRecallCurve, jm.DetCurve, jm.CostCurve)

FURTHEST = 1e300  # the furthest score on an axis: lengths beyond it overflow


def models(
    scores: ArrayLike,
    names: Sequence[str] | None,
    items: dict[str, ArrayLike | None],
    shape: str = "[n]",
) -> tuple[Any, Sequence[str]]:
    """Scores `[models, *shape]`, and the models' names, which may be empty.

    `items` are the other arrays of the items by name, whose pandas indexes must be the same.
    """
    checks.check_alignment({"scores": scores, **items})
    array = checks.items_last("scores", scores)
    axes = shape.count(",") + 1
    if array.ndim not in (axes, axes + 1):
        raise ValueError(
            f"scores must be {shape} or [models, {shape[1:]}, got {list(array.shape)}: "
            f"write scores.reshape(-1, *scores.shape[-{axes}:])"
        )
    array = array[None] if array.ndim == axes else array
    return array, names_of("model", names_in(scores) if names is None else names, len(array))


def models_or_table(
    scores: ArrayLike | jm.ScoreTable,
    names: Sequence[str] | None,
    items: dict[str, ArrayLike | None],
) -> tuple[Any, Sequence[str]]:
    """Scores `[models, n]` or a table `[models, rows]`, and the models' names."""
    if not isinstance(scores, jm.ScoreTable):
        return models(scores, names, items)
    shape = np.broadcast_shapes(*(np.shape(x) for x in scores))
    if len(shape) not in (1, 2):
        raise ValueError(f"a ScoreTable must be [rows] or [models, rows], got {list(shape)}")
    columns: list[Any] = [np.atleast_2d(np.broadcast_to(x, shape)) for x in scores]
    return jm.ScoreTable(*columns), names_of("model", names, len(columns[0]))


def names_carried(result: Result, n_models: int) -> list[str] | None:
    """The names that a result carries for its models, or else for the values of an option."""
    known = result._caption.names
    names = [str(x) for x in known.get("model", known.get("group", ()))]
    for option in known.get("option", ()) if len(names) != n_models else ():
        names = [x if isinstance(x, str) else f"{option}={x:g}" for x in known[str(option)]]
    return names if len(names) == n_models else None


def origin_carried(result: Result, names: Sequence[str]) -> str:
    """The name of the reference that the differences of a result are from."""
    known = result._caption.names
    references = [names[i] for i in known.get("reference", ())]
    return next((str(x) for x in (*references, *known.get("value", ())) if x), "the reference")


def metric_carried(result: Result) -> str | None:
    """The metric of a result, in words."""
    metric = result._caption.metric
    return None if metric == Caption().metric else metric


def names_of(kind: str, names: Sequence[str] | None, n: int) -> Sequence[str]:
    """The names of n things of a kind, shortened; by default numbers, or "" for a single thing.

    A formula between dollars stays whole, because a part of it cannot be drawn. Other dollars are
    escaped, because two of them in one text would be a formula.
    """
    from matplotlib import rcParams

    if names is None:
        return [""] if n == 1 else [f"{kind} {i}" for i in range(n)]
    if isinstance(names, str) or not isinstance(names, Sized) or len(names) != n:
        raise ValueError(
            f"names must have one name a {kind}, {n} in all, got {checks.brief(names)}"
        )
    names = [str(name) for name in names]  # such as years
    if not rcParams["text.parse_math"]:
        return short_names(names)
    formulas = [_is_formula(name) for name in names]
    kept = names if any(formulas) else short_names(names)
    return [
        name if formula else name.replace("$", r"\$")
        for name, formula in zip(kept, formulas, strict=True)
    ]


def _is_formula(name: str) -> bool:
    """Whether Matplotlib draws a formula for this name."""
    from matplotlib.cbook import is_math_text
    from matplotlib.mathtext import MathTextParser

    if not is_math_text(name):
        return False
    try:
        MathTextParser("path").parse(name)
    except ValueError:
        return False
    return True


_APART = 1e-3  # of an area and the estimate of its interval
_MAKER = {
    "band": "jm.roc_band(scores, labels)",
    "interval": "jm.confidence_interval(metric, scores, labels)",
}


def rows(
    name: str, result: Any, fields: Sequence[str], names: Sequence[str], ndim: int
) -> list[tuple[Any, ...]]:
    """For each model, its rows of the fields `[models, ...]`; one model needs no axis of models.

    `ndim` is the number of axes after that of models.
    """
    if not all(hasattr(result, field) for field in fields):
        raise TypeError(
            f"{name} must be a result with limits, got {checks.brief(result)}: pass "
            f"{name}={_MAKER[name]}"
        )
    found = [np.asarray(getattr(result, field)) for field in fields]
    found = [row[None] if row.ndim == ndim else row for row in found]
    for row in found:
        if row.ndim != ndim + 1 or len(row) != len(names):
            raise ValueError(
                f"{name} must be of {len(names)} models, as scores are, got {list(row.shape)}: "
                "compute it from the same scores"
            )
    return list(zip(*found, strict=True))


def areas_in_words(
    what: str, areas: Any, interval: jm.Interval | None, names: Sequence[str], *, of_items: bool
) -> list[str]:
    """The area of each model, with its limits if there is an interval, which must be of it.

    Without items there is a table, such as that of a stream, whose interval has an estimate within
    bounds.
    """
    areas = np.asarray(areas)
    if interval is None:
        return [fixed(area) for area in areas]
    found = rows("interval", interval, ("estimate", "low", "high"), names, 0)
    for area, (estimate, *_) in zip(areas, found, strict=True):
        if of_items and abs(estimate - area) > _APART:
            scale = ' and scale="mcclish"' if "partial" in what else ""
            raise ValueError(
                f"interval must be of the {what} that is drawn, which is {area:.3f}, got one of "
                f"{estimate:.3f}: compute it of this metric, with the same scores{scale}"
            )
    digits = decimals_of_metric(np.array([high - low for _, low, high in found]))
    return [with_limits(*of_model, digits=digits) for of_model in found]


def check_rows(n: int, names: Sequence[str]) -> None:
    """Refuse labels, weights or where of more models than scores have."""
    if n != len(names):
        raise ValueError(
            f"scores must have a row for each model of labels, weights and where, got {len(names)} "
            f"for {n}: write jnp.broadcast_to(scores, ({n}, scores.shape[-1]))"
        )


def each(curves: Curve, names: Sequence[str]) -> list[Curve]:
    """The curves `[models, points]` one by one, without points that do not change a plot."""
    by_model = list(zip(*(np.asarray(x) for x in curves), strict=True))
    check_rows(len(by_model), names)
    return [jm.drop_intermediate(type(curves)(*row)) for row in by_model]
