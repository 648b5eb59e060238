"""Numbers, metrics and names in words, the same in results, figures and reports."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from jaxmetrics._base.primitives import is_concrete
from jaxmetrics._base.types import FloatArray

# Words of a metric's name that are capitals or short.
_WORDS = {"roc auc": "AUC", "auc": "AUC", "roc": "ROC", "fpr": "FPR", "ndcg": "nDCG", "dcg": "DCG"}


def decimals_of(widths: FloatArray, *, fewest: int = 0, most: int = 9) -> int:
    """The decimals that show two significant digits of the narrowest width above 0."""
    widths = widths[(widths > 0) & (widths < np.inf)]  # nor NaN
    narrowest = widths.min() if len(widths) else 1.0
    return int(np.clip(1 - np.floor(np.log10(narrowest)), fewest, most))


def fixed(value: float, digits: int) -> str:
    """A number with so many decimals; a dash if it is undefined."""
    return "-" if math.isnan(value) else f"{value:z.{digits}f}"


def p_value(p: float) -> str:
    """A p-value as text, such as "p = 0.012"."""
    text = p_number(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def p_number(p: float) -> str:
    """The same without "p =", for a column."""
    return "< 0.001" if p < 0.001 else fixed(p, 3)


def percent_text(level: float) -> str:
    """A level in per cent, with three digits of its distance from 100 %, or more decimals."""
    left = 100 * (1 - level)
    decimals = max(2, 2 - math.floor(math.log10(left))) if left > 0 else 2
    return f"{100 * level:.{decimals}f}".rstrip("0").rstrip(".") + " %"


def metric_in_words(metric: Callable[..., Any]) -> str:
    """The name of a metric, with the options that a functools.partial fixes."""
    options: dict[str, Any] = {}
    while isinstance(metric, functools.partial):
        options = {**metric.keywords, **options}
        metric = metric.func
    name = str(getattr(metric, "__name__", "metric")).strip("<>").replace("_", " ")
    name = _WORDS.get(name) or " ".join(_WORDS.get(x, x) for x in name.split())
    told = [f"{key}={value}" for key, value in options.items() if _is_short(value)]
    return f"{name} ({', '.join(told)})" if told else name


def _is_short(value: Any) -> bool:
    if isinstance(value, jax.Array) and not is_concrete(value):
        return False
    return isinstance(value, (str, bool, int, float)) or np.size(value) == 1


def enumerated(names: Sequence[str]) -> str:
    """Names with commas, and "and" before the last one."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def visible(text: str, *, keep: str = "") -> str:
    """The text with escapes for control characters, which terminals obey and XML forbids."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else ascii(c)[1:-1] for c in text)
