"""What the command line reports: a file or demonstration data in, tables and files out.

Needs the packages of the `report` extra.
"""

from jaxmetrics._report._demonstration import digits_problem
from jaxmetrics._report._evaluation import Evaluation, evaluate
from jaxmetrics._report._output import json_of, report, save
from jaxmetrics._report._problem import Problem, problem_of_file
from jaxmetrics._report._settings import Settings, Tell, check_settings, make_directory
from jaxmetrics._report._tables import tables_of

__all__ = [
    "Evaluation",
    "Problem",
    "Settings",
    "Tell",
    "check_settings",
    "digits_problem",
    "evaluate",
    "json_of",
    "make_directory",
    "problem_of_file",
    "report",
    "save",
    "tables_of",
]
