"""The options of a metric: the keywords of the function that it is made of."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

REQUIRED = inspect.Parameter.empty


class Keywords(NamedTuple):
    """What a metric is called with.

    Attributes:
      name: of the metric.
      options: the parameters that it has besides arrays.
      signature: with the arrays.
    """

    name: str
    options: tuple[inspect.Parameter, ...]
    signature: inspect.Signature

    def filled(self, given: dict[str, Any]) -> dict[str, Any]:
        """All options, by default those that are not given; refuses one that there is not."""
        defaults = {o.name: o.default for o in self.options}
        needed = {name for name, default in defaults.items() if default is REQUIRED}
        unknown, missing = given.keys() - defaults.keys(), needed - given.keys()
        if unknown or missing:
            listed = ", ".join(sorted(unknown or missing))
            raise TypeError(
                f"{self.name} {'has no option' if unknown else 'needs'} {listed}; "
                f"it is called as {self.name}{self.signature}"
            )
        return {**defaults, **given}


def keywords(
    function: Callable[..., Any], positional: dict[str, Any], others: tuple[str, ...]
) -> Keywords:
    """Those of `function(value, *, option, ...)`, made a metric of arrays instead of the value.

    Args:
      function: whose options are keyword-only.
      positional: arrays and their defaults, or REQUIRED.
      others: arrays by keyword alone, None by default.
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
        raise TypeError(f"{name} may not call an option {', '.join(sorted(taken))}")
    return Keywords(name, options, inspect.Signature([*arrays, *options]))
