"""Metrics of hard predictions: items are counted by predicted and by true class."""
