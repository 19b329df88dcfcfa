"""Exponential smoothing and autoregressions with posteriors, beside the network."""
