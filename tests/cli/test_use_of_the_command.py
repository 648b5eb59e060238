"""Errors, help and progress of the command, and what a process of it imports."""

import gzip
import io
import os
import subprocess
import sys
import time

import jax
import numpy as np
import pandas as pd
import pytest
from command import evaluated, run
from evaluations import FEW

import jaxmetrics as jm
from jaxmetrics import _report, cli
from jaxmetrics._base.checks.options import CRITERIA
from jaxmetrics.plots._style import STYLE_NAMES


def test_progress_is_for_terminals_and_work_that_takes_long(monkeypatch, capsys):
    monkeypatch.setattr(cli, "PATIENCE", 0.1)
    for terminal, seconds, shown in ((True, 0.5, True), (True, 0, False), (False, 0.5, False)):
        monkeypatch.setenv("TTY_COMPATIBLE", str(int(terminal)))
        with cli._progress() as tell:
            tell("Working [/x]", 0.25)
            time.sleep(seconds)
        assert ("Working [/x]" in capsys.readouterr().err) == shown


GOOD = ("--label", "y", "--score", "a")


@pytest.mark.parametrize("name", ["report", "orders.csv"])
def test_what_is_no_command_is_told_how_a_report_is_made(name):
    result = run(name, "orders.csv")
    assert result.exit_code == 2
    assert f"there is no command '{name}': write jaxmetrics evaluate FILE --label" in result.stderr
    assert "--output FOLDER" in result.stderr


