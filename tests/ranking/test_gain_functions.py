"""Gains and discounts that are functions of the user."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import jaxmetrics as jm

ITEMS = [3.0, 2.0, 1.0], [2, 1, 0]


@pytest.mark.parametrize("segments", [{}, {"segments": [0, 0, 0]}])
def test_a_constant_is_that_of_each_item(segments):
    assert_allclose(jm.ndcg(*ITEMS, gain=lambda label: 1, **segments), 1)
    assert_allclose(jm.dcg(*ITEMS, discount=lambda rank: 0.5, **segments), 1.5)


@pytest.mark.parametrize("name", ["gain", "discount"])
@pytest.mark.parametrize(
    ("function", "how"),
    [
        (lambda x: np.asarray(x) ** 2, "failed with TracerArrayConversionError"),
        (lambda x: x if x > 1 else 0, "failed with"),
        ({0: 0}.get, "failed with TypeError"),
        (lambda x: None, ""),
        (lambda x: x[0], r"returned \[\] for x of \[3\]"),
        (lambda x: x[:2], r"returned \[2\] for x of \[3\]"),
    ],
)
def test_functions_of_one_number_are_refused_in_words(name, function, how):
    with pytest.raises(TypeError, match=f"{name} must be a function of an array.*{how}"):
        jm.dcg(*ITEMS, **{name: function})


@pytest.mark.parametrize(
    ("discount", "got"),
    [
        (lambda rank: rank, "got 2 after 1 at rank 2"),
        (lambda rank: 1.5 - rank, "got -0.5 after 0.5 at rank 2"),
        (lambda rank: -rank, "got -1 at rank 1"),
    ],
)
def test_ndcg_refuses_a_discount_that_rises_or_is_negative(discount, got):
    for call in (jm.ndcg, jax.jit(lambda *items: jm.ndcg(*items, discount=discount))):
        options = {"discount": discount} if call is jm.ndcg else {}
        with pytest.raises(ValueError, match=got):
            call(*map(jnp.asarray, ITEMS), **options)
    assert jm.ndcg(*ITEMS, k=1, discount=lambda rank: 2 / rank) == 1
    assert np.isfinite(jm.dcg(*ITEMS, discount=discount))


def test_a_discount_may_be_equal_at_several_ranks():
    scores, labels = [3.0, 2.0, 1.0], [0, 1, 1]
    assert jm.ndcg(scores, labels, discount=lambda rank: jnp.where(rank <= 2, 0.3, 0)) == 0.5


def test_a_discount_of_a_traced_number_is_refused():
    def value(base):
        return jm.ndcg(*ITEMS, discount=lambda rank: base**-rank)

    with pytest.raises(TypeError, match="discount depends on a traced value"):
        jax.jit(value)(2.0)
