"""Rows of a score table that have both classes, listed apart from the cells where they are few.

The area under the curve counts half of their tied pairs, which are added after the scan along the
cells. No other row matters to it, so the scan is that of data without ties.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmetrics._base.types import HostArray
from jaxmetrics.inference._bootstrap.units import Cells, Mixed, places

# These rows are few if they have at most 1 / RARE of the cells.
RARE = 16


def with_mixed(cells: Cells) -> Cells | None:
    """The cells, with those in rows of both classes listed as `mixed`; None if these are many."""
    n = cells.joined.shape[-1]
    rows = [np.asarray(x).reshape(-1, n) for x in (cells.joined, cells.positives, cells.negatives)]
    used = np.asarray(cells.used)
    found = [_mixed(*row) for row in zip(*rows, used.ravel(), strict=True)]
    most = max(len(cell) for cell, _ in found)
    if most == 0:
        return cells
    if most * RARE > n:
        return None
    few = places(most)

    def of_models(each: Any, fill: int) -> Any:
        padded = [np.pad(x, (0, few - len(x)), constant_values=fill) for x in each]
        return np.stack(padded).reshape(*used.shape, few)

    cells_of, rows_of = zip(*found, strict=True)
    cell, row = of_models(cells_of, 0), of_models(rows_of, few - 1)  # rows stay in order
    sizes: Any = np.array([len(cell) for cell, _ in found], np.int32).reshape(used.shape)
    return cells._replace(mixed=Mixed(cell, row, sizes))


def _mixed(
    joined: HostArray, positives: HostArray, negatives: HostArray, used: HostArray
) -> tuple[HostArray, HostArray]:
    """The indices of the cells in rows with both classes, and the row number of each."""
    begins = np.flatnonzero(~joined[:used])
    both = np.ones(len(begins), bool)
    for x in (positives, negatives):
        both &= np.logical_or.reduceat(x[:used] > 0, begins) if len(begins) else False
    sizes = np.diff(begins, append=used)
    cell = np.flatnonzero(both.repeat(sizes))
    row = np.arange(both.sum()).repeat(sizes[both])
    return cell.astype(np.int32), row.astype(np.int32)
