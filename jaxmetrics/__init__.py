"""Exact, batched ranking and classification metrics for JAX."""

import importlib
import typing

if typing.TYPE_CHECKING:
    from jaxmetrics import extreme as extreme
    from jaxmetrics import losses as losses
    from jaxmetrics import streaming as streaming
    from jaxmetrics import training as training
    from jaxmetrics._public import *
    from jaxmetrics._public import __all__ as __all__

__version__ = "0.1.0"
_MODULES = ("extreme", "losses", "plots", "streaming", "training")


def __getattr__(name: str) -> typing.Any:
    """A public name; the first one imports them all, and JAX.

    So the command says its help, or what is wrong with a call, without the second that this takes.
    """
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name == "__all__" or not name.startswith("_"):
        public = importlib.import_module(f"{__name__}._public")
        names = {x: getattr(public, x) for x in public.__all__}
        globals().update(names, __all__=public.__all__)
        if name in globals():
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *__getattr__("__all__")})
