"""Offline predictions of the service: rows of a data set in blocks, their cost, where they go."""
