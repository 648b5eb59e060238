"""The folder of a report: what it holds where writing fails or is interrupted."""

import errno
import io
import os
import resource
import signal
import subprocess
import sys
import time

import pytest
from command import run
from matplotlib.figure import Figure
from rich.console import Console

from jaxmetrics import _report, cli
from jaxmetrics._report import (
    _classification,
    _drawn,
    _evaluation,
    _folder,
    _output,
    _settings,
)


def contents(folder):
    return {x.name: x.read_text() for x in folder.iterdir()}


def write(folder, files, stop=None):
    with _folder.replaced_files(folder) as temporary:
        for name, text in files.items():
            (temporary / name).write_text(text)
        if stop == errno.ENOSPC:
            raise OSError(stop, "No space left on device")
        if stop is not None:
            signal.raise_signal(stop)


@pytest.fixture(autouse=True)
def interrupts_are_heeded():
    """Also where the tests run in the background of a shell, which ignores interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("old", [{}, {"a": "old", "notes": "mine"}])
@pytest.mark.parametrize("stop", [None, signal.SIGTERM, signal.SIGINT, errno.ENOSPC])
def test_a_report_is_replaced_as_a_whole_or_not_at_all(tmp_path, old, stop):
    folder = tmp_path / "some" / "report"
    if old:
        folder.mkdir(parents=True)
    for name, text in old.items():
        (folder / name).write_text(text)
    expected = {signal.SIGTERM: SystemExit, signal.SIGINT: KeyboardInterrupt}.get(
        stop, _report.InputError
    )
    if stop is None:
        write(folder, {"a": "new"})
        assert contents(folder) == {**old, "a": "new"}
        return
    with pytest.raises(expected):
        write(folder, {"a": "new"}, stop)
    assert contents(folder) == old if old else not any(tmp_path.iterdir())


def blank(drawing, style, **options):
    """The files of a figure, with the marks that they have, of nothing."""
    nothing = drawing._replace(draw=lambda: Figure(layout="constrained"))
    return _drawn.drawn(nothing, style, **options)


def test_figures_of_an_older_report_are_removed(tmp_path, monkeypatch):
    """And no file of the user, not even one with the name of a figure."""
    for module in (_classification, _output):
        monkeypatch.setattr(module, "drawn", blank)
    file = tmp_path / "x.csv"
    file.write_text("y,a,g\n0,1,q\n1,2,q\n0,3,r\n1,4,r\n")
    options = ("--label", "y", "--score", "a", "--n-resamples", 10, "--output", tmp_path / "r")
    assert run("evaluate", file, *options, "--slice", "g", "--fn-cost", 7).exit_code == 0
    older = {x.name for x in (tmp_path / "r").iterdir()}
    assert {"slices.svg", "slices.png", "cost.svg"} <= older
    users = {"slices_1.png": "mine", "roc_copy.svg": (tmp_path / "r" / "roc.svg").read_text()}
    for name, text in users.items():
        (tmp_path / "r" / name).write_text(text)
    assert run("evaluate", file, *options).exit_code == 0
    now = {x.name for x in (tmp_path / "r").iterdir()}
    assert now == older - {f"{x}.{y}" for x in ("slices", "cost") for y in ("svg", "png")} | set(
        users
    )
    assert run("evaluate", file, *options, "--group", "g").exit_code == 0
    now = {x.name for x in (tmp_path / "r").iterdir()}
    numbers = {"report.html", "metrics.json", "metrics.csv"}
    assert now == {"ranking.svg", "ranking.png", *numbers, *users}


def test_progress_obeys_no_name_of_a_file(monkeypatch):
    """It is told the name as it is, and shows control characters as escapes."""
    monkeypatch.setattr(cli, "PATIENCE", 0)
    terminal = io.StringIO()
    console = Console(file=terminal, force_terminal=True, width=200)
    monkeypatch.setattr("rich.console.Console", lambda **_: console)
    with cli._progress() as tell:
        tell("Reading a\x1b[31mb\x07.csv", 0.5)
        time.sleep(0.3)
    assert r"Reading a\x1b[31mb\x07.csv" in terminal.getvalue()
    assert "\x07" not in terminal.getvalue()


def test_figures_of_many_items_have_no_bands(tmp_path, monkeypatch):
    monkeypatch.setattr(_evaluation, "MOST_BANDED", 3)
    file = tmp_path / "x.csv"
    file.write_text("y,a\n0,1\n1,2\n0,3\n1,4\n")
    options = ("--label", "y", "--score", "a", "--n-resamples", 10, "--output", tmp_path / "r")
    result = run("evaluate", file, *options)
    assert "roc.png has no bands, because those of more than 3 items are as thin" in result.stdout
    assert "Shaded" not in (tmp_path / "r" / "report.html").read_text()


def test_signals_wait_until_all_files_are_replaced(tmp_path, monkeypatch):
    replace = _folder.Path.replace

    def interrupted(file, target):
        signal.raise_signal(signal.SIGINT)
        return replace(file, target)

    monkeypatch.setattr(_folder.Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, dict.fromkeys("abc", "new"))
    assert contents(tmp_path) == dict.fromkeys("abc", "new")


def test_a_folder_is_checked_before_the_file_is_read(tmp_path):
    """And nothing is left there."""
    for folder in (tmp_path / "new" / "folder", tmp_path):
        _report.check_folder(folder)
        assert not any(tmp_path.iterdir())
    occupied = tmp_path / "file"
    occupied.write_text("")
    for folder in (occupied, occupied / "folder", tmp_path / ("x" * 300)):
        result = run("evaluate", "absent.csv", "--label", "y", "--score", "a", "--output", folder)
        assert result.exit_code == 2
        assert "cannot write to" in result.output


def test_a_full_disk(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(_report.InputError, match=r"cannot write to .*too large"):
            write(tmp_path, {"report.html": "x" * 1000})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not any(tmp_path.iterdir())


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no full device")
@pytest.mark.parametrize("written", [pytest.param(False, marks=pytest.mark.slow), True])
def test_standard_output_that_is_full(tmp_path, written):
    """Of JSON or of tables; a report is written all the same."""
    file, folder = tmp_path / "x.csv", tmp_path / "report"
    options = ("--output", folder) if written else ("--json",)
    file.write_text("y,a\n0,1\n1,2\n0,3\n1,4\n")
    # Without figures, which take longest.
    code = (
        "from jaxmetrics import cli; from jaxmetrics._report import _figures; "
        "_figures.drawings_of = lambda *_, **__: (); cli.main()"
    )
    arguments = ("evaluate", file, "--label", "y", "--score", "a", "--n-resamples", "10")
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [sys.executable, "-c", code, *map(str, (*arguments, *options))],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    *_, last = result.stderr.splitlines()
    assert last == "Error: cannot write to standard output: No space left on device"
    assert "Traceback" not in result.stderr
    assert result.returncode == 2
    assert (folder / "report.html").exists() == written


@pytest.mark.parametrize("cost", [1e308, 1.1e29, float("inf"), float("nan"), -1.0])
def test_costs_whose_sum_could_overflow_are_refused(cost):
    """JSON has no infinity: the command ended in a traceback after all the computing."""
    _report.check_settings(_settings.Settings(fn_cost=1e29))
    with pytest.raises(_report.InputError, match=r"--fn-cost must be from 0 to 1e\+29, got"):
        _report.check_settings(_settings.Settings(fn_cost=cost))


def test_costs_at_a_prevalence_are_smaller():
    """Where few are positive, an error in the data stands for many there."""
    _report.check_settings(_settings.Settings(fn_cost=1e20, prevalence=0.5))
    with pytest.raises(_report.InputError, match=r"--fn-cost must be from 0 to 1e\+20, got"):
        _report.check_settings(_settings.Settings(fn_cost=1.1e20, prevalence=0.5))


@pytest.mark.parametrize("n", [10**6 + 1, 10**20, 10**400])
def test_resamples_that_would_not_fit_are_refused(n):
    with pytest.raises(_report.InputError, match=r"at most 1,000,000, got 10.*GiB") as caught:
        _report.check_settings(_settings.Settings(n_resamples=n))
    assert len(caught.value.message) < 300
    with pytest.raises(_report.InputError, match="below 2"):
        _report.check_settings(_settings.Settings(k=(n + 2**31,)))
