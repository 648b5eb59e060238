"""What is asked of a state: a metric, and whether items without a score are left out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxmetrics._base import checks
from jaxmetrics._base.types import Array, HostArray
from jaxmetrics._roc.record import Chosen, MetricLike, Options, choose
from jaxmetrics.streaming._bins import Bins
from jaxmetrics.streaming._state import State, check_state


class Held(NamedTuple):
    """The digits of a state, and the ends and the fingerprint of its bins.

    Attributes:
      digits: the digits of the state.
      levels: the lower and the upper end of each bin, the highest bin first.
      fingerprint: the fingerprint of the bins.
    """

    digits: Array
    levels: tuple[HostArray, HostArray]
    fingerprint: np.int32


class Question(NamedTuple):
    """A metric and a state, checked.

    Attributes:
      chosen: the metric, with the options that are constants.
      arrays: its other options.
      held: what the state holds.
      ignore_nan: whether items without a score are left out.
    """

    chosen: Chosen
    arrays: Options
    held: Held
    ignore_nan: bool


def question(metric: MetricLike, state: State, bins: Bins, ignore_nan: bool) -> Question:
    """The question to a state; refuses a state of other bins."""
    check_state(state, bins)
    checks.check_flag("ignore_nan", ignore_nan)
    upper = np.append(bins.lower[1:], np.float32(np.inf))
    levels = bins.lower[::-1].copy(), upper[::-1].copy()
    held = Held(state.digits, levels, np.int32(bins.fingerprint))
    return Question(*choose(metric), held, ignore_nan)
