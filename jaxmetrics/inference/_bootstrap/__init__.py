"""Resampling: the units, how often each is drawn, and the metric of each resample."""
