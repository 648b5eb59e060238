"""What an interval is, and the formulas from estimates or replicates to its limits."""
