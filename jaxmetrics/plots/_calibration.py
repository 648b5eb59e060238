"""Calibration of scores that are meant as probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from jaxmetrics._base import checks
from jaxmetrics._base.double import double_program
from jaxmetrics._base.types import Array, ArrayLike, FloatArray
from jaxmetrics._base.words import fixed, percent_text
from jaxmetrics.inference._intervals import rules
from jaxmetrics.plots._inputs import check_rows, models
from jaxmetrics.plots._style import (
    GREY,
    Style,
    StyleName,
    axes_of,
    bars,
    draw_line,
    finish_axes,
    height_for,
    lines,
    n_distinct,
    style_of,
    tie,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HISTOGRAM_BINS = 40
_ABOVE = "scores of models"  # the label of the Axes of the histograms


class _Model(NamedTuple):
    """The valid items of a model, and the mean score and the share of positives in each bin.

    `draws` is the effective number of items in each bin, (sum w)^2 / sum w^2.
    """

    scores: FloatArray
    weights: FloatArray
    positive: float  # share of positives among all items
    mean: FloatArray
    share: FloatArray
    draws: FloatArray


def calibration(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    n_bins: int = 10,
    strategy: Literal["quantile", "uniform"] = "quantile",
    confidence_level: float = 0.95,
    weights: ArrayLike | None = None,
    where: ArrayLike | None = None,
    style: StyleName = "colour",
    ax: Axes | None = None,
) -> Axes:
    """Reliability diagram: the share of positives against the mean score, in bins of scores.

    Draws a line for each model, a point with Wilson's interval for each bin, and the diagonal of
    perfect calibration. A histogram of the scores is above the axes, and says what share of them is
    beyond the end of the axis. The legend has the mean score and the share of positives of all
    items. With weights, a bin's interval is that of its effective number of items,
    (sum w)^2 / sum w^2.

    Of more than 8 models, the first 7 are in colour and the others grey, without names.

    Args:
      scores: `[n]`, or `[models, n]` for a line each, in [0, 1].
      labels: `[n]` or `[models, n]`, bool or 0 and 1.
      names: one name for each model, for the legend.
      n_bins: how many bins; bins without items are not drawn.
      strategy: "quantile" for bins of equal weight, as far as ties allow, or "uniform" for bins of
        equal width.
      confidence_level: the level of the intervals, in (0, 1).
      weights: as labels, not negative.
      where: as labels, bool, False for items to leave out.
      style: "colour", or "print" for greys, dashes and marks that a journal can print.
      ax: the Axes to draw into; by default those of a new pyplot figure.

    Returns:
      The Axes, from 0 to the highest point or limit, or to 1 if that is 0.8 or more.
      `child_axes[0]` has the histogram. A model with NaN in a valid score is not drawn.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; a score is outside
        [0, 1], or `names` does not have one name for each model.

    Example:
      >>> from jaxmetrics import plots
      >>> ax = plots.calibration([.1, .4, .35, .8], [0, 0, 1, 1], n_bins=2)
      >>> print(ax.get_legend_handles_labels()[1])
      ['mean 0.412, observed 0.500', 'calibrated', '95 % interval']

    Reference: A. Niculescu-Mizil and R. Caruana, "Predicting good probabilities with supervised
    learning", ICML 2005.
    """
    looks = style_of(style, ax)
    checks.check_count("n_bins", n_bins)
    checks.check_fits("n_bins", n_bins, 4 * n_bins, "write n_bins=10")  # ends and three sums
    checks.check_choice("strategy", strategy, ("quantile", "uniform"))
    level = checks.check_level(confidence_level)
    scores, names = models(scores, names, {"labels": labels, "weights": weights, "where": where})
    found = _calibrated_models(scores, labels, weights, where, n_bins, strategy)
    check_rows(len(found), names)
    shares, draws = (np.stack([getattr(x, field) for x in found]) for field in ("share", "draws"))
    low, high = (np.asarray(x) for x in _wilson_limits(shares, draws, level))
    ax = axes_of(ax, height_for(names))
    drawn: list[list[Any]] = []
    for i, (model, line) in enumerate(zip(found, lines(names, _means(found), looks), strict=True)):
        held = ~np.isnan(model.share)
        x, y = model.mean[held], model.share[held]
        if i >= n_distinct(len(names)):
            draw_line(ax, x, y, **line)
            continue
        mark = {"marker": looks.marker(i), "markevery": None}
        limits = np.stack([low[i, held], high[i, held]])
        joined = draw_line(ax, x, y, **(line | mark))
        drawn.append([joined, *bars(ax, np.stack([x, x]), limits, looks.colour(i))])
    ends = [np.nanmax(x, initial=0) for x in (high, *(model.mean for model in found))]
    end = max(ends) if 0 < max(ends) < 0.8 else 1.0
    if looks.drawn:  # models of an earlier call stay within
        end = min(1.0, max(end, ax.get_xlim()[1] / 1.02))
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=1, label="calibrated")
    ax.plot([], [], "|", color=GREY, markersize=9, label=f"{percent_text(level)} interval")
    ax.set(xlim=(-0.02 * end, 1.02 * end), ylim=(-0.02 * end, 1.02 * end))
    ax.set(xlabel="Mean score", ylabel="Share of positives")
    for of_model, areas in zip(drawn, _draw_histogram(ax, found, end, looks), strict=True):
        tie(*of_model, *areas)
    return finish_axes(ax)


_MOST_DIGITS = 8


def _means(found: list[_Model]) -> list[str]:
    """The mean score and the share of positives of each model, as text."""
    means = [np.average(x.scores, weights=x.weights) if x.scores.size else np.nan for x in found]
    texts = []
    for mean, observed in zip(means, (x.positive for x in found), strict=True):
        least = min((x for x in np.abs([mean, observed]) if x > 0), default=1.0)
        digits = min(max(3, 1 - math.floor(math.log10(least))), _MOST_DIGITS)
        texts.append(f"mean {fixed(mean, digits)}, observed {fixed(observed, digits)}")
    return texts


def _calibrated_models(
    scores: ArrayLike,
    labels: ArrayLike,
    weights: ArrayLike | None,
    where: ArrayLike | None,
    n_bins: int,
    strategy: str,
) -> list[_Model]:
    items = checks.check_items(scores, labels, weights, where)
    ones = np.ones(1)
    given = (
        items.scores,
        items.labels,
        ones if items.weights is None else items.weights,
        ones if items.where is None else items.where,
    )
    arrays = np.broadcast_arrays(*(np.asarray(x).astype(np.float64) for x in given))
    found = []
    for score, label, weight, valid in zip(*arrays, strict=True):
        counts = (valid > 0) & (weight > 0)
        _check_probabilities(score[counts])
        found.append(_model(score[counts], label[counts], weight[counts], n_bins, strategy))
    return found


def _check_probabilities(scores: FloatArray) -> None:
    outside = scores[(scores < 0) | (scores > 1)]
    if outside.size:
        raise ValueError(
            f"scores must be probabilities in [0, 1], got {outside[0]:g}: write "
            "jax.nn.sigmoid(scores) for logits; other scores have no calibration"
        )


def _model(
    scores: FloatArray, labels: FloatArray, weights: FloatArray, n_bins: int, strategy: str
) -> _Model:
    inner = np.arange(1, n_bins) / n_bins
    if not scores.size or np.isnan(scores).any():
        undefined = np.full(n_bins, np.nan)
        empty = np.zeros(0)
        return _Model(empty, empty, np.nan, undefined, undefined, undefined)
    if strategy == "quantile":
        inner = np.quantile(scores, inner, weights=weights, method="inverted_cdf")
    index = np.searchsorted(inner, scores)

    def total(values: FloatArray) -> FloatArray:
        return np.bincount(index, values, n_bins).astype(np.float64)

    weight = total(weights)
    with np.errstate(invalid="ignore"):  # empty bins are NaN
        mean, share = total(weights * scores) / weight, total(weights * labels) / weight
        draws = weight**2 / total(weights**2)
    positive = float(np.average(labels, weights=weights))
    return _Model(scores, weights, positive, mean, share, draws)


@double_program()
def _wilson_limits(share: Array, draws: Array, level: Array) -> tuple[Array, Array]:
    return rules.wilson(share, draws, level)


def _draw_histogram(ax: Axes, found: list[_Model], end: float, looks: Style) -> list[list[Any]]:
    """Draw histograms of the scores above the axes, and return the artists of each model."""
    earlier: Any = (x for x in ax.child_axes if x.get_label() == _ABOVE)
    above = next(earlier, None) or ax.inset_axes((0, 1.02, 1, 0.14), sharex=ax, label=_ABOVE)
    edges = np.linspace(0, end, HISTOGRAM_BINS + 1)
    drawn = []
    for i, model in enumerate(found[: n_distinct(len(found))]):
        heights = np.histogram(model.scores, edges, weights=model.weights)[0]
        heights = heights / (model.weights.sum() or 1)
        areas = [above.stairs(heights, edges, **(looks.look(i) | {"linewidth": 1.2}))]
        if len(found) == 1:
            areas += [above.stairs(heights, edges, fill=True, color=looks.colour(i), alpha=0.3)]
        drawn.append(areas)
    shares = [x.weights[x.scores > end].sum() / (x.weights.sum() or 1) for x in found]
    beyond = max(shares, default=0)
    if beyond > 0:
        told = f"{'up to ' if len(found) > 1 else ''}{percent_text(beyond)} beyond"
        corner: dict[str, Any] = {"ha": "right", "va": "top", "transform": above.transAxes}
        above.text(1, 1, told, fontsize="x-small", color=GREY, **corner)
    above.set_ylim(bottom=0)
    above.set_yticks([])
    above.set_ylabel("Items", fontsize="small")
    above.tick_params(axis="x", bottom=False, labelbottom=False)
    above.spines[["top", "right", "left"]].set_visible(False)
    return drawn
