"""What the tests of plots share."""

import numpy as np

import jaxmetrics as jm
from jaxmetrics import plots

NAMES = ["one", "two"]
CURVES = [plots.roc, plots.precision_recall, plots.det, plots.cost]


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def interval_of(estimate, level=0.95):
    estimate = np.asarray(estimate)
    return jm.Interval(estimate, estimate - 0.2, estimate + 0.1, estimate, "auto", level)


def segments(ax):
    """The error bars, as y and both ends."""
    lines = [line.get_xydata() for line in ax.get_lines() if line.get_marker() == "None"]
    return [(*line[0, ::-1], line[1, 0]) for line in lines if len(line) == 2]
