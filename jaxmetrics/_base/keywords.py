"""The options of a metric: the keyword arguments of the function that it wraps."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from jaxmetrics._base.quoting import cut

REQUIRED = inspect.Parameter.empty


class Keywords(NamedTuple):
    """The arguments of a metric.

    Attributes:
      name: the name of the metric, for errors.
      options: its parameters besides arrays.
      signature: all its parameters, arrays first.
    """

    name: str
    options: tuple[inspect.Parameter, ...]
    signature: inspect.Signature

    def filled(self, given: dict[str, Any]) -> dict[str, Any]:
        """All options, with defaults for those not given; refuses unknown and missing ones."""
        defaults = {o.name: o.default for o in self.options}
        needed = {name for name, default in defaults.items() if default is REQUIRED}
        unknown, missing = given.keys() - defaults.keys(), needed - given.keys()
        if unknown or missing:
            listed = cut(", ".join(sorted(unknown or missing)))
            raise TypeError(
                f"{self.name} {'has no option' if unknown else 'needs'} {listed}; "
                f"it is called as {self.name}{self.signature}"
            )
        return {**defaults, **given}


def keywords(
    function: Callable[..., Any],
    positional: dict[str, Any],
    others: tuple[str, ...],
    last: tuple[str, ...] = (),
) -> Keywords:
    """The arguments of a metric of arrays that wraps `function(value, *, option, ...)`.

    Args:
      function: its options must be keyword-only.
      positional: the arrays that may be positional, with their defaults or REQUIRED.
      others: the arrays that are keyword-only, None by default.
      last: what else the metric takes, after its options, None by default.
    """
    name = function.__name__
    options = tuple(inspect.signature(function).parameters.values())[1:]
    if any(option.kind is not option.KEYWORD_ONLY for option in options):
        raise TypeError(
            f"the options of {name} must be keyword-only: write def {name}(table, *, option=...)"
        )
    in_place, by_name = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    arrays = [inspect.Parameter(x, in_place, default=value) for x, value in positional.items()]
    arrays += [inspect.Parameter(x, by_name, default=None) for x in others]
    taken = {array.name for array in arrays} & {option.name for option in options}
    if taken:
        raise TypeError(f"an option of {name} may not be named {', '.join(sorted(taken))}")
    behind = [inspect.Parameter(x, by_name, default=None) for x in last]
    return Keywords(name, options, inspect.Signature([*arrays, *options, *behind]))
