"""The command `jaxmetrics`: evaluate the scores in a file, or see a demonstration.

Its packages come with the `report` extra, and are imported when a command needs them.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jaxmetrics

if TYPE_CHECKING:
    import click
    from rich.status import Status

    from jaxmetrics._report import Problem

EXTRA = ("click", "matplotlib", "pandas", "pyarrow", "rich", "sklearn")

HELP = "Ranking metrics of classifiers: AUC, partial AUC, recall at a false positive rate."

DEMO_HELP = """Train three classifiers on real data and compare them.

The data are scikit-learn's handwritten digits, the question is whether one is an 8. Prints a
table, and writes roc.png, metrics.json and metrics.csv.

\b
Example:
  jaxmetrics demo --max-fpr 0.05
"""

EVALUATE_HELP = """Evaluate the scores of one or several models in FILE.

FILE is .csv, .csv.gz, .parquet or .npz (arrays by name), with a column of labels and a column of
scores for each model; higher scores are more positive.

\b
Examples:
  jaxmetrics evaluate orders.csv --label fraud --score old --score new
  jaxmetrics evaluate orders.parquet --label fraud --score new \\
      --max-fpr 0.005 --amount total --output report
  jaxmetrics evaluate visits.csv --label outcome --positive yes --score risk --json
"""


def demo(*, output: Path, max_fpr: float, as_json: bool, seed: int) -> None:
    """Report on three classifiers of scikit-learn's digits."""
    from jaxmetrics import _report

    _report.check_max_fpr(max_fpr)
    _report.make_directory(output)
    with _status("Loading ...") as status:
        problem = _report.digits_problem(seed, status.update)
    _show(problem, max_fpr, as_json, output)


def evaluate(
    *,
    file: Path,
    label: str,
    score: tuple[str, ...],
    positive: str | None,
    max_fpr: float,
    amount: str | None,
    weight: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Report on the scores in a file."""
    from jaxmetrics import _report

    _report.check_max_fpr(max_fpr)
    with _status(f"Reading {file.name} ..."):
        problem = _report.problem_of_file(
            file, label=label, scores=score, positive=positive, weight=weight, amount=amount
        )
    if output is not None:
        _report.make_directory(output)
    _show(problem, max_fpr, as_json, output)


def _show(problem: Problem, max_fpr: float, as_json: bool, output: Path | None) -> None:
    """Evaluate; print a table or JSON alone; write the files if there is a folder for them."""
    import click
    from rich.console import Console

    from jaxmetrics import _report

    with _status("Evaluating ..."):
        report = _report.report(problem, max_fpr)
    if as_json:
        click.echo(_report.json_of(report))
    else:
        # Wide, as rich would cut numbers off where a pipe or a narrow terminal wraps the line.
        Console(width=200).print(_report.table_of(report))
    if output is not None:
        with _status("Drawing ..."):
            _report.save(problem, report, output)
        click.echo(f"Wrote roc.png, metrics.json and metrics.csv to {output}", err=as_json)


def _status(message: str) -> Status:
    """Progress on stderr, if that is a terminal."""
    from rich.console import Console

    return Console(stderr=True).status(message)


def commands() -> click.Group:
    """The commands. A function, so that importing this module does not need the extra."""
    import click

    def option(*names: str, **settings: Any) -> click.Option:
        return click.Option(names, show_default=True, **settings)

    folder, json_flag = click.Path(path_type=Path), {"is_flag": True, "help": "Print JSON alone."}
    group = click.Group("jaxmetrics", help=HELP)
    group.command(
        help=DEMO_HELP,
        params=[
            option("--output", type=folder, default="jaxmetrics-report", help="Where to write."),
            option("--max-fpr", type=float, default=0.05, help="The partial AUC's window."),
            option("--json", "as_json", **json_flag),
            option("--seed", type=int, default=0, help="Of the split and the random forest."),
        ],
    )(demo)
    group.command(
        help=EVALUATE_HELP,
        params=[
            click.Argument(["file"], type=folder),
            option("--label", required=True, metavar="COLUMN", help="0 and 1, or see --positive."),
            option("--score", required=True, multiple=True, metavar="COLUMN", help="Once a model."),
            option("--positive", metavar="VALUE", help="The label of the positives."),
            option("--max-fpr", type=float, default=0.01, help="The partial AUC's window."),
            option("--amount", metavar="COLUMN", help="Also the recall by amount."),
            option("--weight", metavar="COLUMN", help="Item weights."),
            option("--output", type=folder, help="Where to write roc.png and the metrics."),
            option("--json", "as_json", **json_flag),
        ],
    )(evaluate)
    return click.version_option(jaxmetrics.__version__)(group)


def main() -> None:
    """Run the command, or say what is not installed."""
    if any(find_spec(name) is None for name in EXTRA):
        sys.stderr.write("The jaxmetrics command needs: pip install 'jaxmetrics[report]'\n")
        sys.exit(2)
    commands()(prog_name="jaxmetrics")
