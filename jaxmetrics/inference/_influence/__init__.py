"""Gradients of a metric with respect to weights, and the variances that they give."""
