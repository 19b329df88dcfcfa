"""Simulations with known answers: is what a model states true?

Every module of this package verifies one statement. Its `checks(scale)` runs the simulations and
returns the figures beside what they must be.
"""
