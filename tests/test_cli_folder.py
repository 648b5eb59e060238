"""The folder of a report: what it holds where writing fails or is interrupted."""

import errno
import resource
import signal

import pytest
from command import run

from jaxmetrics import _report
from jaxmetrics._report import _folder, _settings


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


@pytest.mark.parametrize("n", [10**6 + 1, 10**20, 10**400])
def test_resamples_that_would_not_fit_are_refused(n):
    with pytest.raises(_report.InputError, match=r"at most 1,000,000, got 10.*GiB") as caught:
        _report.check_settings(_settings.Settings(n_resamples=n))
    assert len(caught.value.message) < 300
    with pytest.raises(_report.InputError, match="below 2"):
        _report.check_settings(_settings.Settings(k=(n + 2**31,)))
