"""The report that --output writes: one page, its figures and numbers, also by slice."""

import html
import json
import re
import shutil
import subprocess
from functools import partial

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import jaxmetrics as jm
from jaxmetrics import _report, cli
from jaxmetrics._report import _figures, _findings, _slices
from jaxmetrics._report._evaluation import Evaluation, Measure

pytestmark = pytest.mark.xdist_group("report")
N = 300
NAMES = ("a", "b <i>")
COMMAND = "jaxmetrics evaluate data.csv --score 'b <i>'"
FIGURES = ("intervals", "roc", "precision_recall", "scores", "cost", "slices")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(8)
    y = rng.random(N) < 0.3
    scores = {
        name: np.round(rng.normal(size=N) + k * y, 1) for name, k in zip(NAMES, (1, 3), strict=True)
    }
    country = rng.choice(["north", "south"], N).astype(object)
    country[:20] = np.where(y[:20], "south", "none positive")
    country[20:25] = ""
    return pd.DataFrame({"y": y.astype(int), "country": country, **scores})


@pytest.fixture(scope="module")
def output(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    data.to_csv(folder / "data.csv", index=False)
    scores = [x for name in NAMES for x in ("--score", name)]
    arguments = [
        *("evaluate", folder / "data.csv", "--label", "y", *scores, "--slice", "country"),
        *("--fn-cost", 7, "--max-fpr", 0.1, "--n-resamples", 40, "--output", folder / "out"),
    ]
    result = CliRunner().invoke(
        cli.commands(), [str(x) for x in arguments], obj=COMMAND, catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    return folder / "out"


@pytest.fixture(scope="module")
def page(output):
    return (output / "report.html").read_text(encoding="utf-8")


def test_every_figure_is_a_file_in_two_formats(output):
    expected = {f"{name}.{ending}" for name in FIGURES for ending in ("png", "svg")}
    expected |= {"report.html", "metrics.json", "metrics.csv"}
    assert {path.name for path in output.iterdir()} == expected
    for name in FIGURES:
        assert (output / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (output / f"{name}.svg").read_text()


def test_the_page_needs_nothing_else(page):
    """Nothing is loaded, not even from beside it."""
    assert page.count("<svg") == len(FIGURES)
    assert not re.search(r"<(script|link|img|iframe|object)\b", page)
    assert set(re.findall(r'href="(.)', page)) == {"#"}
    assert not re.search(r"url\((?!#)|@import", page)


def test_the_page_begins_with_the_answer(page):
    assert 0 < page.index("b &lt;i&gt; has the highest value, ") < page.index("<table")


def test_names_are_taken_literally(page):
    assert "b <i>" not in page
    assert page.count("b &lt;i&gt;") > 10


def test_the_page_has_every_number_of_the_tables(page, output):
    """In the row of its model and the column of its metric."""
    report = json.loads((output / "metrics.json").read_text())
    table = page[page.index('id="values"') : page.index('id="pairs"')]
    rows = re.findall(r"<tr><th scope=.row.>(.*?)</th>(.*?)</tr>", table, re.DOTALL)
    for (name, model), (heading, row) in zip(report["models"].items(), rows, strict=True):
        assert heading == html.escape(name)
        cells = re.findall(r"<td>(?:<strong>)?([.\d]+)\*?(?:</strong>)?<small>", row)
        recalls = [model["recall_at_fpr"][limit] for limit in ("0.01", "0.05", "0.1")]
        found = [model["roc_auc"], model["partial_auc"], *recalls, model["average_precision"]]
        for cell, estimate in zip(cells, found, strict=True):
            digits = len(cell.partition(".")[2])
            assert float(cell) == pytest.approx(estimate["value"], abs=0.51 * 10**-digits)
    assert "A false positive costs 1, a false negative 7 (" in page
    assert page.count("jaxmetrics evaluate data.csv --score") == 1
    assert f"jax {report['versions']['jax']}" in page


def test_the_thresholds_of_least_cost(data, output, page):
    report = json.loads((output / "metrics.json").read_text())
    for name in NAMES:
        found = report["least_cost"][name]
        scores, labels = data[name].to_numpy(), data["y"].to_numpy()
        exact = jm.min_cost_threshold(scores, labels, fn_cost=7)
        assert found["threshold"] == pytest.approx(float(exact), rel=1e-6)
        flagged = scores >= found["threshold"]
        assert found["cost"] == np.sum(flagged & (labels == 0)) + 7 * np.sum(~flagged & labels)
    assert page.count("Threshold of least cost") == 2


def test_the_numbers_of_slices_are_in_the_csv(output):
    report = json.loads((output / "metrics.json").read_text())
    frame = pd.read_csv(output / "metrics.csv")
    rows = frame[frame["slice"] == "country = north"]
    assert len(rows) == 4
    for _, row in rows.iterrows():
        found = report["slices"]["country"]["north"]["models"][row["model"]][row["metric"]]
        assert row["value"] == pytest.approx(found["value"])
        assert row["simultaneous_low"] == pytest.approx(found["simultaneous_low"])


def test_facts_of_the_data(data, output, page):
    report = json.loads((output / "metrics.json").read_text())
    for name in NAMES:
        counts = data[name].value_counts()
        assert report["n_tied"][name] == counts[counts > 1].sum()
    assert report["n_duplicates"] == data[["y", *NAMES]].duplicated().sum() > 0
    assert f"<dt>Rows</dt><dd>{N}</dd>" in page


# Slices.


def test_slices_are_the_metrics_of_their_items(data, output):
    """With Bonferroni's level, and nothing where a class is absent."""
    slices = json.loads((output / "metrics.json").read_text())["slices"]["country"]
    assert list(slices) == ["none positive", "north", "south", "missing"]
    for value, found in slices.items():
        items = data["country"] == ("" if value == "missing" else value)
        assert found["n_items"] == items.sum()
        assert found["n_positive"] == data["y"][items].sum()
    assert slices["none positive"]["models"]["a"]["roc_auc"]["value"] is None
    items = data["country"] == "north"
    for name in NAMES:
        for key, metric in (
            ("roc_auc", jm.roc_auc),
            ("partial_auc", partial(jm.partial_auc, max_fpr=0.1, scale="mcclish")),
        ):
            exact = jm.confidence_interval(
                metric,
                data[name].to_numpy(),
                data["y"].to_numpy(),
                where=items.to_numpy(),
                confidence_level=1 - 0.05 / 4,
            )
            found = slices["north"]["models"][name][key]
            assert found["value"] == pytest.approx(float(exact.estimate), rel=1e-5)
            assert found["simultaneous_low"] == pytest.approx(float(exact.low), rel=1e-4)
            assert found["simultaneous_high"] == pytest.approx(float(exact.high), rel=1e-4)


def test_columns_of_many_numbers_are_cut_in_fifths():
    column = _slices.column_of("age", pd.Series(np.arange(100) / 2))
    assert len(column.values) == 5
    assert (np.bincount(column.codes) == 20).all()
    assert column.values[:2] == ("0 to 9.5", "10 to 19.5")
    times = _slices.column_of("time", pd.Series(1_700_000_000 + np.arange(100)))
    assert times.values[0] == "1700000000 to 1700000019"
    none = _slices.column_of("c", pd.Series(["missing", "a", None]))
    assert none.values == ("a", "missing", "(missing)")
    few = _slices.column_of("age", pd.Series([3, 1, None, 3]))
    assert few.values == ("1.0", "3.0", "missing")
    assert few.codes.tolist() == [1, 0, 2, 1]
    with pytest.raises(_report.InputError, match="'id' has 30 distinct values, more than 20"):
        _slices.column_of("id", pd.Series([f"x{i}" for i in range(30)]))


# Sentences.


def _findings_of(estimates, best_set, difference):
    estimates = np.array(estimates)
    difference = np.array(difference)
    interval = jm.Interval(estimates, estimates - 0.1, estimates + 0.1, 0 * estimates, "wald", 0.9)
    n = len(estimates)
    pairs = (difference, *[np.zeros((n, n))] * 4, difference - 0.05, difference + 0.05)
    comparison = jm.Comparison(
        estimates, *pairs, np.full((n, n), 0.02), np.array(best_set), 0.0, 1, 0.5, 0.9
    )
    measure = Measure("roc_auc", "Area\nunder", interval, comparison)
    names = tuple("xyz"[:n])
    return _findings.findings_of(Evaluation(names, {}, (), "", "", (measure,), (), ()))[0]


def test_findings_say_who_is_best_and_who_is_not_significantly_worse():
    difference = [[0, -0.2, -0.3], [0.2, 0, -0.1], [0.3, 0.1, 0]]
    found = _findings_of([0.5, 0.7, 0.8], [False, False, True], difference)
    assert found.metric == "Area under"
    assert found.answer == (
        "z has the highest value, 0.800 [0.700, 0.900], and is significantly better than all others"
    )
    assert found.detail.startswith("By simultaneous 90 % intervals of all pairs, x is lower")
    assert ", x is lower by 0.300 [0.250, 0.350], p = 0.020; y is lower by 0.100" in found.detail
    found = _findings_of([0.5, 0.7, 0.8], [True, True, True], difference)
    assert found.answer.endswith("; not significantly worse: x and y")
    assert found.detail == "All pairs of models are compared, with simultaneous 90 % intervals"
    found = _findings_of([0.8, 0.7], [True, False], [[0, 0.1], [-0.1, 0]])
    best = "x has the highest value, 0.800 [0.700, 0.900], and is significantly better"
    assert found.answer == best
    assert "y is lower by 0.100 [0.050, 0.150]" in found.detail
    # Outside of the best set, which is one-sided, but its two-sided interval includes 0.
    found = _findings_of([0.8, 0.77], [True, False], [[0, 0.03], [-0.03, 0]])
    assert found.answer.endswith(
        "; every other model is significantly worse, but not by every two-sided interval"
    )
    found = _findings_of([0.8, np.nan], [True, True], [[0, np.nan], [np.nan, 0]])
    assert found.answer == "undefined"


# Figures.


def test_precision_on_the_curve_is_scikit_learns(data):
    from sklearn.metrics import precision_recall_curve

    scores, labels = data["a"].to_numpy(), data["y"].to_numpy()
    precision, recall, _ = precision_recall_curve(labels, scores)
    found = np.asarray(_figures.precision_on_curve(scores, labels))
    for value, limit in zip(found, _figures.RECALLS, strict=True):
        assert value == pytest.approx(precision[np.flatnonzero(recall >= limit - 1e-9)[-1]])


# In a browser.

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
MEASURE = """<script>addEventListener("load", () => {
  const wide = [...document.querySelectorAll("body *")].filter(
    x => !x.closest(".scroll, svg") && x.getBoundingClientRect().right > innerWidth + 1);
  const figures = [...document.querySelectorAll("figure > svg")].map(x => x.clientWidth);
  document.title = JSON.stringify({wide: wide.length, figures,
    scroll: document.documentElement.scrollWidth - innerWidth,
    ink: getComputedStyle(document.body).color,
    paper: getComputedStyle(document.body).backgroundColor});
})</script>"""


@pytest.mark.skipif(BROWSER is None, reason="chromium is not installed")
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (500, "dark")])
def test_in_a_browser_nothing_is_wider_than_the_screen(page, tmp_path, width, scheme):
    """On a wide and on a narrow one; in the dark, ink is lighter than paper."""
    copy = tmp_path / "report.html"
    copy.write_text(page.replace("</body>", MEASURE + "</body>"), encoding="utf-8")
    flags = f"--blink-settings=preferredColorScheme={int(scheme == 'light')}"
    done = subprocess.run(
        [
            *(BROWSER, "--headless", "--no-sandbox", "--disable-gpu", flags),
            *(f"--user-data-dir={tmp_path}", f"--window-size={width},900", "--dump-dom"),
            copy.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    found = json.loads(re.search(r"<title>(.*?)</title>", done.stdout)[1])
    assert found["wide"] == 0
    assert found["scroll"] <= 0
    assert len(found["figures"]) == len(FIGURES)
    assert min(found["figures"]) > min(width, 500) * 0.6
    ink, paper = (sum(map(int, re.findall(r"\d+", found[x])[:3])) for x in ("ink", "paper"))
    assert (ink > paper) == (scheme == "dark")
