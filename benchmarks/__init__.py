"""Benchmarks against the libraries that users have today; `python -m benchmarks` prints them."""
