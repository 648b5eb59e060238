"""The options of a metric: the keyword arguments of the function that it wraps."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from jaxmetrics._base.quoting import brief, cut

F = TypeVar("F", bound=Callable[..., Any])

REQUIRED = inspect.Parameter.empty
_OF_ITEMS = {"weights", "where", "amounts", "axis_name"}  # arguments, not options, of a metric


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


def takes_metric(function: F) -> F:
    """`function`, which has a `metric`, and says how to give options of the metric itself."""

    @functools.cache
    def signature() -> inspect.Signature:
        return inspect.signature(function)

    @functools.wraps(function)
    def run(*arguments: Any, **options: Any) -> Any:
        own = signature().parameters
        others = {name: value for name, value in options.items() if name not in own}
        if others:
            known = {name: value for name, value in options.items() if name in own}
            given = signature().bind_partial(*arguments, **known).arguments
            _refuse_options_of(given.get("metric"), others, function.__name__)
        return function(*arguments, **options)

    public: Any = run
    found: F = public
    return found


def _refuse_options_of(metric: Any, given: dict[str, Any], name: str) -> None:
    """Refuse those of the keywords that are options of the metric."""
    fixed: dict[str, Any] = {}
    while isinstance(metric, functools.partial):
        fixed, metric = {**metric.keywords, **fixed}, metric.func
    taken = {*inspect.signature(metric).parameters} if inspect.isfunction(metric) else set()
    options = {k: value for k, value in given.items() if k in taken - _OF_ITEMS}
    if options:
        of_metric = ("jm." if metric.__module__.startswith("jaxmetrics.") else "") + metric.__name__
        written = ", ".join(f"{k}={brief(v)}" for k, v in {**fixed, **options}.items())
        raise TypeError(
            f"{name} does not take {', '.join(options)}, but {metric.__name__} does: "
            f"write functools.partial({of_metric}, {written}) in place of {of_metric}"
        )
