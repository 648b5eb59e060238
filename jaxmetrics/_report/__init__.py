"""The report of the command line: from a file or demonstration data to tables and files.

Needs the packages of the `report` extra.
"""

from jaxmetrics._report._arrays import Report, report_of_arrays
from jaxmetrics._report._classification import evaluate_problem
from jaxmetrics._report._compilation import compiled_for, keep_programs
from jaxmetrics._report._demonstration import digits_problem
from jaxmetrics._report._evaluation import Evaluation
from jaxmetrics._report._folder import check_folder
from jaxmetrics._report._output import json_of, report, save
from jaxmetrics._report._problem import Problem, problem_of_file
from jaxmetrics._report._queries import Queries, queries_of_file
from jaxmetrics._report._ranking import evaluate_queries
from jaxmetrics._report._settings import (
    CHOSEN,
    InputError,
    Settings,
    Tell,
    check_settings,
    refuse_options,
    refuse_with_stream,
)
from jaxmetrics._report._sources import source_of
from jaxmetrics._report._stream import evaluate_stream, is_too_large
from jaxmetrics._report._tables import tables_of

__all__ = [
    "CHOSEN",
    "Evaluation",
    "InputError",
    "Problem",
    "Queries",
    "Report",
    "Settings",
    "Tell",
    "check_folder",
    "check_settings",
    "compiled_for",
    "digits_problem",
    "evaluate_problem",
    "evaluate_queries",
    "evaluate_stream",
    "is_too_large",
    "json_of",
    "keep_programs",
    "problem_of_file",
    "queries_of_file",
    "refuse_options",
    "refuse_with_stream",
    "report",
    "report_of_arrays",
    "save",
    "source_of",
    "tables_of",
]
