"""The command `jaxmetrics`: evaluate the scores in a file, or see a demonstration.

The `report` extra installs its packages; a command imports them when it needs them.
"""

from __future__ import annotations

import io
import itertools
import logging
import shlex
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jaxmetrics

if TYPE_CHECKING:
    import click

    from jaxmetrics._report import Evaluation, Problem, Queries, Settings, Tell

EXTRA = ("click", "jinja2", "matplotlib", "pandas", "platformdirs", "pyarrow", "rich", "sklearn")

PATIENCE = 0.5  # seconds until progress is shown
# Defaults of Settings. The options have none: with others some are refused, but only if given.
MAX_FPR, K, GAINS = 0.01, 10, ("linear", "exponential")

STYLES, CRITERIA = ("colour", "print"), ("youden",)
WIDTH = 200  # columns of output that does not go to a terminal

USAGE = "jaxmetrics evaluate FILE --label COLUMN --score COLUMN --output FOLDER, or jaxmetrics demo"
HELP = "Evaluate classifiers (AUC, partial AUC, recall at an FPR) and rankings (nDCG)."

DEMO_HELP = """Train three classifiers on real data and compare them.

The classifiers predict whether one of scikit-learn's handwritten digits is an 8. The command
prints their metrics with confidence intervals and compares them. It writes a report (report.html),
its figures, metrics.json and metrics.csv.

\b
Example:
  jaxmetrics demo --max-fpr 0.05
"""

EVALUATE_HELP = """Evaluate the scores of one or several models in FILE.

FILE is .csv or .tsv (also .gz, .bz2, .zst), .parquet or .npz (arrays by name); several of them, a
pattern such as "2026-*.csv", a folder with such files, or - for standard input. Folders such as
country=DK add a column. There is a column of labels and a column of scores for each model; higher
scores are more positive. Every metric has a confidence interval, and
several models are compared. If items belong together, such as the visits of a patient, pass the
column of their ids as --cluster: intervals then treat the items of an id as one unit.

A file of more than 2,000,000 rows, one larger than a quarter of memory, or any with --stream, is
read in batches into bins of scores: metrics then also have guaranteed bounds of their exact values,
and models are not compared, nor thresholds evaluated. --no-stream prevents it, as do options that
need all items at once, such as --amount.

Thresholds: the report says what that of --max-fpr does to new items, and others with --fp-cost or
--fn-cost (that of the least cost), --criterion (that of Youden's index), --min-precision,
--min-recall, or a --threshold in use, from which on scores are flagged. At a --prevalence that is
not that of FILE, as after negatives were thinned out, precision, NPV, share flagged and cost are
those there, and the least cost is chosen there. Without --output, each of these options but
--max-fpr prints them.

Rankings: with --group, a column of query ids, labels are grades of relevance (0 for none, higher
is better). Metrics are means over queries: nDCG at each --k; precision, recall and average
precision at the largest --k; reciprocal ranks, the expected ones with --max-grade; and the share of
pairs in the right order. Rankings have no --slice, --weight, --amount and --positive.
With --cluster, such as users, a query has one id, and the queries of an id are one unit.

\b
Examples:
  jaxmetrics evaluate orders.csv --label fraud --score old --score new
  jaxmetrics evaluate orders.parquet --label fraud --score new \\
      --max-fpr 0.005 --amount total --slice country --fn-cost 100 --output report
  jaxmetrics evaluate visits.csv --label outcome --positive yes --score risk \\
      --cluster patient --json
  jaxmetrics evaluate year.parquet --label fraud --score new --stream
  zcat orders.csv.gz | jaxmetrics evaluate - --label fraud --score new --drop-missing
  jaxmetrics evaluate searches.csv --group query_id --label grade --score old \\
      --score new --k 5 --k 10 --output report
"""


def demo(*, output: Path, as_json: bool, **chosen: Any) -> None:
    """Report on three classifiers of scikit-learn's digits."""
    with _progress() as tell:
        tell("Starting")
        from jaxmetrics import _report

        _report.keep_programs()

    settings = _report.Settings(**chosen, command=_command_line())
    _report.check_settings(settings)
    _report.check_folder(output)
    with _progress() as tell:
        problem = _report.digits_problem(settings.seed, tell)
    with _report.compiled_for(problem):
        _show(partial(_report.evaluate_problem, problem), settings, as_json, output)


