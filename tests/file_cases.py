"""Small files of every kind that a command may be given, and what pandas reads in them."""

import csv
import gzip
import io
import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd

LABELS = {
    "numbers": ("0", "1"),
    "floats": ("0.0", "1.0"),
    "flags": ("False", "True"),
    "lower": ("false", "true"),
    "words": ("no", "yes"),
    "signs": ("-1", "1"),
    "mixed": ("0", "1", "1.0"),
    "three": ("0", "1", "2"),
    "odd": ("1", "yes"),
    "one": ("1",),
}
MISSING = ("", "NA", "nan", "NULL", "None", "<NA>")
TEXTS = (
    "plain",
    "a, b",
    'he said "no"',
    "two\nlines",
    "two\r\nlines",
    "",
    "1,2\n",
    " é ",
    '5" disk',
)
DAMAGE = ("unclosed", "pair", "long row", "short row", "semicolons", "tabs", "UTF-16")


class Case(NamedTuple):
    """A file and how it is evaluated."""

    name: str
    content: bytes
    scores: tuple[str, ...]
    positive: str | None
    duplicated: bool  # whether a column that is asked for is there twice
    damage: str | None


def _numbers(rng, n):
    values = rng.normal(size=n)
    kinds = ("float", "short", "int", "large", "exponent", "inf", "flag", "space", "text")
    kind = rng.choice(kinds, p=[0.26, 0.2, 0.15, 0.1, 0.1, 0.05, 0.05, 0.06, 0.03])
    texts = [repr(float(x)) for x in values]
    if kind == "short":
        texts = [f"{x:.1f}" for x in values]
    elif kind == "int":
        texts = [str(int(10 * x)) for x in values]
    elif kind == "large":
        texts = [str(2**53 + int(100 * x)) for x in values]
    elif kind == "exponent":
        texts = [f"{x:.3e}" for x in values]
    elif kind == "inf":
        texts = [rng.choice(["inf", "-inf", x]) for x in texts]
    elif kind == "flag":
        texts = [str(x > 0) for x in values]
    elif kind == "space":
        texts = [f" {x}" for x in texts]
    elif kind == "text" and n:
        texts[rng.integers(n)] = rng.choice(["high", "1_000", "0x10", "- 1", "True", "1,5"])
    return texts


