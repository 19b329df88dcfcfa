"""Databases that the operator named: each runs one SELECT itself, and can change nothing."""
