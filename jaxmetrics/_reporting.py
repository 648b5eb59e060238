"""The report of arrays, with the packages of the `report` extra, imported when it is called."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from os import PathLike
from typing import Any, Literal

from jaxmetrics._base.keywords import known_options
from jaxmetrics._base.types import ArrayLike


@known_options
def report(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    slices: Any = None,
    max_fpr: float = 0.01,
    criterion: Literal["youden"] | None = None,
    threshold: float | None = None,
    min_precision: float | None = None,
    min_recall: float | None = None,
    fp_cost: float | None = None,
    fn_cost: float | None = None,
    prevalence: float | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 2000,
    seed: int = 0,
    clusters: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    amounts: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    style: Literal["colour", "print"] = "colour",
    output: str | PathLike[str] | None = None,
) -> Any:
    """The page of `jaxmetrics evaluate` from arrays or frames: metrics, comparisons, figures.

    A notebook shows the page. It has AUC, partial AUC, recall at FPRs and average precision with
    intervals, the comparison of the models, ROC and precision-recall curves, distributions of
    scores and operating points, as the command writes them from a file.

    Args:
      scores: `[n]` or `[models, n]`, or a dict or a frame, whose keys or columns are models and
        whose rows are items; higher is more positive.
      labels: `[n]`, bool or 0 and 1.
      slices: `[n]`, the slice of each item, or several by name, as a dict or a frame.
      max_fpr: in (0, 1], the highest FPR of the partial AUC.
      criterion: "youden" adds the threshold of the largest recall - FPR.
      threshold: adds this threshold, such as one in use; scores >= threshold are flagged.
      min_precision: in (0, 1], adds the threshold of the largest recall at this precision or more.
      min_recall: in (0, 1], adds the threshold of the least FPR at this recall or more.
      fp_cost: the cost of a false positive, 1 if only `fn_cost` is given. With either, the page has
        the threshold of the least cost, and curves of cost.
      fn_cost: the cost of a missed positive, 1 if only `fp_cost` is given.
      prevalence: in (0, 1), the share of positives where thresholds are used, if it is not that of
        the labels. Precision, NPV, share flagged and cost are those at this share.
      confidence_level: in (0, 1), of intervals, bands and comparisons.
      n_resamples: the number of resamples, where intervals need them.
      seed: the seed of the resampling.
      clusters: `[n]`, integers or strings. Items of one cluster (a patient, a user) may depend on
        each other.
      weights: `[n]`, not negative; an item of weight k counts k times in the metric, but is one
        observation.
      amounts: `[n]`, how much each positive counts, for recall by amount.
      names: the names of the models; by default those of a dict or a frame, or numbers.
      style: the look of the figures: "colour", or "print" for greys, dashes and marks, with PDF
        files as well, whose fonts are embedded.
      output: a folder for report.html, its figures, metrics.json and metrics.csv; None writes
        nothing.

    Returns:
      A Report: its `page` is the HTML text, and `to_frame()` has all numbers as a DataFrame.

    Raises:
      ImportError: a package of the `report` extra is missing.
      TypeError, ValueError: as the conventions list under Errors; scores hold NaN, a class is
        absent, names are not one for each model, or a setting is out of range.

    A slice that lacks a class has NaN, and a dash in the page. Time and memory are those of
    `confidence_interval`, `compare`, `roc_band` and `operating_point`, and of the figures.

    Example:
      >>> import jaxmetrics as jm
      >>> page = jm.report({"old": old, "new": new}, labels, output="report")  # doctest: +SKIP

    Reference: that of `confidence_interval` and `compare`.
    """
    try:
        package = import_module("jaxmetrics._report")
    except ImportError as error:
        raise ImportError(
            f"report needs {error.name}: pip install 'jaxmetrics-exact[report]'"
        ) from None
    settings = package.Settings(
        max_fpr=max_fpr,
        n_resamples=n_resamples,
        confidence_level=confidence_level,
        seed=seed,
        fp_cost=fp_cost,
        fn_cost=fn_cost,
        style=style,
        criterion=criterion,
        threshold=threshold,
        min_precision=min_precision,
        min_recall=min_recall,
        prevalence=prevalence,
    )
    return package.report_of_arrays(
        scores,
        labels,
        settings,
        names=names,
        weights=weights,
        amounts=amounts,
        clusters=clusters,
        slices=slices,
        output=output,
    )