def case(seed):
    """The file of a seed."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([0, 1, 2, 5, 12, 30], p=[0.02, 0.02, 0.02, 0.2, 0.34, 0.4]))
    kind = rng.choice(list(LABELS), p=[0.36, 0.1, 0.1, 0.1, 0.16, 0.06, 0.06, 0.02, 0.02, 0.02])
    labels = [str(x) for x in rng.choice(LABELS[kind], size=n)]
    columns = [("y", labels), ("a", _numbers(rng, n)), ("b", _numbers(rng, n))]
    for name in ("text", "note"):
        columns.append((name, [str(rng.choice(TEXTS)) for _ in range(n)]))
    if n and rng.random() < 0.1:
        columns[rng.integers(3)][1][rng.integers(n)] = str(rng.choice(MISSING))
    twice = rng.random() < 0.08
    if twice:
        columns.append((str(rng.choice(["y", "a", "text"])), columns[1][1]))
    columns = [columns[i] for i in rng.permutation(len(columns))]
    names = [name for name, _ in columns]
    positive = None
    if kind not in ("numbers", "floats") or rng.random() < 0.2:
        positive = rng.choice([None, "maybe", *LABELS[kind][:2] * 5])
    scores = ("a", "b") if rng.random() < 0.5 else ("a",)
    duplicated = any(names.count(name) > 1 for name in ("y", *scores))
    if rng.random() < 0.2 and not twice:
        content, damage = _parquet(rng, dict(columns)), None
        return Case(f"{seed}.parquet", content, scores, positive, False, None)
    damage = str(rng.choice(DAMAGE)) if n > 2 and rng.random() < 0.2 else None
    content = _csv(rng, names, list(zip(*(x for _, x in columns), strict=True)), damage)
    packed = rng.random() < 0.2
    name = f"{seed}.csv.gz" if packed else f"{seed}.csv"
    content = gzip.compress(content) if packed else content
    return Case(name, content, scores, positive, duplicated, damage)


def _csv(rng, names, rows, damage):
    file = io.StringIO()
    end = str(rng.choice(["\n", "\r\n"]))
    quoting = csv.QUOTE_ALL if rng.random() < 0.2 else csv.QUOTE_MINIMAL
    delimiter = {"semicolons": ";", "tabs": "\t"}.get(damage, ",")
    writer = csv.writer(file, lineterminator=end, quoting=quoting, delimiter=delimiter)
    writer.writerow(names)
    blank = rng.random() < 0.2
    first, second = sorted(rng.choice(len(rows), 2, replace=False)) if len(rows) > 2 else (0, 0)
    for i, row in enumerate(rows):
        if blank and rng.random() < 0.3:
            file.write(end)
        if damage in ("unclosed", "pair") and i in (first, second):
            position = names.index("text")
            row = ["" if names[j] in ("text", "note") else x for j, x in enumerate(row)]
            row[position] = '"x' if i == first else 'x"' if damage == "pair" else "x"
            file.write(",".join(f'"{x}"' if "," in x else x for x in row) + end)
            continue
        extra = ("1", "2") if damage == "long row" and i == first else ()
        writer.writerow(row[:-1] if damage == "short row" and i == first else (*row, *extra))
    text = file.getvalue()
    if rng.random() < 0.2:
        text = text.removesuffix(end)
    if damage == "UTF-16":
        return text.encode("utf-16")
    return text.encode("utf-8-sig" if rng.random() < 0.2 else "utf-8")


def _parquet(rng, columns):
    """With the types that pandas finds in the texts, and with one of several indexes."""
    frame = pd.DataFrame(columns)
    texts = io.StringIO(frame.to_csv(index=False))
    if rng.random() < 0.8:
        frame = pd.read_csv(texts)
    if rng.random() < 0.3:
        frame["y"] = frame["y"].astype("category")
    index = rng.choice(["none", "score", "label", "note", "shuffled"])
    if index in ("score", "label", "note"):
        frame = frame.set_index({"score": "a", "label": "y"}.get(index, "note"))
    elif index == "shuffled":
        frame.index = rng.permutation(len(frame))
    file = io.BytesIO()
    frame.to_parquet(file, row_group_size=int(rng.integers(1, 20)))
    return file.getvalue()


def by_pandas(case, path):
    """The labels and scores that pandas' default reader finds; a ValueError if it has none."""
    if case.duplicated:
        raise ValueError("duplicated")
    if case.name.endswith(".parquet"):
        frame = pd.read_parquet(path).reset_index()
    else:
        with warnings.catch_warnings(action="ignore"):  # of rows that pandas cuts
            frame = pd.read_csv(path, index_col=False)
    if frame.empty or not {"y", *case.scores} <= set(frame):
        raise ValueError("nothing to read")
    columns = {name: _typed(frame[name]) for name in ("y", *case.scores)}
    if any(frame[name].isna().any() or columns[name].isna().any() for name in columns):
        raise ValueError("missing")
    column = columns["y"]
    values = column.unique().tolist()
    if len(values) != 2:
        raise ValueError("not two values")
    if case.positive is None:
        if set(values) != {0, 1}:
            raise ValueError("which is positive?")
        chosen = 1
    else:
        (chosen,) = [x for x in values if _equal(x, case.positive)]
    scores = [pd.to_numeric(columns[name]).to_numpy(float) for name in case.scores]
    return (column == chosen).to_numpy(bool), np.stack(scores)


def _typed(column):
    """Texts of Parquet and categories with the type that they would have in a CSV file."""
    if pd.api.types.is_numeric_dtype(column):
        return column
    return pd.read_csv(io.StringIO(column.astype(str).to_csv(index=False))).iloc[:, 0]


def _equal(value, text):
    if isinstance(value, str):
        return value == text
    if isinstance(value, bool) and text.lower() in ("true", "false"):
        return str(value).lower() == text.lower()
    return float(value) == pd.to_numeric(text, errors="coerce")
