"""Predictive mixtures of shaped targets: moments, quantiles and scores."""
