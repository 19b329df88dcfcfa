"""Sums over the steps of forecasts and over series: dependence, calibration, answers."""
