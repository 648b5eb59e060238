"""Benchmarks against what a user would use instead. `python -m benchmarks` prints the tables."""
