"""Confidence intervals: the type, and the formulas from estimates or replicates to limits."""
