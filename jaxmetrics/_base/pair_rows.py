"""Tables of the differences of models, with a row for each pair."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxmetrics._base.results import Table
from jaxmetrics._base.types import HostArray


def each_pair_once(table: Table, shape: Sequence[int]) -> Table:
    """The rows above the diagonal of a table of arrays that broadcast to `[..., models, models]`.

    The others are a model minus itself, and the same pairs with the other sign. A table without
    pairs stays as it is.
    """
    if "minus" not in table.rows:
        return table
    chosen = np.broadcast_to(np.triu(np.ones(shape[-2:], bool), 1), shape).ravel()

    def of_pairs(values: Any) -> HostArray:
        return np.broadcast_to(np.asarray(values), shape).ravel()[chosen]

    rows = {kind: [*itertools.compress(names, chosen)] for kind, names in table.rows.items()}
    columns = [
        column._replace(
            parts={name: of_pairs(x) for name, x in column.parts.items()},
            scale=None if column.scale is None else of_pairs(column.scale),
        )
        for column in table.columns
    ]
    return table._replace(rows=rows, columns=columns)
