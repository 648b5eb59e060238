"""Resampling: units, draws of them, and the metric of each resample."""