def evaluate(
    *,
    files: tuple[str, ...],
    label: str,
    score: tuple[str, ...],
    positive: str | None,
    amount: str | None,
    weight: str | None,
    cluster: str | None,
    group: str | None,
    slices: tuple[str, ...],
    output: Path | None,
    as_json: bool,
    stream: bool | None,
    separator: str | None,
    drop_missing: bool,
    **chosen: Any,
) -> None:
    """Report on the scores in files."""
    with _progress() as tell:
        tell("Starting")
        from jaxmetrics import _report

        _report.keep_programs()

    given = {name: value for name, value in chosen.items() if value not in (None, ())}
    roles: dict[str, Any] = {"label": label, "scores": score, "positive": positive}
    columns = {"amount": amount, "weight": weight, "cluster": cluster, "slice": slices or None}
    _report.refuse_options(group, positive=positive, **columns, **given)
    settings = _report.Settings(**given, command=_command_line())
    _report.check_settings(settings)
    if output is not None:
        _report.check_folder(output)
    source = _report.source_of(files, separator=separator, drops_missing=drop_missing)
    work: Callable[..., Evaluation]
    rules = {name: given.get(name) for name in ("criterion", "prevalence", *_report.CHOSEN)}
    whole = {**columns, **rules, "group": group}  # options that need all items at once
    if stream is None:
        stream = not any(whole.values()) and _report.is_too_large(source)
    if stream:
        _report.refuse_with_stream(**whole)
        work = partial(_report.evaluate_stream, source, **roles)
        _show(work, settings, as_json, output)
        return
    problem: Problem | Queries
    with _progress() as tell:
        if group is None:
            problem = _report.problem_of_file(
                source, tell, **roles, weight=weight, amount=amount, cluster=cluster, slices=slices
            )
            work = partial(_report.evaluate_problem, problem)
        else:
            ranked: Any = {"group": group, "cluster": cluster, "gain": settings.gain}
            problem = _report.queries_of_file(source, tell, label=label, scores=score, **ranked)
            work = partial(_report.evaluate_queries, problem)
    with _report.compiled_for(problem):
        _show(work, settings, as_json, output)


def _show(
    work: Callable[..., Evaluation], settings: Settings, as_json: bool, output: Path | None
) -> None:
    """Evaluate, print tables or JSON, and write the files if there is a folder for them."""
    import click
    from rich.console import Console

    from jaxmetrics import _report

    with _progress() as tell:
        evaluation = work(settings, tell, with_figures=output is not None)
    try:
        if as_json:
            click.echo(_report.json_of(_report.report(settings, evaluation)))
        else:
            console = Console()
            if not console.is_terminal:
                console.width = WIDTH
            for table in _report.tables_of(evaluation, console):
                console.print(table)
                console.print()
            for note in evaluation.warnings:
                click.echo(f"Note: {note}.")
    finally:  # the report is written even if printing fails, as into `head`
        if output is not None:
            with _progress() as tell:
                tell("Drawing")
                _report.save(settings, evaluation, output, tell)
            figures = ", ".join(drawing.name for drawing in evaluation.drawings)
            what = f"report.html, metrics.json, metrics.csv and figures ({figures})"
            click.echo(f"Wrote {what} to {output}", err=as_json)


def _command_line() -> str:
    """The command as the user typed it, for the report."""
    import click

    return str(click.get_current_context().find_root().obj or "")


