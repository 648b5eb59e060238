"""Months of items."""

N, MONTHS = 1200, tuple(f"2026-{m:02d}" for m in range(1, 7))