@pytest.mark.parametrize(
    ("name", "content", "arguments", "words"),
    [
        ("absent.csv", None, GOOD, ["no file", "absent.csv"]),
        ("x.xlsx", "y,a", GOOD, ["no known format", ".parquet"]),
        ("x.csv", "", GOOD, ["empty"]),
        ("x.csv", "\n\n", GOOD, ["empty"]),
        ("x.npz", "", GOOD, ["empty"]),
        ("x.csv", "y,a\n", GOOD, ["no rows"]),
        ("x.csv", "y,a\n1,2\n0,1,5\n", GOOD, ["cannot be read", "3 cells, and the header 2"]),
        ("x.csv", b"\x80\xff\n\x00", GOOD, ["save it in UTF-8"]),
        ("x.csv.gz", "not gzip", GOOD, ["cannot be read", "leave .gz out of its name"]),
        ("x.csv.gz", gzip.compress(b"y,a\n1,2\n", mtime=0)[:-9], GOOD, ["copy or pack it again"]),
        ("x.csv.bz2", "not bzip2", GOOD, ["cannot be read", "leave .bz2 out of its name"]),
        ("x.csv.zst", "not zstd", GOOD, ["cannot be read", "leave .zst out of its name"]),
        ("x.parquet", "not parquet", GOOD, ["cannot be read"]),
        ("x.npz", "not an archive", GOOD, ["cannot be read", "savez"]),
        ("x.npz", {"y": [0, 1], "a": [1.0]}, GOOD, ["y [2], a [1]", "one length"]),
        ("x.npz", {"y": [[0, 1]], "a": [[1, 2]]}, GOOD, ["y [1, 2]", "one-dimensional"]),
        ("x.npz", {"y": [0, 1], "a": [1j, 2]}, GOOD, ["score 'a'", "numbers"]),
        ("x.npz", {"y": [0, 1], "a": [None, 2]}, GOOD, ["column 'a'", "objects", ".astype(float)"]),
        ("x.csv", "y,a\nis not,2\nis,3\n", GOOD, ["--positive 'is not'"]),
        ("x.csv", "y,score\n1,2\n", ("--label", "y", "--score", "scor"), ["'scor'", "'score'"]),
        ("x.csv", "y,a\n1,2\n", ("--label", "label", "--score", "a"), ["'label'", "are y, a"]),
        ("x.csv", "y,a\n1,2\n", (*GOOD, "--amount", "m"), ["no column 'm'"]),
        (
            "x.csv",
            "y,a\n1,2\n2,3\n3,4\n",
            GOOD,
            ["binary", "more than 2 distinct values", "1, 2, 3"],
        ),
        ("x.csv", "y,a\nyes,2\nno,3\n", GOOD, ["'no' and 'yes'", "--positive yes"]),
        (
            "x.csv",
            "y,a\nyes,2\nno,3\n",
            (*GOOD, "--positive", "si"),
            ["no value 'si'", "'no' or 'yes'"],
        ),
        ("x.csv", "y,a\n1,2\n1,3\n", GOOD, ["only one class"]),
        ("x.csv", "y,a\n1,2\n,3\n0,1\n", GOOD, ["label 'y'", "missing", "1 of 3 rows"]),
        ("x.csv", "y,a\n1,2\n0,\n0,NaN\n", GOOD, ["score 'a'", "NaN", "2 of 3 rows", "drop"]),
        ("x.csv", "y,a\n1,2\n0,high\n", GOOD, ["score 'a'", "numbers", "'high'"]),
        ("x.csv", "y,a,w\n1,2,1\n0,1,-1\n", (*GOOD, "--weight", "w"), ["weight 'w'", "negative"]),
        ("x.csv", "y,a,w\n1,2,1\n0,1,inf\n", (*GOOD, "--weight", "w"), ["weight 'w'", "finite"]),
        ("x.csv", "y,a,w\n1,2,1\n0,1,0\n", (*GOOD, "--weight", "w"), ["negatives are all 0"]),
        ("x.csv", "y,a,m\n1,2,-1\n0,1,1\n", (*GOOD, "--amount", "m"), ["amount 'm'", "negative"]),
        ("x.csv", "y,a\n1,2\n0,1\n", (*GOOD, "--max-fpr", "5"), ["got 5", "0.01 for 1 %"]),
        ("x.csv", "y,a\n1,2\n0,1\n", (*GOOD, "--max-fpr", "0"), ["above 0", "fractions"]),
        ("x.csv", "y,a\n1,2\n0,1\n", (*GOOD, "--max-fpr", "nan"), ["got nan"]),
        ("x.csv", "y,a\n", (*GOOD, "--prevalence", "1"), ["--prevalence", "got 1", "fractions"]),
        ("x.csv", "y,a\n", (*GOOD, "--prevalence", "0"), ["--prevalence", "got 0", "above 0"]),
        ("x.csv", "y,a\n", (*GOOD, "--prevalence", "nan"), ["--prevalence", "got nan"]),
        ("x.csv", "y,a\n", (*GOOD, "--min-precision", "90"), ["--min-precision", "got 90", "0.9"]),
        ("x.csv", "y,a\n", (*GOOD, "--min-recall", "0"), ["--min-recall", "got 0", "above 0"]),
        ("x.csv", "y,a\n", (*GOOD, "--threshold", "inf"), ["--threshold must be finite"]),
        ("x.csv", "y,a\n", (*GOOD, "--confidence-level", "95"), ["got 95", "write 0.95 for 95"]),
        ("x.csv", "y,a\n", (*GOOD, "--confidence-level", "0"), ["got 0", "write 0.95"]),
        ("x.csv", "y,a\n", (*GOOD, "--confidence-level", "nan"), ["got nan"]),
        ("x.csv", "y,a\n", (*GOOD, "--n-resamples", "0"), ["at least 1", "got 0"]),
        ("x.csv", "y,a\n", (*GOOD, "--seed", "-1"), ["from 0 to", "got -1"]),
        ("x.csv", "y,a\n1,2\n0,1\n", (*GOOD, "--cluster", "c"), ["no column 'c'"]),
        (
            "x.csv",
            "y,a,c\n1,2,p\n0,1,\n",
            (*GOOD, "--cluster", "c"),
            ["cluster 'c'", "missing", "1 of 2 rows"],
        ),
        ("x.csv", "y,a,c\n1,2,p\n0,1,p\n", (*GOOD, "--cluster", "c"), ["'p' in all rows", "group"]),
        ("x.csv", "y,a\n1,2\n0,1\n", (*GOOD, "--score", "a"), ["'a'", "twice"]),
        ("x.csv", "y,a\n1,2\n0,1\n", (*GOOD, "--score", "y"), ["'y'", "twice"]),
        ("x.csv", "y,a\n1,2\n0,1\n", (*GOOD, "--output", __file__), ["cannot write", "--output"]),
        ("x.csv", "y,a\n1,2\n0,1\n", ("--label", "y"), ["--score"]),
    ],
)
def test_every_error_is_a_sentence_and_exit_code_2(tmp_path, name, content, arguments, words):
    file = tmp_path / name
    if isinstance(content, dict):
        np.savez(file, **content)
    elif content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    result = run("evaluate", file, *arguments, "--json")
    assert result.exit_code == 2
    assert result.stdout == ""
    last = result.stderr.splitlines()[-1]
    assert last.startswith("Error: ")
    for word in words:
        assert word in last
    if "--score" in arguments:  # what click itself refuses comes with the usage
        assert result.stderr.count("\n") == 1


def test_demo_checks_before_it_trains(tmp_path):
    result = run("demo", "--max-fpr", "5", "--output", tmp_path / "report")
    assert result.exit_code == 2
    assert "0.01 for 1 %" in result.stderr
    assert not (tmp_path / "report").exists()


def test_bad_styles_are_refused_before_any_work(tmp_path):
    for command in (("demo",), ("evaluate", "no file", "--label", "y", "--score", "a")):
        result = run(*command, "--style", "grey", "--output", tmp_path / "report")
        assert result.exit_code == 2
        last = result.stderr.splitlines()[-1]
        assert last == "Error: Invalid value for '--style': 'grey' is not one of 'colour', 'print'."
        assert not (tmp_path / "report").exists()


