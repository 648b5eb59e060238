"""Gradients of a metric with respect to the weights, and the variances computed from them."""
