"""The data, the report of the command, and those of figures and of frames."""

import jax
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from reports import COMMAND, NAMES, ODD, N

import jaxmetrics as jm
from jaxmetrics import _report, cli
from jaxmetrics._report import _figures
from jaxmetrics._report._evaluation import Measure, Slices


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
def output(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    data.to_csv(folder / "data.csv", index=False)
    scores = [x for name in NAMES for x in ("--score", name)]
    arguments = [
        *("evaluate", folder / "data.csv", "--label", "y", *scores, "--slice", "country"),
        *("--fn-cost", 7, "--max-fpr", 0.1, "--n-resamples", 40, "--criterion", "youden"),
        *("--output", folder / "out"),
    ]
    result = CliRunner().invoke(
        cli.commands(), [str(x) for x in arguments], obj=COMMAND, catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    return folder / "out"


@pytest.fixture(scope="session")
def page(output):
    return (output / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def drawings():
    """Those of twenty models with all kinds of names, and of slices with such values."""
    names = [*ODD, *(f"model {i}" for i in range(13))]
    labels = np.arange(N) % 3 == 0
    scores = np.round(np.random.default_rng(3).normal(size=(20, N)) + labels, 1)
    value = np.linspace(0.5, 0.9, 20)
    interval = jm.Interval(value, value - 0.1, value + 0.1, value, "wald", 0.95)
    measures = [
        Measure(name, name, interval) for name in ("roc_auc", "partial_auc", "average_precision")
    ]
    of_slices = [
        Measure(x.name, x.name, jax.tree.map(lambda x: np.stack([x] * 7), interval))
        for x in measures[:2]
    ]
    slices = Slices("country\x1b", ODD, (N,) * 7, (N,) * 7, tuple(of_slices))
    settings = _report.Settings(fn_cost=7)
    return _figures.drawings_of(
        jm.score_table(scores, labels), names, settings, measures, slices=[slices]
    )


@pytest.fixture(scope="session")
def in_memory(data, output, tmp_path_factory):
    """The report of the same data from a frame, after that of the file, whose programs it uses."""
    return jm.report(
        data[list(NAMES)],
        data.y,
        slices={"country": data.country.replace("", None)},
        max_fpr=0.1,
        criterion="youden",
        fn_cost=7,
        n_resamples=40,
        output=tmp_path_factory.mktemp("arrays"),
    )
