"""Files, read in memory and in batches."""

import pytest

from jaxmetrics import _report
from jaxmetrics._report import _settings

SETTINGS, TELL = _report.Settings(), _settings.untold
ROWS = [f"{i % 2},{i / 10},t{i}" for i in range(100)]


def file_of(folder, rows, header="y,a,text", name="x.csv", encoding="utf-8"):
    path = folder / name
    path.write_bytes("".join(f"{line}\n" for line in (header, *rows)).encode(encoding))
    return path


def refusal(path, label="y", positive=None, scores=("a",)):
    """The sentence that refuses a file in memory, which is that in batches."""
    options = {"label": label, "scores": scores, "positive": positive}
    sentences = []
    for work, *more in ((_report.problem_of_file,), (_report.evaluate_stream, SETTINGS, TELL)):
        with pytest.raises(_report.InputError) as caught:
            work(path, *more, **options)
        sentences.append(caught.value.message)
    assert sentences[0] == sentences[1]
    return sentences[0]


def with_text(row, text):
    return [*ROWS[:row], f"{row % 2},{row / 10},{text}", *ROWS[row + 1 :]]
