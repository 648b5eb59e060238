"""Plots of scores and of results. They need matplotlib, which a plot imports when it draws.

Each plot draws into the Axes that it is given, or into new ones, and returns them. The colours are
those of Okabe and Ito, which colour-blind readers can distinguish; line styles, markers or hatches
differ too.
"""

from jaxmetrics.plots._calibration import calibration
from jaxmetrics.plots._cost import cost
from jaxmetrics.plots._deciles import deciles
from jaxmetrics.plots._det import det
from jaxmetrics.plots._distributions import score_distributions
from jaxmetrics.plots._forest import differences, forest
from jaxmetrics.plots._precision_recall import precision_recall
from jaxmetrics.plots._ranking import ndcg_at_k
from jaxmetrics.plots._roc import roc, roc_with_window
from jaxmetrics.plots._style import COLOURS as COLOURS
from jaxmetrics.plots._style import HATCHES as HATCHES
from jaxmetrics.plots._style import MARKERS as MARKERS
from jaxmetrics.plots._style import STYLES as STYLES
from jaxmetrics.plots._trend import trend

__all__ = [
    "calibration",
    "cost",
    "deciles",
    "det",
    "differences",
    "forest",
    "ndcg_at_k",
    "precision_recall",
    "roc",
    "roc_with_window",
    "score_distributions",
    "trend",
]
