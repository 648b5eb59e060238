"""The arguments of a bootstrap other than the items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxmetrics._base import checks
from jaxmetrics.inference._influence.variance import Clusters

MEMORY_BUDGET = 2**28


class Request(NamedTuple):
    """The arguments of `bootstrap` of the same names.

    Attributes:
      clusters: the checked cluster index of each item, and the number of clusters.
    """

    key: Any
    n_resamples: int = 2000
    stratify: bool = True
    clusters: Clusters | None = None
    resampling: str = "multinomial"
    batch: int | None = None
    memory_budget: int = MEMORY_BUDGET
    progress: Callable[[int], None] | None = None

    def check(self, *, needs_key: bool = True) -> None:
        """Refuse arguments of a wrong type or out of range."""
        if needs_key or self.key is not None:
            checks.check_key(self.key)
        checks.check_count("n_resamples", self.n_resamples)
        checks.check_flag("stratify", self.stratify)
        checks.check_choice("resampling", self.resampling, ("multinomial", "poisson", "bayesian"))
        if self.batch is not None:
            checks.check_count("batch", self.batch)
        checks.check_count("memory_budget", self.memory_budget)
