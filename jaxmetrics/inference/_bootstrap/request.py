"""The arguments of a bootstrap other than the items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxmetrics._base import checks
from jaxmetrics._base.meshes import check_mesh
from jaxmetrics._base.types import Mesh
from jaxmetrics.inference._influence.clusters import Clusters

MEMORY_BUDGET = 2**28
# Resamples have numbers of 32 bits.
_MOST = 2**31
# Copies of the replicates in memory while those of the chunks are joined.
_COPIES = 4


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
    mesh: Mesh | None = None

    def check(self, *, needs_key: bool = True, n_values: int = 1, n_items: int = 1) -> None:
        """Refuse arguments of a wrong type or out of range, and what memory cannot hold.

        Args:
          needs_key: whether there must be a key.
          n_values: how many numbers the metric of one resample has.
          n_items: how many items there are to draw.
        """
        if needs_key or self.key is not None:
            checks.check_key(self.key)
        checks.check_count("n_resamples", self.n_resamples)
        if self.n_resamples > _MOST:
            raise ValueError(f"n_resamples must be at most 2^31, got {self.n_resamples:,}")
        numbers = _COPIES * self.n_resamples * n_values
        checks.check_fits("n_resamples", self.n_resamples, numbers, "write n_resamples=2000")
        checks.check_flag("stratify", self.stratify)
        checks.check_choice("resampling", self.resampling, ("multinomial", "poisson", "bayesian"))
        if self.batch is not None:
            checks.check_count("batch", self.batch)
            numbers = min(self.batch, self.n_resamples) * n_items
            checks.check_fits("batch", self.batch, numbers, "leave batch out")
        checks.check_count("memory_budget", self.memory_budget)
        check_mesh(self.mesh)
