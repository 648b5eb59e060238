"""The command `jaxmetrics`, called in this process."""

import json

from click.testing import CliRunner

from jaxmetrics import cli


def run(*arguments):
    """The result of a command; an exception that is not an exit is raised."""
    return CliRunner().invoke(
        cli.commands(), [str(x) for x in arguments], prog_name="jaxmetrics", catch_exceptions=False
    )


def evaluated(file, *arguments):
    """What `jaxmetrics evaluate` finds, by its JSON."""
    result = run("evaluate", file, "--json", *arguments)
    assert result.exit_code == 0, result.output
    assert result.stderr == "" or "--output" in arguments, result.stderr
    return json.loads(result.stdout)
