"""Placements of items that are already in order, such as those of one slice of a sorted whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxmetrics._base.types import HostArray
from jaxmetrics._roc.host_placements import OneClass, OnHost
from jaxmetrics._roc.limits import Limit
from jaxmetrics._roc.placements import Beside


@dataclass(frozen=True)
class InOrder(OnHost):
    """Both classes in ascending order: each question is a search, and nothing is reordered.

    No answer takes time in proportion to the negatives, which may be those of all slices.
    """

    @property
    def positives_ascending(self) -> OneClass:
        return self.positive

    @property
    def negatives_ascending(self) -> OneClass:
        return self.negative

    @property
    def places(self) -> tuple[HostArray, HostArray]:
        values, at = self.negative.scores, self.positive.scores
        return values.searchsorted(at, "left"), values.searchsorted(at, "right")

    def near_one(self, *, together: bool = False) -> InOrder:
        return self  # slices are weighed in units of their own

    def summed(self, function: Callable[[Any], Any], max_fpr: Any = None) -> Any:
        return super().summed(function)

    def beside(self, limit: Limit) -> Beside:
        """The last point's threshold is not known: +inf."""
        beyond, some = self._beyond(limit)
        places = [self.negative.scores.searchsorted(beyond, side) for side in ("right", "left")]
        fps = [np.where(some, self.weight_from(x), self.total_negatives) for x in places]
        return Beside(np.full(np.shape(beyond), np.inf), beyond, *fps)

    def _from_top(self, places: Any) -> Any:
        if not self.total_negatives:
            return np.full(places.shape, np.nan)
        at = len(self.negative.scores) - 1 - np.where(places >= 0, places, 0).astype(int)
        return self.negative.scores[at]
