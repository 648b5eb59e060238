"""The public names."""

import inspect

import jaxmetrics as jm
from jaxmetrics import plots


def _public(module):
    """Names and what can be called of all that a module makes public, its modules included."""
    for name in module.__all__:
        value, full = getattr(module, name), f"{module.__name__}.{name}"
        if inspect.ismodule(value):
            yield from _public(value)
        elif callable(value):
            yield full, value
        if inspect.isclass(value):
            methods = inspect.getmembers(value, inspect.isfunction)
            yield from ((f"{full}.{m}", f) for m, f in methods if not m.startswith("_"))


PUBLIC = dict(
    each
    for module in (jm, jm.extreme, jm.losses, jm.streaming, jm.training, plots)
    for each in _public(module)
)
