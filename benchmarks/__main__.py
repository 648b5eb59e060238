"""`python -m benchmarks` prints every table; `--quick` uses small data, to check that it runs."""

from __future__ import annotations

import argparse

from benchmarks.sections import SECTIONS, Options
from benchmarks.tables import machine, show


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    names = ", ".join(SECTIONS)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"any of {names}; or all")
    parser.add_argument("--quick", action="store_true", help="small data and few rounds")
    parser.add_argument("--runs", type=int, help="largest number of timed rounds per row")
    parser.add_argument("--figure", metavar="FILE", help="draw times by size; needs sizes")
    given = parser.parse_args()
    chosen = given.sections or list(SECTIONS)
    if unknown := set(chosen) - set(SECTIONS):
        parser.error(f"no section {', '.join(sorted(unknown))}: choose from {names}")
    if given.figure and "sizes" not in chosen:
        parser.error("--figure needs the section sizes: add sizes to the command")
    options = Options(given.quick, given.runs or (2 if given.quick else 11), given.figure)
    print(machine() + "\n")
    for name in chosen:
        for table in SECTIONS[name](options):
            show(table)


if __name__ == "__main__":
    main()
