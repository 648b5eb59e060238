"""Numbers, metrics and names in words, the same in results, figures and reports."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Any

import jax
import numpy as np

from jaxmetrics._base.keywords import of_partials
from jaxmetrics._base.primitives import is_concrete
from jaxmetrics._base.types import FloatArray

# Words of metrics' names that are written as abbreviations or in capitals.
_WORDS = {"roc auc": "AUC", "auc": "AUC", "roc": "ROC", "fpr": "FPR", "ndcg": "nDCG", "dcg": "DCG"}

FEWEST_DECIMALS, _MOST_DECIMALS = 3, 9
# An interval of a metric with a width up to this has the width 0 up to rounding.
NARROWEST = 1e-6
# A threshold in float32 lies up to this share of it below the score that it flags.
_SPACING = Decimal(2) ** -23
# Enough digits for any double with any decimals.
_DOWN = Context(prec=1_100, rounding=ROUND_FLOOR)
_MOST_NAMED = 6  # names in a sentence


def decimals_of(widths: FloatArray, *, above: float = 0) -> int:
    """The decimals that show two significant digits of the narrowest width above `above`.

    At least 3 if this width is below 1, and 3 if there is none, so that values of metrics look
    alike.
    """
    widths = widths[(widths > above) & (widths < np.inf)]  # drops NaN too
    if not len(widths):
        return FEWEST_DECIMALS
    narrowest = widths.min()
    fewest = FEWEST_DECIMALS if narrowest < 1 else 0
    return int(np.clip(1 - np.floor(np.log10(narrowest)), fewest, _MOST_DECIMALS))


def decimals_of_metric(widths: FloatArray) -> int:
    """`decimals_of` the intervals of a metric, whose widths up to NARROWEST count as 0."""
    return decimals_of(widths, above=NARROWEST)


def fixed(value: float, digits: int = FEWEST_DECIMALS) -> str:
    """A number with `digits` decimals; a dash if it is NaN."""
    return "-" if math.isnan(value) else f"{value:z.{digits}f}"


def limits_in_words(low: float, high: float, digits: int) -> tuple[str, str]:
    """The limits of an interval, with up to 2 more decimals if one that is not 0 would look like 0.

    The sign of a limit says whether a difference is significant.
    """

    def hides(x: float, digits: int) -> bool:
        return x != 0 and abs(x) < 0.5 * 10.0**-digits

    enough = (d for d in range(digits, digits + 3) if not hides(low, d) and not hides(high, d))
    shown = next(enough, digits)
    return fixed(low, shown), fixed(high, shown)


def with_limits(value: float, low: float, high: float, *, digits: int) -> str:
    """A number and the limits of its interval, such as "0.977 [0.964, 0.986]"."""
    return f"{fixed(value, digits)} [{', '.join(limits_in_words(low, high, digits))}]"


def number(value: float, digits: int = 6) -> str:
    """A cost or a rate with `digits` significant digits; a dash if it is NaN."""
    return "-" if math.isnan(value) else f"{value:,.{digits}g}"


def rounded_down(value: float, decimals: int) -> float:
    """The highest number with `decimals` decimals that is at most `value`, up to float32's spacing.

    Thresholds are shown so: people type them in, and one that is rounded up flags none of the
    scores that equal it, which may be many, as `score >= 0.667` does of scores of 2 / 3.
    """
    if not math.isfinite(value):
        return value
    exact = Decimal(value)
    up = exact + abs(exact) * _SPACING
    return float(up.quantize(Decimal(1).scaleb(-decimals), context=_DOWN))


def threshold_in_words(value: float, digits: int = 6) -> str:
    """A threshold with `digits` significant digits, rounded down; a dash if it is NaN."""
    if value == 0 or not math.isfinite(value):
        return number(value, digits)
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return number(rounded_down(value, decimals), digits)


def p_value(p: float) -> str:
    """A p-value as text, such as "p = 0.012"."""
    text = p_number(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def p_number(p: float) -> str:
    """A p-value without "p =", for a column."""
    return "< 0.001" if p < 0.001 else fixed(p, 3)


def percent_text(share: float) -> str:
    """A share or a level in per cent, with three digits of it or of 1 - share, the smaller one."""
    least = 100 * min(share, 1 - share)
    decimals = max(1, 2 - math.floor(math.log10(least))) if least > 0 else 1
    return f"{100 * share:.{decimals}f}".rstrip("0").rstrip(".") + " %"


def metric_in_words(metric: Callable[..., Any]) -> str:
    """The name of a metric, with the options that a functools.partial fixes."""
    metric, _, options = of_partials(metric)
    name = str(getattr(metric, "__name__", "metric")).strip("<>").replace("_", " ")
    name = _WORDS.get(name) or " ".join(_WORDS.get(x, x) for x in name.split())
    told = [f"{key}={value}" for key, value in options.items() if _is_short(value)]
    return f"{name} ({', '.join(told)})" if told else name


def several_in(metric: Callable[..., Any]) -> dict[str, tuple[Any, ...]]:
    """The option, if any, to which a functools.partial gives several limits, and these limits.

    They are the last axis of the metric's result.
    """
    for name, value in of_partials(metric)[2].items():
        known = not isinstance(value, jax.Array) or is_concrete(value)
        if not known or not name.startswith(("max_", "min_")):
            continue
        if np.ndim(value) == 1 and np.asarray(value).dtype.kind in "iuf":
            texts = map(str, np.asarray(value))  # float32 0.1 becomes 0.1, not 0.10000000149
            return {"option": (name,), name: tuple(map(float, texts))}
    return {}


def _is_short(value: Any) -> bool:
    if isinstance(value, jax.Array) and not is_concrete(value):
        return False
    return isinstance(value, (str, bool, int, float)) or np.size(value) == 1


def enumerated(names: Sequence[str]) -> str:
    """Names with commas, and "and" before the last one."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def some_of(names: Sequence[str]) -> str:
    """The names, or the first ones and how many more there are."""
    if len(names) <= _MOST_NAMED:
        return enumerated(names)
    return enumerated([*names[: _MOST_NAMED - 1], f"{len(names) - _MOST_NAMED + 1} more"])


def visible(text: str, *, keep: str = "") -> str:
    """The text with escapes for control characters, which terminals obey and XML forbids."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else ascii(c)[1:-1] for c in text)
