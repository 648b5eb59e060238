"""Slopes of a metric of items that belong to both classes in part, as by a proxy of the label."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp

from jaxmetrics._base.double import double_program
from jaxmetrics._base.types import Array, Items
from jaxmetrics._roc.order import NEGATIVE, POSITIVE
from jaxmetrics._roc.record import Chosen, MetricLike, Options
from jaxmetrics.inference._influence.gradient import (
    Problems,
    choose_known,
    of_each,
    problems_of,
    slopes_of_weights,
)


def ranked(metric: MetricLike, items: Items) -> tuple[Problems, int]:
    """The order that all calls of `slopes_by_label` share, and the length of the score table."""
    chosen, _ = choose_known(metric)
    # A row for each score: in a joined row of negatives, a positive would tie with all of them.
    return problems_of(items, replace(chosen.metric, of_roc_curve=False))


def slopes_by_label(
    metric: MetricLike, problems: Problems, n_rows: int, parts: tuple[Array, Array]
) -> tuple[Array, Array, Array]:
    """The metric `[...]`, and its derivative in the weight of a negative and of a positive.

    `parts` `[..., n]` are what the items add to the negatives and to the positives, in order of
    their scores. The derivatives `[..., n]`, in the order in which the items are given, are those
    in the weight of a negative and of a positive with the item's score, whatever the item adds.
    """
    chosen, arrays = choose_known(metric)
    return _slopes_by_label(problems, parts, arrays, chosen, n_rows)


@double_program("chosen", "n_rows")
def _slopes_by_label(
    problems: Problems, parts: tuple[Array, Array], arrays: Options, chosen: Chosen, n_rows: int
) -> tuple[Array, Array, Array]:
    def of_one(
        problem: Problems, parts: tuple[Array, Array], bad: Array
    ) -> tuple[Array, Array, Array]:
        slopes = slopes_of_weights(parts, problem, chosen, arrays, n_rows)
        chosen.refuse_shapes(slopes.estimate)
        # An unlabelled item has weight 0, but its score must be a number all the same.
        bad = bad[0] | jnp.any(jnp.isnan(problem.items.scores))
        estimate = jnp.where(bad, jnp.nan, slopes.estimate)

        def by_item(kind: int) -> Array:
            values = (slopes.centred[kind] + slopes.means[kind])[problem.rows]
            return jnp.zeros_like(values).at[problem.order.item].set(values) + 0 * estimate

        return estimate, by_item(NEGATIVE), by_item(POSITIVE)

    found: tuple[Array, Array, Array] = of_each(of_one, problems, parts)
    return found
