"""Forecasts of series: regression on windows of the past, rolled out into sample paths."""
