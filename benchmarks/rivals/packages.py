"""The rivals, by the names of their distributions and of their modules."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

# Keras needs one of three backends; JAX is the one that is always installed.
os.environ.setdefault("KERAS_BACKEND", "jax")

MODULES = {
    "scikit-learn": "sklearn",
    "scipy": "scipy",
    "torch": "torch",
    "torchmetrics": "torchmetrics",
    "torcheval": "torcheval",
    "google-metrax": "metrax",
    "keras": "keras",
    "rax": "rax",
    "ranx": "ranx",
    "pytrec_eval-terrier": "pytrec_eval",
    "confidenceinterval": "confidenceinterval",
    "MLstatkit": "MLstatkit",
}


def installed(*modules: str) -> bool:
    """Whether all modules can be imported."""
    return all(find_spec(module) for module in modules)


def versions() -> list[str]:
    """Name and version of each library, or "no" and its name."""
    found = []
    for name in ("jax", "numpy", *MODULES):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"no {name}")
    return [
        f"{text} on {os.environ['KERAS_BACKEND']}" if "keras " in text else text for text in found
    ]
