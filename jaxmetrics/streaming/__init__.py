"""Evaluation of streams: states of fixed size that merge by `+`, with guaranteed bounds."""

from jaxmetrics.streaming import means
from jaxmetrics.streaming._adapters import clu_metric, nnx_metric
from jaxmetrics.streaming._bins import Bins, edges, float16_bins, quantile_bins, uniform_bins
from jaxmetrics.streaming._bootstrap import bootstrap
from jaxmetrics.streaming._bounds import Bounds, bounds
from jaxmetrics.streaming._exact import exact
from jaxmetrics.streaming._intervals import interval
from jaxmetrics.streaming._state import State, init, merge, n_items, update
from jaxmetrics.streaming._tables import table

__all__ = [
    "Bins",
    "Bounds",
    "State",
    "bootstrap",
    "bounds",
    "clu_metric",
    "edges",
    "exact",
    "float16_bins",
    "init",
    "interval",
    "means",
    "merge",
    "n_items",
    "nnx_metric",
    "quantile_bins",
    "table",
    "uniform_bins",
    "update",
]
