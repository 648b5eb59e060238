"""Arrays that refuse to be differentiated, where a result has no derivative in them."""

from __future__ import annotations

import functools
from typing import Any, TypeVar

import jax

from jaxmetrics._base.host import is_concrete
from jaxmetrics._base.numerics import is_inexact
from jaxmetrics._base.types import Array

T = TypeVar("T")


def undifferentiable(tree: T, why: str) -> T:
    """The arrays of a pytree; a derivative in traced ones raises TypeError, which says `why`."""

    def of_array(x: Any) -> Any:
        return _without_derivative(x, why) if not is_concrete(x) and is_inexact(x) else x

    return jax.tree.map(of_array, tree)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _without_derivative(x: Array, why: str) -> Array:
    return x


@_without_derivative.defjvp
def _(why: str, values: Any, tangents: Any) -> Any:
    raise TypeError(why)