@contextmanager
def _progress() -> Iterator[Tell]:
    """A progress bar on stderr, if that is a terminal and the work takes longer than `PATIENCE`.

    Yields a function that takes the work in progress and, if known, the share that is done.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    from jaxmetrics.plots._names import visible

    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    task = bar.add_task("", total=None)

    def tell(what: str, done: float | None = None) -> None:
        total = None if done is None else 1
        bar.update(task, description=visible(what), completed=done, total=total)

    later = threading.Timer(PATIENCE, bar.start)
    later.daemon = True
    later.start()
    try:
        yield tell
    finally:
        later.cancel()
        later.join()
        bar.stop()


def commands() -> click.Group:
    """The commands. A function, because importing this module must not need the extra."""
    import click

    class Command(click.Command):
        """Refuses an option that is given twice, as only the last one would count."""

        def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
            for one in (x for x in self.params if isinstance(x, click.Option) and not x.multiple):
                before = itertools.takewhile(lambda x: x != "--", args)
                given = sum(x.split("=")[0] in one.opts for x in before)
                if given > 1:
                    raise click.UsageError(f"{one.opts[0]} is given {given} times: write it once")
            return super().parse_args(ctx, args)

    class Group(click.Group):
        """Says how a report is made in place of a command that is none, such as `report`."""

        def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
            if args[0] not in self.commands and not ctx.resilient_parsing:
                raise click.UsageError(f"there is no command {args[0]!r}: write {USAGE}")
            return super().resolve_command(ctx, args)

    def option(*names: str, **settings: Any) -> click.Option:
        return click.Option(names, show_default=True, **settings)

    folder = click.Path(path_type=Path)
    json_flag: dict[str, Any] = {"is_flag": True, "help": "Print only JSON."}
    styles, style_help = click.Choice(STYLES), "Of figures; print has greys, dashes and PDF files."
    style_option = option("--style", type=styles, default=STYLES[0], help=style_help)
    level_help = "Confidence level of intervals, bands and comparisons."

    def inference(seed_help: str) -> list[click.Option]:
        return [
            option("--confidence-level", type=float, default=0.95, help=level_help),
            option("--n-resamples", type=int, default=2000, help="Number of bootstrap resamples."),
            option("--seed", type=int, default=0, help=seed_help),
        ]

    group = Group("jaxmetrics", help=HELP)
    group.command(
        cls=Command,
        help=DEMO_HELP,
        params=[
            option("--output", type=folder, default="jaxmetrics-report", help="Output folder."),
            style_option,
            option("--max-fpr", type=float, default=0.05, help="Highest FPR of the partial AUC."),
            *inference("Seed of the split, the random forest and the resampling."),
            option("--json", "as_json", **json_flag),
        ],
    )(demo)
    group.command(
        cls=Command,
        help=EVALUATE_HELP,
        params=[
            click.Argument(["files"], nargs=-1, required=True, metavar="FILE..."),
            option(
                "--label",
                required=True,
                metavar="COLUMN",
                help="Column of labels: 0 and 1, or see --positive; grades with --group.",
            ),
            option(
                "--score",
                required=True,
                multiple=True,
                metavar="COLUMN",
                help="Column of scores; repeat it for each model.",
            ),
            option("--positive", metavar="VALUE", help="The label that is positive."),
            option(
                "--max-fpr",
                type=float,
                help=f"Highest FPR, of the partial AUC and a threshold; {MAX_FPR:g} if not given.",
            ),
            option("--amount", metavar="COLUMN", help="Column of amounts, for recall by amount."),
            option("--weight", metavar="COLUMN", help="Column of item weights."),
            option("--cluster", metavar="COLUMN", help="Column of cluster ids, such as patients."),
            option("--group", metavar="COLUMN", help="Column of query ids, for rankings."),
            option(
                "--k",
                type=int,
                multiple=True,
                help=f"How many top items count; {K} if not given; repeat it for several.",
            ),
            option(
                "--gain",
                type=click.Choice(GAINS),
                help=f"Gain of nDCG: the grade, or 2^grade - 1; {GAINS[0]} if not given.",
            ),
            option(
                "--max-grade",
                type=float,
                help="Highest grade of the scale, for expected reciprocal ranks.",
            ),
            option(
                "--slice",
                "slices",
                multiple=True,
                metavar="COLUMN",
                help="Column whose values divide the items into slices; of more than 20, numbers "
                "become ranges, and days weeks or months; repeat it for several.",
            ),
            option(
                "--criterion",
                type=click.Choice(CRITERIA),
                help="One more threshold, that of the largest recall - FPR (Youden's index).",
            ),
            option("--threshold", type=float, help="One more threshold, such as one in use."),
            option(
                "--min-precision",
                type=float,
                help="One more: the most recall with at least this precision.",
            ),
            option("--min-recall", type=float, help="One more: the lowest FPR with this recall."),
            option("--fp-cost", type=float, help="Cost of a false positive; 1 beside --fn-cost."),
            option("--fn-cost", type=float, help="Cost of a false negative; 1 beside --fp-cost."),
            option(
                "--prevalence",
                type=float,
                help="Share of positives where thresholds are used; that of FILE if not given.",
            ),
            *inference("Seed of the resampling."),
            option("--output", type=folder, help="Output folder; without it, only print."),
            style_option,
            option("--json", "as_json", **json_flag),
            option("--separator", help="Character between columns, as ';' or tab."),
            option("--drop-missing", is_flag=True, help="Leave out rows with missing cells."),
            option(
                "--stream/--no-stream",
                default=None,
                help="Read FILE in batches, or into memory; in batches by itself if it is large.",
            ),
        ],
    )(evaluate)
    return click.version_option(jaxmetrics.__version__)(group)


def main() -> None:
    """Run the command, or say what to install."""
    if any(find_spec(name) is None for name in EXTRA):
        sys.stderr.write("The jaxmetrics command needs: pip install 'jaxmetrics-exact[report]'\n")
        sys.exit(2)
    if isinstance(sys.stdout, io.TextIOWrapper):  # a file on Windows lacks ≥, and others letters
        sys.stdout.reconfigure(errors="backslashreplace")
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # hides such as its search for fonts
    try:
        commands()(prog_name="jaxmetrics", obj=shlex.join(["jaxmetrics", *sys.argv[1:]]))
    except OSError as error:
        if error.filename is not None:
            raise
        # The error names no file, so it is of standard output. If the reader is gone, click ends
        # quietly before this.
        sys.stderr.write(f"Error: cannot write to standard output: {error.strerror}\n")
        sys.exit(2)
