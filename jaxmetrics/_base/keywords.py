"""The options of a metric: the keyword arguments of the function that it wraps."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from jaxmetrics._base.quoting import brief, cut

F = TypeVar("F", bound=Callable[..., Any])

REQUIRED = inspect.Parameter.empty
_OF_ITEMS = {"weights", "where", "amounts", "axis_name"}  # arguments, not options, of a metric
GATHER = "gather the items first, by jax.lax.all_gather(..., tiled=True)"
_EXAMPLES = {
    "max_fpr": "0.01",
    "min_precision": "0.5",
    "min_recall": "0.9",
    "min_sensitivity": "0.9",
    "min_specificity": "0.99",
}


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
        of_items = unknown & _OF_ITEMS & self.signature.parameters.keys()
        if of_items:
            listed = ", ".join(sorted(of_items))
            if of_items == {"axis_name"}:
                raise TypeError(
                    f"axis_name of {self.name} is for standard_error, confidence_interval and "
                    f"covariance, as their own argument: for other functions {GATHER}"
                )
            raise TypeError(
                f"{listed} of {self.name} stand beside scores and labels: fix no more than options "
                f"by functools.partial, and pass {listed}= to the function that takes the metric; "
                "where it has no such argument, loop over confidence_interval with where="
            )
        if "axis_name" in unknown:
            raise _unknown(self.name, "axis_name", self.signature.parameters)
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
            f"{name} must take one ScoreTable, and options that are keyword-only: write "
            f"def {name}(table, *, option=...)"
        )
    in_place, by_name = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    arrays = [inspect.Parameter(x, in_place, default=value) for x, value in positional.items()]
    arrays += [inspect.Parameter(x, by_name, default=None) for x in others]
    taken = {array.name for array in arrays} & {option.name for option in options}
    if taken:
        raise TypeError(f"an option of {name} may not be named {', '.join(sorted(taken))}")
    behind = [inspect.Parameter(x, by_name, default=None) for x in last]
    return Keywords(name, options, inspect.Signature([*arrays, *options, *behind]))


def of_partials(function: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The function within partials, and the arguments and the keywords that they fix."""
    arguments: tuple[Any, ...] = ()
    options: dict[str, Any] = {}
    while isinstance(function, functools.partial):
        arguments, options = (*function.args, *arguments), {**function.keywords, **options}
        function = function.func
    return function, arguments, options


def takes_metric(function: F) -> F:
    """`function`, which takes a `metric`; its errors say how to give options of the metric."""

    def refuse(given: dict[str, Any], others: dict[str, Any]) -> None:
        _refuse_options_of(given.get("metric"), others, function.__name__, "{0} in place of {1}")

    return _refusing(function, refuse)


def known_options(function: F) -> F:
    """`function`, whose error for an unknown option names those that it has."""
    return _refusing(function, lambda given, others: None)


def made_by(maker: str, metric: Any) -> Callable[[F], F]:
    """A decorator of what `maker(metric)` returns; errors say how to give options of the metric."""

    def refuse(_: dict[str, Any], others: dict[str, Any]) -> None:
        _refuse_options_of(metric, others, f"the function of {maker}", f"jm.{maker}({{0}})")

    def named(function: F) -> F:
        function.__name__ = maker
        return _refusing(function, refuse)

    return named


def _refusing(function: F, refuse: Callable[[dict[str, Any], dict[str, Any]], None]) -> F:
    """`function`, which first calls `refuse(given, others)` if it lacks the keywords `others`."""

    @functools.cache
    def signature() -> inspect.Signature:
        return inspect.signature(function)

    @functools.wraps(function)
    def run(*arguments: Any, **options: Any) -> Any:
        own = signature().parameters
        others = {name: value for name, value in options.items() if name not in own}
        if others:
            known = {name: value for name, value in options.items() if name in own}
            refuse(signature().bind_partial(*arguments, **known).arguments, others)
            if all(x.kind is not x.VAR_KEYWORD for x in own.values()):
                raise _unknown(function.__name__, next(iter(others)), own)
        return function(*arguments, **options)

    public: Any = run
    return public


# For the name of an option in other libraries: its name here, and what to write.
_OTHER_WORDS = {
    "min_specificity": ("max_fpr", "max_fpr=1 - min_specificity"),
    "specificity": ("max_fpr", "max_fpr=1 - specificity"),
    "fpr": ("max_fpr", "max_fpr"),
    "min_sensitivity": ("min_recall", "min_recall"),
    "sensitivity": ("min_recall", "min_recall"),
    "min_tpr": ("min_recall", "min_recall"),
    "min_ppv": ("min_precision", "min_precision"),
    "alpha": ("confidence_level", "confidence_level=1 - alpha"),
    "level": ("confidence_level", "confidence_level"),
    "sample_weight": ("weights", "weights"),
    "mask": ("where", "where"),
    "seed": ("key", "key=jax.random.key(seed)"),
    "rng": ("key", "key=jax.random.key(0)"),
    "n_boot": ("n_resamples", "n_resamples"),
    "n_bootstraps": ("n_resamples", "n_resamples"),
}
_ALIKE = 0.7  # the least similarity, by difflib, of a name to suggest


def _unknown(name: str, option: str, taken: Iterable[str]) -> TypeError:
    """The error for an option that a function does not have."""
    return TypeError(f"{name} has no option {cut(option)}: {_instead_of(option, [*taken])}")


def _instead_of(option: str, taken: list[str]) -> str:
    if option == "axis_name":  # which other functions have
        return GATHER
    ours, meant = _OTHER_WORDS.get(option, ("", ""))
    near = [meant] if ours in taken else difflib.get_close_matches(option, taken, 1, _ALIKE)
    return f"write {near[0]}" if near else f"it takes {', '.join(taken)}"


def _refuse_options_of(metric: Any, given: dict[str, Any], name: str, advice: str) -> None:
    """Refuse keywords that are options of the metric, and say how to write them."""
    metric, _, fixed = of_partials(metric)
    taken = {*inspect.signature(metric).parameters} if inspect.isfunction(metric) else set()
    options = {k: value for k, value in given.items() if k in taken - _OF_ITEMS}
    if options:
        written = {k: brief(v) for k, v in {**fixed, **options}.items()}
        raise TypeError(
            f"{name} does not take {', '.join(options)}, but {metric.__name__} does: "
            f"write {advice.format(_partial(metric, written), _public_name(metric))}"
        )


def refuse_missing(metric: Any, given: dict[str, Any]) -> None:
    """Refuse a metric without an option that it needs, where only a partial can give it."""
    parameters = inspect.signature(metric).parameters if inspect.isfunction(metric) else {}
    options = {k: x.default for k, x in parameters.items() if x.kind is x.KEYWORD_ONLY}
    missing = [k for k, default in options.items() if default is REQUIRED and k not in given]
    if missing and given.keys() <= parameters.keys():
        written = {k: brief(v) for k, v in given.items()}
        written |= {k: _EXAMPLES.get(k, "...") for k in missing}
        raise TypeError(
            f"{metric.__name__} needs {', '.join(missing)}: write {_partial(metric, written)}"
        )


def _partial(metric: Any, options: dict[str, str]) -> str:
    listed = ", ".join(f"{k}={value}" for k, value in options.items())
    return f"functools.partial({_public_name(metric)}, {listed})"


def _public_name(metric: Any) -> str:
    of_library: bool = metric.__module__.startswith("jaxmetrics.")
    return "jm." * of_library + str(metric.__name__)
