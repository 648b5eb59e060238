"""Metrics of scores and two classes: the score table, its curves, areas and thresholds."""
