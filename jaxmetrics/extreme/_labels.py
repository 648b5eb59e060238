"""Deciles and propensities of labels, from how often the labels occur."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.double import double_program
from jaxmetrics._base.meshes import on_any_mesh
from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics.extreme._inputs import check_label_counts


@on_any_mesh
def label_deciles(label_counts: ArrayLike, *, by: str = "occurrences") -> Array:
    """The decile of each label by how often it occurs: 9 for the most frequent, 0 for the rarest.

    decile = max(9 - floor(10 * share of all occurrences that belong to earlier labels), 0), with
    labels in order of falling count, and of rising id where counts are equal. Each decile holds
    about a tenth of the occurrences; the top decile has few labels. A label with more than a tenth
    of the occurrences may leave a decile empty. Add 1 to report deciles from 10 to 1.

    Args:
      label_counts: `[n_labels]`, how often each label occurs, usually in the training data, as
        whole numbers.
      by: "occurrences", a tenth of the occurrences in each decile; "labels", a tenth of the labels.

    Returns:
      `[n_labels]`, int32 from 0 to 9, for the `groups` of the metrics of this module.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; label_counts are not whole
        numbers, one is negative, or they add up to 2^63 or more.

    Nothing is NaN. By occurrences, labels that never occur are in decile 0. Traced counts below 0
    count as 0. The shares are exact, as whole numbers are compared. Time O(n_labels log n_labels),
    memory O(n_labels).

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.extreme.label_deciles([1, 6, 2, 0, 1]))
      [1 9 3 0 0]
      >>> print(jm.extreme.label_deciles([1, 6, 2, 0, 1], by="labels"))
      [5 9 7 1 3]

    Reference: R. Babbar and B. Schölkopf, "Data scarcity, robustness and extreme multi-label
    classification", Machine Learning 108, 2019, for why to evaluate frequent and rare labels apart.
    """
    counts = check_label_counts(label_counts)
    checks.check_choice("by", by, ("occurrences", "labels"))
    return _deciles(counts, by)


@double_program("by")
def _deciles(counts: Array, by: str) -> Array:
    counts = jnp.maximum(counts.astype(jnp.int64), 0)
    order = jnp.argsort(-counts, stable=True)
    in_order = counts[order] if by == "occurrences" else jnp.ones_like(counts)
    upto = jnp.cumsum(in_order)
    total = jnp.sum(in_order)
    # The tenths of the total, rounded up, without a product that 64 bits may not hold.
    tenths = np.arange(1, 10)
    begins = tenths * (total // 10) + (tenths * (total % 10) + 9) // 10
    # If no label occurs, all are in decile 0, as labels that never occur always are.
    group = 9 - jnp.searchsorted(begins, upto - in_order, side="right")
    return jnp.zeros(counts.shape, jnp.int32).at[order].set(group.astype(jnp.int32))


@on_any_mesh
def propensities(
    label_counts: ArrayLike, n_instances: int, *, a: float = 0.55, b: float = 1.5
) -> Array:
    """The propensity of each label: the probability that it is observed where it is relevant.

    p = 1 / (1 + C (count + b)^-a), C = (log n_instances - 1) (b + 1)^a.

    Args:
      label_counts: `[n_labels]`, how often each label occurs in the training data, as whole
        numbers.
      n_instances: the number of instances in the training data, at least 3.
      a: how fast p rises with the count, fitted to the data: 0.55 is usual, 0.5 for Wikipedia, 0.6
        for Amazon.
      b: added to each count, fitted likewise: 1.5 is usual, 0.4 for Wikipedia, 2.6 for Amazon.

    Returns:
      `[n_labels]`, probabilities that rise with the count; above 0, unless count and b are both 0.

    Raises:
      TypeError, ValueError: as the conventions list under Errors; label_counts are not whole
        numbers, one is negative, they add up to 2^63 or more, or n_instances is below 3.

    Nothing is NaN. Traced counts below 0 count as 0. Time and memory O(n_labels).

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.extreme.propensities([0, 10, 1000], 10_000))
      [0.08421963 0.21993187 0.7668726 ]

    Reference: H. Jain, Y. Prabhu and M. Varma, "Extreme multi-label loss functions for
    recommendation, tagging, ranking and other missing label applications", KDD 2016.
    """
    counts = check_label_counts(label_counts)
    checks.check_count("n_instances", n_instances)
    if n_instances < 3:
        raise ValueError(
            f"n_instances must be at least 3, got {n_instances}: the formula needs "
            "log(n_instances) - 1 above 0, so pass the number of training instances"
        )
    a, b = checks.check_nonnegative("a", a), checks.check_nonnegative("b", b)
    constants = np.array([(math.log(n_instances) - 1) * (b + 1) ** a, a, b])
    return _propensities(counts, constants, numerics.default_float())


@double_program("dtype")
def _propensities(counts: Array, constants: Array, dtype: Any) -> Array:
    scale, a, b = constants
    odds = scale * (jnp.maximum(counts, 0) + b) ** -a
    chance: Array = 1 / (1 + odds)
    return chance.astype(dtype)
