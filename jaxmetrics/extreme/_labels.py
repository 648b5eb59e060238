"""What is known of labels by how often they occur: their decile and their propensity."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxmetrics._base import checks, numerics
from jaxmetrics._base.double import double_program
from jaxmetrics._base.types import Array, ArrayLike
from jaxmetrics.extreme._inputs import check_label_counts


def label_deciles(label_counts: ArrayLike, *, by: str = "occurrences") -> Array:
    """The decile of each label by how often it occurs: 9 for the most frequent, 0 for the rarest.

    With labels in order of falling count, and of rising id where counts are equal, the group of a
    label is 9 - floor(10 * share of all occurrences that are of labels before it), so that each
    decile holds about a tenth of the occurrences, and the top one few labels. A label of more than
    a tenth leaves a decile without any. Add 1 to show deciles to people, from 10 to 1.

    Args:
      label_counts: `[n_labels]`, how often each label occurs, as whole numbers; in the data that
        the model was trained on, as a rule.
      by: "occurrences", or "labels" for deciles of equally many labels.

    Returns:
      `[n_labels]`, int32 from 0 to 9: what the metrics here take as `groups`.

    Raises:
      TypeError, ValueError: an input is not what it should be.

    Nothing is NaN: labels that never occur are in group 0, and traced counts below 0 are as 0.
    Shares are compared in whole numbers, exactly. Time O(n_labels log n_labels), memory
    O(n_labels).

    Example:
      >>> import jaxmetrics as jm
      >>> print(jm.extreme.label_deciles([1, 6, 2, 0, 1]))
      [1 9 3 0 0]
      >>> print(jm.extreme.label_deciles([1, 6, 2, 0, 1], by="labels"))
      [5 9 7 1 3]

    Reference: R. Babbar and B. Schölkopf, "Data scarcity, robustness and extreme multi-label
    classification", Machine Learning 108, 2019, for why frequent and rare labels are told apart.
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
    # Of nothing that occurs, all comes before.
    before = jnp.where(total > 0, upto - in_order, 1)
    group = jnp.maximum(9 - 10 * before // jnp.maximum(total, 1), 0)
    return jnp.zeros(counts.shape, jnp.int32).at[order].set(group.astype(jnp.int32))


def propensities(
    label_counts: ArrayLike, n_instances: int, *, a: float = 0.55, b: float = 1.5
) -> Array:
    """The chance that a label that is relevant was observed as such, by how often it occurs.

    p = 1 / (1 + C exp(-a log(count + b))), C = (log n_instances - 1) (b + 1)^a.

    Args:
      label_counts: `[n_labels]`, how often each label occurs in the data that the model was trained
        on, as whole numbers.
      n_instances: how many instances these data have, at least 3.
      a: as fitted to the data; 0.55 is usual, 0.5 for Wikipedia and 0.6 for Amazon.
      b: the same; 1.5 is usual, 0.4 for Wikipedia and 2.6 for Amazon.

    Returns:
      `[n_labels]`, each in (0, 1], rising with the count.

    Raises:
      TypeError, ValueError: an input is not what it should be.

    Nothing is NaN; traced counts below 0 are as 0. Time and memory O(n_labels).

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
            f"n_instances must be at least 3, got {n_instances}: the formula takes "
            "log(n_instances) - 1 to be above 0"
        )
    a, b = checks.check_nonnegative("a", a), checks.check_nonnegative("b", b)
    constants = np.array([(np.log(n_instances) - 1) * (b + 1) ** a, a, b])
    return _propensities(counts, constants, numerics.default_float())


@double_program("dtype")
def _propensities(counts: Array, constants: Array, dtype: Any) -> Array:
    scale, a, b = constants
    odds = scale * (jnp.maximum(counts, 0) + b) ** -a
    chance: Array = 1 / (1 + odds)
    return chance.astype(dtype)
