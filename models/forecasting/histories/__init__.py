"""Histories: read from a request, their holes filled, their newest values scored."""
