"""Intervals: the type, the formulas, and the table of what inference adds to each metric."""
