"""Detection error trade-off curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

import jaxmetrics as jm
from jaxmetrics._base.double import double_precision
from jaxmetrics._base.types import ArrayLike, FloatArray, HostArray
from jaxmetrics._base.words import fixed, number
from jaxmetrics.plots._inputs import each, models_or_table
from jaxmetrics.plots._style import (
    GREY,
    StyleName,
    axes_of,
    draw_line,
    finish_axes,
    height_for,
    lines,
    style_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

# Rates that may have a tick, in the order of preference.
TICKS: tuple[float, ...] = (0.5, 0.05, 0.2, 0.8, 0.95, 0.01, 0.99, 0.001, 0.999, 1e-4, 1e-5, 1e-6)
TICKS += (0.1, 0.9, 0.02, 0.98, 0.3, 0.7, 0.4, 0.6, 0.005, 0.002)
APART = 0.11  # least distance of two ticks, as a share of the axis
# Rates are clipped to this distance from 0 and 1, whose deviates are infinite.
CLOSEST = 1e-12


@double_precision()  # thresholds are then exact
def det(
    scores: ArrayLike | jm.ScoreTable,
    labels: ArrayLike | None = None,
    *,
    names: Sequence[str] | None = None,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    style: StyleName = "colour",
    ax: Axes | None = None,
) -> Axes:
    """DET curves: false negative against false positive rates, on normal-deviate scales.

    Draws a line for each model, and the line of chance. Scores that are normally distributed in
    each class give a straight line. The legend has the equal error rate, at which both rates are
    equal. The axes are in rates: `ax.set(xlim=(0.001, 0.1))` enlarges a part.

    Of more than 8 models, the first 7 are in colour and the others grey, without names.

    Args:
      scores: `[n]`, or `[models, n]` for a line each; higher is more positive. Or a ScoreTable
        `[rows]` or `[models, rows]`, which replaces labels, weights and where.
      labels: `[n]` or `[models, n]`, bool or 0 and 1.
      names: one name for each model, for the legend.
      weights: as labels, not negative.
      where: as labels, bool, False for items to leave out.
      style: "colour", or "print" for greys, dashes and marks that a journal can print.
      ax: the Axes to draw into; by default those of a new pyplot figure.

    Returns:
      The Axes. They begin near the lowest rate above 0, so a line leaves them where a rate is 0. A
      model whose curve is NaN is not drawn.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; a ScoreTable comes
        with labels, weights or where, or `names` does not have one name for each model.

    Example:
      >>> from jaxmetrics import plots
      >>> ax = plots.det([.1, .4, .35, .8], [0, 0, 1, 1], names=["model"])
      >>> print(ax.get_legend_handles_labels()[1])
      ['model, EER 0.500', 'chance']

    Reference: A. Martin et al., "The DET curve in assessment of detection task performance",
    Eurospeech 1997.
    """
    looks = style_of(style, ax)
    items = {"labels": labels, "weights": weights, "where": where}
    scores, names = models_or_table(scores, names, items)
    curves = each(jm.det_curve(scores, **items), names)
    ax = axes_of(ax, height_for(names))
    ax.set_xscale("function", functions=(_deviate, _rate))
    ax.set_yscale("function", functions=(_deviate, _rate))
    # Interpolated linearly in rates, in which the ROC curve is linear between its points.
    equal = [np.interp(0, curve.fnr - curve.fpr, curve.fpr) for curve in curves]
    shown = lines(names, [f"EER {fixed(rate)}" for rate in equal], looks)
    for curve, line in zip(curves, shown, strict=True):
        draw_line(ax, *_joined(curve), **line)
    ends = np.array([CLOSEST, 1 - CLOSEST])
    ax.plot(ends, ends[::-1], color=GREY, linewidth=1, label="chance")
    # Points where a rate is 0 or 1 are at infinity and would widen the axes.
    rates = np.concatenate([np.stack([curve.fpr, curve.fnr]) for curve in curves], axis=1)
    inside = rates[:, np.all((rates > 0) & (rates < 1), axis=0)].astype(np.float64)
    ax.set(xlim=_axis_limits(inside[0]), ylim=_axis_limits(inside[1]))
    _set_ticks(ax.xaxis, ax.get_xlim())
    _set_ticks(ax.yaxis, ax.get_ylim())
    ax.set(xlabel="False positive rate", ylabel="False negative rate")
    return finish_axes(ax, within="upper right")


def _deviate(rate: HostArray) -> HostArray:
    from scipy.special import ndtri  # JAX installs SciPy

    return ndtri(np.clip(rate, CLOSEST, 1 - CLOSEST))


def _rate(deviate: HostArray) -> HostArray:
    from scipy.special import ndtr

    return ndtr(deviate)


def _joined(curve: jm.DetCurve) -> FloatArray:
    """The curve `[2, points]`, with more points where ties make both rates jump.

    A line that is straight in rates is not straight in their deviates.
    """
    rates = np.stack([curve.fpr, curve.fnr]).astype(np.float64)
    far = np.all(np.abs(np.diff(_deviate(rates))) > 0.1, axis=0)
    between = _rate(np.linspace(-7, 7, 99))
    index = np.arange(rates.shape[1])
    at = np.sort(np.concatenate([index, np.add.outer(np.flatnonzero(far), between).ravel()]))
    return np.stack([np.interp(at, index, x) for x in rates])


def _axis_limits(rates: FloatArray) -> tuple[float, float]:
    """From the lowest rate, at most 0.05, to the highest, at least 0.6, with a little room."""
    ends = np.array([rates.min(initial=0.05), rates.max(initial=0.6)])
    low, high = _rate(_deviate(np.clip(ends, 1e-6, 1 - 1e-6)) + np.array([-0.1, 0.1])).tolist()
    return low, high


def _set_ticks(axis: Axis, limits: tuple[float, float]) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    low, high = _deviate(np.array(limits))
    ticks: list[float] = []
    for rate, deviate in zip(TICKS, _deviate(np.array(TICKS)), strict=True):
        gap = np.abs(deviate - _deviate(np.array(ticks))).min(initial=np.inf)
        if low <= deviate <= high and gap > APART * (high - low):
            ticks.append(rate)
    axis.set_major_locator(FixedLocator(sorted(ticks)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda rate, _: number(rate)))