def test_a_criterion_that_is_not_known_is_refused():
    result = run("evaluate", "no file", *GOOD, "--criterion", "gini")
    assert result.exit_code == 2
    assert "Invalid value for '--criterion': 'gini' is not 'youden'." in result.stderr


def test_the_help_has_the_defaults_and_choices_of_the_settings():
    settings = _report.Settings()
    assert (settings.max_fpr, settings.k, settings.gain) == (cli.MAX_FPR, (cli.K,), cli.GAINS[0])
    assert settings._replace(fn_cost=7.0).costs == (1, 7)
    assert (cli.STYLES, cli.CRITERIA) == (STYLE_NAMES, CRITERIA)


def test_version_and_help():
    assert jm.__version__ in run("--version").stdout
    for command in ("demo", "evaluate"):
        assert f"jaxmetrics {command} " in run(command, "--help").stdout.split("Example")[1]


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_an_output_that_lacks_a_character_has_its_number(tmp_path, monkeypatch):
    """As that of a command on Windows whose output goes to a file."""
    labels = np.arange(60) % 3 == 0
    pd.DataFrame({"y": labels, "日": np.sin(np.arange(60)) + labels}).to_csv(tmp_path / "x.csv")
    output = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
    monkeypatch.setattr(sys, "stdout", output)
    given = ("--label", "y", "--score", "日", "--threshold", "0.5", *FEW)
    monkeypatch.setattr(sys, "argv", ["jaxmetrics", "evaluate", str(tmp_path / "x.csv"), *given])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 0
    text = output.buffer.getvalue().decode("cp1252")
    assert r"\u65e5" in text
    assert r"\u2265" in text


def test_without_the_extra_one_sentence():
    result = python(
        "import sys; sys.modules['click'] = None; import jaxmetrics.cli; jaxmetrics.cli.main()"
    )
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert "pip install 'jaxmetrics-exact[report]'" in result.stderr


@pytest.mark.parametrize("chosen", [None, pytest.param("elsewhere", marks=pytest.mark.slow)])
def test_a_process_imports_no_extra_and_keeps_programs_in_the_users_cache_folder(tmp_path, chosen):
    """Importing the library imports none; and unless JAX is told of another folder."""
    code = (
        "import sys, jaxmetrics, jaxmetrics.cli, jaxmetrics.plots; "
        "print([x for x in jaxmetrics.cli.EXTRA if x in sys.modules]); "
        "import jax, jaxmetrics._report; jaxmetrics._report.keep_programs(); "
        "print(jax.config.jax_compilation_cache_dir)"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    if chosen is not None:
        environment["JAX_COMPILATION_CACHE_DIR"] = chosen
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    expected = tmp_path / "jaxmetrics" if chosen is None else chosen
    assert result.stdout.splitlines() == ["[]", str(expected)]


def test_what_is_asked_for_is_printed(tmp_path):
    """The metrics of one model in slices, thresholds at a cost, and a doubt of the direction."""
    rng = np.random.default_rng(6)
    labels = rng.random(600) < 0.4
    columns = {"y": labels, "a": labels - rng.normal(size=600), "site": rng.choice([*"pqr"], 600)}
    pd.DataFrame(columns).assign(a=-columns["a"]).to_csv(tmp_path / "x.csv", index=False)
    given = ("--label", "y", "--score", "a", *FEW, "--slice", "site", "--fn-cost", "5")
    result = run("evaluate", tmp_path / "x.csv", *given)
    assert "By site" in result.stdout
    assert "Threshold: Least cost" in result.stdout
    assert "the AUC of a is below 0.5" in result.stdout
    rules = {"min_precision": 0.3, "min_recall": 0.9, "threshold": 0.5}
    written = [x for k, v in rules.items() for x in (f"--{k.replace('_', '-')}", v)]
    found = evaluated(tmp_path / "x.csv", *given[:6], *written)["operating_points"]
    for name, value in rules.items():
        options = {"key": jax.random.key(0), "n_resamples": 40}
        with jax.enable_x64(True):  # and of one model, as in the report, whose programs it shares
            point = jm.operating_point(-columns["a"][None], labels, **options, **{name: value})
        for part in ("threshold", "recall", "fpr", "precision"):
            expected = float(getattr(point, part).estimate[0])
            assert found[name]["a"][part]["value"] == pytest.approx(expected, rel=1e-6), (
                name,
                part,
            )
    twice = run("evaluate", tmp_path / "x.csv", tmp_path / "x.csv", *given)
    assert "is given twice, and its rows would count twice" in twice.stderr


def test_an_option_that_counts_once_is_not_given_twice():
    result = run("evaluate", "no file", *GOOD, "--max-fpr", "0.01", "--max-fpr=0.05")
    assert result.exit_code == 2
    assert "--max-fpr is given 2 times: write it once" in result.stderr
